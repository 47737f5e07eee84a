"""Keeps the engine's chatter away from what a person reads."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def silenced_stderr() -> Iterator[None]:
    """Drop what is written to standard error meanwhile, by C code too."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
