"""Stages without a name, and stages of equal names."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.schemas.answers import with_unique_names
from app.schemas.base import dump_json, parse_json
from app.schemas.stages import asked_aggregate, asked_pipeline
from contract.limits import MAX_NAME_LENGTH
from contract.optimize import OptimizeOut
from contract.pipeline import AggregateIn, PipelineIn
from domain.measurement import DirectTrace
from domain.pipeline import pipeline_of_lines, unique_names
from fitting import read
from tests.support.answers import solved


@pytest.mark.parametrize(
    ("names", "reported"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a (2)", "a (3)"]),
        (["a", "a (2)", "a"], ["a", "a (2)", "a (3)"]),
        (["a", "a", "a (2)"], ["a", "a (3)", "a (2)"]),
        ([None, "a", None], ["stage 1", "a", "stage 3"]),
        (["stage 2", None], ["stage 2", "stage 2 (2)"]),
    ],
)
def test_later_ones_are_numbered(names: list[str | None], reported: list[str]) -> None:
    """With a number that no name has."""
    assert unique_names(names) == tuple(reported)


@given(st.lists(st.sampled_from(["x" * 100, "x" * 96, "x" * 96 + " (2)", "y", "y (2)"])))
def test_all_are_distinct_and_none_is_too_long(names: list[str]) -> None:
    """First ones keep theirs."""
    reported = unique_names(names)
    assert len(set(reported)) == len(names)
    assert all(len(name) <= MAX_NAME_LENGTH for name in reported)
    for place, name in enumerate(names):
        if name not in names[:place]:
            assert reported[place] == name


def answer_about(*names: str) -> OptimizeOut:
    """A stored answer about stages of these names."""
    lines = [(name, 1.0, 1.0) for name in names]
    return solved(pipeline_of_lines(lines))


def test_answers() -> None:
    """Those that need it, and only those."""
    same = answer_about("a", "b")
    assert with_unique_names(same) is same
    outside = replace(same, pipeline=None)
    assert with_unique_names(outside) is outside
    named = with_unique_names(answer_about("a", "a"))
    assert named.pipeline is not None
    assert [stage.name for stage in named.pipeline.stages] == ["a", "a (2)"]
    assert named.pipeline.delay_us == 0.0


LINE = {"overhead_us": 1.0, "ns_per_byte": 2.0}
RANGES = {"ranges": [{"up_to_bytes": None, **LINE}]}


def test_a_stage_of_a_request_needs_no_name() -> None:
    """In a pipeline and in an aggregate, of one line and of ranges; null is none."""
    pipeline = parse_json(PipelineIn, dump_json({"stages": [LINE, {"name": "b", **LINE}, RANGES]}))
    assert [stage.name for stage in asked_pipeline(pipeline).stages] == ["stage 1", "b", "stage 3"]
    aggregate = parse_json(
        AggregateIn, dump_json({"total": {"name": None, **LINE}, "bottleneck": RANGES})
    )
    model = asked_aggregate(aggregate)
    assert (model.total.name, model.bottleneck.name) == ("stage 1", "stage 2")


def test_a_step_of_a_trace_needs_no_name() -> None:
    steps = [{"time_us": [1.0, 2.0]}, {"name": "b", "time_us": [1.0, 2.0]}]
    document = {"kind": "direct", "message_bytes": [64, 128], "stages": steps}
    trace = read(json.dumps(document).encode()).trace
    assert isinstance(trace, DirectTrace)
    assert trace.stage_names == ("stage 1", "b")
