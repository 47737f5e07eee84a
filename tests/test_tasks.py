"""Verdicts with a known answer: on made-up courses of events, and on what the expert does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from fetchlab.policy.expert import Expert
from fetchlab.sim.cameras import CAMERAS, projection
from fetchlab.sim.config import EnvConfig
from fetchlab.sim.env import Tabletop
from fetchlab.sim.observation import Observation
from fetchlab.sim.scene import DIRECTIONS, Goal, Scene, SceneObject, is_beside, place_beside
from fetchlab.sim.shapes import SHAPES
from fetchlab.sim.tasks.base import Judge, TableState
from fetchlab.sim.tasks.registry import TASKS

PLACES = ((0.40, 0.10), (0.50, -0.10), (0.62, 0.12))  # a red mug, a blue mug, a red ball
BOX = (0.50, 0.28)
AWAY = (0.45, 0.0, 0.25)
OPPOSITE = {"left": "right", "right": "left", "front": "behind", "behind": "front"}


def scene_for(task: str, relation: str | None = None) -> Scene:
    """The red mug is to be acted on; with a relation, beside the blue mug."""
    looks = (("red", "mug"), ("blue", "mug"), ("red", "ball"))
    objects = tuple(
        SceneObject(colour=colour, shape=shape, x=x, y=y, yaw=0.0)
        for (colour, shape), (x, y) in zip(looks, PLACES, strict=True)
    )
    other = 1 if relation else None
    goal = Goal(task=task, target=0, other=other, relation=relation)
    return Scene(objects=objects, goal=goal, box=BOX if task == "place_in_box" else None)


def state(
    *,
    moved: Mapping[int, Sequence[float]] | None = None,
    raised: dict[int, float] | None = None,
    held: int | None = None,
    tool: Sequence[float] = AWAY,
    opening: float = 0.08,
) -> TableState:
    """Objects at their places but for those moved to x, y or raised, one of them in the fingers."""
    positions = np.array([(*place, 0.03) for place in PLACES])
    for row, place in (moved or {}).items():
        positions[row, :2] = place
    for row, height in (raised or {}).items():
        positions[row, 2] += height
    return TableState(
        positions=positions, tool=np.array(tool), opening=opening, holds=lambda row: row == held
    )


def judge(scene: Scene, *course: TableState) -> Judge:
    verdict = TASKS[scene.goal.task].judge(scene, state())
    for moment in course:
        verdict.watch(moment)
    return verdict


def verdict(scene: Scene, *course: TableState) -> str:
    judged = judge(scene, *course)
    return "success" if judged.success else judged.failure_reason()


UP = state(raised={0: 0.1}, held=0)
IN_BOX = state(moved={0: BOX}, raised={0: 0.006})
MISSED = (BOX[0], BOX[1] - 0.12)
COURSES_IN_BOX = {
    "success": [UP, *[IN_BOX] * 4],
    "not_released": [UP, *[state(moved={0: BOX}, raised={0: 0.01}, held=0)] * 9],
    "missed_box": [UP, *[state(moved={0: MISSED})] * 9],
    "dropped": [UP, *[state(moved={0: (0.35, -0.2)})] * 9],
    "wrong_object": [state(raised={1: 0.06}, held=1)],
    "timeout": [UP, *[state(moved={0: BOX}, raised={0: 0.15}, held=0)] * 9],
    "no_reach": [state()] * 9,
    "no_grasp": [state(tool=(*PLACES[0], 0.03))] * 9,
}


@pytest.mark.parametrize("reason", COURSES_IN_BOX)
def test_what_comes_of_the_box(reason: str) -> None:
    assert verdict(scene_for("place_in_box"), *COURSES_IN_BOX[reason]) == reason


def test_in_the_box_means_at_rest_in_it_and_alone() -> None:
    scene = scene_for("place_in_box")
    assert not judge(scene, UP, *[IN_BOX] * 3).success  # it has come to rest two steps ago
    rolling = [state(moved={0: (BOX[0] + 0.005 * step, BOX[1])}) for step in range(8)]
    assert verdict(scene, UP, *rolling) == "timeout"
    on_the_rim = state(moved={0: (BOX[0], BOX[1] + 0.065)}, raised={0: 0.06})
    assert verdict(scene, UP, *[on_the_rim] * 9) == "missed_box"
    wrong_one = state(moved={0: BOX}, raised={2: 0.06})
    judged = judge(scene, UP, IN_BOX, IN_BOX, IN_BOX, wrong_one)
    assert judged.failed and not judged.success and judged.failure_reason() == "wrong_object"


def test_another_object_may_be_pushed_aside_and_is_only_blamed_where_nothing_was_reached() -> None:
    aside = {2: (PLACES[2][0] + 0.09, PLACES[2][1])}
    both = state(moved={0: BOX, **aside}, raised={0: 0.006})
    assert verdict(scene_for("place_in_box"), UP, *[both] * 4) == "success"
    assert verdict(scene_for("place_in_box"), *[state(moved=aside)] * 4) == "wrong_object"


def beside(relation: str, distance: float = 0.10, aside: float = 0.0) -> tuple[float, float]:
    """A place at this side of the blue mug."""
    along, (x, y) = np.array(DIRECTIONS[relation]), PLACES[1]
    place = (x, y) + distance * along + aside * along[::-1]
    return float(place[0]), float(place[1])


@pytest.mark.parametrize("relation", DIRECTIONS)
def test_what_comes_of_putting_it_beside(relation: str) -> None:
    scene = scene_for("place_beside", relation)

    def ends(place: Sequence[float]) -> str:
        return verdict(scene, UP, *[state(moved={0: place})] * 4)

    here = beside(relation)
    assert ends(here) == "success"
    assert ends(beside(OPPOSITE[relation])) == "wrong_side"
    assert ends(beside(relation, distance=0.16, aside=0.07)) == "success"
    assert ends(beside(relation, distance=0.16, aside=0.09)) == "misplaced"
    assert ends(beside(relation, distance=0.19)) == "misplaced"
    assert ends((0.68, 0.25)) == "dropped"
    # The blue mug was shoved along: the way between the two is right.
    shoved = {0: (here[0] + 0.04, here[1]), 1: (PLACES[1][0] + 0.04, PLACES[1][1])}
    judged = judge(scene, UP, *[state(moved=shoved)] * 4)
    assert judged.failed and judged.failure_reason() == "moved_reference"
    holding = state(moved={0: here}, held=0)
    assert verdict(scene, UP, *[holding] * 9) == "not_released"
    high = state(moved={0: here}, raised={0: 0.1}, held=0)
    assert verdict(scene, UP, *[high] * 9) == "timeout"
    assert verdict(scene, state(raised={2: 0.06}, held=2)) == "wrong_object"


HOVER = (*PLACES[0], 0.06 + 0.05)
COURSES_REACH = {
    "success": [state(tool=HOVER)] * 3,
    "no_reach": [state(tool=(HOVER[0], HOVER[1], 0.06 + 0.09))] * 9,
    "not_steady": [state(tool=HOVER, opening=0.02)] * 9,  # with closed fingers
    "wrong_object": [state(tool=(*PLACES[1], 0.06 + 0.05))] * 9,
}


@pytest.mark.parametrize("reason", COURSES_REACH)
def test_what_comes_of_reaching(reason: str) -> None:
    assert verdict(scene_for("reach"), *COURSES_REACH[reason]) == reason


def test_sides_are_those_of_the_front_camera() -> None:
    matrix, (x, y) = projection(CAMERAS["front"]), (0.5, 0.0)

    def seen(place: tuple[float, float]) -> np.ndarray:
        u, v, w = matrix @ [*place, 0.02, 1]
        return np.array([u / w, v / w])

    middle = seen((x, y))
    assert seen(place_beside((x, y), "left"))[0] < middle[0] - 0.05  # further left in the image
    assert seen(place_beside((x, y), "right"))[0] > middle[0] + 0.05
    assert seen(place_beside((x, y), "front"))[1] > middle[1] + 0.05  # further down: nearer
    assert seen(place_beside((x, y), "behind"))[1] < middle[1] - 0.05
    for relation, way in DIRECTIONS.items():
        assert [is_beside(np.multiply(0.1, way).tolist(), each) for each in DIRECTIONS] == [
            each == relation for each in DIRECTIONS
        ]


def play(env: Tabletop, seed: int, said: str = "", heard_as: str = "") -> str:
    """How an episode ends in which the expert hears something else than is said."""
    expert = Expert(env.config)
    moment, info = env.reset(seed=seed)
    assert said in moment["instruction"]
    sentence, finished = moment["instruction"].replace(said or "\n", heard_as), False
    while not finished:
        heard = replace(Observation.from_gym(moment), instruction=sentence)
        moment, _, terminated, truncated, info = env.step(expert.act(heard))
        finished = terminated or truncated
    return "success" if info["is_success"] else str(info["failure_reason"])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_physics_agrees(shape: str) -> None:
    """Each course of events is really brought about, by an expert that is told something else."""
    config = EnvConfig(task="mixed", cameras=(), shapes=(shape,))
    env = Tabletop.from_config(config, n_objects=3)
    seeds: dict[tuple[str, str | None], int] = {}
    for seed in range(40):
        env.reset(seed=seed)
        seeds.setdefault((env.scene.goal.task, env.scene.goal.relation), seed)
    for relation, said, other in (
        ("left", "left of", "right of"),
        ("front", "in front of", "behind"),
    ):
        seed = seeds["place_beside", relation]
        assert play(env, seed) == "success"
        assert play(env, seed, said, other) == "wrong_side"
    seed = seeds["place_in_box", None]
    assert play(env, seed) == "success"
    named = env.scene.objects[env.scene.target].colour
    wrong = next(thing.colour for thing in env.scene.objects if thing.colour != named)
    assert play(env, seed, named, wrong) == "wrong_object"
    assert play(env, seed, f"put the {named} {shape} in the box", f"fetch the {named} {shape}") == (
        "timeout"
    )
    assert play(env, seeds["fetch", None]) == "success"
