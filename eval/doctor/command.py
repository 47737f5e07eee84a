"""`fetchlab doctor`: one line for each thing that can be wrong, and what to do about it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fetchlab.eval.doctor.finding import Check, Finding, examine

if TYPE_CHECKING:
    from rich.text import Text

STYLES = {"OK": "green", "WARN": "yellow", "FAIL": "bold red"}


@dataclass(frozen=True, kw_only=True)
class DoctorConfig:
    """Check installation, simulator, dataset and checkpoint, and say what to do.

    The exit status is 1 if anything failed, else 0.
    """

    data: Path | None = None
    """also check this dataset: files, and a replay of its first episode"""
    policy: Path | None = None
    """also check this trained policy; with --data, its error on the recorded observations"""
    json: bool = False
    """print JSON instead of lines"""


def run_doctor(config: DoctorConfig) -> int:
    """`fetchlab doctor`; 1 if anything failed."""
    findings = []
    for name, check in checks_of(config).items():
        findings.append(examine(name, check))
        if not config.json:
            tell(findings[-1])
    if config.json:
        sys.stdout.write(json.dumps([asdict(finding) for finding in findings], indent=1) + "\n")
    return int(any(finding.status == "FAIL" for finding in findings))


def checks_of(config: DoctorConfig) -> dict[str, Check]:
    """Every check by name, in the order in which one may rely on another."""
    from fetchlab.eval.doctor import installation, simulation
    from fetchlab.eval.doctor.artefacts import Artefacts

    return {
        "python": installation.python_version,
        "packages": installation.packages,
        "pybullet": installation.pybullet_build,
        "cores": installation.cores,
        "disk": installation.disk_space,
        "renderer": simulation.renderer,
        "determinism": simulation.determinism,
        "grasping": simulation.grasping,
        **Artefacts(config.data, config.policy).checks(),
    }


def tell(finding: Finding) -> None:
    """Print a finding, and below it what to do."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.print(line(finding))
    if finding.remedy:
        console.print(f"{'':18}→ {finding.remedy}", markup=False)


def line(finding: Finding) -> Text:
    """`OK    renderer    TinyRenderer: …`"""
    from rich.text import Text

    status = Text(f"{finding.status:<6}", STYLES[finding.status])
    return status + Text(f"{finding.name:<12}{finding.detail}", "default")
