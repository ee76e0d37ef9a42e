"""Lanes, delays, processors and windows in requests and answers: what is read, refused, and sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import field_problems
from app.schemas.base import dump_json, dump_request, parse_json, read_output
from app.schemas.source import source_of
from app.schemas.stages import asked_pipeline, pipeline_out, stored_model, stored_pipeline
from contract.limits import MAX_WINDOWS
from contract.optimize import OptimizeIn
from contract.pipeline import LineStageIn, PipelineIn, PipelineOut, WindowIn
from domain.errors import NeedsPlainStages, SluiceError
from domain.machine import Machine, StageRules
from domain.pipeline import Pipeline
from tests.app.serving import MYRINET
from tests.support.machines import by_word, lanes, staging

Body = dict[str, Any]


def asked(pipeline: Body) -> Pipeline | Machine:
    """What a request with this pipeline is about."""
    return asked_pipeline(parse_json(PipelineIn, json.dumps(pipeline).encode()))


def refusal(pipeline: Body | str) -> tuple[str, str]:
    """The field at fault and its rule, of a request with this pipeline; a text is the body's."""
    text = pipeline if isinstance(pipeline, str) else json.dumps(pipeline)
    body = f'{{"message_bytes": 64, "pipeline": {text}}}'
    with pytest.raises(SluiceError) as refused:
        source_of(parse_json(OptimizeIn, body.encode()))
    first = field_problems(refused.value)[0]
    return first.pointer, first.detail


# --- what is read ---------------------------------------------------------------------------------


def test_a_body_without_a_word_is_the_pipeline_of_today() -> None:
    assert isinstance(asked(MYRINET), Pipeline)


@pytest.mark.parametrize("null", [True, False])
def test_words_that_say_what_is_so_anyway_are_none(null: bool) -> None:
    """Defaults, and null, give the same pipeline and so the same digest and stored answer."""
    words = {"lanes": 1, "shared_ns_per_byte": 0, "delay_us": 0.0, "processor": None}
    said = {name: None for name in words} if null else words
    stages = [stage | said for stage in MYRINET["stages"]]
    found = asked({"stages": stages, "windows": None if null else []})
    assert found == asked(MYRINET)


def test_every_word_is_read() -> None:
    found = asked(staging())
    assert isinstance(found, Machine)
    assert found.rules == (
        StageRules(processor="copy engine"),
        StageRules(lanes=2, shared_ns_per_byte=0.01, delay_us=3.0),
        StageRules(processor="copy engine"),
    )
    ends = [(one.first, one.last, one.fragments, one.bytes, one.return_us) for one in found.windows]
    assert ends == [(0, 1, 2, None, 0.0), (1, 2, None, 1 << 22, 1.0)]


def test_a_window_may_name_stages_by_their_places() -> None:
    """Where nobody has named them."""
    stages = [{"overhead_us": 1, "ns_per_byte": 1}] * 2
    window = {"from": "stage 1", "to": "stage 2", "fragments": 1}
    found = asked({"stages": stages, "windows": [window]})
    assert isinstance(found, Machine)
    assert (found.windows[0].first, found.windows[0].last) == (0, 1)


# --- what is refused ------------------------------------------------------------------------------


def windowed(**window: Any) -> Body:
    """Plain stages a, b and c with this window, from a to b where it says nothing else."""
    return by_word()["windows"] | {"windows": [{"from": "a", "to": "b", "fragments": 2, **window}]}


def with_stage(at: int, **words: Any) -> Body:
    """Plain stages a, b and c, and these words at one of them."""
    stages = by_word()["windows"]["stages"]
    return {"stages": [one | (words if j == at else {}) for j, one in enumerate(stages)]}


def on_processors(*names: str | None) -> Body:
    """A stage for each, on a processor where it has one."""
    return {
        "stages": [
            {"overhead_us": 1, "ns_per_byte": 1, **({"processor": name} if name else {})}
            for name in names
        ]
    }


