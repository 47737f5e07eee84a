"""`results.json` that somebody edited, cut or took from elsewhere: one clear line each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.test_report import make_results

from fetchlab.errors import UserError
from fetchlab.eval.decode import decode, read_object
from fetchlab.eval.results import RESULTS, read_results


def test_what_was_written_is_read(tmp_path: Path) -> None:
    make_results().write(tmp_path)
    assert read_results(tmp_path) == make_results()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda c: c.update(format=7), "format must be 1, got 7"),
        (lambda c: c.pop("format"), "format must be 1, got None"),
        (lambda c: c["policies"][0].update(env=[]), r"policies\[0\]: env must be a JSON object"),
        (lambda c: c.update(fingerprint=5), "fingerprint must be a JSON object"),
        (lambda c: c.update(versions=None), "versions must be a JSON object"),
        (lambda c: c.update(cells=None), "cells must be a list"),
        (lambda c: c.update(seed=True), "seed must be a whole number"),
        (lambda c: c.update(timings_s={"report": "x"}), "timings_s.report must be a number"),
        (lambda c: c.update(instruction_swap=[]), "instruction_swap: must be a JSON object"),
        (
            lambda c: c["instruction_swap"].update(ci95=[0.1]),
            "instruction_swap: ci95 must have 2 values, got 1",
        ),
        (lambda c: c.update(score=1), "score is no field"),
        (lambda c: c["cells"][3].pop("note"), r"cells\[3\]: note is missing"),
        (
            lambda c: c["cells"][0]["episodes"][4].update(success=None),
            r"cells\[0\]: episodes\[4\]: success must be true or false",
        ),
        (lambda c: c["cells"][2]["episodes"].pop(), r"cells\[2\]: n_episodes is not that of its"),
        (lambda c: c["cells"][2].update(n_success=3), r"cells\[2\]: n_success is not that of its"),
        (lambda c: c["cells"][2].update(ci95=[0.1, 0.9]), r"cells\[2\]: ci95 is not that of its"),
        (lambda c: c["cells"].append(c["cells"][0]), "cells has one twice"),
    ],
)
def test_what_is_wrong_is_named(
    change: Callable[[Any], None], complaint: str, tmp_path: Path
) -> None:
    content = json.loads(make_results().write(tmp_path).read_text())
    change(content)
    (tmp_path / RESULTS).write_text(json.dumps(content))
    expected = rf"results\.json is not a result .*\({complaint}.*\): run the evaluation again"
    with pytest.raises(UserError, match=expected):
        read_results(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "[" * 10**5, '{"format": NaN}', "\udcff"])
def test_a_file_that_holds_no_object_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UserError, match=r"x\.json is (cut off or no JSON|no JSON object)"):
        read_object(tmp_path / "x.json")


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A field of every kind."""

    name: str
    n: int
    rate: float | None
    sure: bool
    pair: tuple[float, float] = (0.0, 1.0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.fixed_dictionaries({name: JSON for name in ("name", "n", "rate", "sure", "pair")}))
def test_any_json_gives_the_promised_types_or_a_clear_line(content: dict[str, Any]) -> None:
    try:
        one = decode(Sample, content)
    except UserError as error:
        assert "must" in str(error)
        return
    assert (type(one.name), type(one.n), type(one.sure)) == (str, int, bool)
    assert type(one.rate) in (float, type(None)) and [type(x) for x in one.pair] == [float, float]


@given(st.text(), st.integers(), st.none() | st.floats(allow_nan=False), st.booleans())
def test_what_fits_is_taken_and_defaults_may_be_missing(
    name: str, n: int, rate: float | None, sure: bool
) -> None:
    content = {"name": name, "n": n, "rate": rate, "sure": sure}
    assert decode(Sample, content) == Sample(name=name, n=n, rate=rate, sure=sure)
