"""Stages without a name, and stages of equal names."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.schemas.aggregates import AggregateIn
from app.schemas.stages import PipelineIn
from app.text.names import body_with_unique_names, with_unique_names
from domain.measurement import DirectTrace
from domain.pipeline import MAX_NAME_LENGTH, unique_names
from fitting import read


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a (2)", "a (3)"]),
        (["a", "a (2)", "a"], ["a", "a (2)", "a (3)"]),
        (["a", "a", "a (2)"], ["a", "a (3)", "a (2)"]),
        ([None, "a", None], ["stage 1", "a", "stage 3"]),
        (["stage 2", None], ["stage 2", "stage 2 (2)"]),
    ],
)
def test_later_ones_are_numbered(names: list[str | None], told: list[str]) -> None:
    """With a number that no name has."""
    assert unique_names(names) == tuple(told)


@given(st.lists(st.sampled_from(["x" * 100, "x" * 96, "x" * 96 + " (2)", "y", "y (2)"])))
def test_all_are_distinct_and_none_is_too_long(names: list[str]) -> None:
    """First ones keep theirs."""
    told = unique_names(names)
    assert len(set(told)) == len(names)
    assert all(len(name) <= MAX_NAME_LENGTH for name in told)
    for place, name in enumerate(names):
        if name not in names[:place]:
            assert told[place] == name


def test_documents() -> None:
    """Those that need it, and only those."""
    same = {"pipeline": {"stages": [{"name": "a"}, {"name": "b"}]}}
    twice = {"id": 1, "pipeline": {"delay_us": 0, "stages": [{"name": "a"}, {"name": "a"}]}}
    assert with_unique_names(same) is same
    assert with_unique_names({"pipeline": None}) == {"pipeline": None}
    body = json.dumps(twice).encode()
    assert json.loads(body_with_unique_names(body)) == {
        "id": 1,
        "pipeline": {"delay_us": 0, "stages": [{"name": "a"}, {"name": "a (2)"}]},
    }
    assert body_with_unique_names(json.dumps(same).encode()) == json.dumps(same).encode()


LINE = {"overhead_us": 1.0, "ns_per_byte": 2.0}
RANGES = {"ranges": [{"up_to_bytes": None, **LINE}]}


def test_a_stage_of_a_request_needs_no_name() -> None:
    """In a pipeline and in an aggregate, of one line and of ranges; null is none."""
    pipeline = PipelineIn.model_validate({"stages": [LINE, {"name": "b", **LINE}, RANGES]})
    assert [stage.name for stage in pipeline.to_domain().stages] == ["stage 1", "b", "stage 3"]
    aggregate = AggregateIn.model_validate({"total": {"name": None, **LINE}, "bottleneck": RANGES})
    model = aggregate.to_domain()
    assert (model.total.name, model.bottleneck.name) == ("stage 1", "stage 2")


def test_a_step_of_a_trace_needs_no_name() -> None:
    steps = [{"time_us": [1.0, 2.0]}, {"name": "b", "time_us": [1.0, 2.0]}]
    document = {"kind": "direct", "message_bytes": [64, 128], "stages": steps}
    trace = read(json.dumps(document).encode()).trace
    assert isinstance(trace, DirectTrace)
    assert trace.stage_names == ("stage 1", "b")