@pytest.mark.parametrize(
    ("pipeline", "place", "rule"),
    [
        (windowed(to="d"), "windows/0/to", "expected a name that a stage of this pipeline has"),
        (
            {
                "stages": [*lanes()["stages"], lanes()["stages"][0]],
                "windows": [{"from": "read", "to": "write", "fragments": 1}],
            },
            "windows/0/from",
            "expected a name that only one stage has",
        ),
        (
            windowed(**{"from": "c", "to": "a"}),
            "windows/0/to",
            "expected a stage that is not before from",
        ),
        (windowed(fragments=None), "windows/0/fragments", "expected fragments, bytes or both"),
        (windowed(fragments=0), "windows/0/fragments", "expected a number >= 1"),
        (windowed(bytes=-1), "windows/0/bytes", "expected a number >= 1"),
        (windowed(bytes=2**63), "windows/0/bytes", "expected a number <= 281474976710656"),
        (windowed(return_us=-1), "windows/0/return_us", "expected a number >= 0.0"),
        (windowed(return_us="1"), "windows/0/return_us", "expected a number"),
        (windowed(places=3), "windows/0/places", "unknown field"),
        (windowed(from_="a"), "windows/0/from_", "unknown field"),
        (windowed(**{"from": 0}), "windows/0/from", "expected a string"),
        (windowed() | {"windows": {}}, "windows", "expected a list"),
        (windowed() | {"windows": [1]}, "windows/0", "expected an object"),
        (
            windowed() | {"windows": windowed()["windows"] * (MAX_WINDOWS + 1)},
            "windows",
            f"expected at most {MAX_WINDOWS} items",
        ),
        (with_stage(1, lanes=0), "stages/1/lanes", "expected a number >= 1"),
        (with_stage(1, lanes=-1), "stages/1/lanes", "expected a number >= 1"),
        (with_stage(1, lanes=2**63), "stages/1/lanes", "expected a number <= 1024"),
        (with_stage(1, lanes=1.5), "stages/1/lanes", "expected a whole number"),
        (with_stage(1, lanes="2"), "stages/1/lanes", "expected a whole number"),
        (with_stage(1, delay_us=-1), "stages/1/delay_us", "expected a number >= 0.0"),
        (with_stage(1, delay_us=1e13), "stages/1/delay_us", "expected a number <= 1000000000000.0"),
        (
            with_stage(1, shared_ns_per_byte=0.5),
            "stages/1/shared_ns_per_byte",
            "stage 2: expected lanes >= 2 beside shared_ns_per_byte: it is what lanes share",
        ),
        (
            with_stage(1, lanes=2, shared_ns_per_byte=1.5),
            "stages/1/shared_ns_per_byte",
            "expected shared_ns_per_byte <= 1, the stage's cost: it is a part of it",
        ),
        (
            {
                "stages": [
                    {
                        "ranges": [
                            {"up_to_bytes": 64, "overhead_us": 1, "ns_per_byte": 2},
                            {"overhead_us": 1, "ns_per_byte": 1},
                        ],
                        "lanes": 2,
                        "shared_ns_per_byte": 1.5,
                    }
                ]
            },
            "stages/0/shared_ns_per_byte",
            "expected shared_ns_per_byte <= 1, the stage's cost: it is a part of it",
        ),
        (with_stage(1, processor=""), "stages/1/processor", "expected at least 1 characters"),
        (
            with_stage(1, processor="p"),
            "stages/1/processor",
            "expected two stages of a processor, not one",
        ),
        (
            with_stage(1, processor="p", lanes=2),
            "stages/1/processor",
            "stage 2: expected no lanes beside a processor: its stages handle one fragment at a "
            "time",
        ),
        (
            on_processors("p", "p", "p"),
            "stages/2/processor",
            "expected two stages of a processor, not 3",
        ),
        (
            on_processors("p", "q", "p", "q"),
            "stages/1/processor",
            "expected processors that do not interleave: of two, both stages of one are between, "
            "before or behind those of the other",
        ),
        (
            on_processors("p", "p", "q", "q", "r", "r"),
            "stages/4/processor",
            "expected at most 2 processors",
        ),
        (
            with_stage(1, lanes=2, handoff_bytes=16),
            "stages/1/handoff_bytes",
            "expected no handoff_bytes beside lanes, delay_us, processor or windows",
        ),
        (
            {"stages": [*with_stage(0, lanes=2)["stages"], {**lanes()["stages"][1], "lanes": 7.0}]}
            | {"windows": [{"from": "a", "to": "b", "fragments": "2"}]},
            "windows/0/fragments",
            "expected a whole number",
        ),
    ],
)
def test_bad_input_is_refused_with_its_field_and_rule(
    pipeline: Body, place: str, rule: str
) -> None:
    assert refusal(pipeline) == (f"/pipeline/{place}", rule)


