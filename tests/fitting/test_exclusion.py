"""Samples that are left out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract.limits import MAX_EXCLUDED
from domain.errors import InvalidInput, PoorFit
from domain.fit import Combine, ExcludedSample, FitMethod, FitOptions, StepGroup
from domain.measurement import DirectTrace, MessageTrace, Reading, Samples
from fitting import fit, plot
from fitting.exclusion import LEFT_OUT, without_excluded

SIZES = [size for size in (64, 256, 1024, 4096, 16384) for _ in range(4)]
COPY = [1.0 + size / 1000.0 + 0.01 * (row % 4) for row, size in enumerate(SIZES)]
WIRE = [5.0 + size / 500.0 + 0.02 * (row % 4) for row, size in enumerate(SIZES)]
WIRE[6] = 900.0  # 256 bytes
TRACE = DirectTrace(("copy", "wire"), SIZES, list(range(20)), (COPY, WIRE))
READING = Reading("test", TRACE, (("rows", "20"),))
FAR = ExcludedSample("wire", 256, 900.0)


def options(*excluded: ExcludedSample) -> FitOptions:
    """Ordinary least squares, which one outlier spoils."""
    return FitOptions(FitMethod.ORDINARY, max_ranges=1, excluded=excluded)


def test_a_row_is_left_out_in_every_stage() -> None:
    """As if the message had not been measured."""
    without = [row for row in range(20) if row != 6]
    expected = fit(
        [
            Reading(
                "test",
                DirectTrace(
                    TRACE.stage_names,
                    [SIZES[row] for row in without],
                    without,
                    ([COPY[row] for row in without], [WIRE[row] for row in without]),
                ),
            )
        ],
        options(),
    )
    found = fit([READING], options(FAR))
    assert found.stages == expected.stages
    assert found.stages != fit([READING], options()).stages
    assert dict(found.understood)[LEFT_OUT] == "1 of 20 measured messages"


def test_a_plot_is_without_them_too() -> None:
    """It shows what was fitted to."""
    found = fit([READING], options(FAR))
    shown = plot(found, [READING], options(FAR))
    assert [stage.num_samples for stage in shown.stages] == [19, 19]
    assert 900.0 not in shown.stages[1].points.time_us


@pytest.mark.parametrize(
    "other",
    [
        replace(FAR, stage="copy"),
        replace(FAR, message_bytes=64),
        replace(FAR, time_us=900.5),
        replace(FAR, stage="nothing"),
    ],
)
def test_what_is_no_sample_changes_nothing(other: ExcludedSample) -> None:
    """Another stage, size or time; the fit says that it was not there."""
    found = fit([READING], options(other))
    assert found.stages == fit([READING], options()).stages
    (reported,) = [one.detail for one in found.notices if one.code == "excluded_not_found"]
    assert reported.startswith("1 of 1 samples to leave out are not in the measurements")


def test_a_group_is_left_out_by_its_own_time() -> None:
    """The stage is then the group: here the sum of its steps."""
    grouped = replace(
        options(ExcludedSample("both", 256, COPY[6] + WIRE[6])),
        groups=(StepGroup("both", ("copy", "wire"), Combine.SEQUENCE),),
    )
    (left,) = without_excluded([READING], grouped)
    assert len(left.trace) == 19
    (by_step,) = without_excluded([READING], replace(grouped, excluded=(FAR,)))
    assert len(by_step.trace) == 19
    assert by_step.notices == ()


def test_messages_from_outside() -> None:
    """Latencies and inter-arrival times each lose their own."""
    samples = Samples(SIZES, COPY)
    trace = MessageTrace(samples, samples)
    excluded = (
        ExcludedSample("total", 64, COPY[0]),
        ExcludedSample("bottleneck", 256, COPY[4]),
    )
    (left,) = without_excluded([Reading("test", trace)], options(*excluded))
    assert isinstance(left.trace, MessageTrace)
    assert left.trace.latency is not None
    assert left.trace.interarrival is not None
    assert list(left.trace.latency.times_us) == COPY[1:]
    assert list(left.trace.interarrival.times_us) == [*COPY[:4], *COPY[5:]]
    (end,) = without_excluded(
        [Reading("test", MessageTrace(samples))],
        options(ExcludedSample("end to end", 64, COPY[1])),
    )
    assert len(end.trace) == 19


def test_what_one_of_several_files_has_is_found() -> None:
    """The other file is as it was."""
    two = replace(TRACE, stage_us=(COPY, COPY))
    parts = without_excluded([Reading("test", two), READING], options(FAR))
    assert [len(part.trace) for part in parts] == [20, 19]
    assert [part.notices for part in parts] == [(), ()]


def test_something_has_to_stay() -> None:
    """Otherwise there is nothing to fit."""
    every = [ExcludedSample("copy", size, time) for size, time in zip(SIZES, COPY, strict=True)]
    with pytest.raises(PoorFit, match="left out by hand"):
        fit([READING], options(*every))
    alone = MessageTrace(Samples([64], [1.0]))
    with pytest.raises(PoorFit, match="left out by hand"):
        fit([Reading("test", alone)], options(ExcludedSample("total", 64, 1.0)))


def test_the_number_is_limited() -> None:
    """Each costs a pass over the samples."""
    with pytest.raises(InvalidInput, match="at most 5000"):
        FitOptions(excluded=(FAR,) * (MAX_EXCLUDED + 1))
