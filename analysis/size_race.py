"""Which size to run next, until one has shown that it is faster: without a clock or a process.

race = SizeRace(RacePlan(64 << 20, current_bytes=4 << 20))
while (size := race.next()) is not None:
    race.tell(size, latency_us=seconds_of_a_run(size) * 1e6)
race.decision().sentence()

First a map: the current size, the whole message, and outwards from the current size by factors of
2. Then blocks in random order, with sizes that are new or suspicious. Then pairs with the current
size, the best size's two runs next to each other, until a bet on it is won. The transfers are the
state: a race that was stopped goes on from its rows.

Source    docs/decisions/0029-own-transfers-decide.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, log

import numpy as np

from analysis.pair_bets import PAIR_SPREADS, Pair, are_far_apart, wins_bet, wins_last_look
from analysis.size_centres import centres_of
from analysis.size_decision import MARGIN, decision_of
from analysis.size_evidence import SizeEvidence, round_sizes, timed_runs
from analysis.size_wishes import new_sizes, suspicious_sizes
from contract.limits import MAX_MESSAGE_BYTES, MAX_SEED
from domain.errors import InvalidInput
from domain.own_transfers import (
    NEAR_BEST,
    OwnTransfer,
    OwnTransfers,
    SizeDecision,
    SizeVerdict,
    TransferStatus,
)

DEFAULT_RUNS = 40
MIN_RUNS = 6
MAX_RUNS = 1000
_SMALLEST_SHARE = 12  # the smallest size is the message over two to this power
_COMPARISON_RUNS = 14  # of the limit, for the comparison alone
_HILL = 3.0  # the map of a side ends at a size that takes so many times the best
_MAX_PAIRS = 16  # a size that has won is set after so many, near the best or not
_NEW_SIZES, _CONTENDERS = 2, 2  # a block
_NO_LOSS = 0.002  # an expected loss below it is none
_CLEARLY_SLOWER, _CLEAR_RUNS = log(1.1), 3  # the current size is left out of blocks
_OTHER_CHALLENGER_SPREADS = 1.5
_KEPT_RUNS = 3  # of the current size, before it is kept
_FAILURES, _FAILED_SHARE = 4, 0.2  # of sizes that also worked: with more the race ends


@dataclass(frozen=True, slots=True)
class RacePlan:
    """Which message, the size in use, and how many runs at most, warm-up and failures included.

    Sizes go from `smallest_bytes`, by default a 4096th of the message; `suggested_bytes` are run in
    the map too. Without a current size, sizes are compared with the whole message. `seed` decides
    the order. Raises InvalidInput.
    """

    message_bytes: int
    current_bytes: int | None = None
    max_runs: int = DEFAULT_RUNS
    smallest_bytes: int | None = None
    suggested_bytes: tuple[int, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.message_bytes <= MAX_MESSAGE_BYTES:
            raise InvalidInput(
                f"expected a message of 1 to {MAX_MESSAGE_BYTES} bytes", field="message_bytes"
            )
        if not 1 <= self.compared_bytes <= self.message_bytes:
            raise InvalidInput(
                "expected a current size of 1 byte to the whole message", field="current_bytes"
            )
        if not MIN_RUNS <= self.max_runs <= MAX_RUNS:
            raise InvalidInput(f"expected {MIN_RUNS} to {MAX_RUNS} runs", field="max_runs")
        if not 1 <= self.first_bytes <= self.message_bytes:
            raise InvalidInput(
                "expected a smallest size of 1 byte to the whole message", field="smallest_bytes"
            )
        if not 0 <= self.seed <= MAX_SEED:
            raise InvalidInput(f"expected a seed of 0 to {MAX_SEED}", field="seed")
        if not all(1 <= size <= self.message_bytes for size in self.suggested_bytes):
            raise InvalidInput(
                "expected suggested sizes of 1 byte to the whole message", field="suggested_bytes"
            )

    @property
    def compared_bytes(self) -> int:
        """The size that others are compared with."""
        return self.message_bytes if self.current_bytes is None else self.current_bytes

    @property
    def first_bytes(self) -> int:
        """The smallest size that is run, but for the current and suggested ones."""
        if self.smallest_bytes is not None:
            return self.smallest_bytes
        return max(1, self.message_bytes >> _SMALLEST_SHARE)

    @property
    def candidates(self) -> tuple[int, ...]:
        """All sizes that may be run, ascending."""
        more = (self.compared_bytes, *self.suggested_bytes)
        return round_sizes(self.message_bytes, self.first_bytes, *more)


@dataclass(frozen=True, slots=True)
class _Challenge:
    """The n-th size that is compared with the current one, and its pairs so far."""

    number: int
    size: int
    pairs: tuple[Pair, ...]


class SizeRace:
    """The race over a program's own times; `rows` are those of earlier runs, which it goes on from.

    `next` names a size, `tell` takes what came of it. Runs of earlier rows do not count against
    the plan's limit.
    """

    def __init__(self, plan: RacePlan, rows: Sequence[OwnTransfer] = ()) -> None:
        self._plan = plan
        self._transfers = OwnTransfers(plan.message_bytes, tuple(rows))
        self._limit = len(rows) + plan.max_runs
        self._random = np.random.default_rng((plan.seed, len(rows)))
        self._current = plan.compared_bytes
        self._candidates = plan.candidates
        self._block = max((row.block or 0 for row in rows), default=-1) + 1
        self._queue = [self._current]  # it warms up
        self._challengers = self._read_challengers()
        self._compared: int | None = None  # the number of the challenge of this block
        self._spreads = dict[int, float]()  # of a pair, as known before each block
        self._leader: int | None = None
        self._warms_up, self._is_mapped, self._is_done = True, False, False
        self._evidence: SizeEvidence | None = None

    # --- what is asked from outside ---------------------------------------------------------------

    def next(self) -> int | None:
        """Return the size to run now, in bytes; None once the race has ended."""
        while not self._queue:
            if self._is_done or self._is_over():
                return None
            self._plan_block()
        return None if self._is_over() else self._queue[0]

    def tell(
        self,
        size: int,
        latency_us: float | None,
        *,
        began_s: float | None = None,
        is_too_long: bool = False,
        reason: str = "",
    ) -> None:
        """Take what came of the size that `next` named: its time, or why there is none.

        A size that fails is run once more, and is refused if it fails again; one that takes too
        long is refused at once. Raises InvalidInput for another size, and a time that is none.
        """
        if not self._queue or size != self._queue[0]:
            raise InvalidInput("expected the size that is next", field="fragment_bytes")
        is_timed = latency_us is not None
        status = TransferStatus.WARM_UP if self._warms_up else TransferStatus.OK
        if not is_timed:
            status = TransferStatus.ENDED if is_too_long else TransferStatus.REFUSED
        is_of_pair = self._compared is not None and size in (
            self._current,
            self._challengers[self._compared - 1],
        )
        row = OwnTransfer(
            size,
            latency_us,
            block=self._block,
            began_s=began_s,
            status=status,
            challenge=self._compared if is_of_pair else None,
            reason=reason,
        )
        self._transfers = OwnTransfers(self._plan.message_bytes, (*self._rows, row))
        self._evidence = None
        if is_timed:
            self._warms_up = False
        if is_timed or not self._is_run_again(size):
            self._queue.pop(0)

    def rows(self) -> tuple[OwnTransfer, ...]:
        """Return every run so far, those of earlier rows first."""
        return self._rows

    def expected_us(self, size: int) -> float | None:
        """Return what a run of a size is expected to take: the longer time of its neighbours that
        were run; None before any was.
        """
        times = self._times()
        if size in times:
            return max(times[size])
        below = [other for other in times if other < size]
        above = [other for other in times if other > size]
        sides = [end(side) for end, side in ((max, below), (min, above)) if side]
        return max((max(times[side]) for side in sides), default=None)

    def decision(self) -> SizeDecision:
        """Return what the runs so far decide. It looks once at all pairs: call it at the end.

        Once: a race that went on from earlier rows may have been looked at before, so that there
        the bet alone counts.
        """
        transfers = self._transfers
        evidence = self._current_evidence()
        if evidence is None or self._current not in evidence.sizes:
            return self._decide(evidence, SizeVerdict.NOT_DECIDED, self._current)
        sessions = sum(row.status is TransferStatus.WARM_UP for row in transfers.rows)
        won = self._won_sizes(evidence, is_last=sessions <= 1)
        if won:
            size = min(won, key=lambda size: (evidence.means[size], size))
            return self._decide(evidence, SizeVerdict.SET, size)
        is_kept = evidence.centres.runs_of(self._current) > 1
        if is_kept and evidence.regret(self._current) <= NEAR_BEST:
            return self._decide(evidence, SizeVerdict.KEEP, self._current)
        return self._decide(evidence, SizeVerdict.NOT_DECIDED, self._current)

    # --- what was run -----------------------------------------------------------------------------

    @property
    def _rows(self) -> tuple[OwnTransfer, ...]:
        return self._transfers.rows

    def _current_evidence(self) -> SizeEvidence | None:
        if self._evidence is None:
            runs = timed_runs(self._transfers.usable)
            if runs:
                self._evidence = SizeEvidence(runs, self._plan.message_bytes, self._candidates)
        return self._evidence

    def _times(self) -> dict[int, list[float]]:
        """The times that count, in µs, by size."""
        found = dict[int, list[float]]()
        for row in self._transfers.usable:
            found.setdefault(row.fragment_bytes, []).append(row.latency_us or 0.0)
        return found

    def _is_run_again(self, size: int) -> bool:
        """Whether a size failed once only, and did not take too long."""
        failed = [row for row in self._rows if row.fragment_bytes == size and not row.latency_us]
        return len(failed) == 1 and failed[0].status is TransferStatus.REFUSED

    def _is_over(self) -> bool:
        """Whether the limit is reached, the current size is refused, or sizes that also work fail
        so often that their times mean nothing.
        """
        refused = self._transfers.refused
        if self._current in refused and not self._is_run_again(self._current):
            return True
        failures = sum(
            row.latency_us is None and row.fragment_bytes not in refused for row in self._rows
        )
        is_failing = failures > max(_FAILURES, _FAILED_SHARE * len(self._rows))
        return is_failing or len(self._rows) >= self._limit

    def _decide(
        self, evidence: SizeEvidence | None, verdict: SizeVerdict, size: int
    ) -> SizeDecision:
        return decision_of(
            self._transfers,
            evidence,
            verdict,
            current_bytes=self._current if self._plan.current_bytes is not None else None,
            size_bytes=size,
        )

    # --- the map ----------------------------------------------------------------------------------

    def _map_sizes(self) -> list[int]:
        """The next sizes of the map, a step on every open side in random order; none at its end."""
        seen = {*self._times(), *self._transfers.refused}
        wanted = (self._current, self._plan.message_bytes, *self._plan.suggested_bytes)
        for size in wanted:
            if size not in seen:
                return [size]
        steps = [step for side in (-1, 1) for step in self._outward(side, seen)]
        self._random.shuffle(steps)
        return steps

    def _outward(self, side: int, seen: set[int]) -> Iterator[int]:
        """The first size on a side that was not run, unless one before it fails, or is far slower
        than the best and no faster than the one before that.
        """
        times = {size: min(taken) for size, taken in self._times().items()}
        slowest_us = _HILL * min(times.values())
        size = self._current
        while True:
            wanted = size * 2.0**side
            step = min(self._candidates, key=lambda other: abs(log(other / wanted)))
            if (step - size) * side <= 0 or step >= self._plan.message_bytes:
                return
            if step not in seen:
                yield step
                return
            time_us = times.get(step, inf)
            if time_us > slowest_us and time_us >= times.get(size, 0.0):
                return
            size = step

    # --- blocks -----------------------------------------------------------------------------------

    def _plan_block(self) -> None:
        """Fill the queue with the sizes of the next block, or end the race."""
        self._compared = None
        if not self._is_mapped:
            self._queue = self._map_sizes()
            self._is_mapped = not self._queue
            return
        self._block += 1
        evidence = self._current_evidence()
        if evidence is None:
            self._is_done = True
            return
        leader = self._leader = self._leader_of(evidence)
        fresh = new_sizes(evidence, self._open_sizes(evidence), leader)
        suspects = suspicious_sizes(evidence)[:1]
        is_explored = not (fresh or suspects)
        if len(self._rows) >= self._limit - _COMPARISON_RUNS:
            is_explored, fresh, suspects = True, [], []
        if is_explored:
            self._choose_challenger(evidence, leader)
            self._is_done = self._is_decided(evidence)
            if self._is_done:
                return
        challenge = self._last_challenge() if is_explored else None
        level = challenge.size if challenge else leader
        is_pairs_alone = challenge is not None and not self._has_won(challenge, evidence)
        more = [*fresh[:_NEW_SIZES], *suspects]
        if not fresh and not is_pairs_alone:
            more += self._contenders(evidence, level)
        pair = [level] if level == self._current else [level, self._current]
        is_known = evidence.centres.runs_of(self._current) >= _CLEAR_RUNS
        if not is_explored and is_known and self._is_clearly_slower(evidence, level):
            pair = [level]
        if challenge is not None:
            self._compared = challenge.number
            self._spreads[self._block] = PAIR_SPREADS * evidence.noise
        others = [size for size in dict.fromkeys(more) if size not in pair]
        self._queue = self._shuffled(pair, others)

    def _is_clearly_slower(self, evidence: SizeEvidence, level: int) -> bool:
        """Whether the current size is more than 10 % slower, by the centres."""
        return level != self._current and evidence.lead(level, self._current)[0] > _CLEARLY_SLOWER

    def _shuffled(self, pair: list[int], others: list[int]) -> list[int]:
        """A random order in which the pair stays together."""
        self._random.shuffle(others)
        self._random.shuffle(pair)
        place = int(self._random.integers(0, len(others) + 1))
        return [*others[:place], *pair, *others[place:]]

    def _open_sizes(self, evidence: SizeEvidence) -> list[int]:
        closed = {*evidence.sizes, *self._transfers.refused}
        return [size for size in self._candidates if size not in closed]

    def _leader_of(self, evidence: SizeEvidence) -> int:
        """The size that leads; another takes its place where it is faster by more than 1 %."""
        best, leader = evidence.by_mean[0], self._leader
        if leader not in evidence.sizes or evidence.lead(best, leader)[0] > MARGIN:
            return best
        return leader

    def _contenders(self, evidence: SizeEvidence, level: int) -> list[int]:
        """The sizes that may be faster still, the likeliest first."""
        losses = {
            size: evidence.expected_loss(level, size)
            for size in evidence.by_mean
            if size not in (level, self._current)
        }
        ordered = sorted(losses, key=lambda size: losses[size], reverse=True)
        return [size for size in ordered if losses[size] > _NO_LOSS][:_CONTENDERS]

    # --- the comparison ---------------------------------------------------------------------------

    def _choose_challenger(self, evidence: SizeEvidence, leader: int) -> None:
        """The leader is compared from now on, in place of one that it is clearly faster than."""
        before = self._challengers[-1] if self._challengers else None
        if leader in (self._current, before):
            return
        if before is not None and before in evidence.sizes:
            lead, spread = evidence.lead(leader, before)
            if lead <= max(MARGIN, _OTHER_CHALLENGER_SPREADS * spread):
                return
        self._challengers.append(leader)

    def _is_decided(self, evidence: SizeEvidence) -> bool:
        """Whether more runs would change nothing: the challenger won, or the current size stays."""
        challenge = self._last_challenge()
        if challenge is not None:
            is_known = len(challenge.pairs) >= _MAX_PAIRS
            is_near = is_known or self._is_near_best(evidence, challenge.size)
            if is_near and self._has_won(challenge, evidence):
                return True
        has_blocks = evidence.centres.runs_of(self._current) >= _KEPT_RUNS
        return has_blocks and self._is_near_best(evidence, self._current)

    def _is_near_best(self, evidence: SizeEvidence, size: int) -> bool:
        return size in evidence.sizes and evidence.regret(size) <= NEAR_BEST

    def _won_sizes(self, evidence: SizeEvidence, *, is_last: bool) -> set[int]:
        """The sizes that have shown that they are faster than the current one."""
        challenges = map(self._challenge, range(1, len(self._challengers) + 1))
        shown = {one.size for one in challenges if self._has_won(one, evidence, is_last=is_last)}
        return shown | {size for size in evidence.sizes if self._is_far_apart(size, evidence)}

    def _has_won(
        self, challenge: _Challenge, evidence: SizeEvidence, *, is_last: bool = False
    ) -> bool:
        if challenge.size not in evidence.sizes:
            return False
        if self._is_far_apart(challenge.size, evidence):
            return True
        pairs, number = challenge.pairs, challenge.number
        is_faster = evidence.lead(challenge.size, self._current)[0] > MARGIN
        return is_faster and (
            wins_bet(pairs, number) or (is_last and wins_last_look(pairs, number))
        )

    def _is_far_apart(self, size: int, evidence: SizeEvidence) -> bool:
        """Whether a size that was run needs no pairs: any may be, a challenger or not."""
        times = self._times()
        is_faster = evidence.lead(size, self._current)[0] > MARGIN
        return is_faster and are_far_apart(times[size], times[self._current], evidence.noise)

    def _read_challengers(self) -> list[int]:
        """The sizes that earlier rows compare with the current one, by their numbers. Raises
        InvalidInput where a number is left out.
        """
        chosen = {
            row.challenge: row.fragment_bytes
            for row in self._rows
            if row.challenge is not None and row.fragment_bytes != self._current
        }
        if sorted(chosen) != list(range(1, len(chosen) + 1)):
            raise InvalidInput(
                "expected challenges 1, 2, … without a gap, each of one size that is not the "
                "current one",
                field="transfers",
            )
        return [size for _, size in sorted(chosen.items())]

    def _last_challenge(self) -> _Challenge | None:
        return self._challenge(len(self._challengers)) if self._challengers else None

    def _challenge(self, number: int) -> _Challenge:
        """The challenge of this number, with the pairs of all blocks that have both runs."""
        size = self._challengers[number - 1]
        times = dict[int, dict[int, float]]()
        for row in self._transfers.usable:
            if row.challenge == number and row.latency_us and row.block is not None:
                times.setdefault(row.block, {})[row.fragment_bytes] = row.latency_us
        pairs = tuple(
            Pair(log(taken[size] / taken[self._current]), self._spread_before(block))
            for block, taken in sorted(times.items())
            if size in taken and self._current in taken
        )
        return _Challenge(number, size, pairs)

    def _spread_before(self, block: int) -> float:
        """The spread of a pair that the runs before a block let expect."""
        if block not in self._spreads:
            earlier = [row for row in self._transfers.usable if (row.block or 0) < block]
            runs = timed_runs(earlier or self._transfers.usable)
            self._spreads[block] = PAIR_SPREADS * centres_of(runs).noise
        return self._spreads[block]
