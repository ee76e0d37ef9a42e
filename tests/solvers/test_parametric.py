"""Plan tables: their certificate against exact solves that had no part in making them."""

from __future__ import annotations

import math
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from domain.errors import Infeasible, InvalidInput
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from domain.solution import Strategy
from exports.table.slt import decode, encode
from solvers import compile_table, solve
from solvers.tables.cuts import reader_cuts, rounding_us, shifts_fit
from tests.solvers.table_cases import (
    TableCase,
    check_cut,
    check_entries,
    check_repeat,
    narrow_limits,
    random_pipeline,
    random_sizes,
    random_table_cases,
    repeated,
)
from tests.support.counts import count, is_campaign
from tests.support.plan_tables import a_ranged_pipeline

TOLERANCE = 1e-3
MIB = 2**20
FAR = 16_384 if is_campaign() else 4_096  # the reference takes as long as there are fragments
NO_LIMITS = FragmentLimits()
MYRINET = pipeline_of_lines(
    [
        ("sender copy", 7.2, 7.03125),
        ("sender host DMA", 5.2, 24.31640625),
        ("network and receiver DMA", 7.5, 24.31640625),
        ("receiver copy", 7.4, 7.71484375),
    ]
)


def drawn(seed: int) -> Pipeline:
    """One to eight stages over three decades, some of their figures 0."""
    draw = random.Random(seed)
    rows = [
        (
            f"stage {j}",
            0.0 if draw.random() < 0.1 else 10.0 ** draw.uniform(-1.0, 2.0),
            0.0 if draw.random() < 0.1 else 10.0 ** draw.uniform(-0.5, 1.5),
        )
        for j in range(draw.randint(1, 8))
    ]
    rows[draw.randrange(len(rows))] = ("slow", draw.uniform(5.0, 50.0), draw.uniform(5.0, 50.0))
    return pipeline_of_lines(rows, delay_us=draw.choice((0.0, 3.0)))


@dataclass(frozen=True)
class Case:
    """A table's question; `shares` of the 2 000 sizes that the certificate is tried on."""

    name: str
    pipeline: Pipeline
    max_message_bytes: int
    shares: int
    limits: FragmentLimits = NO_LIMITS

    def __str__(self) -> str:
        return self.name


CASES = (
    Case("myrinet", MYRINET, 16 * MIB, 800),
    Case("random 1", drawn(1), 4 * MIB, 200),
    Case("random 2", drawn(2), 4 * MIB, 200),
    Case("random 3", drawn(3), 4 * MIB, 200),
    Case("aligned", MYRINET, 4 * FAR, 100, FragmentLimits(alignment_bytes=64)),
    Case("greatest size", MYRINET, 64 * FAR, 100, FragmentLimits(max_fragment_bytes=8192)),
    Case("least size", MYRINET, 65_536, 100, FragmentLimits(min_fragment_bytes=512)),
    Case("few fragments", MYRINET, MIB, 100, FragmentLimits(max_fragments=4)),
    Case(
        "all limits",
        drawn(4),
        65_536,
        200,
        FragmentLimits(256, 16_384, 128, 100),
    ),
)


@cache
def table_of(case: Case) -> PlanTable:
    return compile_table(
        case.pipeline,
        case.limits,
        min_message_bytes=1,
        max_message_bytes=case.max_message_bytes,
        relative_gap=TOLERANCE,
    )


def sizes_of(case: Case) -> Iterator[int]:
    """Spread evenly on a logarithmic scale, entries and their neighbours among them.

    A sixtieth without a campaign: the independent optimum of one takes up to a second.
    """
    draw = random.Random(case.name)
    entries = [cut.message_bytes for cut in table_of(case).cuts]
    for number in range(count(case.shares, share=60)):
        if number % 5 == 0:
            size = draw.choice(entries) + draw.choice((-1, 0, 1))
        else:
            size = int(math.exp(draw.uniform(0.0, math.log(case.max_message_bytes + 1))))
        yield min(case.max_message_bytes, max(1, size))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_a_reader_computes_is_within_its_certificate_of_an_independent_optimum(
    case: Case,
) -> None:
    """latency <= (1 + stated gap) * optimum at every byte size that is tried."""
    for size in sizes_of(case):
        check_cut(table_of(case), size)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_repeated_size_is_within_its_certificate_of_the_best_one(case: Case) -> None:
    """Against the exact search over every admitted size."""
    for size in sizes_of(case):
        check_repeat(table_of(case), size)


