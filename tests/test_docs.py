"""Documentation that names files, commands and links must not outlive them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fetchlab.cli import COMMANDS, parse
from fetchlab.errors import UserError
from fetchlab.eval.suites import SUITES
from fetchlab.policy.registry import POLICIES

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = ("sim", "policy", "tokenizers", "train", "eval", "src", "tests", "docs", ".ci")
NAMED = re.compile(rf"`((?:{'|'.join(map(re.escape, FOLDERS))})/[\w./-]*)`")
LINK = re.compile(r"\]\(([^)#\s]+)")


def pages() -> Iterator[tuple[Path, str]]:
    """Every page and its text, without what HTML comments hide."""
    for page in PAGES:
        yield page, re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.DOTALL)


def commands(text: str) -> list[list[str]]:
    """The words of every fetchlab command in the code blocks."""
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("fetchlab ")]


def test_named_files_exist() -> None:
    missing = [
        f"{page.name}: {name}"
        for page, text in pages()
        for name in NAMED.findall(text)
        if not (ROOT / name).exists()
    ]
    assert not missing


def test_links_lead_somewhere() -> None:
    missing = [
        f"{page.name}: {link}"
        for page, text in pages()
        for link in LINK.findall(text)
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert not missing


EXAMPLES = [
    shlex.split(f"fetchlab {name} {words}")
    for name, command in COMMANDS.items()
    for words in command.examples
]


@pytest.mark.parametrize(
    "words",
    [*(words for _, text in pages() for words in commands(text)), *EXAMPLES],
    ids=" ".join,
)
def test_commands_shown_can_be_parsed(words: list[str]) -> None:
    _, name, *rest = words
    _, config_type = COMMANDS[name].load(rest)
    if "--help" not in rest:
        parse(config_type, name, rest)


def test_every_command_is_shown() -> None:
    shown = {words[1] for words in commands((ROOT / "README.md").read_text())}
    assert shown == set(COMMANDS)


@pytest.mark.parametrize("registry", [POLICIES, SUITES], ids=["policies", "suites"])
def test_the_tables_name_all_there_is(registry: Mapping[str, object]) -> None:
    text = (ROOT / "README.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert set(registry) <= named


def test_make_targets_shown_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = {name for _, text in pages() for name in re.findall(r"(?:`|\n)make (\w+)", text)}
    assert named and all(re.search(rf"^{name}:", makefile, re.MULTILINE) for name in named)


def test_architecture_names_every_module() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    modules = [p for f in ("sim", "policy", "tokenizers") for p in (ROOT / f).glob("*.py")]
    assert not [str(p.relative_to(ROOT)) for p in modules if str(p.relative_to(ROOT)) not in text]


def test_a_wrong_command_line_is_told() -> None:
    _, config_type = COMMANDS["doctor"].load()
    with pytest.raises(UserError, match=r"Unrecognized options: --dta"):
        parse(config_type, "doctor", ["--dta", "x"])
