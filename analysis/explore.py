"""What surrounds a stored answer: other numbers of fragments, other strategies, other messages.

Pictures to be looked at, so each is held to a time: what was not reached by then is left open, and
nothing that is shown is less than computed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

import solvers
from analysis.comparison import Cell, cells
from contract.limits import MAX_MESSAGE_BYTES
from domain.aggregate import Aggregate
from domain.default_sizes import DefaultSize, default_sizes
from domain.machine import Machine
from domain.model import CostModel
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits, MachineProblem, Problem, problem_of
from domain.solution import Strategy
from solvers.count_points import CountPoint
from solvers.machine.bound import count_bounds_us
from solvers.machine.costs import Costs

COUNTS_LIMIT_S = 0.5
SIZES_LIMIT_S = 1.5
ALTERNATIVES_LIMIT_S = 0.8
RELATIVE_GAP = 1e-4  # of what is drawn; what is told in figures beside an answer is solved as it is
_OCTAVES = 6  # of messages, on each side of the answer's
_ALL_UP_TO = 48  # counts that are all drawn
_DRAWN = 40  # of more
_BESIDE = 3  # and those around the answer's
_FARTHEST = 4.0  # times the answer's count

# What the others are measured by comes first, with half of the time; where it runs out it is the
# last ones that are left open.
_SHARED = (
    *(Strategy.SINGLE, Strategy.EXACT, Strategy.REPEAT, Strategy.FIXED),
    *(Strategy.RAMP, Strategy.RAMP_UP_DOWN),
)
_FOREMOST = (Strategy.EXACT, 0.5)
_NESTED = (Strategy.HIERARCHICAL, Strategy.HIERARCHICAL_RAMP)
_OF_AGGREGATE = (Strategy.SINGLE, Strategy.REPEAT, Strategy.FIXED)
_OF_KIND = {
    Pipeline.kind: (*_SHARED, *_NESTED),
    Aggregate.kind: _OF_AGGREGATE,
    Machine.kind: (*_OF_AGGREGATE, Strategy.RAMP_REPEAT, Strategy.EXACT),
}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """An answer as far as its surroundings depend on it."""

    model: CostModel
    message_bytes: int
    limits: FragmentLimits
    fragment_cap: int
    allow_refragmentation: bool
    fragments: int
    lower_bound_us: float
    latency_us: float | None  # None where the stages cut differently
    current_bytes: int | None = None  # the size that is repeated today


@dataclass(frozen=True, slots=True)
class Point:
    """A strategy on one message. Without a latency `declined` says why.

    `is_partial`: time ended the search, so that another run may find less. `bound_us` is None where
    none was proven for this point.
    """

    message_bytes: int
    latency_us: float | None
    fragments: int | None
    bound_us: float | None
    declined: str | None
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A strategy on several messages; `static_bytes` is the size that `static` repeats.

    That is a system's default, or the setting in use, which can be one piece too.
    """

    strategy: Strategy
    static_bytes: int | None = None
    points: tuple[Point, ...] = ()
    default: DefaultSize | None = None
    is_current: bool = False


def shown_counts(near: int) -> tuple[int, ...]:
    """Return counts from 1 to some four times a count: all of them, or some evenly on a
    logarithmic axis.
    """
    last = max(16, round(_FARTHEST * near))
    if last <= _ALL_UP_TO:
        return tuple(range(1, last + 1))
    spread = {round(last ** (place / (_DRAWN - 1))) for place in range(_DRAWN)}
    around = range(max(1, near - _BESIDE), near + _BESIDE + 1)
    return tuple(sorted({*spread, *around}))


def counts(asked: Surroundings, *, time_limit_s: float) -> tuple[CountPoint, ...]:
    """Return the latency against the number of fragments. Raises Infeasible.

    Of an aggregate for equal fragments alone, with the answer's bound, which is of all counts; of a
    machine for equal fragments, with bounds, and the answer.
    """
    wanted = shown_counts(asked.fragments)
    if isinstance(asked.model, Machine):
        return tuple(_counts_of_machine(asked, asked.model, wanted))
    if not isinstance(asked.model, Pipeline):
        return tuple(_counts_outside(asked, wanted))
    problem = Problem(asked.model, asked.message_bytes, asked.limits, asked.fragment_cap)
    curve = solvers.count_curve(problem, wanted, near=asked.fragments, time_limit_s=time_limit_s)
    return tuple(_known_of(asked, point) for point in curve)


def _known_of(asked: Surroundings, point: CountPoint) -> CountPoint:
    """The point with what the answer knows: its cut, and its bound, which is of all counts."""
    best_us = point.best_us
    if point.fragments == asked.fragments and asked.latency_us is not None:
        best_us = min(asked.latency_us, best_us or asked.latency_us)
    seen = [us for us in (best_us, point.equal_us) if us is not None]
    bound_us = min(max(point.bound_us, asked.lower_bound_us), *seen)
    return replace(point, best_us=best_us, bound_us=bound_us)


def _counts_outside(asked: Surroundings, wanted: tuple[int, ...]) -> Iterator[CountPoint]:
    maximum = min(asked.message_bytes, asked.limits.max_fragments or asked.fragment_cap)
    for count in wanted:
        if count <= maximum:
            equal_us = asked.model.latency_us([asked.message_bytes / count] * count)
            yield CountPoint(count, equal_us, asked.lower_bound_us, None)