@pytest.mark.parametrize("number", range(count(300, share=30)))
def test_random_pipelines_and_limits(number: int) -> None:
    """One to eight stages, zeros, delays, limits wide and narrow; a primal program as reference.

    Ranges that hold a message which the limits do not admit are refused.
    """
    (case,) = random_table_cases(1, seed=[1, number], max_bytes=3e4)
    try:
        table = case.table()
    except Infeasible:
        return
    check_entries(table)
    for size in random_sizes(table, 6, seed=number):
        check_cut(table, size)
        check_repeat(table, size)


@pytest.mark.parametrize("number", range(count(100)))
def test_every_byte_of_short_ranges(number: int) -> None:
    """Narrow limits, where the counts change with every few bytes."""
    rng = np.random.default_rng([2, number])
    minimum = int(rng.integers(1, 200))
    case = TableCase(
        random_pipeline(rng), narrow_limits(rng), minimum, minimum + 40, fragment_cap=40
    )
    try:
        table = case.table()
    except Infeasible:
        return
    for size in range(minimum, minimum + 41):
        check_cut(table, size)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (FragmentLimits(max_fragment_bytes=13), 13),
        (FragmentLimits(max_fragment_bytes=20, alignment_bytes=2), 220),
        (FragmentLimits(100, 319), 1276),
        (FragmentLimits(2, 3), 189),
    ],
)
def test_the_last_message_that_a_count_can_make_up(limits: FragmentLimits, message: int) -> None:
    """One byte more needs a further fragment, but this message does without it."""
    pipeline = pipeline_of_lines([("a", 9.0, 1.0), ("b", 8.0, 2.0), ("c", 9.0, 1.0)])
    assert limits.max_fragment_bytes is not None
    fewest = Problem(pipeline, message, limits).count_range().minimum
    assert fewest * limits.max_fragment_bytes == message
    for minimum in (message, message - 5):
        table = TableCase(pipeline, limits, minimum, message + 30).table()
        check_cut(table, message)
        assert len(table.cut_at(message)) == fewest


def test_the_tolerance_is_met_at_every_byte_of_the_paper_s_pipeline() -> None:
    """Table 1, 1 B to 16 MiB: cuts and repeated sizes, in a file far below a MiB."""
    table = table_of(CASES[0])
    assert max(cut.relative_gap for cut in table.cuts) <= TOLERANCE
    assert max(repeat.relative_gap for repeat in table.repeats) <= TOLERANCE
    assert len(encode(table, profile="myrinet-gam", revision=1)) < MIB


def test_the_same_question_gives_the_same_bytes() -> None:
    """Nothing in a table depends on the clock."""
    again = compile_table(MYRINET, FragmentLimits(), min_message_bytes=1, max_message_bytes=65_536)
    once = compile_table(MYRINET, FragmentLimits(), min_message_bytes=1, max_message_bytes=65_536)
    assert encode(once, profile="a", revision=1) == encode(again, profile="a", revision=1)


_ELSEWHERE = """
import pickle
import sys
from exports.table.slt import encode
from solvers import compile_table
pipeline, limits = pickle.load(sys.stdin.buffer)
table = compile_table(pipeline, limits, min_message_bytes=1, max_message_bytes=20_000)
sys.stdout.buffer.write(encode(table, profile="a", revision=1))
"""


def compiled_elsewhere(case: int, **variables: str) -> bytes:
    """The file of the table up to 20 000 bytes, compiled in another process."""
    question = CASES[case]
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE],
        input=pickle.dumps((question.pipeline, question.limits)),
        env={**os.environ, **variables},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        timeout=300.0,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("case", [0, 8])
def test_another_process_compiles_the_same_bytes(case: int) -> None:
    """Whatever the seed of its hashes."""
    once, again = (compiled_elsewhere(case, PYTHONHASHSEED=seed) for seed in ("1", "22"))
    assert once == again


@pytest.mark.parametrize("case", [0, 2, 8])
def test_a_table_of_the_numpy_path_keeps_its_word_too(case: int) -> None:
    """Its cuts may be others; its certificate is as good."""
    table = decode(compiled_elsewhere(case, SLUICE_KERNELS="numpy")).table
    check_entries(table)
    for size in random_sizes(table, count(100), seed=case):
        check_cut(table, size)
        check_repeat(table, size)


