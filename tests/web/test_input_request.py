"""What was typed into the input panel becomes a request, or a mistake where it was typed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.schemas.stages import asked_pipeline
from app.ui.panel.choices import EXAMPLES
from app.ui.panel.form import InvalidForm, asked_of, changed
from app.ui.panel.request import request_of
from app.ui.panel.state import InputSource, InputState, StageRow
from app.verbs.optimize.request import optimize_question
from app.web.forms import form_fields
from contract.constraints import ConstraintsOut
from contract.profile import ProfileRevisionOut
from domain.errors import FieldProblem, Infeasible, InvalidFields, InvalidInput, NotFound
from domain.pipeline import FitRange, Pipeline, Stage
from domain.units import CostUnit, OverheadUnit
from tests.support.answers import solved

TWO = (StageRow("in", "1", "2"), StageRow("out", "3", "4"))
ONE_STAGE = InputState(rows=TWO[:1])
RANGED = (StageRow("in", "1", "2", "4 KiB"), StageRow("", "3", "1"), StageRow("out", "5", "6"))


def mistakes(entry: InputState) -> dict[str, str]:
    """What is wrong, by field."""
    with pytest.raises(InvalidForm) as refusal:
        asked_of(entry)
    return dict(refusal.value.entry.mistakes)


PIPELINES = [one for one in EXAMPLES if one.pipeline is not None and not one.has_items]


@pytest.mark.parametrize("example", PIPELINES, ids=lambda one: one.name)
def test_published_pipelines_come_back_as_they_are(example) -> None:  # type: ignore[no-untyped-def]
    """An example, through its texts, is the very pipeline that was published."""
    asked = asked_of(InputState.of_example(example.name))
    assert optimize_question(asked).source == example.pipeline


def test_the_trace_example_is_the_measured_file() -> None:
    """Its text is in the panel, ready to be fitted."""
    entry = InputState.of_example("local-path-direct")
    assert entry.source is InputSource.TRACE
    assert "message_bytes,repetition" in entry.trace
    with pytest.raises(NotFound):
        InputState.of_example("nothing")


def test_ranges_are_rows() -> None:
    """A row that says how far it reaches is continued by the row below."""
    asked = asked_of(InputState(rows=RANGED, message="1 MiB", delay="2.5"))
    assert optimize_question(asked).source == Pipeline(
        (
            Stage("in", (FitRange(1.0, 2.0, 4096), FitRange(3.0, 1.0))),
            Stage.of_line("out", overhead_us=5.0, ns_per_byte=6.0),
        ),
        2.5,
    )
    assert optimize_question(asked).message_bytes == 2**20


def test_units_of_the_columns_are_applied() -> None:
    """1500 ns and 8 Gb/s are 1.5 µs and 1 ns a byte."""
    entry = InputState(
        rows=(StageRow("wire", "1500", "8"),),
        overhead_unit=OverheadUnit.NS,
        cost_unit=CostUnit.GBIT_PER_S,
    )
    assert optimize_question(asked_of(entry)).source == Pipeline(
        (Stage.of_line("wire", overhead_us=1.5, ns_per_byte=1.0),)
    )


@pytest.mark.parametrize(
    ("text", "ns_per_byte"),
    [
        ("10 GB/s", 0.1),
        ("10GiB/s", 1e9 / (10 * 2**30)),
        ("100 Gb/s", 0.08),
        ("100gbps", 0.08),
        ("500 MB/sec", 2.0),
        ("8000 Mb/s", 1.0),
        ("2 TB/s", 0.0005),
        ("2 ns/byte", 2.0),
        ("1e-3 µs/KB", 1e-3),
    ],
)
def test_a_cell_may_name_its_own_unit(text: str, ns_per_byte: float) -> None:
    """Whatever its column is in."""
    entry = InputState(rows=(StageRow("wire", "1500 ns", text),), cost_unit=CostUnit.UNSPECIFIED)
    source = optimize_question(asked_of(entry)).source
    assert isinstance(source, Pipeline)
    part = source.stages[0].ranges[0]
    assert (part.overhead_us, part.ns_per_byte) == (1.5, pytest.approx(ns_per_byte, rel=1e-12))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,200", "1200 or 1.2? write it without the comma"),
        ("1,200,300", "without commas: 1200300"),
        ("9.5x", "not “9.5x”"),
        ("5 gb/s", "not “5 gb/s”"),
        ("5 ns", "expected a number of GB/s"),
        ("9 ?", "with its unit"),
    ],
)
def test_a_cell_that_may_mean_two_things_is_asked_back(text: str, words: str) -> None:
    """Instead of taking the likelier one."""
    entry = InputState(rows=(StageRow("wire", "1", text),), cost_unit=CostUnit.GB_PER_S)
    assert words in mistakes(entry)["cost.0"]


def test_a_unit_that_nobody_told_is_asked_for() -> None:
    """Also one that an address names and that is not known."""
    pairs = [("name", "a"), ("overhead", "1"), ("cost", "10"), ("up_to", ""), ("message", "1K")]
    entry = InputState.of_form([*pairs, ("cost_unit", "GiB/s")])
    assert entry.cost_unit is CostUnit.UNSPECIFIED
    found = mistakes(entry)
    assert set(found) == {"cost-unit"}
    assert entry.with_mistakes(found).first_mistake == "cost-unit"
    assert InputState.of_form(pairs).cost_unit is CostUnit.NS_PER_BYTE


def test_stages_without_names_are_numbered_and_blank_rows_skipped() -> None:
    """Numbers alone are enough."""
    entry = InputState(
        rows=(StageRow(), StageRow("", "1", "2"), StageRow(), StageRow("", "3", "4"))
    )
    source = optimize_question(asked_of(entry)).source
    assert isinstance(source, Pipeline)
    assert [stage.name for stage in source.stages] == ["stage 1", "stage 2"]


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "nan", "inf", "1e999", "1_0", "0x10", "1,5", "9" * 99]
)
def test_what_is_no_number_is_marked_in_its_cell(text: str) -> None:
    """In whichever row it stands."""
    bad = replace(ONE_STAGE, rows=(TWO[0], StageRow("out", text, text)))
    assert set(mistakes(bad)) == {"overhead.1", "cost.1"}
    assert mistakes(replace(ONE_STAGE, delay=text or "-"))["delay"].startswith("expected a number")


@pytest.mark.parametrize(
    ("entry", "field", "words"),
    [
        (InputState(rows=(StageRow(),)), "overhead.0", "at least one stage"),
        (InputState(rows=TWO[:1] * 65), "name.64", "at most 64 stages"),
        (InputState(rows=(StageRow("x" * 101, "1", "2"),)), "name.0", "100 characters"),
        (InputState(rows=(StageRow("a", "1", "2", "4 KiB"),)), "up_to.0", "has no end"),
        (InputState(rows=(RANGED[0], StageRow("b", "1", "2"))), "name.1", "continues its stage"),
        (InputState(rows=(RANGED[0], *RANGED[:2])), "up_to.1", "expected more than"),
        (InputState(rows=(StageRow("", "1", "1", "?"), RANGED[1])), "up_to.0", "expected a size"),
        (replace(ONE_STAGE, message="0"), "message", "at least 1"),
        (replace(ONE_STAGE, message="999 TiB"), "message", "at most 256 TiB"),
        (replace(ONE_STAGE, min_fragment="a lot"), "min_fragment", "expected a size"),
        (replace(ONE_STAGE, relative_gap="2"), "relative_gap", "write 5 % or 0.05"),
        (replace(ONE_STAGE, relative_gap="101 %"), "relative_gap", "at most 100 %"),
        (replace(ONE_STAGE, relative_gap=""), "relative_gap", "expected a share"),
        (replace(ONE_STAGE, time_limit="0"), "time_limit", "> 0"),
        (replace(ONE_STAGE, time_limit="1e9"), "time_limit", "to 3600"),
        (replace(ONE_STAGE, strategy="static"), "static_size", "expected a size"),
        (replace(ONE_STAGE, static_size="4096"), "static_size", "strategy static"),
        (replace(ONE_STAGE, strategy="luck"), "strategy", "expected one of"),
        (replace(ONE_STAGE, save_as="../x"), "save_as", "expected"),
        (InputState(source=InputSource.PROFILE), "profile", "name of a stored profile"),
        (InputState(source=InputSource.PROFILE, profile="a b"), "profile", "small letters"),
        (InputState(source=InputSource.TRACE), "trace", "measurements"),
    ],
)
def test_each_mistake_is_marked_where_it_is(entry: InputState, field: str, words: str) -> None:
    """By the field's name, with the rule in words."""
    found = mistakes(entry)
    assert words in found[field]
    assert field in (entry.with_mistakes(found).first_mistake, *found)


