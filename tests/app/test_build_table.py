"""What is told of a plan table, against asking the plan table itself byte by byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import solvers
from analysis.table_facts import MAX_LISTED, facts_of
from app.questions.tables import (
    TableQuestion,
    TableScope,
    compile_table,
)
from app.verbs.table.answer import render_table
from domain.errors import InvalidInput, SolverFailed
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits
from domain.profile import ProfileRevision
from tests.support.plan_tables import (
    a_line_pipeline,
    a_plan_table,
    a_ranged_pipeline,
    the_sparse_example,
    whole_messages,
)

LEVELS = (0.0, 5e-4, 1e-3, 2e-3, 0.5)


SHAPES = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 3)), min_size=1, max_size=8)


@given(SHAPES, st.data())
def test_the_facts_are_those_of_every_byte(
    shape: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Worst places, missed ranges and counts of fragments."""
    table = _table(shape, data)
    facts = facts_of(table)
    sizes = range(table.min_message_bytes, table.max_message_bytes + 1)
    gaps = {size: table.relative_gap_at(size) for size in sizes}
    assert facts.worst.relative_gap == max(gaps.values())
    assert gaps[facts.worst.from_bytes] == gaps[facts.worst.to_bytes] == max(gaps.values())
    assert facts.worst_repeat.relative_gap == max(map(table.repeat_gap_at, sizes))
    missed = [size for size in sizes if gaps[size] > table.relative_gap]
    reported = [size for one in facts.missed for size in range(one.from_bytes, one.to_bytes + 1)]
    assert reported == missed
    assert (facts.missed_bytes, facts.missed_total) == (len(missed), len(facts.missed))
    for one in facts.missed:
        inside = [gaps[size] for size in range(one.from_bytes, one.to_bytes + 1)]
        assert one.relative_gap == max(inside)
        assert one.from_bytes - 1 not in missed
        assert one.to_bytes + 1 not in missed
    assert facts.unrepeatable_bytes == 0
    runs = [
        (fragments, len(list(run)))
        for fragments, run in groupby(len(table.cut_at(size)) for size in sizes)
    ]
    assert runs == [(run.fragments, run.to_bytes - run.from_bytes + 1) for run in facts.counts]


def test_a_compiler_that_breaks_the_rules_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never the user's input."""

    def broken(*_: object, **__: object) -> PlanTable:
        raise InvalidInput("a cut must sum to its message", field="cuts")

    monkeypatch.setattr(solvers, "compile_table", broken)
    question = TableQuestion(a_line_pipeline(), None, TableScope(), 1000)
    with pytest.raises(SolverFailed, match="a cut must sum to its message"):
        compile_table(question)


@pytest.mark.parametrize(
    ("loosened", "cause"),
    [((), "whole bytes, the alignment or the limits"), ((0.000957,), "are compiled to 0.0957 %")],
)
def test_the_warning_names_why_the_tolerance_is_missed(
    monkeypatch: pytest.MonkeyPatch, loosened: tuple[float, ...], cause: str
) -> None:
    """Too many cuts are another reason than whole bytes."""

    def loosening(*given: Any, on_loosened: Callable[[float], None], **named: Any) -> PlanTable:
        for relative_gap in loosened:
            on_loosened(relative_gap)
        return whole_messages(*given, **named)

    monkeypatch.setattr(solvers, "compile_table", loosening)
    compiled = compile_table(TableQuestion(a_line_pipeline(), None, TableScope(), 1000))
    assert compiled.facts.loosened_gap == (loosened[0] if loosened else None)
    (warning,) = json.loads(render_table(compiled))["warnings"]
    assert warning["code"] == "tolerance_missed"
    assert cause in warning["detail"]


def test_sizes_that_cannot_be_repeated_are_counted() -> None:
    """35 to 37 of the example."""
    assert facts_of(the_sparse_example()).unrepeatable_bytes == 3


def test_long_lists_are_cut_and_counted() -> None:
    """The first fifty, of missed ranges and of counts; the bytes are those of all."""
    blocks = [(10 * at + 1, 10 * at + 10, 1 + at % 2) for at in range(200)]
    table = a_plan_table(blocks)
    cuts = tuple(
        replace(cut, relative_gap=0.1 * (at % 4 == 0)) for at, cut in enumerate(table.cuts)
    )
    facts = facts_of(replace(table, cuts=cuts))
    assert (len(facts.missed), facts.missed_total) == (MAX_LISTED, 100)
    assert (len(facts.counts), facts.counts_total) == (MAX_LISTED, 200)
    assert facts.missed_bytes == 900


def test_the_digest_is_of_everything_that_the_table_depends_on() -> None:
    """Each change gives another, and none gives the same."""
    base = TableQuestion(a_line_pipeline(), ProfileRevision("a", 1), TableScope(), 1000)
    changed = [
        replace(base, model=a_ranged_pipeline()),
        replace(base, profile=ProfileRevision("a", 2)),
        replace(base, profile=ProfileRevision("b", 1)),
        replace(base, profile=None),
        replace(base, fragment_cap=1001),
        replace(base, scope=TableScope(min_message_bytes=2)),
        replace(base, scope=TableScope(max_message_bytes=2)),
        replace(base, scope=TableScope(relative_gap=0.002)),
        replace(base, scope=TableScope(FragmentLimits(alignment_bytes=2))),
    ]
    assert len({one.digest() for one in (base, *changed)}) == len(changed) + 1
    assert replace(base, scope=TableScope(relative_gap=1)).digest() == (
        replace(base, scope=TableScope(relative_gap=1.0)).digest()
    )


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"min_message_bytes": 0}, "min_message_bytes"),
        ({"max_message_bytes": 2**48 + 1}, "max_message_bytes"),
        ({"min_message_bytes": 9, "max_message_bytes": 8}, "max_message_bytes"),
        ({"relative_gap": float("nan")}, "relative_gap"),
    ],
)
def test_a_scope_that_is_none_is_refused(change: dict[str, float], field: str) -> None:
    """By the rules of the plan table."""
    with pytest.raises(InvalidInput) as refusal:
        TableScope(**change)  # type: ignore[arg-type]
    assert refusal.value.field == field


def _table(shape: list[tuple[int, int]], data: st.DataObject) -> PlanTable:
    blocks, start = [], 5
    for length, fragments in shape:
        blocks.append((start, start + length, fragments))
        start += length + 1
    table = a_plan_table(blocks)
    levels = st.sampled_from(LEVELS)
    cuts = tuple(replace(cut, relative_gap=data.draw(levels)) for cut in table.cuts)
    repeats = tuple(replace(one, relative_gap=data.draw(levels)) for one in table.repeats)
    return replace(table, cuts=cuts, repeats=repeats)
