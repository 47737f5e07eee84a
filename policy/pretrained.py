"""A policy as a folder: config.json beside model.safetensors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from fetchlab.errors import UserError

CONFIG_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"
Config = TypeVar("Config")


def save_policy_folder(folder: Path, config: Any, weights: Mapping[str, Tensor]) -> None:
    """Write both files, each whole or not at all; the config last, so that it vouches for both."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{WEIGHTS_FILE}.part"
    save_file({name: tensor.contiguous() for name, tensor in weights.items()}, part)
    os.replace(part, folder / WEIGHTS_FILE)
    part = folder / f"{CONFIG_FILE}.part"
    part.write_text(json.dumps(asdict(config), indent=2) + "\n", encoding="utf-8")
    os.replace(part, folder / CONFIG_FILE)


def read_config(folder: Path) -> dict[str, Any]:
    """The settings in the folder's config.json. Raises UserError if there are none to read."""
    path = folder / CONFIG_FILE
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise UserError(f"{folder} holds no policy: {CONFIG_FILE} is missing") from None
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}): train or copy the policy again") from None
    if not isinstance(values, dict) or not isinstance(values.get("name"), str):
        raise UserError(f"{path} does not describe a policy: it has no name")
    return values


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors in the folder's model.safetensors. Raises UserError if missing or damaged."""
    path = folder / WEIGHTS_FILE
    try:
        return load_file(path)
    except FileNotFoundError:
        raise UserError(f"{folder} holds no policy: {WEIGHTS_FILE} is missing") from None
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path} is damaged ({error}): train or copy the policy again") from None


def build_config(config_class: type[Config], values: Mapping[str, Any], source: Path) -> Config:
    """A configuration from JSON values. Raises UserError naming the file and what is wrong in it.

    A setting that came later is left at its default, which is how it was before there was one.
    """
    hints = get_type_hints(config_class)
    every = fields(config_class)  # type: ignore[arg-type]
    known = {field.name for field in every}
    expected = known & values.keys() | {field.name for field in every if _is_required(field)}
    if expected != values.keys():
        difference = _difference(expected, values)
        raise UserError(f"{source} was written with other settings: {difference}")
    decoded = {name: _decode(name, hints[name], value, source) for name, value in values.items()}
    try:
        return config_class(**decoded)
    except TypeError as error:  # its checks met a value of another kind
        raise UserError(f"{source} holds a setting of the wrong kind ({error})") from None
    except UserError as error:
        raise UserError(f"{source} holds a setting that cannot be: {error}") from None


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Fill the module. Raises UserError naming tensors that are missing, unknown or misshapen."""
    expected = module.state_dict()
    source = folder / WEIGHTS_FILE
    if expected.keys() != weights.keys():
        raise UserError(f"{source} does not fit {CONFIG_FILE}: {_difference(expected, weights)}")
    for name, tensor in weights.items():
        if tensor.shape != expected[name].shape:
            raise UserError(
                f"{source} does not fit {CONFIG_FILE}: {name} is {tuple(tensor.shape)}, "
                f"expected {tuple(expected[name].shape)}"
            )
    module.load_state_dict(dict(weights))


def _decode(name: str, hint: Any, value: Any, source: Path) -> Any:
    if is_dataclass(hint):
        if not isinstance(value, dict):
            raise UserError(f"{source}: {name} must hold settings by their names, got {value!r}")
        return build_config(hint, value, source)  # type: ignore[arg-type]
    return tuple(value) if isinstance(value, list) else value


def _difference(expected: Any, found: Any) -> str:
    """Which names are missing and which are unknown, a few of each."""
    parts = []
    for label, names in (
        ("missing", set(expected) - set(found)),
        ("unknown", set(found) - set(expected)),
    ):
        if names:
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            parts.append(f"{label} {', '.join(sorted(names)[:4])}{more}")
    return "; ".join(parts)