@pytest.mark.parametrize("word", ["lanes", "delay_us", "shared_ns_per_byte"])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e400"])
def test_what_is_no_number_is_refused(word: str, number: str) -> None:
    text = f'{{"stages": [{{"overhead_us": 1, "ns_per_byte": 1, "{word}": {number}}}]}}'
    with pytest.raises(SluiceError):
        parse_json(PipelineIn, text.encode())


@pytest.mark.parametrize("word", ["lanes", "delay_us", "processor", "shared_ns_per_byte"])
def test_an_aggregate_has_no_words(word: str) -> None:
    """They are unknown fields there, as they were."""
    cost = {"overhead_us": 1, "ns_per_byte": 1}
    body = {"message_bytes": 1, "aggregate": {"total": {**cost, word: 1}, "bottleneck": cost}}
    with pytest.raises(SluiceError) as refused:
        parse_json(OptimizeIn, json.dumps(body).encode())
    first = field_problems(refused.value)[0]
    assert (first.pointer, first.detail) == (f"/aggregate/total/{word}", "unknown field")


# --- what is sent ---------------------------------------------------------------------------------


def test_a_plain_pipeline_is_sent_as_before() -> None:
    """The fields that there were, and no others."""
    sent = json.loads(dump_json(pipeline_out(asked(MYRINET))))
    assert list(sent) == ["stages", "delay_us"]
    assert {tuple(stage) for stage in sent["stages"]} == {("name", "overhead_us", "ns_per_byte")}


def test_words_that_are_set_are_sent_and_no_others() -> None:
    sent = json.loads(dump_json(pipeline_out(asked(staging()))))
    assert sent == staging()


@pytest.mark.parametrize("name", by_word())
def test_what_is_sent_asks_the_same(name: str) -> None:
    """Request to answer to request, and through what is stored, for each word alone."""
    model = asked(by_word()[name])
    body = dump_json(pipeline_out(model))
    assert asked_pipeline(parse_json(PipelineIn, body)) == model
    assert stored_model(read_output(PipelineOut, body)) == model
    assert dump_json(read_output(PipelineOut, body)) == body


@given(
    st.integers(1, 1024),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1e12),
    st.integers(1, 2**20),
    st.floats(0.0, 1e12),
)
def test_any_words_come_back(
    many: int, shared: float, delay_us: float, places: int, return_us: float
) -> None:
    """To the last bit; of one lane nothing is shared."""
    words = {"lanes": many, "delay_us": delay_us, "shared_ns_per_byte": shared if many > 1 else 0.0}
    windows = [{"from": "a", "to": "c", "fragments": places, "return_us": return_us}]
    model = asked(with_stage(0, **words) | {"windows": windows})
    assert asked_pipeline(parse_json(PipelineIn, dump_json(pipeline_out(model)))) == model


def test_a_job_keeps_windows_by_the_names_of_a_request() -> None:
    window = WindowIn(from_="a", to="a", fragments=2)
    stage = LineStageIn(name="a", overhead_us=1.0, ns_per_byte=1.0)
    given = OptimizeIn(message_bytes=1, pipeline=PipelineIn(stages=[stage], windows=[window]))
    kept = dump_request(given)
    assert b'"from":"a"' in kept
    assert parse_json(OptimizeIn, kept) == given


def test_what_takes_plain_stages_alone_refuses_what_is_stored_of_a_machine() -> None:
    with pytest.raises(NeedsPlainStages) as refused:
        stored_pipeline(pipeline_out(asked(staging())))  # type: ignore[arg-type]
    assert refused.value.field == "pipeline.stages.0.processor"
