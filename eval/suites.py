"""The suites: what is changed about a policy's world, and the same seeds without the change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fetchlab.errors import unknown
from fetchlab.eval.arms import CONTROL, USUAL, Arm, Condition, Suite

STILL = ("front", "overhead")  # cameras
PLAIN = Arm(name="", description="the world that the policy knows")


def control(description: str, **env: Any) -> Arm:
    """A suite's arm without the change."""
    return Arm(name=CONTROL, description=description, env=env)


def changed(name: str, description: str, *, needs: tuple[str, ...] = (), **env: Any) -> Arm:
    """An arm with some settings of the world changed."""
    return Arm(name=name, description=description, env=env, control=CONTROL, needs=needs)


def varied(variation: str, description: str, *cameras: str) -> Arm:
    """An arm that is named for a variation of the world, and concerns these cameras."""
    needs = tuple(f"the {camera} camera" for camera in cameras)
    return changed(variation, description, needs=needs, variation=variation)


def ablated(ablation: str, description: str) -> Arm:
    """An arm that is named for what the policy is not told or shown."""
    return Arm(name=ablation, description=description, ablation=ablation, control=CONTROL)


def amount(demonstrations: int) -> Condition:
    """So many demonstrations, otherwise the usual ones."""
    return Condition(
        name=f"demonstrations_{demonstrations}",
        description=f"{demonstrations} of the usual demonstrations",
        demonstrations=demonstrations,
    )


SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            name="counts",
            description="success against the number of objects on the table",
            arms=(PLAIN,),
            counts=(2, 3, 4, 5, 6, 8, 10, 15, 20),
        ),
        Suite(
            name="compositions",
            description="colours and shapes that are known, in pairs that are not",
            arms=(
                control("only pairs that demonstrations may show", pairs="seen"),
                changed("held_out", "the named object is of a held-out pair", pairs="held_out"),
            ),
            same_scenes=False,
            needs=("several shapes",),
            trained=(
                Condition(
                    name="pairs_seen",
                    description="the held-out pairs never occur",
                    env={"pairs": "seen"},
                ),
                Condition(
                    name="pairs_unnamed",
                    description="the held-out pairs occur and are never named",
                    env={"pairs": "unnamed"},
                ),
            ),
        ),
        Suite(
            name="distractors",
            description="objects that share colour or shape with the named one",
            arms=(
                control("objects as in the demonstrations", distractors="mixed"),
                changed("colour", "all others share its colour alone", distractors="colour"),
                changed("shape", "all others share its shape alone", distractors="shape"),
                changed("both", "all others share the one or the other", distractors="both"),
            ),
            same_scenes=False,
            needs=("several shapes",),
        ),
        Suite(
            name="phrasings",
            description="sentences that training never heard, of words that it did",
            arms=(
                control("training sentences", phrasings="training"),
                changed("held_out", "held-out sentences", phrasings="held_out"),
            ),
        ),
        Suite(
            name="languages",
            description="English and Chinese apart",
            arms=(
                control("both languages"),
                changed("english", "English only", languages=("english",)),
                changed("chinese", "Chinese only", languages=("chinese",)),
            ),
            needs=("several languages",),
        ),
        Suite(
            name="crowding",
            description="neighbours that touch the named object",
            arms=(
                control("room for the fingers around each", crowding="apart"),
                changed("touching", "one or two neighbours touch it", crowding="touching"),
            ),
            counts=(6,),
            same_scenes=False,
        ),
        Suite(
            name="cameras",
            description="cameras that moved, went dark, or have something before them",
            arms=(
                control("cameras as in training"),
                varied("camera_jitter", "each still camera moved by some cm and degrees"),
                varied("front_dark", "the front camera is dark", "front"),
                varied("overhead_dark", "the overhead camera is dark", "overhead"),
                varied("wrist_dark", "the wrist camera is dark", "wrist"),
                varied("front_screened", "a screen before the front camera", "front"),
                varied("overhead_screened", "a screen before the overhead camera", "overhead"),
                varied("front_screened_overhead_dark", "neither still camera sees", *STILL),
                varied("overhead_screened_front_dark", "neither still camera sees", *STILL),
            ),
            needs=("images",),
            trained=(
                USUAL,
                Condition(
                    name="screens",
                    description="two still cameras, and a screen before one of them",
                    env={"variation": "screen_anywhere", "cameras": STILL},
                    # From above the hand hides what it is about to grip: where was it at first?
                    policy={"history": 2, "memory": "first"},
                    least_steps=8000,  # half of what it sees is no use
                ),
            ),
        ),
        Suite(
            name="appearance",
            description="other colours of the table, other light, other images",
            arms=(
                control("everything looks as in training"),
                varied("table_colour", "a table of another colour"),
                varied("lighting", "light of another direction and strength"),
                varied("hue_shift", "all hues turned"),
                varied("sensor_noise", "noise in every pixel"),
            ),
            needs=("images",),
        ),
        Suite(
            name="disturbance",
            description="something happens in the middle of an episode",
            arms=(
                control("nothing happens"),
                varied("object_moved", "the named object is set elsewhere"),
                varied("arm_pushed", "the arm is pushed"),
            ),
        ),
        Suite(
            name="memory",
            description="the colours are seen before the first action, and then no more",
            arms=(
                control("the colours stay, as no demonstration showed", task="fetch"),
                changed("remember", "all objects turn grey", task="remember"),
            ),
            tasks=("remember",),
            remark="the control is new, too, to policies that were taught with grey objects",
            needs=("images",),
            trained=(
                Condition(
                    name="remember",
                    description="one frame",
                    env={"task": "remember"},
                    policy={"history": 1},
                ),
                Condition(
                    name="remember_history",
                    description="the first frame and the newest",
                    env={"task": "remember"},
                    policy={"history": 2, "memory": "first"},
                    control="remember",
                ),
            ),
        ),
        Suite(
            name="ablations",
            description="what a policy does without words, images or its arm's readings",
            arms=(
                control("nothing is taken away"),
                ablated("instruction_removed", "no word is read"),
                ablated("instruction_swapped", "another object is named than the one that counts"),
                ablated("instruction_shuffled", "the words in another order"),
                ablated("images_removed", "all images are black"),
                ablated("proprioception_removed", "the arm's readings are those of the mean pose"),
            ),
        ),
        Suite(
            name="data",
            description="success against the number of demonstrations",
            arms=(PLAIN,),
            counts=(2, 3, 4, 5, 6, 10),
            trained=tuple(amount(n) for n in (25, 50, 100, 300, 1000)),
        ),
    )
}


def suite_of(name: str) -> Suite:
    """The suite of this name. Raises UserError if there is none."""
    if name not in SUITES:
        raise unknown("suite", name, SUITES)
    return SUITES[name]
