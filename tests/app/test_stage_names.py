"""Stages of equal names told apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.console.stage_names import distinct_names, told_apart
from app.schemas.optimize import OptimizeOut
from domain.pipeline import MAX_NAME_LENGTH, pipeline_of_lines
from tests.support.answers import solved


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a (2)", "a (3)"]),
        (["a", "a (2)", "a"], ["a", "a (2)", "a (3)"]),
        (["a", "a", "a (2)"], ["a", "a (3)", "a (2)"]),
    ],
)
def test_later_ones_are_numbered(names: list[str], told: list[str]) -> None:
    """With a number that no name has."""
    assert distinct_names(names) == told


@given(st.lists(st.sampled_from(["x" * 100, "x" * 96, "x" * 96 + " (2)", "y", "y (2)"])))
def test_all_are_distinct_and_none_is_too_long(names: list[str]) -> None:
    """First ones keep theirs."""
    told = distinct_names(names)
    assert len(set(told)) == len(names)
    assert all(len(name) <= MAX_NAME_LENGTH for name in told)
    for place, name in enumerate(names):
        if name not in names[:place]:
            assert told[place] == name


def answer_about(*names: str) -> OptimizeOut:
    """A stored answer about stages of these names."""
    lines = [(name, 1.0, 1.0) for name in names]
    return solved(pipeline_of_lines(lines))


def test_answers() -> None:
    """Those that need it, and only those."""
    same = answer_about("a", "b")
    assert told_apart(same) is same
    outside = replace(same, pipeline=None)
    assert told_apart(outside) is outside
    told = told_apart(answer_about("a", "a"))
    assert told.pipeline is not None
    assert [stage.name for stage in told.pipeline.stages] == ["a", "a (2)"]
    assert told.pipeline.delay_us == 0.0
