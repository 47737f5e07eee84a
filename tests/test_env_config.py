"""Settings of another kind, or that contradict each other, are refused in one clear line."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchlab.errors import UserError
from fetchlab.sim.cameras import CAMERAS
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.variations import VARIATIONS


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"variation": "overhead_dark"}, "the overhead camera, but the cameras are front, wrist"),
        ({"variation": "screen_anywhere", "cameras": ("overhead",)}, "add front"),
        ({"task": None}, "task must be a name, got None .default 'fetch'."),
        ({"memory": 5}, "memory must be a name, got 5"),
        ({"crowding": True}, "crowding must be a name, got True"),
        ({"languages": None}, "languages must be a tuple of names, got None"),
        ({"cameras": 5}, "cameras must be a tuple of names, got 5"),
        ({"cameras": "front"}, r"a tuple of names, got 'front': give \('front',\)"),
        ({"cameras": ("front", 5)}, r"a tuple of names, got \('front', 5\)"),
        ({"history": "2"}, "history must be a whole number, got '2' .default 1."),
        ({"image_size": 64.0}, "image_size must be a whole number, got 64.0"),
        ({"control_hz": True}, "control_hz must be a whole number, got True"),
        ({"depth": "yes"}, "depth must be True or False, got 'yes'"),
    ],
)
def test_settings_that_cannot_be_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        EnvConfig.of(settings)


@pytest.mark.parametrize("name", [f.name for f in fields(EnvConfig)])
@given(value=st.none() | st.floats() | st.binary() | st.dictionaries(st.integers(), st.integers()))
def test_no_setting_takes_a_value_of_another_kind(name: str, value: object) -> None:
    with pytest.raises(UserError) as refused:
        EnvConfig(**{name: value})  # type: ignore[arg-type]
    assert str(refused.value).startswith(f"{name} must be ") and repr(value) in str(refused.value)


def test_whole_numbers_may_be_numpys_and_lists_stand_for_tuples() -> None:
    size: Any = np.int64(32)
    assert EnvConfig(image_size=size) == EnvConfig(image_size=32)
    assert EnvConfig.of({"cameras": ["front"]}) == EnvConfig(cameras=("front",))


def test_a_world_without_cameras_takes_every_variation() -> None:
    for name in VARIATIONS:
        assert EnvConfig(variation=name, cameras=()).variation == name
        assert EnvConfig(variation=name, cameras=tuple(CAMERAS)).variation == name
