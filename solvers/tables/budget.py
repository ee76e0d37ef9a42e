"""What a table's compilation may cost, spread evenly over its range of message sizes.

A compilation tries a limited number of message sizes. Where the tolerance takes more than that, a
single pass would spend them all on the small messages and have none left for the great ones. So it
is made again to a looser tolerance, the tightest of a fixed scale that the whole range can be
compiled to. The scale does not depend on what was asked for: a stricter tolerance that takes
too much gives what a looser one gives, to a rung.

Cost      one pass to what was asked for, and then ten or so of which half are broken off when they
          are spent; what they have in common with earlier ones is remembered.
Traps     the answer must not depend on the clock, so the time limit breaks off the search for the
          rung only where it would end the compilation otherwise.

How much of a table's compilation is done, by the messages that its two parts have come to.

Short messages have few cuts worth a thought and take next to no time; the number of entries, and so
the time, is about that of the octaves times the fragments' order of magnitude. A part is therefore
weighed by the square of its octaves. Cuts and repeated sizes take about as long as each other: of
the published pipelines the cuts take 31 to 63 % of the time, of one with several ranges 71 %.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import log2
from typing import Any, Generic, Protocol, TypeVar

from contract.limits import DEFAULT_RELATIVE_GAP, DEFAULT_TIME_LIMIT_S
from domain.errors import TimeLimitReached
from domain.plan_table import TableCut, TableRepeat
from domain.problem import Problem
from domain.solution import Solution, Strategy, relative_excess
from solvers.contract import Deadline, SolveOptions

RUNGS_PER_DECADE = 256  # of the scale: 0.9 % from one to the next
MARGIN = 1.0 - 1e-8  # of the tolerance: what is deducted for rounding must not miss it
_FIRST_RUNG = 2 * RUNGS_PER_DECADE  # 1 %: next to nothing to compile
_STRIDE = RUNGS_PER_DECADE // 2
_SLACK = 1.05  # of what no pass can remove: passes differ by as much
_TYPICAL_PASSES = 16
_MAX_GAP, _SAFE = 1e300, 1e-12  # where nothing is proven; what rounding may add
_MAX_CELLS = 4_000_000  # numbers that are remembered, of 8 to 40 bytes

Entry = TypeVar("Entry", bound=TableCut | TableRepeat)
Value = TypeVar("Value")
Reached = Callable[[int], None]
SolveOne = Callable[[Problem, Strategy, SolveOptions], Solution]


class Memory:
    """Values by their keys. Nothing is read in the first pass: it is as if it did not exist."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}
        self._is_open, self._room = False, _MAX_CELLS

    def open(self) -> None:
        """Use what is known from now on."""
        self._is_open = True

    def of(
        self,
        key: Hashable,
        make: Callable[[], Value],
        *,
        holds: Callable[[Value], bool] = lambda known: True,
        cells: Callable[[Value], int] = lambda made: 1,
    ) -> Value:
        """Return what is known for this key and holds, or else made now, and kept while there is
        room.
        """
        if self._is_open and key in self._kept:
            known: Value = self._kept[key]
            if holds(known):
                return known
        value = make()
        taken = cells(value)
        if taken <= self._room:
            self._kept[key] = value
            self._room -= taken
        return value


class Compiler(Protocol[Entry]):
    """Compiles one part of a table, again and again."""

    def restart(self, tolerance: float) -> None:
        """Begin anew to this tolerance, with what is known of single messages and stretches."""

    def run(self, deadline: Deadline, reached: Reached) -> list[Entry]:
        """Return the entries, ascending. Raises TimeLimitReached."""

    def spend(self) -> None:
        """Take what is proven from now on, as where more message sizes were asked for."""

    @property
    def is_spent(self) -> bool:
        """Whether more message sizes were asked for than are tried."""


class OneMessage:
    """A table of one message has the cut of an optimisation, and what that proves."""

    def __init__(self, problem: Problem, relative_gap: float, solve: SolveOne) -> None:
        self._problem, self._gap, self._solve = problem, relative_gap, solve

    def restart(self, tolerance: float) -> None:
        """Nothing is looser for one message."""

    def spend(self) -> None:
        """One message is all there is."""

    @property
    def is_spent(self) -> bool:
        """Never: there are no further messages."""
        return False

    def run(self, deadline: Deadline, reached: Callable[[int], None]) -> list[TableCut]:
        """Return the entry. Raises Infeasible."""
        limit_s = max(1e-3, min(deadline.remaining_s, DEFAULT_TIME_LIMIT_S))
        gap = min(self._gap, DEFAULT_RELATIVE_GAP)
        options = SolveOptions(relative_gap=gap, time_limit_s=limit_s)
        found = self._solve(self._problem, Strategy.AUTO, options)
        cut = found.schedule.fragment_bytes
        gap = min(
            _MAX_GAP,
            relative_excess(found.latency_us, found.lower_bound_us, found.lower_bound_us) + _SAFE,
        )
        return [TableCut(self._problem.message_bytes, cut, found.latency_us, gap)]


def _worst_gap(entries: list[Entry]) -> float:
    return max(entry.relative_gap for entry in entries)


class _Spent(Exception):
    """This pass cannot keep its tolerance over the whole range."""


