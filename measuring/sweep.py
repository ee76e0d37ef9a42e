"""Times of one stage over sizes: in random order, in interleaved blocks, until they are known.

Rules, each of which keeps a wrong number out: every block has each size once, in an order of its
own, so that a drift of the machine is noise and not a slope; samples during which either end was
preempted are dropped and counted, but for sizes that never take less than LONG_US; a size is left
out of further blocks once the 95 % interval of its median is narrow enough; the first samples of
each size only warm up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from random import Random
from statistics import median

from domain.errors import InvalidInput

Ask = Callable[[str], str]

MIN_SAMPLES = 10
MAX_SAMPLES = 400
WARM_UP = 2
LONG_US = 10e3  # some time slices: whoever takes as long is preempted, and loses little by it
FEWEST = 3  # samples of a size that is told
MAX_TIME_S = 86_400.0


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """Which sizes, how narrow the interval of each median is to be, relative to it, and until when.

    `seed` decides the order. Raises InvalidInput.
    """

    sizes: tuple[int, ...]
    tolerance: float = 0.02
    time_limit_s: float = 20.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_plan(self.tolerance, self.time_limit_s)


def check_plan(tolerance: float, time_limit_s: float) -> None:
    """Raise InvalidInput for a tolerance or a time that no measurement can keep."""
    if not 0.0 < tolerance <= 1.0:
        raise InvalidInput("expected 0 < tolerance <= 1", field="tolerance")
    if not 0.0 < time_limit_s <= MAX_TIME_S:
        raise InvalidInput(f"expected 0 < time limit <= {MAX_TIME_S:g} s", field="time_limit")


@dataclass(slots=True)
class Sweep:
    """What was measured so far: times in µs of each size, in the order in which they were taken.

    `preempted` counts the samples that were dropped, by size; `ended` says why it ended.
    """

    plan: SweepPlan
    times_us: dict[int, list[float]] = field(default_factory=dict)
    preempted: dict[int, int] = field(default_factory=dict)
    ended: str = "interrupted"
    _min_us: dict[int, float] = field(default_factory=dict)
    _doubtful_us: dict[int, list[float]] = field(default_factory=dict)  # kept, and preempted

    def run(
        self, ask: Ask, on_block: Callable[[int, int], None] = lambda wanted, taken: None
    ) -> None:
        """Ask for samples until all sizes are known or time ends.

        `ask` takes a size and answers "bytes ns preempted". `on_block` is given how many sizes are
        wanted still, and how many samples there are. What was measured stays after an exception.
        """
        self.times_us = {size: [] for size in self.plan.sizes}
        self.preempted = dict.fromkeys(self.plan.sizes, 0)
        order = Random(self.plan.seed)
        end_s = time.monotonic() + self.plan.time_limit_s
        for size in self.plan.sizes:
            for _ in range(WARM_UP):
                ask(str(size))
        wanted = list(self.plan.sizes)
        while wanted:
            order.shuffle(wanted)
            for size in wanted:
                if time.monotonic() > end_s:
                    self.ended = "time"
                    return
                self._take(ask, size)
            wanted = [size for size in wanted if not self._is_known(size)]
            on_block(len(wanted), sum(map(len, self.times_us.values())))
        is_known = all(map(self._is_narrow, self.plan.sizes))
        self.ended = "known" if is_known else f"{MAX_SAMPLES} samples of a size"

    def _take(self, ask: Ask, size: int) -> None:
        _, ns, preempted = ask(str(size)).split()
        time_us, doubtful = float(ns) / 1000.0, self._doubtful_us.setdefault(size, [])
        self._min_us[size] = min(time_us, self._min_us.get(size, inf))
        if not int(preempted):
            self.times_us[size].append(time_us)
        elif self._min_us[size] >= LONG_US:
            doubtful.append(time_us)
            self.times_us[size].append(time_us)
        else:
            self.preempted[size] += 1
        if self._min_us[size] < LONG_US:  # those were long by what held them up alone
            for one in doubtful:
                self.times_us[size].remove(one)
            self.preempted[size] += len(doubtful)
            doubtful.clear()

    def _is_known(self, size: int) -> bool:
        kept, dropped = len(self.times_us[size]), self.preempted[size]
        # With next to none that is kept there is time to wait for a machine with less to do.
        is_enough = kept + dropped >= MAX_SAMPLES and kept >= MIN_SAMPLES
        return is_enough or self._is_narrow(size)

    def _is_narrow(self, size: int) -> bool:
        return half_width(self.times_us[size]) <= self.plan.tolerance

    @property
    def left_out(self) -> tuple[int, ...]:
        """The sizes with too few samples to be told."""
        return tuple(size for size, times in self.times_us.items() if len(times) < FEWEST)

    def to_csv(self, stage: str, facts: Mapping[str, str]) -> str:
        """Return the samples as direct CSV, with what was measured in the first lines."""
        dropped, taken = sum(self.preempted.values()), sum(map(len, self.times_us.values()))
        facts = {
            **facts,
            "preempted": f"{dropped} of {dropped + taken}",
            "left_out": ", ".join(map(str, self.left_out)) or "none",
            "ended": self.ended,
        }
        head = "".join(f"# {name}: {value}\n" for name, value in facts.items())
        rows = "".join(
            f"{size},{at},{time_us:.6g}\n"
            for size, times in sorted(self.times_us.items())
            if size not in self.left_out
            for at, time_us in enumerate(times)
        )
        return f"{head}message_bytes,repetition,{stage}_us\n{rows}"


def half_width(times: Sequence[float]) -> float:
    """Return half the 95 % interval of the median, relative to it; infinite for few times.

    By order statistics: the interval is from the sample of rank n/2 - 0.98 sqrt(n) to its mirror.
    """
    if len(times) < MIN_SAMPLES:
        return inf
    ordered = sorted(times)
    rank = max(0, int(len(ordered) / 2 - 0.98 * sqrt(len(ordered))))
    middle = median(ordered)
    return (ordered[-1 - rank] - ordered[rank]) / 2.0 / middle if middle > 0.0 else inf
