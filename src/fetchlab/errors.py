"""The one exception that means: a person can mend this, and the message says how."""

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """A mistake in what was asked for; the command line prints it as one line and exits with 2."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that no `kind` ("policy", "camera", …) has, with the nearest ones."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=3)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return UserError(f"unknown {kind} {name!r}: {hint}known are {', '.join(names)}")
