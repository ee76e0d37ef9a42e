"""Size and time by the lanes of a machine's stage, or by the places of a window.

Cost      a search over sizes for each row, which begins at the best size of the row before.
Exact     as solvers/machine/repeat.py, for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.enough import repeated_us
from analysis.repeated_sizes import admits
from domain.errors import Infeasible
from domain.in_flight import CountRow, CountTable
from domain.problem import MachineProblem
from solvers.contract import Deadline
from solvers.machine.repeat import best_size

_MORE_BUFFERS = 4  # of a window's bytes: so many times those of the best size are looked at
_MOST_POWERS = 12


def size_by_count(
    problem: MachineProblem, best_bytes: int, also: Sequence[int], deadline: Deadline
) -> CountTable | None:
    """Return the best repeated size and its time by the lanes of the first stage that has some,
    else by the places of the first window: 1, 2, 4, 8 and so on, and all of them. Of a window in
    bytes a row is for so many equal buffers in these.

    `also` are further counts, `best_bytes` the best size with all that was given. None of a machine
    without lanes and windows. Counts for which there was no time are `left_out`.
    """
    machine = problem.machine
    stage = next((j for j, rules in enumerate(machine.rules) if rules.lanes > 1), None)
    if stage is not None:
        given = machine.rules[stage].lanes
        counts = _counts(given, (*also, given))
        made = [
            (count, replace(problem, machine=machine.with_rules(lanes={stage: count})))
            for count in counts
        ]
    elif machine.windows:
        window = machine.windows[0]
        given = window.places(best_bytes)
        most = given if window.bytes is None else _MORE_BUFFERS * given
        made = [(count, _in_places(problem, count)) for count in _counts(most, (*also, given))]
    else:
        return None
    rows, left_out = _rows(made, best_bytes, deadline)
    return CountTable(stage, None if stage is not None else 0, rows, left_out)


def _counts(most: int, also: Sequence[int]) -> list[int]:
    """Powers of two up to the most, not too many, and the others up to it, ascending."""
    powers = {2**at for at in range(min(_MOST_POWERS, most.bit_length()))}
    return sorted(powers | {count for count in also if count <= most})


def _in_places(problem: MachineProblem, count: int) -> MachineProblem:
    """The same with so many places of the first window; its bytes are divided among them."""
    machine, limits = problem.machine.with_rules(places={0: count}), problem.limits
    window_bytes = machine.windows[0].bytes
    if window_bytes is None:
        return replace(problem, machine=machine)
    each = min(limits.max_fragment_bytes or window_bytes, max(1, window_bytes // count))
    return replace(problem, machine=machine, limits=replace(limits, max_fragment_bytes=each))


def _rows(
    made: Sequence[tuple[int, MachineProblem]], best_bytes: int, deadline: Deadline
) -> tuple[tuple[CountRow, ...], tuple[int, ...]]:
    """The rows in turn, as the best size of the one before is near, and the counts left out."""
    rows, known = list[CountRow](), [best_bytes]
    for at, (count, problem) in enumerate(made):
        try:
            first = [size for size in known if admits(problem, size)]
            size = best_size(problem, first, deadline)
        except Infeasible:
            continue
        if deadline.passed:
            return tuple(rows), tuple(left for left, _ in made[at:])
        if size is not None:
            known = list(dict.fromkeys([size, best_bytes]))
            fragments = -(-problem.message_bytes // size)
            rows.append(CountRow(count, size, fragments, repeated_us(problem, size)))
    return tuple(rows), ()
