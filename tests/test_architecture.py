"""The shape of the code: imports point one way, and nothing grows too long to read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("sim", "tokenizers", "policy", "train", "eval")
# What each folder may know of fetchlab; a folder always knows itself and fetchlab.errors.
MAY_IMPORT = {
    "sim": (),
    "tokenizers": (
        "fetchlab.sim.language",
        "fetchlab.sim.observation",
        "fetchlab.sim.scene",
        "fetchlab.sim.tasks",
    ),
    "policy": (
        "fetchlab.tokenizers",
        "fetchlab.sim.cameras",
        "fetchlab.sim.config",
        "fetchlab.sim.footprint",
        "fetchlab.sim.kinematics",
        "fetchlab.sim.language",
        "fetchlab.sim.looks",
        "fetchlab.sim.observation",
        "fetchlab.sim.scene",
        "fetchlab.sim.shapes",
        "fetchlab.sim.tasks",
    ),
    "train": ("fetchlab.sim", "fetchlab.tokenizers", "fetchlab.policy"),
    "eval": ("fetchlab.sim", "fetchlab.tokenizers", "fetchlab.policy", "fetchlab.train"),
}
SOURCES = [
    *(ROOT / "src" / "fetchlab").glob("*.py"),
    *(path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))),
]
ALL = [*SOURCES, *sorted((ROOT / "tests").rglob("*.py"))]


def imports(path: Path) -> Iterator[str]:
    """Every module the file imports, at the top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield f"{'.' * node.level}{node.module or ''}"


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def relative(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


@pytest.mark.parametrize("folder", FOLDERS)
def test_imports_point_one_way(folder: str) -> None:
    allowed = ("fetchlab.errors", f"fetchlab.{folder}", *MAY_IMPORT[folder])
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in (ROOT / folder).rglob("*.py")
        for module in imports(path)
        if within(module, "fetchlab")
        and module != "fetchlab"  # the version, and registering the environment
        and not any(within(module, name) for name in allowed)
    ]
    assert not wrong


def test_imports_are_absolute_and_through_fetchlab() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in ALL
        for module in imports(path)
        if module.startswith(".") or module.split(".")[0] in FOLDERS
    ]
    assert not wrong


def test_only_the_world_knows_the_engine() -> None:
    knowing = [path for path in SOURCES if "pybullet" in imports(path)]
    data = [path for path in SOURCES if "pybullet_data" in imports(path)]
    assert relative(knowing) == ["sim/world.py"]
    assert set(relative(data)) <= {"sim/assets.py"}


def test_the_five_folders_are_no_packages_of_their_own() -> None:
    # `sim/__init__.py` would make `import sim` work from the checkout, and tokenizers/ would hide
    # Hugging Face's package of that name.
    assert not [folder for folder in FOLDERS if (ROOT / folder / "__init__.py").exists()]


def test_the_import_root_links_to_the_five_folders() -> None:
    for folder in FOLDERS:
        link = ROOT / "src" / "fetchlab" / folder
        assert link.is_symlink() and link.resolve() == ROOT / folder


def test_no_file_is_too_long_to_read() -> None:
    long = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in ALL}
    assert not {name: n for name, n in long.items() if n > 300}


def test_no_function_is_too_long_to_read() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name} has {length} lines"
        for path in ALL
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > 50
    ]
    assert not wrong


def test_there_is_no_drawer_for_everything() -> None:
    assert not [p for p in ALL if p.stem in ("utils", "util", "helpers", "common", "misc")]
