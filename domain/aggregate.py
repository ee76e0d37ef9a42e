"""All stages together and the slowest of them: what can be known of a pipeline from outside.

Notation  x_i: fragment sizes in bytes, k of them; t_j: time of stage j; S(x) = sum_j t_j(x), the
          total; b(x) = max_j t_j(x), the bottleneck's time.

What is said of a cut holds for every pipeline that has these two costs and in which no stage takes
less for more bytes. A protocol switch can break that, and shows it where S or b falls at the end of
a range; all stages are then taken to go one way there, none up while another goes down. Proofs are
in docs/theory.md, "From outside".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from typing import ClassVar

from contract.limits import MAX_MESSAGE_BYTES, MAX_OVERHEAD_US, MAX_STAGES
from domain.errors import StrategyDeclined
from domain.pipeline import FitRange, Pipeline, Stage, check_cost, ends_of

PREMISE = (
    "the latency is taken for that of messages which nothing cut; many libraries cut them on "
    "their way"
)
_ROUNDING = 1e-9  # relative difference of two times that is rounding alone


@dataclass(frozen=True, slots=True)
class Fall:
    """By how much (µs) the costs drop where fragments pass `up_to_bytes`, the end of a range."""

    up_to_bytes: int
    drop_us: float


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The summed time of all stages and the time of the slowest one, each as a stage.

    `total` is an unpipelined message's latency, `bottleneck` the inter-arrival time of back-to-back
    messages (Wang98 sec. 5.3). Any constant delay is part of the total's overhead, unless it is
    known and given as `delay_us` (theory.md sec. 7). `total_is_uncut` says that nothing cut those
    messages on their way: else that is a premise, and no gain of a cut is certain (`PREMISE`).
    Raises InvalidStage.
    """

    kind: ClassVar = "aggregate"

    total: Stage
    bottleneck: Stage
    delay_us: float = 0.0
    total_is_uncut: bool = False

    def __post_init__(self) -> None:
        check_cost("delay_us", self.delay_us, MAX_OVERHEAD_US)
        object.__setattr__(self, "delay_us", float(self.delay_us) + 0.0)

    @property
    def range_ends(self) -> tuple[int, ...]:
        """Sizes at which the total or the bottleneck passes to its next range, ascending."""
        return ends_of((self.total, self.bottleneck))

    @property
    def premise(self) -> str:
        """What is taken for granted of the total; "" where its messages are said to be uncut."""
        return "" if self.total_is_uncut else PREMISE

    @property
    def stages(self) -> None:
        """None: they are not distinguished."""
        return None

    def costs(self) -> dict[str, Stage]:
        """Return the total and the bottleneck."""
        return {"total": self.total, "bottleneck": self.bottleneck}

    def words(self) -> dict[str, object]:
        """Return that nothing cut the messages of the total, where that is said."""
        return {"total_is_uncut": True} if self.total_is_uncut else {}

    def equal_us(self, fragment_bytes: float, count: int) -> float:
        """Return the latency in µs of `count` fragments of this size, without the delay."""
        queued_us = (count - 1) * self.bottleneck.time_us(fragment_bytes)
        return self.total.time_us(fragment_bytes) + queued_us

    def total_us(self, fragment_bytes: float) -> float:
        """Return S(x) in µs: never below the bottleneck's time, whatever the two fits say."""
        return max(self.total.time_us(fragment_bytes), self.bottleneck.time_us(fragment_bytes))

    def falls(self, *, after_bytes: int = 1) -> tuple[Fall, ...]:
        """Return where S or b drops from one whole byte to the next, by the greater of the two
        drops.

        That happens at ends of ranges alone. With `after_bytes` 0 the drop is to the limit behind
        the end, which counts for real sizes.
        """
        drops = ((end, self._drop_us(end, end + after_bytes)) for end in self.range_ends)
        return tuple(Fall(end, drop_us) for end, drop_us in drops if drop_us > 0.0)

    def _drop_us(self, end: int, behind: int) -> float:
        stages = (self.total, self.bottleneck)
        total_us, bottleneck_us = (s.range_at(end + 1).line.time_us(behind) for s in stages)
        drops = (
            self.total_us(end) - max(total_us, bottleneck_us),
            self.bottleneck.time_us(end) - bottleneck_us,
        )
        return max(0.0, *drops)

    def latency_us(self, fragment_bytes: Sequence[float]) -> float:
        """Return the latency, in µs, that this cut does not exceed in any pipeline with these two
        costs.

        T(x) <= S(x_m) + sum_{i != m} b(x_i), x_m the greatest fragment, delay included; equality
        where all fragments are equal. Derivation: a path through the grid of fragments and stages
        has n + k - 1 cells; leave out of every fragment but m the cell of the stage that it shares
        with its neighbour on m's side; what is left are n cells of n different stages, each at
        most t_j(x_m), and each cell left out is at most b(x_i). Where costs fall between the least
        and the greatest fragment, the cells left may be longer by those drops; or the runs of equal
        fragments cross one after the other, which needs no assumption. The less of the two counts.
        """
        runs = [(size, len(list(group))) for size, group in groupby(fragment_bytes)]
        maximum = max(size for size, _ in runs)
        queued_us = sum(count * self.bottleneck.time_us(size) for size, count in _but_one(runs))
        together_us = self.total_us(maximum) + queued_us
        drops_us = self._drops_us(min(size for size, _ in runs), maximum)
        if drops_us > 0.0:
            together_us = min(together_us + drops_us, sum(self._run_us(*run) for run in runs))
        return self.delay_us + together_us

    def slowest_pipeline(self) -> Pipeline:
        """Return a pipeline with these two costs in which cuts whose sizes never grow take all of
        `latency_us`: none with these costs is slower.

        The bottleneck is its last stage, where fragments queue; the rest of the total is divided
        among stages alike, as many as it takes for none to be slower. Derivation: the path of the
        first fragment to the last stage, and of all others there, is S(x_1) - b(x_1) + sum b(x_i).
        Raises StrategyDeclined where stages that take no less for more bytes cannot have these
        costs.
        """
        starts = [1, *(end + 1 for end in self.range_ends)]
        lasts = [*self.range_ends, MAX_MESSAGE_BYTES]
        rest = [self._rest_of(first) for first in starts]
        fewest = 1
        for part, first, last in zip(rest, starts, lasts, strict=True):
            for size in (first, last):
                slowest_us = self.bottleneck.time_us(size)
                if part.line.time_us(size) > slowest_us * (MAX_STAGES - 1):
                    raise StrategyDeclined(
                        "a table needs a bottleneck of a 63rd of the other stages at least, and "
                        f"that of messages of {size} bytes is less",
                        field="profile",
                    )
                if slowest_us > 0.0:
                    fewest = max(fewest, ceil(part.line.time_us(size) / slowest_us - _ROUNDING))
        found = tuple(
            FitRange(part.overhead_us / fewest, part.ns_per_byte / fewest, end)
            for part, end in zip(rest, [*self.range_ends, None], strict=True)
        )
        self._check_rising(rest)
        others = tuple(Stage(f"other {at}", found) for at in range(1, fewest + 1))
        return Pipeline((*others, Stage("bottleneck", self.bottleneck.ranges)), self.delay_us)

    def _rest_of(self, size: int) -> FitRange:
        """What the total has over the bottleneck, in the range of this size."""
        total, slowest = self.total.range_at(size), self.bottleneck.range_at(size)
        overhead_us = total.overhead_us - slowest.overhead_us
        ns_per_byte = total.ns_per_byte - slowest.ns_per_byte
        if overhead_us < 0.0 or ns_per_byte < 0.0:
            raise StrategyDeclined(
                "a table needs a total that is above the bottleneck, and grows by more: from "
                f"{size} bytes on it does not",
                field="profile",
            )
        return FitRange(overhead_us, ns_per_byte)

    def _check_rising(self, rest: Sequence[FitRange]) -> None:
        falls = [fall.up_to_bytes for fall in self.falls()]
        for part, after, end in zip(rest, rest[1:], self.range_ends, strict=False):
            if after.line.time_us(end + 1) < part.line.time_us(end) * (1.0 - _ROUNDING):
                falls.append(end)
        if falls:
            raise StrategyDeclined(
                "a table needs costs that do not fall for more bytes: these fall behind "
                f"{min(falls)} bytes",
                field="profile",
            )

    def _run_us(self, size: float, count: int) -> float:
        """Equal fragments alone: the first goes through every stage, the others follow."""
        return self.total_us(size) + (count - 1) * self.bottleneck.time_us(size)

    def _drops_us(self, minimum: float, maximum: float) -> float:
        return sum(fall.drop_us for fall in self.falls() if minimum <= fall.up_to_bytes < maximum)


