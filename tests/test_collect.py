"""Collecting: the same bytes whatever the workers and interruptions; successes only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from fetchlab.errors import UserError
from fetchlab.policy.expert import Noise
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.observation import MAX_ROWS, OBJECT_FEATURES, Observation
from fetchlab.train.collection import Yield, collect
from fetchlab.train.commands import counting, yield_table
from fetchlab.train.dataset import Demonstrations
from fetchlab.train.demonstrate import MAX_ATTEMPTS, CollectConfig, demonstrate

BLIND = EnvConfig(cameras=())
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
SCRIPT = """
import sys
from pathlib import Path
from fetchlab.sim.config import EnvConfig
from fetchlab.train.collection import collect
from fetchlab.train.demonstrate import CollectConfig
if __name__ == "__main__":
    episodes, workers = map(int, sys.argv[2:])
    env = EnvConfig(image_size=16)
    collect(CollectConfig(out=Path(sys.argv[1]), episodes=episodes, workers=workers, env=env))
"""


def config(out: Path, **changes: Any) -> CollectConfig:
    settings = {"episodes": 10, "workers": 1, "env": EnvConfig(image_size=16), **changes}
    return CollectConfig(out=out, **settings)


def contents(root: Path) -> dict[str, bytes]:
    files = [path for path in root.rglob("*") if path.is_file() and ".decoded" not in path.parts]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


class FakeEnvironment:
    """Three steps long; succeeds from the given attempt on."""

    def __init__(self, succeeds_at: int) -> None:
        self.attempts, self.succeeds_at = 0, succeeds_at
        self.seeds: list[int] = []
        self.received: list[np.ndarray[Any, Any]] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        assert seed is not None and options is not None
        self.attempts += 1
        self.steps = 0
        self.seeds.append(seed)
        return self._moment(), {}

    def step(
        self, action: np.ndarray[Any, Any]
    ) -> tuple[Mapping[str, Any], float, bool, bool, Mapping[str, Any]]:
        self.received.append(action)
        self.steps += 1
        success = self.steps == 3 and self.attempts >= self.succeeds_at
        info = {"is_success": success, "failure_reason": "" if success else "dropped"}
        return self._moment(), float(success), success, self.steps == 3, info

    def _moment(self) -> Mapping[str, Any]:
        return {
            "agent_pos": np.full(11, self.steps, np.float32),
            "environment_state": np.zeros(MAX_ROWS * (1 + len(OBJECT_FEATURES)), np.float32),
            "instruction": "fetch the red block",
        }


class FakeExpert:
    def reset(self) -> None:
        self.acted = 0

    def demonstrate(
        self, observation: Observation, noise: Noise, generator: np.random.Generator
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        self.acted += 1
        clean = np.full(8, self.acted, np.float32)
        return clean, clean + generator.normal(size=8).astype(np.float32)


# One demonstration ------------------------------------------------------------------------


def test_labels_are_clean_and_executed_actions_noisy(tmp_path: Path) -> None:
    environment = FakeEnvironment(1)
    episode = demonstrate(environment, FakeExpert(), config(tmp_path, env=BLIND), 0)
    assert episode.actions[:, 0].tolist() == [1, 2, 3]
    np.testing.assert_array_equal(episode.executed_actions, np.stack(environment.received))
    assert np.abs(episode.executed_actions - episode.actions).min() > 0
    assert episode.proprioception[:, 0].tolist() == [0, 1, 2]  # as seen before each action


def test_failures_are_left_out_and_counted(tmp_path: Path) -> None:
    environment = FakeEnvironment(succeeds_at=3)
    episode = demonstrate(environment, FakeExpert(), config(tmp_path, env=BLIND), 5)
    assert episode.about.failures == ("dropped", "dropped")
    assert len(episode) == 3 and episode.rewards.tolist() == [0, 0, 1]
    assert episode.about.scene_seed == environment.seeds[-1]
    assert len(set(environment.seeds)) == 3
    assert episode.about.n_objects == 3  # the counts are taken in turn: 2 3 4 5 2 3


def test_retries_are_bounded(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"failed {MAX_ATTEMPTS} times.*dropped"):
        demonstrate(FakeEnvironment(10**6), FakeExpert(), config(tmp_path, env=BLIND), 0)


def test_scene_seeds_are_even(tmp_path: Path) -> None:
    environment = FakeEnvironment(1)
    for index in range(50):
        demonstrate(environment, FakeExpert(), config(tmp_path, env=BLIND), index)
    assert len(set(environment.seeds)) == 50
    assert all(seed % 2 == 0 for seed in environment.seeds)


# The same bytes ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Collected by one worker without interruption."""
    out = tmp_path_factory.mktemp("alone") / "data"
    collect(config(out))
    return out


def test_two_workers_write_the_same_bytes(alone: Path, tmp_path: Path) -> None:
    collect(config(tmp_path / "data", workers=2))
    assert contents(tmp_path / "data") == contents(alone)


