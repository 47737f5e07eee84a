"""What an installation contains, and that it leaves other packages alone."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import fetchlab

ROOT = Path(__file__).parent.parent
FOLDERS = ("sim", "tokenizers", "policy", "train", "eval")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of the files in the wheel, built as `pip install .` builds it."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (file,) = out.glob("*.whl")
    return zipfile.ZipFile(file).namelist()


def test_the_wheel_holds_every_source_file_once(wheel: list[str]) -> None:
    sources = [
        f"fetchlab/{path.relative_to(ROOT)}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    root = [f"fetchlab/{name}" for name in ("__init__.py", "cli.py", "errors.py", "py.typed")]
    packaged = [name for name in wheel if ".dist-info/" not in name]
    assert sorted(packaged) == sorted(sources + root)


def test_the_wheel_installs_nothing_but_fetchlab(wheel: list[str]) -> None:
    # A top-level `tokenizers` would overwrite Hugging Face's.
    tops = {name.split("/")[0] for name in wheel}
    assert tops == {"fetchlab", f"fetchlab-{fetchlab.__version__}.dist-info"}


def test_the_wheel_carries_licence_and_command(wheel: list[str]) -> None:
    names = [name.split(".dist-info/")[-1] for name in wheel]
    assert "licenses/LICENSE" in names and "entry_points.txt" in names


def test_bare_folder_names_cannot_be_imported_from_an_installation(tmp_path: Path) -> None:
    check = f"""
import importlib.util, sys
sys.path.insert(0, {str(ROOT / "src")!r})
import fetchlab.tokenizers.base
found = [n for n in {FOLDERS!r} if (s := importlib.util.find_spec(n)) and {str(ROOT)!r} in str(
    [s.origin, *(s.submodule_search_locations or [])])]
assert not found, found
assert not set({FOLDERS!r}) & set(sys.modules), "imported under a bare name"
"""
    subprocess.run([sys.executable, "-c", check], cwd=tmp_path, check=True)


def test_versions_agree(project: dict[str, Any]) -> None:
    assert project["project"]["version"] == fetchlab.__version__
    assert f"## {fetchlab.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_constraints_pin_every_dependency_once(project: dict[str, Any]) -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    names = [normal(name) for name, _ in pins]
    wanted = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["dev"],
    ]
    assert len(set(names)) == len(names)
    assert {normal(line.split(">=")[0]) for line in wanted} <= set(names)
    assert ["torch", "2.13.0"] in pins


def test_pins_satisfy_the_lower_bounds(project: dict[str, Any]) -> None:
    bounds = dict(line.split(">=") for line in project["project"]["dependencies"])
    for name, bound in bounds.items():
        assert release(metadata.version(name)) >= release(bound), name


def normal(name: str) -> str:
    return name.lower().replace("_", "-")


def release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("+")[0].split(".") if part.isdigit())
