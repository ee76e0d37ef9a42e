"""Compilations in a process of their own: the compiler itself, and every way to end it."""

from __future__ import annotations

import threading

import pytest

from app import apart
from app.flows.build_table import TableQuestion, TableScope, compile_table
from app.table_apart import TableApart
from domain.errors import Cancelled, Infeasible, MemoryLimitReached, TimeLimitReached
from domain.problem import FragmentLimits
from domain.profile import ProfileRevision
from exports.slt import decode, digest_of
from tests.app.serving import MIB, wait_until
from tests.app.test_apart import children
from tests.support.plan_tables import a_line_pipeline

PROFILE = ProfileRevision("of-a-test", 3)
SMALL = TableScope(least_bytes=1000, greatest_bytes=2000)


def asked(scope: TableScope = SMALL) -> TableQuestion:
    return TableQuestion(a_line_pipeline(), PROFILE, scope, 1000)


def test_the_same_bytes_as_in_this_process() -> None:
    """Deterministic to the byte, and nothing is left behind."""
    there = TableApart(asked(), memory_bytes=1024 * MIB).run()
    here = compile_table(asked())
    assert there.file == here.file
    assert there.digest == digest_of(here.file)
    assert there.facts == here.facts
    stored = decode(there.file)
    assert (stored.profile, stored.revision) == ("of-a-test", 3)
    assert stored.table.pipeline == a_line_pipeline()
    assert (stored.table.least_bytes, stored.table.greatest_bytes) == (1000, 2000)
    assert children() == []


def test_a_refusal_is_raised_here() -> None:
    """No cut of 9 bytes has fragments of 5 to 8."""
    scope = TableScope(FragmentLimits(5, 8), least_bytes=9, greatest_bytes=9)
    with pytest.raises(Infeasible, match="min_fragment_bytes"):
        TableApart(asked(scope), memory_bytes=1024 * MIB).run()


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said with the limit; the process is gone."""
    with pytest.raises(MemoryLimitReached, match="the compilation needed more than"):
        TableApart(asked(), memory_bytes=1 * MIB).run()
    assert children() == []


def test_too_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ended from outside."""
    monkeypatch.setattr(apart, "TIME_LIMIT_S", 0.05)
    with pytest.raises(TimeLimitReached, match="the compilation took longer"):
        TableApart(asked(), memory_bytes=1024 * MIB).run()
    wait_until(lambda: children() == [])


def test_nobody_waits_any_more() -> None:
    """Cancelled from another thread while it runs."""
    child = TableApart(asked(TableScope()), memory_bytes=1024 * MIB)
    endings: list[BaseException] = []

    def run() -> None:
        try:
            child.run()
        except Cancelled as ending:
            endings.append(ending)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: len(children()) == 1)
    child.cancel()
    thread.join(60)
    assert len(endings) == 1
    wait_until(lambda: children() == [])