def _counts_of_machine(
    asked: Surroundings, machine: Machine, wanted: tuple[int, ...]
) -> Iterator[CountPoint]:
    problem = MachineProblem(machine, asked.message_bytes, asked.limits, asked.fragment_cap)
    admitted = problem.count_range()
    counts = np.array([one for one in wanted if admitted.minimum <= one <= admitted.maximum])
    equal_us = Costs(machine).equal_us(asked.message_bytes / counts, counts) + machine.delay_us
    bounds_us = count_bounds_us(problem, counts)
    for count, us, bound_us in zip(
        counts.tolist(), equal_us.tolist(), bounds_us.tolist(), strict=True
    ):
        yield _known_of(asked, CountPoint(count, us, bound_us, None))


def shown_sizes(message_bytes: int) -> tuple[int, ...]:
    """Return the message, and halves and doubles of it."""
    found = {message_bytes}
    for octave in range(1, _OCTAVES + 1):
        found |= {max(1, message_bytes >> octave), message_bytes << octave}
    return tuple(sorted(size for size in found if size <= MAX_MESSAGE_BYTES))


def sizes(asked: Surroundings, *, time_limit_s: float) -> tuple[Line, ...]:
    """Return every strategy, and every size to compare with, on messages around the answer's."""
    messages = shown_sizes(asked.message_bytes)
    return _lines(asked, messages, time_limit_s=time_limit_s, is_priced=True)


def alternatives(asked: Surroundings, *, time_limit_s: float) -> tuple[Line, ...]:
    """Return every strategy, and every size to compare with, on the answer's message."""
    return _lines(asked, (asked.message_bytes,), time_limit_s=time_limit_s, is_priced=False)


def _lines(
    asked: Surroundings, messages: tuple[int, ...], *, time_limit_s: float, is_priced: bool
) -> tuple[Line, ...]:
    """`is_priced`: a cut that is given and not searched for is priced alone, without a bound."""
    ends_s, found = time.monotonic() + time_limit_s, []
    every = _every(asked, max(messages))
    for place, line in enumerate(every):
        strategy, static_bytes = line.strategy, line.static_bytes
        is_given = strategy in (Strategy.STATIC, Strategy.SINGLE)
        if is_priced and is_given and isinstance(asked.model, Pipeline):
            points = tuple(_priced(asked, asked.model, messages, static_bytes))
        else:
            # What a line does not need of its share is there for those after it.
            part = _FOREMOST[1] if strategy is _FOREMOST[0] else 1 / (len(every) - place)
            share_s = max(1e-3, part * (ends_s - time.monotonic()))
            gap = RELATIVE_GAP if is_priced else solvers.DEFAULT_RELATIVE_GAP
            points = _solved(asked, messages, strategy, static_bytes, gap, share_s)
        found.append(replace(line, points=points))
    return tuple(found)


def _every(asked: Surroundings, max_message_bytes: int) -> list[Line]:
    """The setting in use, the defaults that fit the largest message, and every strategy."""
    current = asked.current_bytes
    is_whole = current is not None and current >= asked.message_bytes
    found = []
    if current is not None and not is_whole:
        found.append(Line(Strategy.STATIC, current, is_current=True))
    largest = problem_of(
        asked.model, max_message_bytes, asked.limits, fragment_cap=asked.fragment_cap
    )
    shared = _OF_KIND[asked.model.kind]
    return [
        *found,
        *(
            Line(Strategy.STATIC, one.fragment_bytes, default=one)
            for one in default_sizes(largest, current_bytes=current)
        ),
        *(Line(one, is_current=is_whole and one is Strategy.SINGLE) for one in shared),
    ]


def _priced(
    asked: Surroundings, pipeline: Pipeline, messages: tuple[int, ...], size: int | None
) -> Iterator[Point]:
    """What repeating a size takes, or no size: the whole message."""
    evaluator = solvers.evaluator_of(pipeline)
    for message in messages:
        full, rest = divmod(message, size or message)
        if full >= asked.fragment_cap:
            yield Point(message, None, None, None, "more fragments than the service admits")
            continue
        cut = (size or message,) * full + ((rest,) if rest else ())
        if Problem(pipeline, message, asked.limits, asked.fragment_cap).admits(cut):
            yield Point(message, evaluator(cut), len(cut), None, None)
        else:
            yield Point(message, None, None, None, "the limits do not admit this cut")


def _solved(
    asked: Surroundings,
    messages: tuple[int, ...],
    strategy: Strategy,
    static_bytes: int | None,
    relative_gap: float,
    time_limit_s: float,
) -> tuple[Point, ...]:
    problems = [
        problem_of(
            asked.model,
            message,
            asked.limits,
            fragment_cap=asked.fragment_cap,
            allow_refragmentation=asked.allow_refragmentation,
        )
        for message in messages
    ]
    found = cells(
        problems,
        (strategy,),
        relative_gap=relative_gap,
        time_limit_s=time_limit_s,
        static_bytes=static_bytes,
    )
    return tuple(map(_point, found))


def _point(cell: Cell) -> Point:
    found = cell.solution
    if found is None:
        return Point(cell.message_bytes, None, None, None, cell.declined)
    is_given = cell.strategy in (Strategy.STATIC, Strategy.SINGLE)
    return Point(
        cell.message_bytes,
        found.latency_us,
        found.schedule.fragments,
        found.lower_bound_us,
        None,
        is_partial=found.cut_off and not is_given,
    )
