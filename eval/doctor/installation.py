"""Is what fetchlab stands on there: Python, packages, PyBullet's build, cores, disk?"""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib import metadata

from fetchlab.eval.doctor.finding import Finding, fail, ok, warn
from fetchlab.eval.parallel import usable_cores

TESTED_PYTHONS = ((3, 11), (3, 12))
DISK_NEEDED = 2e9  # bytes; a quick start writes some tens of megabytes, a large dataset more
REINSTALL = "pip install -c constraints.txt -e '.[dev]' in the folder of pyproject.toml"
FAST_PYBULLET = (
    "pip install numpy setuptools wheel, then pip install --force-reinstall --no-deps "
    "--no-build-isolation --no-binary pybullet pybullet"
)


def python_version() -> Finding:
    """3.11 is what everything is measured with; 3.12 is tested."""
    detail = f"{sys.version.split()[0]} at {sys.executable}"
    if sys.version_info[:2] in TESTED_PYTHONS:
        return ok("python", detail)
    return warn("python", detail, "use Python 3.11, or 3.12; others are untested")


def packages() -> Finding:
    """Every dependency is installed, and new enough."""
    try:
        wanted = metadata.requires("fetchlab") or []
    except metadata.PackageNotFoundError:
        return warn("packages", "fetchlab runs from a folder and is not installed", REINSTALL)
    bounds = dict(line.split(">=", 1) for line in wanted if "extra ==" not in line)
    wrong = [complaint for name, bound in bounds.items() if (complaint := _check(name, bound))]
    if wrong:
        return fail("packages", "; ".join(wrong), REINSTALL)
    return ok("packages", f"{len(bounds)} dependencies; torch {metadata.version('torch')}")


def _check(name: str, bound: str) -> str:
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"{name} is missing"
    return f"{name} {found} is older than {bound}" if release(found) < release(bound) else ""


def release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, to compare: 2.13.0+cpu → (2, 13, 0)."""
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:3])


def pybullet_build() -> Finding:
    """Without numpy PyBullet works, but hands over every image as a tuple of numbers."""
    from fetchlab.sim.world import has_fast_images

    if has_fast_images():
        return ok("pybullet", f"{metadata.version('pybullet')}, built with numpy")
    return warn("pybullet", "built without numpy: cameras work but are slow", FAST_PYBULLET)


def cores() -> Finding:
    """Two cores are what the stated times hold for."""
    n_cores, load = usable_cores(), os.getloadavg()[0]
    detail = f"{n_cores} usable, load {load:.1f}"
    if n_cores < 2:
        return warn("cores", detail, "expect about twice the stated times")
    if load > 1.5 * n_cores:
        return warn("cores", detail, "other programs are busy: measure again when it is quiet")
    return ok("cores", detail)


def disk_space() -> Finding:
    """Room for datasets and checkpoints in the current folder."""
    free = shutil.disk_usage(".").free
    detail = f"{free / 1e9:.1f} GB free here"
    if free < DISK_NEEDED:
        return warn("disk", detail, f"make room: {DISK_NEEDED / 1e9:.0f} GB are comfortable")
    return ok("disk", detail)