class EvenCompilation(Generic[Entry]):
    """One part of a table: a pass to what was asked for, and looser ones where that is spent.

    The compiler was made for `relative_gap` times MARGIN. `is_cut_off`: time ended the first pass,
    and the gaps that the rest of the messages have are those reached by then.
    """

    def __init__(self, compiler: Compiler[Entry], relative_gap: float) -> None:
        self._compiler, self._asked = compiler, relative_gap
        self.is_cut_off = False

    def first(self, deadline: Deadline, reached: Reached, *, last: Deadline | None = None) -> None:
        """Make the pass to what was asked for; nothing is reported once it is spent.

        Where there is a last deadline, from the first one on it takes what is proven of every
        further message size. Raises what a pass raises, by the last of them.
        """
        compiler = self._compiler

        def at(size: int) -> None:
            if last is not None and deadline.passed and not self.is_cut_off:
                self.is_cut_off = True
                compiler.spend()
            if not compiler.is_spent:
                reached(size)

        entries = compiler.run(last or deadline, at)
        self._found = entries, self._asked
        self._is_spent = compiler.is_spent

    def loosened(
        self, deadline: Deadline, reached: Callable[[int, float], None]
    ) -> tuple[list[Entry], float]:
        """Return the entries, and the tolerance that they are compiled to, by the deadline.

        `reached` is called with the message a pass is at, and the share of the passes before it.
        Where no rung is better than the first pass, this is it, with the worst that it states.
        """
        if not self._is_spent or self.is_cut_off:
            return self._found
        search = _Search(self._compiler, self._asked, deadline, reached)
        search.run()
        first, worst = self._found[0], _worst_gap(self._found[0])
        if search.found is None or _worst_gap(search.found[0]) > _SLACK * worst:
            return first, max(self._asked, worst)
        return search.found


class _Search(Generic[Entry]):
    """Looks for the tightest rung of the scale that is looser than what was asked for and
    fits.
    """

    def __init__(
        self,
        compiler: Compiler[Entry],
        relative_gap: float,
        deadline: Deadline,
        reached: Callable[[int, float], None],
    ) -> None:
        self._compiler, self._asked = compiler, relative_gap
        self._deadline, self._reached = deadline, reached
        self._passes, self._is_over = 0, False
        self.found: tuple[list[Entry], float] | None = None

    def run(self) -> None:
        """Down the scale in strides to the first rung that takes too much, then by halves."""
        rung = _FIRST_RUNG
        while not self._fits(rung):
            rung -= RUNGS_PER_DECADE
            if rung < 0:
                return
        spent = rung + _STRIDE
        while self._fits(spent):
            rung, spent = spent, spent + _STRIDE
        while spent - rung > 1:
            middle = (rung + spent) // 2
            if self._fits(middle):
                rung = middle
            else:
                spent = middle

    def _fits(self, rung: int) -> bool:
        """Whether the whole range can be compiled to this rung; the last that can is `found`."""
        tolerance = 10.0 ** (-rung / RUNGS_PER_DECADE)
        if tolerance <= self._asked or self._is_over:
            return False
        self._compiler.restart(tolerance * MARGIN)
        self._passes += 1
        try:
            self.found = self._compiler.run(self._deadline, self._checked), tolerance
        except _Spent:
            return False
        except TimeLimitReached:
            self._is_over = True
            return False
        return True

    def _checked(self, size: int) -> None:
        if self._compiler.is_spent:
            raise _Spent
        self._reached(size, min(1.0, self._passes / _TYPICAL_PASSES))


_OF_CUTS = 0.5
_OF_A_PASS = 0.02  # of those to looser tolerances
_MAX_SHARE = 0.99  # before the end


class CompileProgress:
    """Reports a share that never falls, and is 1 at the end alone."""

    def __init__(
        self, min_message_bytes: int, max_message_bytes: int, report: Callable[[float], None]
    ) -> None:
        self._minimum, self._maximum = min_message_bytes, max_message_bytes
        self._report, self._reported = report, 0.0
        self._first: float | None = None  # what was reported when the first passes were done

    def cuts_at(self, message_bytes: int) -> None:
        """Report that the cuts have come to this message."""
        self._grow(_OF_CUTS * self._part(message_bytes))

    def repeats_at(self, message_bytes: int) -> None:
        """Report that the repeated sizes have come to this message; all cuts are there."""
        self._grow(_OF_CUTS + (1.0 - _OF_CUTS) * self._part(message_bytes))

    def again(self, message_bytes: int, before: float) -> None:
        """Report that a looser pass has come to this message; `before` is the share before it.

        How many passes there are shows at the end.
        """
        if self._first is None:
            self._first = self._reported
        share = before + _OF_A_PASS * self._part(message_bytes)
        self._grow(self._first + (_MAX_SHARE - self._first) * min(1.0, share))

    def end(self) -> None:
        """Report that everything is there."""
        self._report(1.0)

    def _grow(self, share: float) -> None:
        """A later pass begins with the least message again: what it repeats is not reported."""
        self._reported = max(self._reported, min(share, _MAX_SHARE))
        self._report(self._reported)

    def _part(self, message_bytes: int) -> float:
        """Of one part; all of it where there is one message."""
        if self._minimum == self._maximum:
            return 1.0
        minimum, maximum = _weight(self._minimum), _weight(self._maximum)
        return (_weight(message_bytes) - minimum) / (maximum - minimum)


def _weight(message_bytes: int) -> float:
    return log2(message_bytes) ** 2
