"""A problem as whole numbers: sizes in units of the alignment, costs scaled and rounded down.

Source    docs/theory.md sec. 13.
Notation  a: alignment; r = B mod a; u: a fragment's size in units, x = a u, for the last fragment
          x = a u + r; U = B div a, so that the u sum to U; s: scale, whole steps per µs;
          g, G: whole steps per fragment and per unit; n stages.
Cost      O(n * pieces) exact fractions.
Exact     a cut's time in this model is never above s times its true one, and below it by less than
          (1 + u) steps for each cell of a longest path: less than k + n + n U steps in all.
Traps     costs are floats and the evaluator multiplies floats: fractions take each for what it is,
          and the caller accounts for the evaluator's rounding. A piece is kept only as far as one
          fragment can cross all stages within the latency of a known cut; without that,
          coefficients of steep ranges would not fit 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from domain.problem import Problem

# Of a known cut's latency. More, and what rounding costs down takes from a bound is less: 4e-10 for
# 5 stages and 5000 units. But from 2^50 on the solver itself falls back to far weaker reasoning.
MAX_STEPS = 2**46
_MAX_SUM = 2**60  # of the terms of one row: the solver adds them in 64 bits
_MAX_SCALE = 2**400  # latencies below 1e-100 µs are nothing


@dataclass(frozen=True, slots=True)
class Piece:
    """Sizes (units, inclusive) over which every stage is one line: (g, G) in steps, per stage."""

    minimum: int
    maximum: int
    lines: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ScaledProblem:
    """What the integer program is made of; `last` are the pieces of the last fragment."""

    units: int
    inner: tuple[Piece, ...]
    last: tuple[Piece, ...]

    def pieces_of(self, fragment: int, count: int) -> tuple[Piece, ...]:
        """The pieces of this fragment (from 0) of a cut into `count`."""
        return self.last if fragment == count - 1 else self.inner


@dataclass(frozen=True, slots=True)
class Scaling:
    """Steps per µs, and the bytes of a unit and of what the last fragment carries beyond units."""

    steps_per_us: Fraction
    unit_bytes: int
    rest_bytes: int

    @classmethod
    def of(cls, problem: Problem, known_us: float) -> Scaling:
        """The finest scale at which a cut of this latency (µs, no delay) has MAX_STEPS steps."""
        unit = problem.limits.alignment_bytes
        ends = sum(len(stage.ranges) for stage in problem.pipeline.stages)
        steps = min(MAX_STEPS, _MAX_SUM // (ends + 4))
        scale = Fraction(steps) / Fraction(known_us) if known_us > 0.0 else Fraction(1)
        return cls(min(scale, Fraction(_MAX_SCALE)), unit, problem.message_bytes % unit)

    def steps(self, time_us: float) -> int:
        """A time in whole steps, rounded down."""
        return floor(Fraction(time_us) * self.steps_per_us)

    def us(self, steps: int) -> float:
        """Steps in µs, the nearest float."""
        return float(steps / self.steps_per_us)

    def units_of(self, fragment_bytes: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes of an admitted cut in units."""
        return tuple(size // self.unit_bytes for size in fragment_bytes)

    def bytes_of(self, units: tuple[int, ...]) -> tuple[int, ...]:
        """The cut of these sizes."""
        sizes = [self.unit_bytes * one for one in units]
        return (*sizes[:-1], sizes[-1] + self.rest_bytes)


def scaled(problem: Problem, scaling: Scaling, *, known_steps: int) -> ScaledProblem:
    """The problem in steps and units, without sizes that no cut within `known_steps` can have."""
    return ScaledProblem(
        problem.message_bytes // scaling.unit_bytes,
        tuple(_pieces(problem, scaling, 0, known_steps)),
        tuple(_pieces(problem, scaling, scaling.rest_bytes, known_steps)),
    )


def _pieces(problem: Problem, scaling: Scaling, rest: int, known_steps: int) -> Iterator[Piece]:
    unit = scaling.unit_bytes
    minimum = -(-(problem.smallest_fragment_bytes - rest) // unit)
    last = (problem.largest_fragment_bytes - rest) // unit
    for end in _ends(problem):
        maximum = last if end is None else min(last, (end - rest) // unit)
        if maximum < minimum:
            continue
        lines = _lines(problem, scaling, rest, at_bytes=unit * minimum + rest)
        reach = _reach(lines, known_steps, maximum)
        if reach >= minimum:
            yield Piece(minimum, reach, lines)
        minimum = maximum + 1


def _ends(problem: Problem) -> list[int | None]:
    """Where any stage changes its line, ascending, and the open end."""
    ends = {part.up_to_bytes for stage in problem.pipeline.stages for part in stage.ranges}
    return [*sorted(end for end in ends if end is not None), None]


def _lines(
    problem: Problem, scaling: Scaling, rest: int, *, at_bytes: int
) -> tuple[tuple[int, int], ...]:
    """(g, G) of every stage in the range that holds this size, rounded down."""
    found = []
    for stage in problem.pipeline.stages:
        part = stage.range_at(at_bytes)
        G = Fraction(part.ns_per_byte) / 1000 * scaling.steps_per_us
        g = Fraction(part.overhead_us) * scaling.steps_per_us
        found.append((floor(g + G * rest), floor(G * scaling.unit_bytes)))
    return tuple(found)


def _reach(lines: tuple[tuple[int, int], ...], known_steps: int, maximum: int) -> int:
    """The greatest size, up to `greatest`, that crosses all stages in `known_steps`; -1: none."""
    g, G = sum(line[0] for line in lines), sum(line[1] for line in lines)
    if g > known_steps:
        return -1
    return maximum if G == 0 else min(maximum, (known_steps - g) // G)
