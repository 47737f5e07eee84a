"""JSON into frozen dataclasses: every value of the type that its field says, or told which is not.

Files are edited, cut and copied by people, and what is wrong in one must not show much later.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from fetchlab.errors import UserError

Kind = TypeVar("Kind")
IN_WORDS: Mapping[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
    tuple: "a list",
    dict: "a JSON object",
}


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in this file. Raises UserError if there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is cut off or no JSON: {error}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} is no JSON object")
    return content


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def decode(kind: type[Kind], content: Any) -> Kind:
    """An instance of the dataclass from a JSON object; what has a default may be missing.

    Raises UserError naming the field whose value is of another type, missing or unknown, and what
    the class itself raises.
    """
    if not isinstance(content, dict):
        raise UserError(f"must be {IN_WORDS[dict]}")
    described: Any = kind
    hints, required = _fields_of(described)
    for name in (*required, *content):
        if name not in content:
            raise UserError(f"{name} is missing")
        if name not in hints:
            raise UserError(f"{name} is no field: known are {', '.join(hints)}")
    return kind(**{name: value_of(hints[name], value, name) for name, value in content.items()})


@functools.cache
def _fields_of(kind: type[Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The type of every field, and which must be given."""
    every = fields(kind)
    hints = get_type_hints(kind)
    required = [f.name for f in every if f.default is MISSING and f.default_factory is MISSING]
    return {field.name: hints[field.name] for field in every}, tuple(required)


def value_of(hint: Any, value: Any, name: str) -> Any:
    """The value as the hint says. Raises UserError, saying the name, if it is of another type."""
    origin = get_origin(hint) or hint
    if hint is Any or (type(value) is origin and origin is not dict):
        return value
    if origin is float and type(value) is int:
        return float(value)
    if origin is UnionType:
        present = [part for part in get_args(hint) if part is not type(None)]
        return None if value is None else value_of(present[0], value, name)
    if origin is tuple and isinstance(value, list):
        return _tuple_of(get_args(hint), value, name)
    if origin is dict and isinstance(value, dict):
        inner = get_args(hint)[1]
        return {key: value_of(inner, one, f"{name}.{key}") for key, one in value.items()}
    if not is_dataclass(hint):
        raise UserError(f"{name} must be {IN_WORDS[origin]}")
    try:
        return decode(hint, value)  # type: ignore[arg-type]
    except UserError as error:
        raise UserError(f"{name}: {error}") from None


def _tuple_of(hints: tuple[Any, ...], values: list[Any], name: str) -> tuple[Any, ...]:
    if hints[-1] is Ellipsis:
        hints = hints[:1] * len(values)
    if len(hints) != len(values):
        raise UserError(f"{name} must have {len(hints)} values, got {len(values)}")
    pairs = enumerate(zip(hints, values, strict=True))
    return tuple(value_of(hint, value, f"{name}[{row}]") for row, (hint, value) in pairs)
