"""Buckets of gradients for PyTorch's DistributedDataParallel: which to set, and whether it helps.

wire = queued_line({4096: 6900.0, 65536: 9400.0, 1048576: 48700.0})  # µs by bytes
advice = advise_buckets(ItemSequence.of(sizes, ready_us), wire.stage, wire.stage)
print(advice)                                # what to try, and what it is predicted to take
print(verified_buckets(advice, times_us))    # what to set, by rounds that were timed

Gradients are items behind their ready times, and the all-reduces of their buckets one stage of one
line: the best cut is exact, in O(m), and so is the best single cap.

Source    docs/theory.md, "Items"; docs/tutorial-ddp.md.
Notation  alone, beside: the line of queued all-reduces by themselves, and while gradients are
          calculated.
Traps     where both share an engine, a processor or a memory that is full, the ready times hold no
          longer once messages are under way: what is predicted then is too low for every setting,
          and only what was measured counts. Every process has to set the same, so that one decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite, log
from statistics import median

from analysis.pair_bets import ALPHA, sign_chance
from domain.bucket_setting import DDP_RULE, BucketSetting
from domain.errors import InvalidInput
from domain.items import ItemProblem, ItemSequence
from domain.pipeline import Pipeline, Stage
from solvers.contract import Deadline
from solvers.items.caps import best_cap
from solvers.items.one_wire import unlimited_cut

SHARED = 0.10  # what all-reduces may differ by beside the calculation, to be as if alone
MARGIN = 0.01  # what a setting has to be faster by than the default, in log time, to be set
MAX_MISFIT = 0.10  # of the line at a size that was timed
MAX_OFF = 0.10  # of a prediction, to count as right
SIZES = 6
_SMALLEST_SHARE = 486  # 2 * 3^5: the greatest of six sizes is half of all gradients
_MIN_BYTES = 4096
_UNIT_BYTES = 16  # a multiple of every element's size
_MIN_QUEUED, _MAX_QUEUED = 3, 16
_CAPS_S = 10.0  # for the walk over every layout of one cap


@dataclass(frozen=True, slots=True)
class Buckets:
    """What a setting makes of the gradients: the bytes of each bucket, and the predicted time in µs
    from the start of a step to the end of the last all-reduce.
    """

    setting: BucketSetting
    bucket_bytes: tuple[int, ...]
    predicted_us: float


def buckets_of(sequence: ItemSequence, wire: Stage, setting: BucketSetting) -> Buckets:
    """Return the buckets that a setting makes. `wire`: what an all-reduce of a bucket takes."""
    problem, cut = _problem(sequence, wire), setting.cut(sequence)
    return Buckets(setting, sequence.fragment_bytes(cut), problem.latency_us(cut))


def exact_buckets(sequence: ItemSequence, wire: Stage) -> Buckets:
    """Return the best buckets of all, which only a list of caps can set."""
    cut = unlimited_cut(_problem(sequence, wire))
    return buckets_of(sequence, wire, BucketSetting.of_cut(sequence, cut))


def one_cap_buckets(sequence: ItemSequence, wire: Stage) -> Buckets:
    """Return the best buckets that one cap makes, and of its range of caps one of few decimals."""
    found = best_cap(_problem(sequence, wire), DDP_RULE, Deadline.after(_CAPS_S))
    if found is None:
        raise InvalidInput("expected gradients that a cap can cut", field="sequence")
    return buckets_of(sequence, wire, BucketSetting.within(found.from_bytes, found.to_bytes))


def _problem(sequence: ItemSequence, wire: Stage) -> ItemProblem:
    if not wire.is_line:
        raise InvalidInput("expected a wire of one line", field="wire")
    return ItemProblem(Pipeline((wire,)), sequence)


def queued_sizes(total_bytes: int) -> tuple[tuple[int, int], ...]:
    """Return which sizes of all-reduces to time, in bytes, and how many of each queued.

    Six sizes by factors of three, up to half of all gradients; so many of each that they are an
    eighth of all gradients, within 3 to 16.
    """
    sizes = list[tuple[int, int]]()
    for place in range(SIZES):
        wanted = total_bytes * 3**place // _SMALLEST_SHARE
        size = max(_MIN_BYTES << place, wanted // _UNIT_BYTES * _UNIT_BYTES)
        sizes.append((size, min(_MAX_QUEUED, max(_MIN_QUEUED, total_bytes // 8 // size))))
    return tuple(sizes)


@dataclass(frozen=True, slots=True)
class BucketAdvice:
    """The settings to try, the default first, and what they are predicted to take.

    `shared`: by what share queued all-reduces take longer (or less) beside the calculation, for the
    setting where that is most; `slowed`: by what share the calculation does beside them; `misfit`:
    by how much the line misses a time that it was fitted to.
    """

    sequence: ItemSequence
    wire: Stage
    tried: tuple[Buckets, ...]
    shared: float
    slowed: float = 0.0
    misfit: float = 0.0

    @property
    def is_shared_engine(self) -> bool:
        """Whether calculation and messages slow each other, so that nothing is predicted."""
        return max(abs(self.shared), abs(self.slowed)) > SHARED

    def __str__(self) -> str:
        return "\n".join((self.head, *self._settings(), *self.warnings))

    @property
    def head(self) -> str:
        """What was timed: the gradients, and the line of all-reduces."""
        sequence, wire = self.sequence, self.wire.ranges[0].line
        rate = f"{1e3 / wire.ns_per_byte:.4g} MB/s" if wire.ns_per_byte else "no time a byte"
        return (
            f"{len(sequence)} gradients, {sequence.total_bytes} bytes, the last ready after "
            f"{_ms(sequence.all_ready_us[-1])}; an all-reduce takes {_ms(wire.overhead_us)}, and "
            f"its bytes at {rate}"
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why predictions may be wrong, each after its code."""
        found = list[str]()
        if self.is_shared_engine:
            found.append(
                f"shared_engine: side by side all-reduces take {_more(self.shared)} than alone and "
                f"the calculation {_more(self.slowed)}; nothing is promised that was not measured"
            )
        if self.misfit > MAX_MISFIT:
            found.append(
                f"line_misfit: the line of all-reduces misses a time by {self.misfit:.0%}; more "
                "repetitions, or a machine with less to do"
            )
        return tuple(found)

    def _settings(self) -> Iterator[str]:
        for buckets in self.tried:
            count = len(buckets.bucket_bytes)
            what = f"{buckets.setting}: {count} bucket{'' if count == 1 else 's'}"
            predicted = f", predicted {_ms(buckets.predicted_us)}"
            yield what if self.is_shared_engine else what + predicted


