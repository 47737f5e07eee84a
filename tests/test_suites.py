"""The registry of suites: complete, consistent, and possible in the world that policies know."""

from dataclasses import replace

import pytest

from fetchlab.errors import UserError
from fetchlab.eval.ablation import ABLATIONS
from fetchlab.eval.arms import CONTROL, NEEDS, Arm, Suite
from fetchlab.eval.suites import SUITES, suite_of
from fetchlab.sim.cameras import CAMERAS
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.language import LANGUAGES
from fetchlab.sim.scene import MAX_OBJECTS
from fetchlab.sim.shapes import SHAPES

RICH = EnvConfig(
    task="mixed",
    cameras=tuple(CAMERAS),
    shapes=tuple(SHAPES),
    languages=tuple(LANGUAGES),
    phrasings="training",
)
ARMS = [(suite, arm) for suite in SUITES.values() for arm in suite.arms]


def test_the_suites_are_those_that_the_benchmark_promises() -> None:
    assert list(SUITES) == [
        *("counts", "compositions", "distractors", "phrasings", "languages", "crowding"),
        *("cameras", "appearance", "disturbance", "memory", "ablations", "data"),
    ]
    assert SUITES["counts"].counts == (2, 3, 4, 5, 6, 8, 10, 15, 20)
    amounts = [condition.demonstrations for condition in SUITES["data"].trained]
    assert amounts == [25, 50, 100, 300, 1000]


@pytest.mark.parametrize(("suite", "arm"), ARMS, ids=lambda one: one.name or "plain")
def test_every_arm_is_a_world_that_can_be(suite: Suite, arm: Arm) -> None:
    assert replace(RICH, **arm.env) is not None
    assert arm.ablation is None or arm.ablation in ABLATIONS
    assert all(NEEDS[need](RICH) for need in (*suite.needs, *arm.needs))
    assert suite.name == "languages" or not arm.control or arm.env or arm.ablation
    assert all(2 <= count <= MAX_OBJECTS for count in suite.counts)


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.name)
def test_every_change_has_a_control_and_every_training_a_world(suite: Suite) -> None:
    controls = [arm for arm in suite.arms if suite.is_control(arm)]
    if len(suite.arms) > 1:
        assert [arm.name for arm in controls] == [CONTROL]
        assert all(arm.control == CONTROL for arm in suite.arms if arm not in controls)
    else:
        assert not controls and suite.arms[0].name == ""
    for condition in suite.trained:
        assert replace(RICH, **condition.env, **condition.policy) is not None


def test_a_policy_of_one_world_lacks_what_suites_need() -> None:
    plain = EnvConfig(cameras=("wrist",))
    assert [need for need, is_met in NEEDS.items() if is_met(plain)] == [
        "images",
        "the wrist camera",
    ]


def test_mistakes_in_the_registry_are_found_when_it_is_made() -> None:
    plain = Arm(name="plain", description="")
    with pytest.raises(ValueError, match="dark has no control 'plan'"):
        Suite(
            name="light",
            description="",
            arms=(plain, Arm(name="dark", description="", control="plan")),
        )
    with pytest.raises(ValueError, match="two arms"):
        Suite(name="light", description="", arms=(plain, plain))


def test_an_unknown_suite_is_named() -> None:
    with pytest.raises(UserError, match="unknown suite 'camera': did you mean cameras"):
        suite_of("camera")