@pytest.mark.parametrize("case", CASES[:1] + CASES[4:5] + CASES[8:], ids=str)
def test_the_compiler_s_reader_is_the_table_s(case: Case) -> None:
    """What was certified is what `cut_at` gives, byte by byte."""
    table, unit = table_of(case), case.limits.alignment_bytes
    stretches = [
        (one, other)
        for one, other in zip(table.cuts, table.cuts[1:], strict=False)
        if other.message_bytes - one.message_bytes > 1
    ]
    for one, other in stretches[:: max(1, len(stretches) // 12)]:
        step = max(1, (other.message_bytes - one.message_bytes) // 50)
        sizes = np.arange(one.message_bytes, other.message_bytes, step, dtype=np.int64)
        found = reader_cuts(one.fragment_bytes, other.fragment_bytes, unit, sizes)
        for size, cut in zip(sizes.tolist(), found.tolist(), strict=True):
            assert table.cut_at(size) == tuple(cut)


@pytest.mark.parametrize("unit", [1, 16])
def test_rounding_adds_no_more_than_is_said(unit: int) -> None:
    """Every byte between two random cuts, against the chord of their latencies."""
    draw = random.Random(unit)
    for number in range(count(200)):
        pipeline = drawn(100 + number)
        k, length = draw.randint(2, 6), draw.randint(2, 400)
        first = tuple(unit * draw.randint(20, 60) for _ in range(k))
        grown = [size + unit * draw.randint(0, 3) for size in first[:-1]]
        last = (*grown, sum(first) + length - sum(grown))
        if last[-1] < unit:
            continue
        problem = Problem(pipeline, sum(last), FragmentLimits(alignment_bytes=unit))
        ends = latency_us(pipeline, first), latency_us(pipeline, last)
        added = rounding_us(problem, first, last, length)
        sizes = np.arange(sum(first), sum(last) + 1, dtype=np.int64)
        for size, cut in zip(sizes, reader_cuts(first, last, unit, sizes).tolist(), strict=True):
            share = (int(size) - sum(first)) / length
            chord = ends[0] * (1.0 - share) + ends[1] * share
            assert latency_us(pipeline, cut) <= (chord + added) * (1.0 + 1e-12)


def test_positions_that_move_too_far_for_a_reader() -> None:
    """2^31 units or more: its products would not fit 64 bits."""
    far = 2**31
    assert shifts_fit((far, far), (2 * far - 1, 5), 1)
    assert not shifts_fit((far, far), (2 * far, 5), 1)
    assert shifts_fit((far, far), (2 * far, 8), 8)
    assert shifts_fit((1, far, 9), (1, 1, far), 1)
    assert not shifts_fit((2 * far, 9), (5, 2 * far), 1)


@pytest.mark.parametrize(
    "rows",
    [
        [("free", 0.0, 0.0), ("free too", 0.0, 0.0)],
        [("no cost", 3.0, 0.0), ("none either", 5.0, 0.0)],
        [("alone", 4.0, 9.0)],
        [("huge", 1e12, 1e9), ("tiny", 1e-9, 1e-9)],
    ],
    ids=["nothing costs", "bytes are free", "one stage", "far apart"],
)
def test_odd_pipelines_have_tables_too(rows: list[tuple[str, float, float]]) -> None:
    """Every entry is admitted and its certificate finite."""
    pipeline = pipeline_of_lines(rows)
    table = compile_table(pipeline, FragmentLimits(), min_message_bytes=1, max_message_bytes=5_000)
    for size in (1, 2, 77, 4_999, 5_000):
        cut = table.cut_at(size)
        assert Problem(pipeline, size).admits(cut)
        bound = solve(Problem(pipeline, size)).lower_bound_us
        assert latency_us(pipeline, cut) <= (1.0 + table.relative_gap_at(size)) * bound + 1e-9


@pytest.mark.parametrize(("minimum", "maximum"), [(7, 7), (1, 2), (2**40, 2**40 + 5)])
def test_ranges_of_few_sizes(minimum: int, maximum: int) -> None:
    """The first and the last entry are the ends of the range."""
    table = compile_table(
        MYRINET, FragmentLimits(), min_message_bytes=minimum, max_message_bytes=maximum
    )
    assert table.cuts[0].message_bytes == minimum
    assert table.cuts[-1].message_bytes == maximum
    for size in range(minimum, maximum + 1):
        assert Problem(MYRINET, size).admits(table.cut_at(size))
        check_repeat(table, size)


@pytest.mark.parametrize("relative_gap", [1e-6, 1.0])
@pytest.mark.parametrize("limits", [NO_LIMITS, FragmentLimits(8, 64, 4)])
def test_the_ends_of_what_may_be_asked(relative_gap: float, limits: FragmentLimits) -> None:
    """What whole bytes do not allow is stated, not refined for ever."""
    table = TableCase(MYRINET, limits, 1, 600, relative_gap).table()
    for size in range(1, 601, 13 if is_campaign() else 37):
        check_cut(table, size)
        check_repeat(table, size)


@pytest.mark.parametrize("maximum", [1, 2])
def test_hardly_any_fragments(maximum: int) -> None:
    """The most of them where that pays."""
    table = TableCase(MYRINET, FragmentLimits(max_fragments=maximum), 1, MIB).table()
    assert len(table.cut_at(MIB)) == maximum
    for size in random_sizes(table, 20, seed=maximum):
        check_cut(table, size)
        check_repeat(table, size)


def test_messages_of_a_tebibyte() -> None:
    """Few fragments, so that the reference can follow."""
    table = TableCase(drawn(2), FragmentLimits(max_fragments=6), 2**40, 2**41).table()
    assert max(cut.relative_gap for cut in table.cuts) <= TOLERANCE
    for size in random_sizes(table, 20, seed=1):
        check_cut(table, size)
        check_repeat(table, size)


def test_limits_that_admit_no_cut_are_named() -> None:
    """The table would have to hold what does not exist."""
    limits = FragmentLimits(min_fragment_bytes=1000, max_fragment_bytes=1500)
    with pytest.raises(Infeasible, match=r"1000 and max_fragment_bytes 1500") as caught:
        compile_table(MYRINET, limits, min_message_bytes=1, max_message_bytes=4_000)
    assert caught.value.field == "constraints"


def test_a_cap_on_the_count_that_the_larger_messages_exceed() -> None:
    """Both limits are named."""
    limits = FragmentLimits(max_fragment_bytes=100, max_fragments=3)
    with pytest.raises(Infeasible, match=r"max_fragment_bytes 100 .* max_fragments allows 3"):
        compile_table(MYRINET, limits, min_message_bytes=1, max_message_bytes=301)
    assert TableCase(MYRINET, limits, 1, 300).table().cut_at(300) == (100, 100, 100)


@pytest.mark.parametrize("time_limit_s", [1e-6, 1e-2])
def test_a_table_that_takes_too_long_states_what_it_reached(time_limit_s: float) -> None:
    """Wherever the time ends, the whole range is there, with gaps that hold."""
    case = TableCase(drawn(6), FragmentLimits(alignment_bytes=3), 1, MIB, 1e-6)
    table = case.table(time_limit_s=time_limit_s)
    assert (table.cuts[0].message_bytes, table.cuts[-1].message_bytes) == (1, MIB)
    assert max(cut.relative_gap for cut in table.cuts) > 1e-6
    for size in (1000, 70_000, MIB):
        problem = Problem(case.pipeline, size, case.limits, case.fragment_cap)
        best_us = solve(problem, Strategy.EXACT).latency_us
        latency_us = case.pipeline.latency_us(table.cut_at(size))
        assert latency_us <= best_us * (1.0 + table.relative_gap_at(size)) * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("min_message_bytes", {"min_message_bytes": 0}),
        ("max_message_bytes", {"max_message_bytes": 2**48 + 1}),
        ("max_message_bytes", {"min_message_bytes": 9, "max_message_bytes": 8}),
        ("relative_gap", {"relative_gap": 1e-7}),
        ("relative_gap", {"relative_gap": math.nan}),
    ],
)
def test_bad_questions_name_their_field(field: str, values: dict[str, float]) -> None:
    """Before any work."""
    asked = {"min_message_bytes": 1, "max_message_bytes": 4096, "relative_gap": 1e-3} | values
    with pytest.raises(InvalidInput) as caught:
        compile_table(MYRINET, FragmentLimits(), **asked)  # type: ignore[arg-type]
    assert caught.value.field == field


@pytest.mark.parametrize("pipeline", [MYRINET, a_ranged_pipeline()], ids=["lines", "ranges"])
@pytest.mark.parametrize("minimum", [1, 2_000, 4_096])
def test_progress_only_grows(pipeline: Pipeline, minimum: int) -> None:
    """From 0 to 1, which it reaches once, at the end; both halves are told of."""
    reported: list[float] = []
    compile_table(
        pipeline,
        FragmentLimits(),
        min_message_bytes=minimum,
        max_message_bytes=4_096,
        on_progress=reported.append,
    )
    assert reported == sorted(reported)
    assert (reported.count(1.0), reported[-1]) == (1, 1.0)
    if minimum < 4_096:
        assert (reported[0], 0.5 in reported) == (0.0, True)
        assert max(after - before for before, after in pairwise(reported)) < 0.5


def test_stretches_of_pipelines_with_ranges_are_below_2_gib_too() -> None:
    """From 8 to 16 GiB in four fragments."""
    limits = FragmentLimits(max_fragments=4)
    table = TableCase(a_ranged_pipeline(), limits, 2**33, 2**34).table()
    for size in random_sizes(table, 20, seed=1):
        problem = Problem(table.pipeline, size, limits)
        assert problem.admits(table.cut_at(size))
        assert problem.admits(repeated(size, table.repeated_size_at(size)))