def advise_buckets(
    sequence: ItemSequence,
    alone: Stage,
    beside: Stage,
    *,
    slowed: float = 0.0,
    takes_list: bool = True,
    misfit: float = 0.0,
) -> BucketAdvice:
    """Return the settings to try: the default, the best cap, and where DDP takes one the best list.

    Those whose buckets are the same as a simpler one's are left out. Where `beside` differs from
    `alone` by more than a tenth for the buckets of one of them, it stands for both. `slowed`: by
    what share the calculation takes longer beside messages. Raises InvalidInput for a wire of
    several lines.
    """
    tried = _tried(sequence, alone, takes_list)
    shared = max((_longer(one, alone, beside) for one in tried), key=abs)
    if abs(shared) <= SHARED:
        return BucketAdvice(sequence, alone, tried, shared, slowed, misfit)
    tried = _tried(sequence, beside, takes_list)
    return BucketAdvice(sequence, beside, tried, shared, slowed, misfit)


def _tried(sequence: ItemSequence, wire: Stage, takes_list: bool) -> tuple[Buckets, ...]:
    found = [buckets_of(sequence, wire, BucketSetting()), one_cap_buckets(sequence, wire)]
    if takes_list:
        found.append(exact_buckets(sequence, wire))
    by_bytes = dict[tuple[int, ...], Buckets]()
    for buckets in found:
        by_bytes.setdefault(buckets.bucket_bytes, buckets)
    return tuple(by_bytes.values())


