"""Verdicts on transfers: predicted against measured, and why a model does not hold.

A size's interval is that of its median by order statistics: of n runs the medians lie outside the
samples of ranks r and n - 1 - r with probability 2 P(Bin(n, 1/2) <= r), which is kept at 5 % or
less. With a share t for the tolerance, a constant c brings a size with the prediction p within t
for certain where  high/(1 + t) - p <= c <= low/(1 - t) - p, and possibly where
low/(1 + t) - p <= c <= high/(1 - t) - p. The model holds where 0 is certain for every size, holds
with an offset where some c of at most MAX_OFFSET is, and does not hold where none is even possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from statistics import median

from domain.errors import NotMeasurable
from domain.pipeline import Pipeline
from domain.schedule import latency_us
from domain.solution import Notice
from domain.verification import TOLERANCE, ModelVerdict, Verification, VerifiedSize

MIN_RUNS = 6  # of fewer, no two are a 95 % interval of the median
MAX_OFFSET = 0.25  # of the smallest prediction: a larger constant would explain a wrong rate too
MOST = 0.5  # of what the whole takes longer: with less of it, the stages are not the reason
MIN_OFFSET_SIZES = 3  # one constant says nothing where it has as many sizes to explain


@dataclass(frozen=True, slots=True)
class Run:
    """One transfer: its latency, and for each stage how long it had a fragment, and a processor.

    Times in µs. `is_preempted`: a thread of it lost its processor at least once.
    """

    latency_us: float
    occupied_us: tuple[float, ...]
    processor_us: tuple[float, ...]
    is_preempted: bool = False


Runs = Mapping[int, Sequence[Run]]  # by fragment size


def repeated_cut(message_bytes: int, fragment_bytes: int) -> tuple[int, ...]:
    """Return the sizes of a message cut by one repeated size; the last has what is left."""
    whole, rest = divmod(message_bytes, fragment_bytes)
    return (fragment_bytes,) * whole + ((rest,) if rest else ())


def median_interval(times: Sequence[float], outside: float = 0.05) -> tuple[float, float] | None:
    """Return the interval outside which the median is with this probability at most; None of so
    few times that there is none, which for 5 % is fewer than MIN_RUNS.
    """
    count = len(times)
    if 2.0 ** (1 - count) > outside:
        return None
    ordered, rank, tail = sorted(times), 0, 1 / 2**count
    while (tail := tail + comb(count, rank + 1) / 2**count) <= outside / 2:
        rank += 1
    return ordered[rank], ordered[-1 - rank]


def verdict_on(
    pipeline: Pipeline,
    message_bytes: int,
    runs: Runs,
    *,
    stages: Sequence[str],
    processors: int | None,
    load: tuple[float, int] | None = None,
) -> Verification:
    """Return the verdict on a pipeline of the runs at each fragment size.

    `stages` are the names of what ran, `processors` how many they had between them: none and None
    of whole transfers, whose stages were not timed. `load` is how
    many programs wanted a processor before, and how many the machine has. Sizes with
    fewer than MIN_RUNS runs are left out. Raises NotMeasurable where no size is
    left, and where the model has one take no time.
    """
    sizes = tuple(_sizes(pipeline, message_bytes, runs))
    if not sizes:
        raise NotMeasurable(f"no size was transferred {MIN_RUNS} times: give more time")
    verdict, offset_us = _verdict(sizes)
    found = Verification(verdict, message_bytes, tuple(stages), sizes, offset_us)
    if verdict is ModelVerdict.HOLDS:
        return found
    if verdict is ModelVerdict.NOT_DECIDED:
        return _with_reasons(found, (*_busy(load), _noise(sizes)))
    return _with_reasons(found, tuple(_reasons(found, pipeline, runs, processors, load)))


def _with_reasons(found: Verification, reasons: tuple[Notice, ...]) -> Verification:
    return Verification(
        found.verdict, found.message_bytes, found.stages, found.sizes, found.offset_us, reasons
    )


def _sizes(pipeline: Pipeline, message_bytes: int, runs: Runs) -> Iterator[VerifiedSize]:
    for size, taken in sorted(runs.items()):
        times = [run.latency_us for run in taken]
        interval = median_interval(times)
        if interval is not None:
            cut = repeated_cut(message_bytes, size)
            predicted_us = latency_us(pipeline, cut)
            if not predicted_us:
                raise NotMeasurable(
                    f"the model has a message of {message_bytes} bytes in fragments of {size} take "
                    "no time, with which nothing can be compared"
                )
            yield VerifiedSize(size, len(cut), predicted_us, median(times), *interval, len(times))


def _verdict(sizes: Sequence[VerifiedSize]) -> tuple[ModelVerdict, float | None]:
    """What the intervals decide, and the offset in µs where that is needed."""
    over, under = 1.0 + TOLERANCE, 1.0 - TOLERANCE
    limit_us = MAX_OFFSET * min(size.predicted_us for size in sizes)
    certain = (
        max(-limit_us, *(size.high_us / over - size.predicted_us for size in sizes)),
        min(limit_us, *(size.low_us / under - size.predicted_us for size in sizes)),
    )
    possible = (
        max(-limit_us, *(size.low_us / over - size.predicted_us for size in sizes)),
        min(limit_us, *(size.high_us / under - size.predicted_us for size in sizes)),
    )
    may_have_offset = len(sizes) >= MIN_OFFSET_SIZES
    if certain[0] <= 0.0 <= certain[1]:
        return ModelVerdict.HOLDS, None
    if may_have_offset and certain[0] <= certain[1]:
        middle_us = median(size.measured_us - size.predicted_us for size in sizes)
        return ModelVerdict.HOLDS_OFFSET, min(max(middle_us, certain[0]), certain[1])
    is_possible = possible[0] <= 0.0 <= possible[1]
    if is_possible or (may_have_offset and possible[0] <= possible[1]):
        return ModelVerdict.NOT_DECIDED, None
    return ModelVerdict.DOES_NOT_HOLD, None


# --- why ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Stage:
    """One stage over all sizes: by how much it had fragments longer than its cost says, in µs."""

    name: str
    excess_us: tuple[float, ...]  # by size
    expected_us: tuple[float, ...]
    fragments: tuple[int, ...]

    @property
    def ratio(self) -> float:
        """Measured over expected, over all sizes."""
        return 1.0 + sum(self.excess_us) / max(sum(self.expected_us), 1e-9)

    @property
    def is_per_fragment(self) -> bool:
        """Whether more of the excess goes with the number of fragments than with the bytes.

        The bytes of all sizes are the same: least squares of a line over the number of fragments.
        """
        sizes = len(self.fragments)
        mean_count, mean_us = sum(self.fragments) / sizes, sum(self.excess_us) / sizes
        spread = sum((count - mean_count) ** 2 for count in self.fragments)
        if spread == 0.0:
            return False
        pairs = zip(self.fragments, self.excess_us, strict=True)
        slope = sum((count - mean_count) * (excess - mean_us) for count, excess in pairs) / spread
        return abs(slope) * max(self.fragments) > abs(mean_us - slope * mean_count)

    @property
    def each_us(self) -> float:
        """The excess of one fragment, in µs, over all sizes."""
        return sum(self.excess_us) / sum(self.fragments)


def _busy(load: tuple[float, int] | None) -> Iterator[Notice]:
    """That other programs had the processors, where more than one had to wait for them."""
    if load is None or load[0] <= load[1] + 1:
        return
    programs, processors = load
    yield Notice(
        "machine_busy",
        f"the machine was busy before the transfers began: {programs:.0f} programs wanted its "
        f"processors, which are {processors}; verify again when it has less to do",
        values=(("programs", programs), ("processors", float(processors))),
    )


def _reasons(
    found: Verification,
    pipeline: Pipeline,
    runs: Runs,
    processors: int | None,
    load: tuple[float, int] | None,
) -> Iterator[Notice]:
    """What the times of the stages speak for, the likeliest first."""
    is_slower = any(size.low_us > size.predicted_us * (1 + TOLERANCE) for size in found.sizes)
    needed = median(
        _processor_us(runs[size.fragment_bytes]) / size.predicted_us for size in found.sizes
    )
    if processors and is_slower and needed > processors * (1 + TOLERANCE):
        has = "there is one" if processors == 1 else f"there are {processors}"
        yield Notice(
            "stages_share_processor",
            f"stages share a processor: their threads need {needed:.2f} of them for as long as "
            f"the model says, and {has}, so that they cannot work at once as it has it",
            values=(("processors_needed", needed), ("processors", float(processors))),
        )
    yield from _busy(load)
    stages = tuple(_stages(found, pipeline, runs)) if len(pipeline) == len(found.stages) else ()
    if stages and is_slower and _share_of_stages(found, stages) < MOST:
        yield _handing_on(found, stages)
    for stage in sorted(stages, key=lambda one: -abs(sum(one.excess_us))):
        if abs(stage.ratio - 1.0) > TOLERANCE:
            yield _of_stage(stage)


def _share_of_stages(found: Verification, stages: Sequence[_Stage]) -> float:
    """At most this share of what the transfers take longer is of the stages' own times.

    What stages take longer side by side adds less to the latency than to their times.
    """
    longer_us = sum(max(0.0, size.measured_us - size.predicted_us) for size in found.sizes)
    of_stages_us = sum(max(0.0, sum(stage.excess_us)) for stage in stages)
    return of_stages_us / longer_us if longer_us > 0.0 else 1.0


def _processor_us(runs: Sequence[Run]) -> float:
    """How long the threads of all stages had a processor, together, in the median run."""
    return median(sum(run.processor_us) for run in runs)


def _stages(found: Verification, pipeline: Pipeline, runs: Runs) -> Iterator[_Stage]:
    cuts = [repeated_cut(found.message_bytes, size.fragment_bytes) for size in found.sizes]
    for place, (stage, name) in enumerate(zip(pipeline.stages, found.stages, strict=True)):
        expected = tuple(sum(map(stage.time_us, cut)) for cut in cuts)
        measured = tuple(
            median(run.occupied_us[place] for run in runs[size.fragment_bytes])
            for size in found.sizes
        )
        excess = tuple(one - other for one, other in zip(measured, expected, strict=True))
        yield _Stage(name, excess, expected, tuple(map(len, cuts)))


def _of_stage(stage: _Stage) -> Notice:
    of = f"it had fragments for {stage.ratio:.2f} times as long as its cost says"
    values = {"ratio": stage.ratio, "each_us": stage.each_us}
    each = f"{abs(stage.each_us):.3g} µs a fragment"
    if stage.ratio < 1.0:
        return Notice.of_stage(
            stage.name,
            "faster_in_flow",
            f"{of} ({each} less): in a flow its buffers take a fragment while the one before is "
            "under way, or it has less to wake up and to write than for a single sample",
            **values,
        )
    if stage.is_per_fragment:
        return Notice.of_stage(
            stage.name,
            "bursts_in_samples",
            f"{of} ({each} more, whatever its size): single samples were faster than a steady "
            "flow, as behind a limit that lets a burst pass after a pause, or on a device, as a "
            "GPU, that serves another stage at the same time",
            **values,
        )
    return Notice.of_stage(
        stage.name,
        "slower_in_company",
        f"{of}, in proportion to the bytes: it shares memory, caches, a device or a link with "
        "another stage, or its processor with other programs, or its data was nearer when measured",
        **values,
    )


def _handing_on(found: Verification, stages: Sequence[_Stage]) -> Notice:
    place, finest = min(enumerate(found.sizes), key=lambda one: one[1].fragment_bytes)
    of_stages_us = sum(max(0.0, stage.excess_us[place]) for stage in stages)
    waits_us = finest.measured_us - finest.predicted_us - of_stages_us
    each_us = max(0.0, waits_us) / finest.fragments
    return Notice(
        "handing_on_costs",
        "the stages' own times explain less than half of what the whole takes longer: fragments "
        "wait between stages until a thread is woken and has a processor, "
        f"{each_us:.3g} µs for each at the smallest size",
        values=(("each_us", each_us),),
    )


def _noise(sizes: Sequence[VerifiedSize]) -> Notice:
    widest = max((size.high_us - size.low_us) / 2.0 / size.measured_us for size in sizes)
    return Notice(
        "runs_disagree",
        f"the runs of one size differ too much: its median is known to {widest:.1%} at best. Give "
        "more time, or a machine with less to do",
        values=(("half_width", widest),),
    )
