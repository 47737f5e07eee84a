"""`fetchlab <command>`: find the command, parse its arguments, call the part that does the work."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

from fetchlab import __version__
from fetchlab.errors import UserError, unknown


@dataclass(frozen=True)
class Command:
    """Where a command lives; its module is imported only when it runs, so that `--help` is quick.

    The function takes one config dataclass, from which its command line is made, and may return
    an exit status.
    """

    module: str
    function: str
    summary: str
    examples: tuple[str, ...]
    arguments: str = ""
    """a function that makes the class of the config, where that depends on the words"""

    def load(self, words: Sequence[str] = ()) -> tuple[Callable[[Any], int | None], type[Any]]:
        """The function and the class of its config."""
        module = importlib.import_module(self.module)
        function = getattr(module, self.function)
        if self.arguments:
            return function, getattr(module, self.arguments)(words)
        hints = get_type_hints(function)
        return function, next(kind for name, kind in hints.items() if name != "return")


COMMANDS = {
    "quickstart": Command(
        "fetchlab.eval.quickstart",
        "run_quickstart",
        "demonstrate, train, evaluate and report, all in one",
        ("--out runs/quickstart", "--quick --out runs/quick"),
    ),
    "collect": Command(
        "fetchlab.train.commands",
        "run_collect",
        "scripted demonstrations into a dataset",
        (
            "--episodes 300 --counts 2 3 4 5 --out runs/demonstrations",
            "--episodes 300 --counts 2 3 4 5 --out runs/demonstrations --resume",
            "--cameras front wrist overhead --image-size 96 --out runs/three-cameras",
            "--task mixed --shapes block brick cylinder ball mug --out runs/mixed",
        ),
    ),
    "train": Command(
        "fetchlab.train.arguments",
        "run_train",
        "behaviour cloning: a policy from a dataset",
        (
            "--policy act --data runs/demonstrations --out runs/act",
            "--policy act --data runs/demonstrations --out runs/act --resume",
            "--policy act --policy-config.d-model 128 --data runs/demonstrations --out runs/wide",
            "--policy slot_mlp --help",
        ),
        arguments="train_arguments",
    ),
    "eval": Command(
        "fetchlab.eval.generalization",
        "run_eval",
        "closed-loop success by number of objects",
        (
            "--policy runs/act --counts 2 3 4 5 6 8 10 --episodes 200 --out runs/act-eval",
            "--policy expert --out runs/expert-eval",
        ),
    ),
    "compare": Command(
        "fetchlab.eval.compare",
        "run_compare",
        "evaluations side by side, paired scene by scene",
        ("runs/act-eval runs/expert-eval",),
    ),
    "benchmark": Command(
        "fetchlab.eval.benchmark.command",
        "run_benchmark",
        "train policies, play every suite, report",
        (
            "--quick --out runs/benchmark-quick",
            "--policies act slot_mlp expert expert_blind --seeds 0 1 2 --out runs/benchmark",
            "--suites counts cameras --task fetch --seeds 0 --out runs/cameras",
        ),
    ),
    "leaderboard": Command(
        "fetchlab.eval.leaderboard",
        "run_leaderboard",
        "the results that were added to results/",
        ("", "--json", "--add runs/benchmark"),
    ),
    "rollout": Command(
        "fetchlab.eval.video",
        "run_rollout",
        "one episode, on screen and as video",
        (
            '--policy runs/act --instruction "fetch the green block" --objects 6 --seed 1 '
            "--video runs/green.mp4",
        ),
    ),
    "cost": Command(
        "fetchlab.eval.cost",
        "run_cost",
        "tokens, parameters, FLOPs and latency of a policy",
        (
            "--policy act",
            "--policy act --cameras front wrist overhead --image-size 128 --history 2",
            "--policy act_pointers --task mixed --shapes block brick cylinder ball mug",
            "--policy runs/act --json --out runs/cost.json",
        ),
    ),
    "figures": Command(
        "fetchlab.eval.figures.command",
        "run_figures",
        "the figures of the attention lesson, measured",
        ("--out runs/figures", "2 5 --out runs/figures", "--quick --out runs/figures-quick"),
    ),
    "list": Command(
        "fetchlab.eval.listing",
        "run_list",
        "what there is: tasks, policies, suites, cameras, variations …",
        ("policies", "variations", "cameras --json"),
    ),
    "bench": Command(
        "fetchlab.eval.bench.command",
        "run_bench",
        "speed of each stage on this machine",
        ("--quick --out runs/bench", "--policy runs/act --out runs/bench"),
    ),
    "doctor": Command(
        "fetchlab.eval.doctor.command",
        "run_doctor",
        "check installation, dataset and checkpoint",
        ("", "--data runs/demonstrations --policy runs/act"),
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, or 2 for a mistake that the person can mend."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return run(words)
    except UserError as error:
        return complain(str(error), status=2)
    except KeyboardInterrupt:
        return complain(f"interrupted; {resume_hint(words)}", status=130)
    except BrokenPipeError:  # the reader (`| head`) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.filename is None:
            raise
        return complain(f"{error.filename}: {error.strerror}", status=2)


def run(words: Sequence[str]) -> int:
    """The exit status of `fetchlab <words>`."""
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(overview())
        return 0
    if words[0] in ("-V", "--version"):
        sys.stdout.write(f"fetchlab {__version__}\n")
        return 0
    if words[0] not in COMMANDS:
        raise unknown("command", words[0], COMMANDS)
    function, config_type = COMMANDS[words[0]].load(words[1:])
    return function(parse(config_type, words[0], words[1:])) or 0


def overview() -> str:
    """What `fetchlab --help` shows."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: fetchlab COMMAND [options]",
            "",
            "A robot arm, a table of blocks and a sentence: demonstrate, train, and see what "
            "generalizes.",
            "",
            *lines,
            "",
            "fetchlab COMMAND --help explains one command. Start with: "
            "fetchlab quickstart --out runs/quickstart",
            "",
        ]
    )


