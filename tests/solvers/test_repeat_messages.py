"""The best repeated size of every message at once: what is left out is no better, and entries read
as what was certified.
"""

from __future__ import annotations

import numpy as np
import pytest

from domain.errors import Infeasible
from domain.pipeline import pipeline_of_lines
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from solvers.contract import Deadline
from solvers.kernels import active
from solvers.tables.points import HostCosts
from solvers.tables.repeat import RepeatCompiler
from solvers.tables.repeat_duals import Dual, Line, live_counts
from solvers.tables.repeat_entries import Entries
from solvers.tables.repeat_messages import EveryMessage, Floats, best_of_count, read_us
from tests.solvers.table_cases import (
    EVALUATOR_ERROR,
    TableCase,
    check_repeat,
    narrow_limits,
    random_limits,
    random_pipeline,
    repeated,
)
from tests.support.compiler import require_native_kernels
from tests.support.counts import count
from tests.support.plan_tables import a_line_pipeline

ERROR = 1e-9
MYRINET = pipeline_of_lines(
    [
        ("sender copy", 7.2, 7.03125),
        ("sender host DMA", 5.2, 24.31640625),
        ("network and receiver DMA", 7.5, 24.31640625),
        ("receiver copy", 7.4, 7.71484375),
    ]
)
KERNELS = [True, False]


