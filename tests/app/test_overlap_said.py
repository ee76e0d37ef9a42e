"""What a user says of the overlap of a file's stages, and what follows where nothing is said."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.uncertainty import assess
from app.questions.fits import fit_measurements, fit_traces, save_fit
from app.questions.measured_stages import list_measured_stages, measured_stage
from app.questions.traces import Measurement
from app.text.notices import decision_sentence
from domain.errors import InconsistentInput, InvalidInput
from domain.fit import (
    Combine,
    ComposedStage,
    ExcludedSample,
    FitOptions,
    FitShape,
    StepGroup,
    TraceFit,
)
from domain.profile import ProfileReference
from domain.structure import KnownOverlap, StructureKind
from domain.uncertain_answer import DecisionCode, Reason, Uncertainty
from models.fit_documents import dump_request, load_request
from models.records import FitRequest
from models.session import Store
from tests.support.counts import count
from tests.support.measured import question_of, trace

ROOT = Path(__file__).parents[2]
MOVERS = ROOT / "tests" / "data" / "movers"
SIZES = tuple(2**power for power in range(13, 21))
TOTAL = 1 << 20
YES, NO = ("stages_overlap", "yes, as you said"), ("stages_overlap", "no, as you said")
NOT_SAID = ("stages_overlap", "not said")


def fitted(text: str, **options: Any) -> TraceFit:
    message_bytes = TOTAL if options.get("shape") is FitShape.NARROWED else None
    request = FitRequest(FitOptions(**options), message_bytes)
    return fit_measurements((Measurement(text),), request, sizes_used=lambda _: SIZES[:4]).fit


def found(fit: TraceFit, current: int) -> Uncertainty:
    return assess(question_of(fit, TOTAL, current))


def rows(stages: int = 2) -> str:
    """Stage times of so many stages, without begins."""
    times = (
        lambda size: 20.0 + size / 1000.0,
        lambda size: 10.0 + size / 500.0,
        lambda size: 5.0 + size / 2000.0,
    )
    return trace(SIZES, 12, times[:stages])


def test_where_nothing_is_said_both_ways_count() -> None:
    fit = fitted(rows())
    assert fit.overlap == KnownOverlap(is_bare=True)
    assert fit.understood[-1] == NOT_SAID
    whole = found(fit, TOTAL)
    assert (whole.decision.code, whole.decision.reason) == (
        DecisionCode.MEASURE_FIRST,
        Reason.IF_OVERLAPPING,
    )
    said = decision_sentence(whole, question_of(fit, TOTAL, TOTAL))
    assert re.match(
        r"If these stages overlap: 128 KiB, \d+ % faster than your one piece \([^)]+\)\. "
        r"One after another: [\d.]+ % slower \([^)]+\)\. Say which with the file \(stages_overlap, "
        r"--stages-overlap yes\|no\), trace begins, or `sluice sweep --bytes 1MiB ",
        said,
    )
    assert said.count("sluice sweep") == 1
    assert found(fit, 8192).decision.reason is Reason.ONE_AT_A_TIME


def test_of_one_stage_nothing_overlaps() -> None:
    fit = fitted(rows(1))
    assert NOT_SAID not in fit.understood
    decided = found(fit, 8192)
    as_pipeline = assess(replace(question_of(fit, TOTAL, 8192), overlap=KnownOverlap()))
    assert decided.decision == as_pipeline.decision
    assert "what overlaps with it is not known" in decision_sentence(
        decided, question_of(fit, TOTAL, 8192)
    )


def test_who_says_yes_is_answered_as_a_pipeline() -> None:
    fit, unsaid = fitted(rows(), stages_overlap=True), fitted(rows())
    assert fit.understood == (*unsaid.understood[:-1], YES)
    assert replace(fit, understood=(), overlap=unsaid.overlap) == replace(unsaid, understood=())
    assert fit.overlap == KnownOverlap()
    assert found(fit, TOTAL).decision.code is DecisionCode.SET_IT


def test_who_says_no_is_answered_by_the_sum() -> None:
    fit = fitted(rows(3), stages_overlap=False)
    assert [stage.name for stage in fit.stages] == ["s0 + s1 + s2"]
    assert fit.understood[-1] == NO
    assert fit.overlap == KnownOverlap()
    assert "what overlaps" not in decision_sentence(found(fit, 8192), question_of(fit, TOTAL, 8192))
    assert found(fit, TOTAL).decision.code is DecisionCode.KEEP_YOURS


def test_several_fragments_at_once_are_measured_first() -> None:
    fit = fitted(rows(), stages_overlap=True, several_at_once=True)
    assert fit.understood[-1] == YES
    assert found(fit, 8192).decision.reason is Reason.SEVERAL_AT_ONCE
    one = fitted(rows(), stages_overlap=True, several_at_once=False)
    assert found(one, TOTAL).decision == found(fitted(rows(), stages_overlap=True), TOTAL).decision
    with pytest.raises(InconsistentInput) as refusal:
        FitOptions(stages_overlap=False, several_at_once=True)
    assert refusal.value.field == "stages_overlap"


def test_steps_that_are_one_stage_pass_one_after_another_with_the_rest() -> None:
    together = StepGroup("both", ("s0", "s1"), Combine.OVERLAP)
    fit = fitted(rows(3), stages_overlap=False, groups=(together,))
    assert [stage.name for stage in fit.stages] == ["both + s2"]
    alone = fitted(rows(3), groups=(together,))
    assert fit.stages[0].sizes[-1].median_us == pytest.approx(
        sum(stage.sizes[-1].median_us for stage in alone.stages), rel=0.02
    )
    whole = StepGroup("all", ("s0", "s1"), Combine.SEQUENCE)
    assert fitted(rows(2), groups=(whole,)).overlap == KnownOverlap()


@pytest.mark.parametrize("combine", [Combine.SEQUENCE, Combine.OVERLAP])
@pytest.mark.parametrize("steps", [("hash", "check"), ("hash", "check", "link")])
def test_groups_of_stages_that_begins_show_one_after_another_are_one(
    steps: tuple[str, ...], combine: Combine
) -> None:
    """Of their sum, whatever was grouped; a group of all gives it its name."""
    text = (MOVERS / "serial.csv").read_text()
    whole = fitted(text)
    grouped = fitted(text, groups=(StepGroup("together", steps, combine),))
    (alone,), (one,) = whole.stages, grouped.stages
    named = "together" if len(steps) == 3 else alone.name
    assert one == replace(alone, name=named)
    assert grouped.overlap == whole.overlap
    chain = (MOVERS / "relay.csv").read_text()
    names = [stage.name for stage in fitted(chain).stages]
    assert len(names) > 2
    kept = fitted(chain, groups=(StepGroup("together", tuple(names[:2]), combine),))
    assert [stage.name for stage in kept.stages] == ["together", *names[2:]]


@pytest.mark.parametrize(
    ("text", "said", "columns"),
    [
        (rows(3), False, ("s0", "s1", "s2")),
        (rows(3), None, ("s0", "s1", "s2")),
        ((MOVERS / "serial.csv").read_text(), None, ("hash", "check", "link")),
    ],
)
def test_stages_of_a_sum_are_composed_by_their_columns(
    text: str, said: bool | None, columns: tuple[str, ...], sqlite_store: Store
) -> None:
    composed_by_columns((text,), said, columns, sqlite_store)


def as_json(text: str) -> str:
    """The same durations as JSON."""
    header, *lines = [line.split(",") for line in text.splitlines()]
    columns = [[float(line[at]) for line in lines] for at in range(len(header))]
    stages = [
        {"name": name.removesuffix("_us"), "time_us": times}
        for name, times in zip(header[2:], columns[2:], strict=True)
    ]
    sizes, repeats = ([*map(int, column)] for column in columns[:2])
    document = {"kind": "direct", "message_bytes": sizes, "repetition": repeats, "stages": stages}
    return json.dumps(document)


@pytest.mark.parametrize("groups", [(), (StepGroup("both", ("s0", "s1"), Combine.OVERLAP),)])
@pytest.mark.parametrize(
    "texts", [(as_json(rows(3)),), (rows(3), rows(3)), (as_json(rows(3)),) * 2]
)
def test_so_are_those_of_any_reader_and_of_several_files(
    texts: tuple[str, ...], groups: tuple[StepGroup, ...], sqlite_store: Store
) -> None:
    composed_by_columns(texts, False, ("s0", "s1", "s2"), sqlite_store, groups=groups)


def composed_by_columns(
    texts: tuple[str, ...],
    said: bool | None,
    columns: tuple[str, ...],
    sqlite_store: Store,
    *,
    groups: tuple[StepGroup, ...] = (),
) -> None:
    request = FitRequest(FitOptions(stages_overlap=said, groups=groups))
    files = tuple(map(Measurement, texts))
    found = fit_measurements(files, request, sizes_used=lambda _: ())
    with sqlite_store.unit_of_work() as unit:
        save_fit(unit, found, name="sum")
    offered = list_measured_stages(sqlite_store, limit=5)
    assert tuple(name for _, name in offered) == columns
    for name in columns:
        stage = measured_stage(sqlite_store, ProfileReference("sum"), name)
        composed = ComposedStage("alone", len(texts), stage.step, None, stage.columns)
        asked = FitRequest(FitOptions(composed=(composed,)), kinds=tuple(stage.kinds))
        alone = fit_traces(stage.traces, asked, sizes_used=lambda _: ())
        assert [one.name for one in alone.fit.stages] == ["alone"]
    with pytest.raises(InvalidInput, match="one of " + ", ".join(columns)):
        measured_stage(sqlite_store, ProfileReference("sum"), " + ".join(columns))


def test_a_sample_of_the_sum_is_left_out_by_its_name() -> None:
    text = rows()
    size, _, *times = text.splitlines()[1].split(",")
    fit = fitted(text, stages_overlap=False)
    sample = ExcludedSample("s0 + s1", int(size), sum(map(float, times)))
    less = fitted(text, stages_overlap=False, excluded=(sample,))
    assert less.stages[0].num_samples == fit.stages[0].num_samples - 1


def test_a_narrowed_line_is_of_the_sum_too() -> None:
    fit = fitted(rows(), stages_overlap=False, shape=FitShape.NARROWED)
    assert [stage.name for stage in fit.stages] == ["s0 + s1"]
    assert len(fit.stages[0].lines) == 1
    assert "narrowed_fit" in {notice.code for notice in fit.notices}


@pytest.mark.parametrize(
    ("kind", "said", "is_contradicted"),
    [
        ("serial", True, True),
        ("serial", False, False),
        ("serial", None, False),
        ("bucket", False, True),
        ("bucket", True, False),
        ("one_core", False, True),
        ("relay", False, True),
        ("relay", True, False),
    ],
)
def test_what_was_measured_outranks_what_was_said(
    kind: str, said: bool | None, is_contradicted: bool
) -> None:
    text = (MOVERS / f"{kind}.csv").read_text()
    fit, unsaid = fitted(text, stages_overlap=said), fitted(text)
    assert fit.overlap == unsaid.overlap
    assert fit.stages == unsaid.stages
    codes = [notice.code for notice in fit.notices]
    assert ("overlap_contradicted" in codes) is is_contradicted
    assert codes[0] == "structure"
    assert [code for code in codes if code != "overlap_contradicted"] == [
        notice.code for notice in unsaid.notices
    ]


def test_a_chain_that_was_called_serial_is_a_chain() -> None:
    fit = fitted((MOVERS / "relay.csv").read_text(), stages_overlap=False)
    assert fit.overlap.structure is not None
    assert fit.overlap.structure.kind is StructureKind.CHAIN
    assert len(fit.stages) > 1
    assert fit.notices[1].code == "overlap_contradicted"
    assert "do not overlap" in fit.notices[1].detail


def test_what_tools_print_is_a_pipeline_until_something_is_said() -> None:
    text = (ROOT / "tests/data/traces/npkit.json").read_text()
    assert fitted(text).overlap == KnownOverlap()
    assert NOT_SAID not in fitted(text).understood
    assert len(fitted(text, stages_overlap=False).stages) == 1


def test_stages_are_needed_to_say_so() -> None:
    latencies = (ROOT / "examples/osu-latency.txt").read_text()
    with pytest.raises(InvalidInput) as refusal:
        fitted(latencies, stages_overlap=True)
    assert refusal.value.field == "stages_overlap"
    assert fitted(latencies, stages_overlap=False, as_stage="link").overlap == KnownOverlap()
    with pytest.raises(InconsistentInput) as refusal:
        FitOptions(composed=(ComposedStage("copy"),), stages_overlap=True)
    assert refusal.value.field == "stages_overlap"


@pytest.mark.parametrize("said", [None, False, True])
def test_what_was_said_is_kept_with_the_request(said: bool | None) -> None:
    request = FitRequest(FitOptions(stages_overlap=said))
    assert load_request(dump_request(request)) == request
    assert ("stages_overlap" in dump_request(request)) is (said is not None)


TIMES = st.lists(st.tuples(st.floats(1.0, 200.0), st.floats(1e-4, 1e-2)), min_size=2, max_size=4)


@given(TIMES, st.sampled_from(SIZES))
@settings(max_examples=count(200))
def test_yes_is_the_answer_of_a_pipeline_and_no_takes_the_sum(
    costs: list[tuple[float, float]], current: int
) -> None:
    stages = [lambda size, cost=cost: cost[0] + cost[1] * size for cost in costs]
    text = trace(SIZES, 4, stages)
    unsaid, yes, no = (fitted(text, stages_overlap=said) for said in (None, True, False))
    # But for the line and what follows from it, the fit is the one where nothing is said.
    assert replace(yes, understood=unsaid.understood, overlap=unsaid.overlap) == unsaid
    before = assess(replace(question_of(unsaid, TOTAL, current), overlap=KnownOverlap()))
    after = found(yes, current)
    assert after == before
    assert decision_sentence(after, question_of(yes, TOTAL, current)) == decision_sentence(
        before, question_of(unsaid, TOTAL, current)
    )
    (one,) = no.to_model().stages or ()
    for size in SIZES[::3]:
        apart = sum(stage.to_stage().time_us(size) for stage in unsaid.stages)
        assert one.time_us(size) == pytest.approx(apart, rel=0.1)
