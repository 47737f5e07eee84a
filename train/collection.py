"""Collecting a dataset: workers stage episodes, then the episodes are joined in order."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from functools import cache, partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from fetchlab.errors import UserError
from fetchlab.policy.expert import Expert
from fetchlab.sim.config import EnvConfig
from fetchlab.train import lerobot
from fetchlab.train.demonstrate import CollectConfig, demonstrate
from fetchlab.train.provenance import refuse_differences, versions
from fetchlab.train.writer import AboutEpisode, DatasetWriter, about_of, episode_table

OnDemonstrated = Callable[[int, int], None]
"""called with (demonstrations staged, demonstrations in all)"""


@dataclass(frozen=True, kw_only=True)
class Yield:
    """How often the expert succeeded in scenes of one size, noise included."""

    n_objects: int
    demonstrations: int
    attempts: int
    failures: dict[str, int]  # reason → attempts


def collect(
    config: CollectConfig, on_demonstrated: OnDemonstrated | None = None
) -> tuple[Yield, ...]:
    """Demonstrate, verify and write a dataset; returns the expert's yield by object count.

    A killed collection leaves its finished episodes in `.staging`; with `resume` it ends with the
    same bytes as one left alone. Raises UserError if `out` holds anything else.
    """
    if not _is_complete(config):
        _begin(config)
        _stage_missing(config, on_demonstrated)
        _join(config)
    shutil.rmtree(_staging(config.out), ignore_errors=True)
    block = lerobot.read_info(config.out)["fetchlab"]
    return tuple(Yield(**row) for row in block["yield"])


def _staging(out: Path) -> Path:
    return out / ".staging"


def _staged(out: Path, episode_index: int) -> Path:
    return _staging(out) / f"episode-{episode_index:06d}.parquet"


def _settings(config: CollectConfig) -> dict[str, Any]:
    """All that decides the bytes of the dataset, as JSON keeps it."""
    settings = {
        "env": asdict(config.env),
        "episodes": config.episodes,
        "counts": config.counts,
        "seed": config.seed,
        "noise": asdict(config.noise),
        "versions": versions("numpy", "pybullet"),
    }
    plain: dict[str, Any] = json.loads(json.dumps(settings))
    return plain


def _is_complete(config: CollectConfig) -> bool:
    """Whether nothing is left to do; UserError if `out` holds anything that is not ours to fill."""
    out, begun = config.out, _staging(config.out) / "settings.json"
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; --out must be an empty or new folder")
    present = {path.name for path in out.iterdir()} if out.exists() else set()
    if present and not config.resume:
        raise UserError(f"{out} is not empty: choose another --out, or finish it with --resume")
    settings = _settings(config)
    if (out / lerobot.INFO_PATH).is_file():
        block = lerobot.read_info(out)["fetchlab"]
        refuse_differences(out, {key: block.get(key) for key in settings}, settings)
        return True
    if begun.is_file():
        refuse_differences(out, lerobot.read_json(begun), settings)
    elif present - {_staging(out).name}:
        raise UserError(f"{out} holds something else than an interrupted collection")
    return False


def _begin(config: CollectConfig) -> None:
    staging = _staging(config.out)
    staging.mkdir(parents=True, exist_ok=True)
    temporary = staging / f"settings-{os.getpid()}.tmp"
    temporary.write_text(json.dumps(_settings(config), indent=4))
    os.replace(temporary, staging / "settings.json")


def _stage_missing(config: CollectConfig, on_demonstrated: OnDemonstrated | None) -> None:
    missing = [i for i in range(config.episodes) if not _staged(config.out, i).exists()]
    done = config.episodes - len(missing)
    if on_demonstrated:
        on_demonstrated(done, config.episodes)
    for _ in _staged_one_by_one(config, missing):
        done += 1
        if on_demonstrated:
            on_demonstrated(done, config.episodes)


def _staged_one_by_one(config: CollectConfig, missing: list[int]) -> Iterator[None]:
    stage = partial(_stage, config)
    if config.workers == 1 or len(missing) < 2:
        yield from map(stage, missing)
        return
    pool = ProcessPoolExecutor(
        min(config.workers, len(missing)),
        mp_context=multiprocessing.get_context("spawn"),  # fork would copy a running simulator
        initializer=prepare_worker,
    )
    try:
        yield from pool.map(stage, missing)
    except BrokenProcessPool:
        raise UserError(
            "a worker process died (out of memory?): finish the collection with --resume"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def prepare_worker() -> None:
    """Leave Ctrl-C to the parent, and do not outlive it: a killed parent cannot say goodbye."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None  # only workers run this
    wait([parent.sentinel])
    os._exit(1)


@cache  # a process builds its simulator once, for all its episodes
def _workshop(env: EnvConfig) -> tuple[Any, Expert]:
    from fetchlab.sim.env import Tabletop

    return Tabletop.from_config(env), Expert(env)


def _stage(config: CollectConfig, episode_index: int) -> None:
    """Demonstrate one episode and put it into the staging folder, whole or not at all."""
    environment, expert = _workshop(config.env)
    episode = demonstrate(environment, expert, config, episode_index)
    path = _staged(config.out, episode_index)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    pq.write_table(episode_table(episode, config.env), temporary)
    os.replace(temporary, path)


def _join(config: CollectConfig) -> None:
    """All staged episodes, in order, become the dataset; `meta/` moves last and completes it."""
    joined = _staging(config.out) / "joined"
    shutil.rmtree(joined, ignore_errors=True)
    writer = DatasetWriter(joined, config.env)
    abouts = []
    for episode_index in range(config.episodes):
        table = lerobot.read_table(_staged(config.out, episode_index))
        abouts.append(about_of(table))
        writer.add(table)
    yields = [asdict(row) for row in _yields(abouts)]
    writer.close({**_settings(config), "yield": yields})
    for part in ("data", "meta"):
        shutil.rmtree(config.out / part, ignore_errors=True)  # from a kill between the two moves
        os.replace(joined / part, config.out / part)


def _yields(abouts: list[AboutEpisode]) -> list[Yield]:
    by_count: dict[int, list[AboutEpisode]] = {}
    for about in abouts:
        by_count.setdefault(about.n_objects, []).append(about)
    return [
        Yield(
            n_objects=n_objects,
            demonstrations=len(group),
            attempts=sum(1 + len(about.failures) for about in group),
            failures=dict(sorted(Counter(r for about in group for r in about.failures).items())),
        )
        for n_objects, group in sorted(by_count.items())
    ]