def test_the_dataset_trains_and_can_be_replayed(alone: Path) -> None:
    from fetchlab.sim.env import Tabletop

    demonstrations = Demonstrations.load(alone)
    assert demonstrations.n_objects.tolist() == [2, 3, 4, 5, 2, 3, 4, 5, 2, 3]
    env = Tabletop.from_config(demonstrations.env_config)
    moment, _ = env.reset(
        seed=int(demonstrations.scene_seeds[1]),
        options={"n_objects": int(demonstrations.n_objects[1])},
    )
    info: dict[str, Any] = {}
    for frame in range(*demonstrations.bounds[1:3]):
        np.testing.assert_array_equal(moment["agent_pos"], demonstrations.proprioception[frame])
        np.testing.assert_array_equal(moment["pixels"]["front"], demonstrations.images[frame, 0])
        moment, _, _, _, info = env.step(demonstrations.executed_actions[frame])
    env.close()
    assert info["is_success"]


def test_killed_and_resumed_writes_the_same_bytes(alone: Path, tmp_path: Path) -> None:
    out = tmp_path / "data"
    command = [sys.executable, "-c", SCRIPT, str(out), "10", "1"]
    process = subprocess.Popen(command, env=ENVIRONMENT)
    wait_for(lambda: len(list(out.glob(".staging/episode-*.parquet"))) >= 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    staged = sorted(out.glob(".staging/episode-*.parquet"))
    assert 2 <= len(staged) < 10 and not (out / "meta").exists()
    written = staged[0].stat().st_mtime_ns
    with pytest.raises(UserError, match=r"not empty.*--resume"):
        collect(config(out))
    assert staged[0].stat().st_mtime_ns == written
    told: list[int] = []
    collect(config(out, resume=True), lambda done, _: told.append(done))
    assert told == list(range(len(staged), 11))
    assert contents(out) == contents(alone)


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.005)


@pytest.mark.skipif(not Path("/proc").exists(), reason="reads /proc")
def test_workers_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path / "data"), "400", "2"]
    process = subprocess.Popen(command, env=ENVIRONMENT)
    wait_for(lambda: list(tmp_path.glob("data/.staging/episode-*.parquet")))
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    workers = [int(pid) for pid in children.read_text().split()]
    assert len(workers) >= 2
    process.kill()
    process.wait()
    wait_for(lambda: not any(is_running(pid) for pid in workers))


def is_running(pid: int) -> bool:
    """Neither gone nor a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_collecting_imports_no_torch() -> None:
    code = (
        "import sys, fetchlab.train.collection, fetchlab.sim.env; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT).returncode == 0


# Resuming and the door --------------------------------------------------------------------


def test_resuming_a_finished_collection_changes_nothing(alone: Path) -> None:
    before = contents(alone)
    assert sum(row.demonstrations for row in collect(config(alone, resume=True))) == 10
    assert contents(alone) == before


def test_killed_between_the_moves(alone: Path, tmp_path: Path) -> None:
    """The data files had moved into place, `meta/` had not."""
    out = tmp_path / "data"
    collect(config(out))
    info = json.loads((out / "meta/info.json").read_text())
    del info["fetchlab"]["yield"]
    (out / ".staging").mkdir()
    (out / ".staging/settings.json").write_text(json.dumps(info["fetchlab"]))
    for file in (out / "meta").rglob("*.*"):
        file.unlink()
    collect(config(out, resume=True))
    assert contents(out) == contents(alone)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "seed 0, now 1"),
        ({"episodes": 7}, "episodes 10, now 7"),
        ({"counts": (2, 3)}, "counts 2 3 4 5, now 2 3"),
        ({"noise": Noise(position=0.5)}, r"noise\.position 0\.015, now 0\.5"),
        ({"env": EnvConfig(image_size=32)}, r"env\.image_size 16, now 32"),
    ],
)
def test_resuming_with_other_settings_is_refused(
    alone: Path, changes: dict[str, Any], message: str
) -> None:
    before = contents(alone)
    with pytest.raises(UserError, match=message):
        collect(replace(config(alone, resume=True), **changes))
    assert contents(alone) == before


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_with_something_else_is_left_alone(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(UserError, match=r"not empty|something else"):
        collect(config(tmp_path, resume=resume))
    assert contents(tmp_path) == {"thesis.tex": b"precious"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"episodes": 0}, "episodes"),
        ({"workers": 0}, "workers"),
        ({"counts": ()}, "counts"),
        ({"counts": (2, 21)}, "counts must be 2 to 20"),
        ({"seed": -1}, "seed"),
        ({"env": EnvConfig(depth=True)}, "keep no depth images: collect without --depth"),
    ],
)
def test_settings_are_checked(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        config(tmp_path, **changes)


def test_the_yield_is_shown() -> None:
    row = Yield(n_objects=4, demonstrations=99, attempts=100, failures={"dropped": 1})
    console = Console(record=True, width=80)
    with counting(console, "demonstrating", "episodes/s") as tell:
        tell(0, 2)
        tell(2, 2)
    console.print(yield_table((row,)))
    text = console.export_text()
    assert "99.0 %" in text and "dropped 1" in text