def test_a_bandwidth_of_nothing_is_no_cost() -> None:
    """Its inverse would be without end."""
    entry = InputState(rows=(StageRow("a", "1", "0"),), cost_unit=CostUnit.GB_PER_S)
    assert "above 0" in mistakes(entry)["cost.0"]
    huge = InputState(rows=(StageRow("a", "1e300", "1e-300"),), cost_unit=CostUnit.GB_PER_S)
    assert set(mistakes(huge)) == {"overhead.0", "cost.0"}


def test_pointers_of_problems_lead_to_rows() -> None:
    """Blank rows shift stages against rows, and ranges are rows of their own."""
    request = request_of(InputState(rows=(StageRow(), *RANGED)))
    for pointer, field in (
        ("/pipeline/stages/0/name", "name.1"),
        ("/pipeline/stages/0/ranges/1/overhead_us", "overhead.2"),
        ("/pipeline/stages/0/ranges/0/up_to_bytes", "up_to.1"),
        ("/pipeline/stages/1/ns_per_byte", "cost.3"),
        ("/pipeline/stages/1/unknown", "name.3"),
        ("/constraints/max_fragments", "max_fragments"),
        ("/nowhere", ""),
    ):
        error = InvalidFields("wrong", problems=(FieldProblem(pointer, "wrong"),))
        assert request.mistakes_in(error) == {field: "wrong"}


