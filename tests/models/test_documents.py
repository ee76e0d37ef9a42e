"""The stored documents: exact, versioned, careful with what they do not know."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.aggregate import Aggregate
from domain.errors import Conflict
from domain.pipeline import FitRange, Pipeline, Stage
from models.documents import dump_model, load_model
from models.fit_documents import dump_fit, load_fit
from tests.support.records import a_fit, a_pipeline, an_aggregate

costs = st.tuples(st.floats(0.0, 1e12), st.floats(0.0, 1e9))


@st.composite
def stages(draw: st.DrawFn) -> Stage:
    """A stage of one to four ranges with any name that is allowed, surrogates and NUL included."""
    ends = sorted(draw(st.sets(st.integers(1, 2**48), max_size=3)))
    ranges = [FitRange(*draw(costs), end) for end in [*ends, None]]
    name = draw(st.text(st.characters(exclude_categories=()), min_size=1, max_size=100))
    return Stage(name, tuple(ranges))


@given(st.lists(stages(), min_size=1, max_size=5), st.floats(0.0, 1e12))
def test_any_pipeline_reads_back_equal(parts: list[Stage], delay_us: float) -> None:
    """To the last bit of every float; the text is plain ASCII without NUL."""
    pipeline = Pipeline(tuple(parts), delay_us)
    text = dump_model(pipeline)
    assert load_model(text) == pipeline
    assert text.isascii()
    assert "\x00" not in text


@given(stages(), stages(), st.floats(0.0, 1e12))
def test_any_aggregate_reads_back_equal(total: Stage, slowest: Stage, delay_us: float) -> None:
    """As a pipeline does, and as an aggregate."""
    aggregate = Aggregate(total, slowest, delay_us)
    text = dump_model(aggregate)
    assert load_model(text) == aggregate
    assert text.isascii()


def test_the_document_of_an_aggregate_is_the_promised_one() -> None:
    """Version 1, kind aggregate."""
    document = json.loads(dump_model(an_aggregate()))
    assert document == {
        "version": 1,
        "kind": "aggregate",
        "total": {
            "name": "all \N{SNOWMAN}",
            "ranges": [
                {"overhead_us": 0.1, "ns_per_byte": 1 / 3, "up_to_bytes": 8192},
                {"overhead_us": 1e12, "ns_per_byte": 2e-9, "up_to_bytes": None},
            ],
        },
        "bottleneck": {
            "name": "slowest",
            "ranges": [{"overhead_us": 0.1, "ns_per_byte": 2e-9, "up_to_bytes": None}],
        },
        "delay_us": 0.30000000000000004,
    }


def test_the_document_of_a_pipeline_is_the_promised_one() -> None:
    """Version 1, kind stages: what is stored today must be readable for ever."""
    document = json.loads(dump_model(a_pipeline()))
    assert document == {
        "version": 1,
        "kind": "stages",
        "stages": [
            {
                "name": "copy \N{SNOWMAN}",
                "ranges": [{"overhead_us": 0.1, "ns_per_byte": 7.03125, "up_to_bytes": None}],
            },
            {
                "name": "wire",
                "ranges": [
                    {"overhead_us": 1 / 3, "ns_per_byte": 2e-9, "up_to_bytes": 8192},
                    {"overhead_us": 1e12, "ns_per_byte": 0.0, "up_to_bytes": None},
                ],
            },
        ],
        "delay_us": 0.30000000000000004,
    }


def test_a_fit_reads_back_equal() -> None:
    """With its intervals, what was clipped, and its notices."""
    assert load_fit(dump_fit(a_fit())) == a_fit()


def test_documents_of_newer_software_are_refused() -> None:
    """Rather than misread: an unknown version, an unknown kind."""
    newer = json.dumps({**json.loads(dump_model(a_pipeline())), "version": 2})
    with pytest.raises(Conflict, match="newer software"):
        load_model(newer)
    other = json.dumps({**json.loads(dump_model(a_pipeline())), "kind": "unheard of"})
    with pytest.raises(Conflict, match="unheard of"):
        load_model(other)
    with pytest.raises(Conflict, match="newer software"):
        load_fit(json.dumps({**json.loads(dump_fit(a_fit())), "version": 3}))
