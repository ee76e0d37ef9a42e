"""Stages of equal names told apart."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.console.stage_names import body_told_apart, distinct_names, told_apart
from domain.pipeline import MAX_NAME_LENGTH


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


def test_documents() -> None:
    """Those that need it, and only those."""
    same = {"pipeline": {"stages": [{"name": "a"}, {"name": "b"}]}}
    twice = {"id": 1, "pipeline": {"delay_us": 0, "stages": [{"name": "a"}, {"name": "a"}]}}
    assert told_apart(same) is same
    assert told_apart({"pipeline": None}) == {"pipeline": None}
    body = json.dumps(twice).encode()
    assert json.loads(body_told_apart(body)) == {
        "id": 1,
        "pipeline": {"delay_us": 0, "stages": [{"name": "a"}, {"name": "a (2)"}]},
    }
    assert body_told_apart(json.dumps(same).encode()) == json.dumps(same).encode()