def test_refusals_without_a_field_are_kept_above() -> None:
    """Limits that clash are nobody's own mistake; one that names its field is that field's."""
    request = request_of(ONE_STAGE)
    assert request.mistakes_in(Infeasible("they clash")) == {"": "they clash"}
    assert request.mistakes_in(NotFound("gone", field="message_bytes")) == {"message": "gone"}


def test_buttons_change_the_table() -> None:
    """As the page's script does it, for browsers that run none."""
    entry = InputState(rows=RANGED)
    assert changed(entry, "add").rows == (*RANGED, StageRow())
    assert changed(entry, "reverse").rows == (RANGED[2], *RANGED[:2])
    assert changed(entry, "up.2").rows == (RANGED[0], RANGED[2], RANGED[1])
    assert changed(entry, "down.0").rows == (RANGED[1], RANGED[0], RANGED[2])
    assert changed(entry, "up.0").rows == RANGED
    assert changed(entry, "delete.1").rows == (RANGED[0], RANGED[2])
    assert changed(entry, "delete.999").rows == RANGED
    assert changed(InputState(rows=TWO[:1]), "delete.0").rows == (StageRow(),)


def test_forms_of_too_many_fields_or_of_no_text_are_refused() -> None:
    """Before anything is made of them."""
    assert form_fields(b"a=%C3%A4&a=&b=1+2") == [("a", "ä"), ("a", ""), ("b", "1 2")]
    for body in (b"a=%ff", b"\xff", b"a=1&" * 100_000):
        with pytest.raises(InvalidInput, match="expected a form"):
            form_fields(body)


def test_an_answer_fills_the_panel_with_what_it_was_asked() -> None:
    """Also with limits and ranges."""
    parts = (FitRange(1.0, 0.1, 4096), FitRange(3.0, 0.0625))
    pipeline = Pipeline((Stage("in", parts),), 1.5)
    answer = replace(
        solved(pipeline, 65536),
        constraints=ConstraintsOut(1, 8192, 64, 9),
        profile=ProfileRevisionOut("mine", 3),
    )
    entry = InputState.of_answer(answer)
    assert (entry.source, entry.profile) == (InputSource.PROFILE, "mine@3")
    assert entry.rows == (StageRow("in", "1", "0.1", "4 KiB"), StageRow("", "3", "0.0625"))
    assert (entry.message, entry.max_fragment, entry.alignment) == ("64 KiB", "8 KiB", "64 B")
    assert (entry.max_fragments, entry.delay, entry.min_fragment) == ("9", "1.5", "")
    assert entry.has_constraints
    again = asked_of(replace(entry, source=InputSource.TABLE))
    assert again.pipeline is not None
    assert asked_pipeline(again.pipeline) == pipeline
