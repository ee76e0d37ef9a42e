"""The stored documents: exact, versioned, careful with what they do not know."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.aggregate import Aggregate
from domain.errors import Conflict
from domain.fit import ComposedStage, FitOptions
from domain.machine import Machine, StageRules, Window
from domain.pipeline import FitRange, Pipeline, Stage
from models.documents import dump_model, load_model
from models.fit_documents import dump_fit, dump_request, load_fit, load_request
from models.records import FitRequest
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


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Two to four stages with any of the words, a processor of the first and the last, windows."""
    parts = draw(st.lists(stages(), min_size=2, max_size=4))
    name = draw(st.none() | st.text(min_size=1, max_size=100))
    delays = st.floats(0.0, 1e12)
    rules = [
        StageRules(delay_us=draw(delays), processor=name)
        if j in (0, len(parts) - 1)
        else StageRules(draw(st.integers(1, 1024)), 0.0, draw(delays))
        for j in range(len(parts))
    ]
    sizes = draw(st.sampled_from([(1, None), (2**20, 2**48), (None, 7)]))
    windows = (Window(0, len(parts) - 1, *sizes, draw(delays)),) * draw(st.integers(0, 2))
    return Machine(Pipeline(tuple(parts), draw(delays)), tuple(rules), windows)


@given(machines())
def test_any_machine_reads_back_equal(machine: Machine) -> None:
    """As a pipeline does, and as a machine."""
    text = dump_model(machine)
    assert load_model(text) == machine
    assert text.isascii()


def test_the_document_of_a_machine_is_the_promised_one() -> None:
    """Version 1, kind machine: the costs of a pipeline, and the words that are set."""
    stages = tuple(Stage.of_line(name, overhead_us=1.0, ns_per_byte=2.0) for name in "ab")
    rules = StageRules(2, 0.5, 3.0), StageRules()
    document = json.loads(
        dump_model(Machine(Pipeline(stages), rules, (Window(0, 1, 4), Window(1, 1, None, 9, 2.0))))
    )
    line = {"overhead_us": 1.0, "ns_per_byte": 2.0, "up_to_bytes": None}
    assert document == {
        "version": 1,
        "kind": "machine",
        "stages": [{"name": name, "ranges": [line]} for name in "ab"],
        "delay_us": 0.0,
        "rules": [{"lanes": 2, "shared_ns_per_byte": 0.5, "delay_us": 3.0}, {}],
        "windows": [
            {"first": 0, "last": 1, "fragments": 4, "return_us": 0.0},
            {"first": 1, "last": 1, "bytes": 9, "return_us": 2.0},
        ],
    }


def test_a_fit_reads_back_equal() -> None:
    """With its intervals, what was clipped, its notices, and what parameters are drawn from."""
    fit = a_fit()
    line = fit.stages[0].lines[0]
    drawn = replace(
        line,
        up_to_bytes_interval=(4096, 16383),
        free_overhead_us=-1 / 3,
        free_ns_per_byte=0.1,
        covariance=(1e-3, -1 / 7, 2.5),
        degrees_of_freedom=11.25,
    )
    stage = replace(fit.stages[0], lines=(drawn, *fit.stages[0].lines[1:]), size_deviation=0.03)
    for one in (fit, replace(fit, stages=(stage, *fit.stages[1:]))):
        assert load_fit(dump_fit(one)) == one


def test_a_fit_of_an_earlier_version_has_neither_covariance_nor_means() -> None:
    """None is made up for it."""
    document = json.loads(dump_fit(a_fit()))
    names = ("free_overhead_us", "free_ns_per_byte", "covariance", "degrees_of_freedom")
    of_sizes = ("mean_us", "median_error_us", "mean_error_us")
    for stage in document["stages"]:
        for line in stage["lines"]:
            for name in (*names, "up_to_bytes_interval"):
                del line[name]
        del stage["size_deviation"], stage["misfit"]
        for size in stage["sizes"]:
            for name in of_sizes:
                del size[name]
    read = load_fit(json.dumps(document)).stages[0]
    assert read.size_deviation is read.misfit is None
    assert [getattr(read.lines[0], name) for name in names] == [None] * 4
    assert {getattr(size, name) for size in read.sizes for name in of_sizes} == {None}


def test_a_request_keeps_what_the_measurement_was_called() -> None:
    """In a version of its own: earlier software would fit it as latencies."""
    request = FitRequest(FitOptions(as_stage="memcpy \N{SNOWMAN}"))
    text = dump_request(request)
    assert load_request(text) == request
    assert json.loads(text)["version"] == 3
    assert json.loads(dump_request(FitRequest()))["version"] == 1
    earlier = json.loads(dump_request(FitRequest()))
    del earlier["options"]["as_stage"], earlier["options"]["composed"]
    assert load_request(json.dumps(earlier)) == FitRequest()


def test_a_request_keeps_stages_of_files_of_their_own() -> None:
    """In a version of its own too: earlier software would fit all files as one."""
    stages = (ComposedStage("a", 2, processor="cpu"), ComposedStage("b", step="c"))
    request = FitRequest(FitOptions(composed=stages))
    text = dump_request(request)
    assert load_request(text) == request
    assert json.loads(text)["version"] == 4


def test_a_request_keeps_columns_of_tables() -> None:
    """In a version of its own: earlier software would look for another format."""
    stages = (ComposedStage("a", columns="size=n,time=t:us"), ComposedStage("b"))
    for options in (FitOptions(columns="size=n,rate=r:GB/s"), FitOptions(composed=stages)):
        text = dump_request(FitRequest(options))
        assert load_request(text) == FitRequest(options)
        assert json.loads(text)["version"] == 5
    assert "columns" not in dump_request(FitRequest(FitOptions(composed=stages[1:])))


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
