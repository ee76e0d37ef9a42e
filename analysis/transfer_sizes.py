"""What a user's own transfers of one message decide about the size it is cut into.

decision = decide_size(transfers, current_bytes=4 << 20)
decision.sentence()

Transfers of a race are decided by its own rules. Others are put in the order of their time. Where
sizes take turns, each turn is a block, and a size is set once its blocks have shown that it is
faster. Where every size stands in a heap, a drift of the machine looks like a size: one slope over
the rows joins the fit, known from the repeats, and only a large gain is left of it. Where no size
was repeated, there is a size to try.

Source    docs/decisions/0029-own-transfers-decide.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from math import log

import numpy as np

from analysis.cut_curve import MAX_MISFIT, CutCurve, curve_around_best, terms_of
from analysis.pair_bets import ALPHA, MIN_PAIRS, are_far_apart, sign_chance
from analysis.size_decision import MARGIN, decision_of, default_current
from analysis.size_evidence import SizeEvidence, round_sizes, timed_runs
from analysis.size_race import RacePlan, SizeRace
from domain.errors import InconsistentInput
from domain.own_transfers import NEAR_BEST, OwnTransfer, OwnTransfers, SizeDecision, SizeVerdict

_HEAP_GAIN = 0.1  # what has to be left of a gain at its 95 % bound where sizes stand in heaps
_HEAP_ERRORS = 1.96
_HEAP_CONDITION = "if the machine did not change between"
_MIN_STRETCHES = 3  # of rows of one size, for sizes that are far apart
_CURVE_SIZES = 3  # that determine the constants
# Transfers of a race, and of its pairs: in more they are turns as those of any file, since each
# pair asks for the noise before it.
_MAX_RACED, _MAX_PAIRED = 400, 120
_STEPS = 8  # sizes to try an octave: one of them is within 0.2 % of the best of any curve


def decide_size(transfers: OwnTransfers, current_bytes: int | None = None) -> SizeDecision:
    """Return what these transfers decide; at least one has to be usable.

    Without a current size, sizes are compared with the message in one piece, or with the largest
    size where that was not transferred. Raises InvalidInput for transfers none of which is usable,
    and for a current size that is larger than the message.
    """
    if current_bytes is not None and not 1 <= current_bytes <= transfers.message_bytes:
        raise InconsistentInput(
            "expected a current size of 1 byte to the whole message", field="current_bytes"
        )
    paired = sum(row.challenge is not None for row in transfers.rows)
    if 0 < paired <= _MAX_PAIRED and len(transfers.rows) <= _MAX_RACED:
        plan = RacePlan(transfers.message_bytes, current_bytes)
        return SizeRace(plan, transfers.rows).decision()
    rows = _in_time(transfers.usable)
    if not rows:
        raise InconsistentInput("expected at least one transfer with a time", field="latency_us")
    turns = _turns(rows)
    sizes = {row.fragment_bytes for row in rows}
    is_repeated = len(rows) > len(sizes)
    in_heaps = is_repeated and len(list(_heaps(rows))) == len(sizes)
    candidates = _candidates(transfers.message_bytes, sizes)
    evidence = SizeEvidence(
        timed_runs(rows, turns), transfers.message_bytes, candidates, has_slope=in_heaps
    )
    decided = _Decided(transfers, evidence, current_bytes)
    if not is_repeated or decided.current not in sizes:
        return decided.untested()
    if in_heaps:
        return decided.in_heaps()
    return decided.in_turns(rows, turns)


class _Decided:
    """The ways to decide, by how the sizes stand in the order of time."""

    def __init__(
        self, transfers: OwnTransfers, evidence: SizeEvidence, current_bytes: int | None
    ) -> None:
        self._transfers, self._evidence, self._given = transfers, evidence, current_bytes
        self.current = default_current(transfers, current_bytes)

    def in_turns(self, rows: Sequence[OwnTransfer], turns: Sequence[int]) -> SizeDecision:
        """The fastest size whose pairs with the current one show it; each may be the one chosen, so
        that all share 2.5 %; as much is left for sizes that are far apart.
        """
        evidence, current = self._evidence, self.current
        times, stretches = _times_of(rows), Counter(_heaps(rows))
        share = ALPHA / 2 / max(1, len(evidence.sizes) - 1)
        for size in evidence.by_mean:
            if size == current or evidence.lead(size, current)[0] <= MARGIN:
                continue
            ratios = _pair_ratios(rows, turns, size, current)
            is_shown = len(ratios) >= MIN_PAIRS and sign_chance(ratios) <= share
            # In fewer stretches a change of the machine looks like a size.
            is_mixed = min(stretches[size], stretches[current]) >= _MIN_STRETCHES
            is_far = is_mixed and are_far_apart(times[size], times[current], evidence.noise)
            if is_far or (is_shown and evidence.gain(size, current).low > 0.0):
                return self._decide(SizeVerdict.SET, size)
        return self._kept_or(self._decide(SizeVerdict.NOT_DECIDED, current))

    def in_heaps(self) -> SizeDecision:
        """The fastest size, where more than 10 % is left at the bound that a slope leaves."""
        evidence, current = self._evidence, self.current
        best = min(evidence.sizes, key=lambda size: evidence.means[size])
        lead, error = evidence.centres.lead(best, current)
        if lead - _HEAP_ERRORS * error > -log(1.0 - _HEAP_GAIN):
            return self._decide(SizeVerdict.SET, best, condition=_HEAP_CONDITION)
        return self._kept_or(self.untested(), condition=_HEAP_CONDITION)

    def untested(self) -> SizeDecision:
        """A size to try, where it may be more than 2 % faster than the current one."""
        evidence, current = self._evidence, self.current
        size, log_us = _size_to_try(evidence, self._transfers.message_bytes)
        is_known = current in evidence.sizes
        if size == current or (is_known and evidence.means[current] - log_us <= NEAR_BEST):
            return self._decide(SizeVerdict.NOT_DECIDED, current)
        return self._decide(SizeVerdict.TRY, size)

    def _kept_or(self, otherwise: SizeDecision, *, condition: str = "") -> SizeDecision:
        """The current size, where it was repeated and is as good as the best."""
        is_repeated = self._evidence.centres.runs_of(self.current) > 1
        is_alone = len(self._evidence.sizes) == 1
        if not is_alone and is_repeated and self._evidence.regret(self.current) <= NEAR_BEST:
            return self._decide(SizeVerdict.KEEP, self.current, condition=condition)
        return otherwise

    def _decide(self, verdict: SizeVerdict, size: int, *, condition: str = "") -> SizeDecision:
        return decision_of(
            self._transfers,
            self._evidence,
            verdict,
            current_bytes=self._given,
            size_bytes=size,
            condition=condition,
        )


def _in_time(rows: Sequence[OwnTransfer]) -> list[OwnTransfer]:
    """The rows by when they began, where that is known of all."""
    if all(row.began_s is not None for row in rows):
        return sorted(rows, key=lambda row: row.began_s or 0.0)
    return list(rows)


def _heaps(rows: Sequence[OwnTransfer]) -> Iterable[int]:
    """The size of every stretch of rows of one size."""
    return (size for size, _ in groupby(row.fragment_bytes for row in rows))


def _turns(rows: Sequence[OwnTransfer]) -> list[int]:
    """The number of the turn that each row belongs to: a turn ends where a size comes again after
    another one, and where the rows' own block does.
    """
    found, seen, turn = list[int](), set[int](), 0
    for before, row in zip((None, *rows), rows, strict=False):
        if before is not None and (
            before.block != row.block
            or (row.fragment_bytes in seen and row.fragment_bytes != before.fragment_bytes)
        ):
            turn, seen = turn + 1, set()
        seen.add(row.fragment_bytes)
        found.append(turn)
    return found


def _times_of(rows: Sequence[OwnTransfer]) -> dict[int, list[float]]:
    found = dict[int, list[float]]()
    for row in rows:
        found.setdefault(row.fragment_bytes, []).append(row.latency_us or 0.0)
    return found


def _pair_ratios(
    rows: Sequence[OwnTransfer], turns: Sequence[int], size: int, current: int
) -> list[float]:
    """The log ratio of a size's time over the current one's in each turn that has both.

    Where one of the two comes first in every turn, a drift would stand in all ratios: the slope of
    the log times over the rows is taken out before.
    """
    at = [place for place, row in enumerate(rows) if row.fragment_bytes in (size, current)]
    is_size = np.array([rows[place].fragment_bytes == size for place in at])
    log_us = np.log(np.array([rows[place].latency_us for place in at], dtype=np.float64))
    order, turn = np.array(at, dtype=np.float64), np.array([turns[place] for place in at])
    found, ahead = list[tuple[float, float]](), list[float]()
    for number in np.unique(turn):
        mine, other = (turn == number) & is_size, (turn == number) & ~is_size
        if mine.any() and other.any():
            ahead.append(float(order[mine].mean() - order[other].mean()))
            found.append((float(log_us[mine].mean() - log_us[other].mean()), ahead[-1]))
    is_fixed = len({distance > 0.0 for distance in ahead}) == 1
    slope = _slope(order, log_us, is_size) if is_fixed else 0.0
    return [ratio - slope * distance for ratio, distance in found]


def _slope(order: np.ndarray, log_us: np.ndarray, is_size: np.ndarray) -> float:
    """The least-squares slope that both sizes share."""
    spread = along = 0.0
    for group in (is_size, ~is_size):
        centred = order[group] - order[group].mean()
        spread += float(centred @ centred)
        along += float(centred @ log_us[group])
    return along / spread if spread > 0.0 else 0.0


def _candidates(message_bytes: int, sizes: Iterable[int]) -> tuple[int, ...]:
    """The round sizes between those that were transferred, and these."""
    known = sorted(sizes)
    inside = round_sizes(message_bytes, known[0], *known)
    return tuple(size for size in inside if size <= known[-1])


def _size_to_try(evidence: SizeEvidence, message_bytes: int) -> tuple[int, float]:
    """The best size of a curve that no size speaks against, or the fastest one transferred; and
    its log time.

    Of three or four sizes the curve goes through all, as none can be spared.
    """
    measured = evidence.by_mean[0]
    curve = evidence.curve
    if len(evidence.sizes) <= _CURVE_SIZES + 1:
        curve = curve_around_best(evidence.centres, message_bytes, is_everywhere=True)
    errors = evidence.centres.errors[list(curve.places)]
    is_near = bool((np.abs(curve.off) <= np.maximum(3.0 * errors, MAX_MISFIT)).all())
    if len(curve.sizes) < _CURVE_SIZES or not is_near:
        return measured, evidence.means[measured]
    best, log_us = _best_of_curve(curve, message_bytes)
    return best, log_us


def _best_of_curve(curve: CutCurve, message_bytes: int) -> tuple[int, float]:
    """The best of eight sizes an octave between the curve's sizes, these included."""
    low, high = curve.sizes[0], curve.sizes[-1]
    octaves = range(max(0, low.bit_length() - _STEPS.bit_length()), high.bit_length())
    stepped = {step << octave for octave in octaves for step in range(_STEPS, 2 * _STEPS)}
    sizes = sorted({size for size in stepped if low <= size <= high} | {*curve.sizes})
    times = terms_of(sizes, message_bytes) @ curve.constants
    best = int(times.argmin())
    return sizes[best], float(np.log(times[best] * curve.unit_us))
