"""A race as it is run, on a program whose times are made up and a clock that stands still."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.size_race import RacePlan, SizeRace
from app.console import racing
from app.console.racing import Ended, RaceRun, first_words
from domain.own_transfers import SizeVerdict, TransferStatus
from measuring.own_program import ProgramRun

MIB = 1 << 20


class Clock:
    """Seconds that pass only as runs take them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        monkeypatch.setattr(racing.time, "monotonic", lambda: self.now_s)

    def program(
        self, took_s: Callable[[int], float], beside_s: float = 0.0
    ) -> Callable[[int, float], ProgramRun]:
        """A program that takes so long, and is ended at its limit and 2 s later."""

        def run(size: int, limit_s: float) -> ProgramRun:
            whole_s = took_s(size) + beside_s
            if whole_s > limit_s:
                self.now_s += limit_s + 2.0
                return ProgramRun(None, limit_s + 2.0, is_too_long=True, reason="too long")
            self.now_s += whole_s
            return ProgramRun(took_s(size) * 1e6, whole_s)

        return run


def curve(size: int) -> float:
    return 1.0 + size / MIB + 0.05 * (16 * MIB / size)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def race_of(current: int = MIB // 8, **plan: int) -> SizeRace:
    return SizeRace(RacePlan(16 * MIB, current, **plan))


def test_it_runs_to_its_end(clock: Clock) -> None:
    race, seen = race_of(), list[int]()
    ended = RaceRun(
        race, clock.program(curve), 1e6, after_run=lambda size, _: seen.append(size)
    ).to_end()
    assert ended is Ended.RACE
    assert race.decision().verdict is SizeVerdict.SET
    assert seen == [row.fragment_bytes for row in race.rows()]
    begins = [row.began_s for row in race.rows()]
    assert begins == sorted(begins, key=lambda at: at or 0.0)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.5, 200.0), st.floats(0.0, 3.0), st.integers(12, 24))
def test_it_ends_in_time(limit_s: float, beside_s: float, power: int) -> None:
    """By its limit, or by the 2 s of the run that was under way."""
    with pytest.MonkeyPatch.context() as patch:
        clock = Clock(patch)
        race = race_of(1 << power)
        RaceRun(race, clock.program(curve, beside_s), limit_s).to_end()
        assert clock.now_s <= limit_s + 2.0 + 1e-9


def test_a_first_run_that_outlasts_the_limit_says_nothing_of_its_size(clock: Clock) -> None:
    race = race_of()
    assert RaceRun(race, clock.program(lambda size: 9.0), 5.0).to_end() is Ended.TIME
    assert race.rows() == ()


def test_no_run_begins_that_would_outlast_the_limit(clock: Clock) -> None:
    """What is run before each and is not timed counts."""
    begun = list[float]()
    program = clock.program(lambda size: 1.0, beside_s=4.0)

    def run(size: int, limit_s: float) -> ProgramRun:
        begun.append(limit_s)
        return program(size, limit_s)

    assert RaceRun(race_of(), run, 23.0).to_end() is Ended.TIME
    assert begun == [23.0, 18.0, 13.0, 8.0]


def test_a_size_that_hangs_is_refused_and_the_others_go_on(clock: Clock) -> None:
    race = race_of()
    times = clock.program(lambda size: 1e9 if size > 8 * MIB else curve(size) / 10)
    assert RaceRun(race, times, 500.0).to_end() is Ended.RACE
    hung = [row for row in race.rows() if row.status is TransferStatus.ENDED]
    assert [row.fragment_bytes for row in hung] == [16 * MIB]
    assert race.decision().verdict is SizeVerdict.SET
    assert clock.now_s < 100.0


def test_a_session_begins_where_the_one_before_ended(clock: Clock) -> None:
    race = race_of()
    RaceRun(race, clock.program(curve), 1e6, began_s=50.0).to_end()
    assert race.rows()[0].began_s == 50.0


def test_what_the_first_run_lets_expect() -> None:
    assert first_words(9.0, 60.0, 40) == "9 s a run: about 24 runs, 220 s; 60 s allow 6"
    assert first_words(0.1, 60.0, 40) == "0.1 s a run: about 24 runs, 2.4 s"
    assert first_words(1.0, 60.0, 12) == "1 s a run: about 12 runs, 12 s"
    assert first_words(90.0, 60.0, 40).endswith("60 s allow 1")