def _longer(buckets: Buckets, alone: Stage, beside: Stage) -> float:
    """By what share all of these all-reduces take longer beside the calculation."""
    alone_us, beside_us = (sum(map(wire.time_us, buckets.bucket_bytes)) for wire in (alone, beside))
    return beside_us / alone_us - 1.0 if alone_us > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class TimedBuckets:
    """A setting that was timed: its median, and that of the rounds' ratios to the default.

    `chance`: how likely ratios as low as these are, or lower, were it no faster than the default
    by the margin.
    """

    buckets: Buckets
    measured_us: float
    ratio: float
    chance: float

    @property
    def off(self) -> float:
        """By what share it took longer than predicted, negative where it was faster."""
        return self.measured_us / self.buckets.predicted_us - 1.0


@dataclass(frozen=True, slots=True)
class VerifiedBuckets:
    """What was measured, the default first, and the setting to keep."""

    advice: BucketAdvice
    timed: tuple[TimedBuckets, ...]
    kept: BucketSetting
    rounds: int

    def __str__(self) -> str:
        return "\n".join((self.advice.head, *self._lines(), *self.warnings, self.sentence))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of the advice, and whether it was wrong, each after its code."""
        off = max((one.off for one in self.timed), key=abs)
        if self.advice.is_shared_engine or abs(off) <= MAX_OFF:
            return self.advice.warnings
        return (
            *self.advice.warnings,
            f"not_as_predicted: a setting's steps took {_more(off)} than predicted; calculation "
            "and messages slow each other, or the machine had other work",
        )

    @property
    def sentence(self) -> str:
        """What to do, and by how much it is faster."""
        if self.kept == self.timed[0].buckets.setting:
            return f"Keep the default: no setting was faster by {MARGIN:.0%} for certain."
        ratio = next(one.ratio for one in self.timed if one.buckets.setting == self.kept)
        return f"Set {self.kept}: {1.0 - ratio:.1%} less time than the default's, measured."

    def _lines(self) -> Iterator[str]:
        for one in self.timed:
            words = f"{one.buckets.setting}: measured {_ms(one.measured_us)}"
            if not self.advice.is_shared_engine:
                words += f", {one.off:+.1%} to the {_ms(one.buckets.predicted_us)} predicted"
            yield words


def verified_buckets(
    advice: BucketAdvice, times_us: Mapping[BucketSetting, Sequence[float]]
) -> VerifiedBuckets:
    """Return what to set, by a time (µs) of each setting in each round.

    A setting beats the default where, were it no faster than that by 1 %, the rounds' ratios would
    be as low by chance in at most one of twenty comparisons, all settings together. Of those that
    do the one with the least median ratio is kept; within 1 % of it, the simpler. Six rounds are
    the fewest that can decide of two. Raises InvalidInput where a setting has no times, or as many
    as there are rounds.
    """
    settings = [one.setting for one in advice.tried]
    rounds = len(times_us.get(settings[0], ()))
    for setting in settings:
        times = times_us.get(setting, ())
        if not rounds or len(times) != rounds:
            raise InvalidInput(
                f"expected as many times of {setting} as there are rounds", field="times_us"
            )
        if not all(isfinite(time_us) and time_us > 0.0 for time_us in times):
            raise InvalidInput(f"expected times of {setting} above 0", field="times_us")
    default_us = times_us[settings[0]]
    timed = tuple(_timed(one, times_us[one.setting], default_us) for one in advice.tried)
    allowed = ALPHA / max(1, len(timed) - 1)
    beating = [one for one in timed[1:] if one.ratio < exp(-MARGIN) and one.chance <= allowed]
    min_ratio = min((one.ratio for one in beating), default=inf)
    kept = next((one for one in beating if one.ratio <= min_ratio * exp(MARGIN)), timed[0])
    return VerifiedBuckets(advice, timed, kept.buckets.setting, rounds)


def _timed(
    buckets: Buckets, times_us: Sequence[float], default_us: Sequence[float]
) -> TimedBuckets:
    ratios = [log(time / default) for time, default in zip(times_us, default_us, strict=True)]
    chance = sign_chance([ratio + MARGIN for ratio in ratios])
    return TimedBuckets(buckets, median(times_us), exp(median(ratios)), chance)


def _more(share: float) -> str:
    return f"{abs(share):.0%} {'less' if share < 0.0 else 'more'}"


def _ms(time_us: float) -> str:
    return f"{time_us / 1000.0:.5g} ms"