def parse(config_type: type[Any], name: str, words: Sequence[str]) -> Any:
    """The config that the words ask for; a UserError in one line instead of a page of usage."""
    import tyro

    usage = io.StringIO()
    try:
        with contextlib.redirect_stderr(usage):
            return tyro.cli(
                config_type,
                prog=f"fetchlab {name}",
                description=description(config_type, name),
                args=words,
            )
    except SystemExit as exit_request:
        if not exit_request.code:
            raise
        if isinstance(exit_request.__context__, UserError):  # a config refused its values
            raise exit_request.__context__ from None
    raise UserError(f"{one_line(usage.getvalue())} (fetchlab {name} --help explains)")


def description(config_type: type[Any], name: str) -> str:
    """What the config says about itself, and how the command is used."""
    examples = [f"  fetchlab {name} {words}".rstrip() for words in COMMANDS[name].examples]
    return "\n".join([inspect.getdoc(config_type) or "", "", "Examples:", *examples])


def one_line(usage: str) -> str:
    """The heart of a boxed usage message: what is not recognized, else what is missing or wrong."""
    lines = [re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯|]", "", line).strip() for line in usage.splitlines()]
    sections = re.split("[─-]{9,}", "\n".join(lines[1:]))  # the first line is the box's title
    heart = next((s for s in sections if "Unrecognized" in s), next(filter(str.strip, sections)))
    if "Missing from" not in heart:
        return " ".join(heart.split())
    return (
        f"missing {', '.join(line for line in heart.splitlines() if line.startswith(('-', '{')))}"
    )


def resume_hint(words: Sequence[str]) -> str:
    """What to type to go on after an interruption."""
    if words and words[0] in ("collect", "train"):
        again = shlex.join(word for word in words if word != "--resume")
        return f"go on where it stopped with: fetchlab {again} --resume"
    if words and words[0] in ("quickstart", "benchmark"):
        return "the same command goes on where it stopped"
    return "nothing half-written is left, start again with the same command"


def complain(message: str, *, status: int) -> int:
    """Say it in one line on stderr; `status` is handed back."""
    sys.stderr.write(f"fetchlab: {' '.join(message.split())}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