@pytest.fixture(autouse=True)
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In C, or in NumPy where the test says so."""
    if "is_native" not in request.fixturenames:
        return
    if request.getfixturevalue("is_native"):
        require_native_kernels()
        assert active.NATIVE is not None
    else:
        monkeypatch.setattr(active, "NATIVE", None)


def problems(number: int, *, seed: int) -> list[tuple[Problem, np.random.Generator]]:
    """Lines with limits, small messages; those that no cut keeps are left out."""
    found = []
    for at in range(number):
        rng = np.random.default_rng([seed, at])
        pipeline, message = random_pipeline(rng), int(rng.integers(1, 400))
        limits = narrow_limits(rng) if rng.random() < 0.3 else random_limits(rng, message)
        problem = Problem(pipeline, message, limits)
        try:
            problem.count_range()
        except Infeasible:
            continue
        found.append((problem, rng))
    return found


def taken_us(problem: Problem, message: int, k: int) -> dict[int, float]:
    """The latency without delay of every admitted size that makes k fragments of a message."""
    one = Problem(problem.pipeline, message, problem.limits)
    sizes = range(-(-message // k), (message - 1) // (k - 1) + 1) if k > 1 else [message]
    cuts = {size: repeated(message, size) for size in sizes}
    return {
        size: latency_us(problem.pipeline, cut) - problem.pipeline.delay_us
        for size, cut in cuts.items()
        if one.admits(cut)
    }


@pytest.mark.parametrize("is_native", KERNELS)
def test_the_best_size_of_a_count_is_the_best_of_all(is_native: bool) -> None:
    """Of every message of a range, in whole units."""
    for problem, rng in problems(count(600), seed=1):
        first = max(1, problem.message_bytes - int(rng.integers(0, 40)))
        most = problem.limits.max_fragments or 40
        k, messages = int(rng.integers(1, most + 1)), problem.message_bytes - first + 1
        sizes, latency = best_of_count(problem, k, first, messages)
        scale = problem.pipeline.delay_us + 1e-300
        for message, size, own in zip(range(first, first + messages), sizes, latency, strict=True):
            every = taken_us(problem, message, k)
            assert bool(size) == bool(every), (message, k, size)
            if every:
                assert own == pytest.approx(min(every.values()), rel=ERROR, abs=ERROR * scale)
                assert every[min(int(size), message)] == pytest.approx(own, rel=ERROR, abs=scale)


def test_a_dual_of_one_count_and_message_bounds_all() -> None:
    """Whatever the weights of the two paths: no size of any count is below it at any message."""
    for problem, rng in problems(count(2_000), seed=2):
        message = problem.message_bytes
        if message < 4:
            continue
        k = int(rng.integers(2, min(30, message) + 1))
        size = int(
            rng.integers(-(-message // k), max(-(-message // k), (message - 1) // (k - 1)) + 1)
        )
        dual = Dual.at(problem, k, message, size)
        for _ in range(6):
            other = int(rng.integers(2, 2 * message))
            count_there = int(rng.integers(2, min(40, other) + 1))
            every = taken_us(Problem(problem.pipeline, other), other, count_there)
            bound = float(dual.ends_us(np.array([float(count_there)]), other).min())
            assert all(bound <= own * (1.0 + ERROR) + 1e-9 for own in every.values())


def best_us(problem: Problem, message: int, host: HostCosts | None) -> float:
    """The least run time of every admitted size; infinite where there is none."""
    counts = Problem(problem.pipeline, message, problem.limits).count_range()
    best, delay_us = np.inf, problem.pipeline.delay_us
    for k in range(counts.minimum, counts.maximum + 1):
        every = taken_us(problem, message, k)
        if every:
            own = np.array(min(every.values()) + delay_us)
            best = min(best, float(own if host is None else host.longer_us(own, k, message)))
    return best


@pytest.mark.parametrize("is_native", KERNELS)
def test_no_count_that_is_left_out_is_better(is_native: bool) -> None:
    """The best of every message is the best of every size, beside a host too."""
    for at, (problem, rng) in enumerate(problems(count(160, share=8), seed=3)):
        host = None
        if at % 3 == 0:
            scale = latency_us(problem.pipeline, [problem.message_bytes])
            host = HostCosts(float(rng.uniform(0.0, scale)), 0.0, ((0.1 * scale, 0.0),))
        first = max(1, problem.message_bytes - 60)
        every = EveryMessage(problem, host, first, tolerance=1e-6)
        every.run(lambda message: True)
        for message in range(first, every.last + 1):
            own = float(every.best_us[message - first])
            assert own == pytest.approx(best_us(problem, message, host), rel=ERROR, abs=1e-300)


def test_counts_are_left_out() -> None:
    """All but two or three of hundreds, of messages near each other."""
    problem = Problem(MYRINET, 1_010_000)
    every = EveryMessage(problem, None, 1_000_000, tolerance=1e-7)
    every.run(lambda message: True)
    assert every.last == problem.message_bytes
    assert every.work <= 8 * len(every.best_us)


def test_an_endless_row_of_counts_is_given_up() -> None:
    """Without overheads more fragments cost nothing: no dual ends their row."""
    free = Dual(0.0, 1.0, 0.0, 0.0, 0.0)
    line = Line(1_000_000, 1_000_100, 2_000_000.0, 2_000_200.0)
    assert live_counts([free], line, (1, 1_000_000), 100) is None
    falling = Dual(3_000_000.0, 0.0, 0.0, 1e3, 0.0)  # it falls, so nothing is said of more
    assert live_counts([falling], line, (1, 1_000_000), 100) is None
    paid = free._replace(per_full=1e5)
    found = live_counts([paid], line, (1, 1_000_000), 10)
    assert found is not None
    assert found.tolist() == list(range(1, 12))


@pytest.mark.parametrize("is_native", KERNELS)
def test_a_reader_takes_what_was_priced(is_native: bool) -> None:
    """Byte by byte, as the table reads itself."""
    table = TableCase(a_line_pipeline(), FragmentLimits(), 1, 800, 1e-3).table()
    checked = 0
    for one, other in zip(table.repeats, table.repeats[1:], strict=False):
        if one.fragments != other.fragments or other.message_bytes - one.message_bytes < 2:
            continue
        messages = other.message_bytes - one.message_bytes
        problem = Problem(table.pipeline, other.message_bytes)
        sizes = one.size_bytes, other.size_bytes
        found = read_us(problem, one.message_bytes, messages, sizes) + table.pipeline.delay_us
        for message, own in zip(range(one.message_bytes, other.message_bytes), found, strict=True):
            cut = repeated(message, table.repeated_size_at(message))
            assert own == pytest.approx(latency_us(table.pipeline, cut), rel=EVALUATOR_ERROR)
            checked += 1
    assert checked > 100


def test_a_stricter_tolerance_is_met_at_every_byte() -> None:
    """Table 1 to 16 MiB at 1e-4, where a chord and real sizes came to 3.7e-4."""
    compiler = RepeatCompiler(
        Problem(MYRINET, 1 << 24), min_message_bytes=1, max_message_bytes=1 << 24, tolerance=1e-4
    )
    entries = compiler.run(Deadline.after(600.0), lambda message: None)
    assert not compiler.is_spent
    assert max(entry.relative_gap for entry in entries) <= 1e-4 + 1e-11
    assert len(entries) < 1_000
    table = PlanTable(
        MYRINET,
        FragmentLimits(),
        100_000,
        1,
        1 << 24,
        1e-4,
        TableCase(MYRINET, FragmentLimits(), 1, 1 << 24, 1e-2).table().cuts,
        tuple(entries),
    )
    rng = np.random.default_rng(4)
    for size in np.exp(rng.uniform(0.0, np.log(1 << 20), count(400))).astype(int).tolist():
        check_repeat(table, size)


def test_entries_break_off_between_counts() -> None:
    """What follows may begin with any count: the last message of a run has an entry then."""
    problem = Problem(MYRINET, 4_000)
    every = EveryMessage(problem, None, 1, tolerance=1e-5)
    every.run(lambda message: True)
    entries = Entries(every, problem, 1e-5)
    for end, run in entries.runs():
        closed = run + entries.closed(run[-1], end)
        assert closed[-1].message == end
        assert [one.message for one in closed] == sorted({one.message for one in closed})


def test_no_message_is_read_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short the stretches are that keep to the limits, beside how far one count lasts."""
    lines = [("to host", 9.15, 0.02428), ("network", 2.8, 0.0204), ("to device", 9.15, 0.02428)]
    problem = Problem(pipeline_of_lines(lines), 1 << 19, FragmentLimits(1, None, 64))
    every, plain, read = EveryMessage(problem, None, 1, tolerance=1e-6), EveryMessage.read_us, []

    def counted(self: EveryMessage, first: int, last: int, sizes: tuple[int, int]) -> Floats:
        read.append(last - first)
        return plain(self, first, last, sizes)

    every.run(lambda _message: True)
    monkeypatch.setattr(EveryMessage, "read_us", counted)
    entries = [one for _, run in Entries(every, problem, 1e-6).runs() for one in run]
    assert len(entries) > 1
    assert sum(read) <= 8 * problem.message_bytes
