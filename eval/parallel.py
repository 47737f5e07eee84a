"""Episodes over processes, in fixed shards: the numbers do not depend on how many there are."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from gymnasium.vector import SyncVectorEnv

from fetchlab.errors import UserError
from fetchlab.eval.ablation import ABLATIONS
from fetchlab.eval.rollout import BATCH, EpisodeResult, EpisodeSpec, make_worlds, rollout
from fetchlab.policy.base import Policy
from fetchlab.sim.config import EnvConfig

SHARD = 25  # episodes; a whole number of shards a core keeps all of them busy to the end


@dataclass(frozen=True, kw_only=True)
class Role:
    """Who plays, in which world, and what is kept from it."""

    source: str
    """folder of a checkpoint, or a registered name"""
    world: EnvConfig
    ablation: str | None = None
    """a name of ABLATIONS"""


Played = dict[tuple[Role, EpisodeSpec], EpisodeResult]


@dataclass(frozen=True, kw_only=True)
class Shard:
    """The smallest piece of work handed to a process."""

    role: Role
    specs: tuple[EpisodeSpec, ...]


def split(role: Role, specs: Sequence[EpisodeSpec]) -> list[Shard]:
    """Shards of fixed size, whatever the number of workers."""
    return [
        Shard(role=role, specs=tuple(specs[start : start + SHARD]))
        for start in range(0, len(specs), SHARD)
    ]


def worker_count(asked: int) -> int:
    """The number of processes; 0 asks for one a core that this process may use."""
    if asked < 0:
        raise UserError(f"--workers must be 0 (one a core) or more, got {asked}")
    return asked or usable_cores()


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def play_shards(
    shards: Sequence[Shard], workers: int, on_done: Callable[[int], None] | None = None
) -> Played:
    """Play every shard; `on_done` hears how many episodes each one had."""
    tell = on_done or (lambda episodes: None)
    played: Played = {}
    for done in as_played(shards, workers):
        played |= done.by_episode()
        tell(len(done.results))
    return played


@dataclass(frozen=True, kw_only=True)
class Done:
    """A shard that has been played."""

    shard: Shard
    results: list[EpisodeResult]
    seconds: float
    """that it took one process"""

    def by_episode(self) -> Played:
        """Its results by who played, and which episode."""
        keys = [(self.shard.role, spec) for spec in self.shard.specs]
        return dict(zip(keys, self.results, strict=True))


def as_played(shards: Sequence[Shard], workers: int) -> Iterator[Done]:
    """Play every shard, begun in this order; each is handed over when it is done."""
    if workers == 1 or len(shards) < 2:
        with one_thread(), contextlib.closing(Player()) as player:
            yield from map(player.play, shards)
        return
    with process_pool(min(workers, len(shards))) as pool:
        futures = [pool.submit(_play_in_worker, shard) for shard in shards]
        for future in as_completed(futures):
            yield future.result()


class Player:
    """Plays shards in one process; the last policy and the last simulators are kept.

    A benchmark has too many worlds to keep them all.
    """

    def __init__(self) -> None:
        self._policies: dict[Role, Policy] = {}
        self._worlds: dict[EnvConfig, SyncVectorEnv] = {}

    def play(self, shard: Shard) -> Done:
        """All of its episodes."""
        role, started = shard.role, time.perf_counter()
        if role not in self._policies:
            self._policies = {role: policy_for(role)}
        if role.world not in self._worlds:
            self.close()
            self._worlds = {role.world: make_worlds(role.world, BATCH)}
        results = rollout(self._policies[role], shard.specs, self._worlds[role.world])
        return Done(shard=shard, results=results, seconds=time.perf_counter() - started)

    def close(self) -> None:
        """Let go of the simulators."""
        for worlds in self._worlds.values():
            worlds.close()


def policy_for(role: Role) -> Policy:
    """The policy that plays this role."""
    policy = load(role.source, role.world)
    return policy if role.ablation is None else ABLATIONS[role.ablation].wrap(policy)


def load(source: str, world: EnvConfig | None = None) -> Policy:
    """The policy of a checkpoint folder or a registered name; scripted ones act in `world`."""
    from fetchlab.policy.registry import load_policy

    return load_policy(source, world)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread: quicker for small batches, and the same sums in every process."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def process_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes for the block; a mistake in it or Ctrl-C stops them in the midst of their work."""
    others = multiprocessing.active_children()
    with _executor(workers) as pool:
        try:
            yield pool
        except BrokenProcessPool:
            raise UserError(
                "a worker process died (out of memory?): try again with fewer --workers"
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()
            raise


def _executor(workers: int) -> ProcessPoolExecutor:
    """Processes that start from a clean server with torch loaded once, where the system can."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(workers, context, initializer=_start_worker)
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["torch", "fetchlab.eval.parallel"])
    return ProcessPoolExecutor(workers, server, initializer=_start_worker)


def _start_worker() -> None:
    import torch

    from fetchlab.train.collection import prepare_worker

    prepare_worker()
    torch.set_num_threads(1)


@functools.cache
def _player() -> Player:
    """This process's player; only worker processes ask for it."""
    return Player()


def _play_in_worker(shard: Shard) -> Done:
    return _player().play(shard)