def lower_of(stage: Stage, limit: Stage) -> Stage:
    """Return the stage that takes the less of both times at every whole size.

    Between two neighbouring ends of ranges both are lines; they cross there once at most, and on
    both sides of that size the one that takes less at either edge takes less throughout.
    """
    parts: list[FitRange] = []
    first = 1
    for end in [*ends_of((stage, limit)), None]:
        both = stage.range_at(first), limit.range_at(first)
        at = _crossing(*both, first, MAX_MESSAGE_BYTES if end is None else end)
        for last in (end,) if at is None else (at, end):
            edges = (first, MAX_MESSAGE_BYTES if last is None else last)
            times = [sum(map(part.line.time_us, edges)) for part in both]
            less = both[0] if times[0] <= times[1] else both[1]
            parts.append(FitRange(less.overhead_us, less.ns_per_byte, last))
            first = edges[1] + 1
    kept = [
        part
        for part, after in zip(parts, [*parts[1:], None], strict=True)
        if after is None or part.line != after.line
    ]
    return Stage(stage.name, tuple(kept))


def _crossing(one: FitRange, other: FitRange, first: int, last: int) -> int | None:
    """The last whole size before two lines cross, None where they do not between these sizes."""
    steeper = one.ns_per_byte - other.ns_per_byte
    if steeper == 0.0:
        return None
    at = 1000.0 * ((other.overhead_us - one.overhead_us) / steeper)
    return int(at) if first <= at < last else None


def _but_one(runs: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """The runs without one fragment of the greatest size."""
    at = max(range(len(runs)), key=lambda i: runs[i][0])
    return [(size, count - (i == at)) for i, (size, count) in enumerate(runs)]
