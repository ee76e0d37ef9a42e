"""What was measured, what was not, and how far redrawn files are from each other by that."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.measured import Measured
from domain.fit import cut_sizes
from domain.nested import NestedSchedule
from domain.pipeline import FitRange
from domain.problem import FragmentLimits, problem_of
from domain.uncertainty import NamedCut, UncertainLine, UncertainPipeline, UncertainStage
from tests.support.measured import times_of

TOTAL, SIZES = 2**20, (2**10, 2**14, 2**18, 2**20)
LINES = (FitRange(20.0, 2.0), FitRange(30.0, 3.0))


def measured(
    deviation: float, sizes: tuple[int, ...] = SIZES, *, lines: tuple[FitRange, ...] = LINES
) -> Measured:
    """Stages on their lines, whose sizes deviate by so much, measured without an error."""
    stages = tuple(
        UncertainStage(
            "link",
            (UncertainLine(one, one.overhead_us, one.ns_per_byte, (0.0, 0.0, 0.0)),),
            20,
            deviation,
            0.02,
            sizes,
        )
        for one in lines
    )
    model = UncertainPipeline(stages)
    rows = ([(size, one.line.time_us(size)) for size in sizes] for one in lines)
    times = times_of(*rows, error=0.0)
    problem = problem_of(model.model, TOTAL, FragmentLimits())
    return Measured(problem, model, times, (sizes[0], sizes[-1]), None)


def spread(known: Measured, size: int) -> float:
    """The deviation of the logarithm of a repeated size's latencies in redrawn files."""
    return float(np.log(known.redrawn_us(NamedCut("cut", size))).std())


class TestSizesThatWereNotMeasured:
    """They deviate as those that were do from their line."""

    @pytest.mark.parametrize("size", SIZES)
    def test_measured_ones_do_not(self, size: int) -> None:
        assert spread(measured(0.1), size) == pytest.approx(0.0, abs=1e-9)

    def test_in_the_middle_by_the_deviation_of_a_bridge(self) -> None:
        """64 KiB of 16 and 256 KiB: by the root of a half, of one stage; nearer to one by less."""
        alone = measured(0.1, lines=LINES[1:])
        assert spread(alone, 2**16) == pytest.approx(0.1 / 2**0.5, rel=0.25)
        assert spread(alone, 2**17) < spread(alone, 2**16)
        assert spread(measured(0.0), 2**16) == pytest.approx(0.0, abs=1e-9)

    def test_outside_by_all_of_it(self) -> None:
        known = measured(0.1, SIZES[:-1])
        assert spread(known, 2**19) > spread(known, 2**16)

    def test_two_of_them_deviate_by_themselves(self) -> None:
        """So does their gain; over itself nothing gains anything."""
        known, size = measured(0.1), 2**16
        gains = known.gains_redrawn(NamedCut("cut", size), NamedCut("current", size + 1))
        assert gains.std() > 1.2 * spread(known, size)


class TestSizesOfACut:
    """All of its fragments but a remainder at its end."""

    @pytest.mark.parametrize(
        ("cut", "sizes"),
        [
            ((7,), (7,)),
            ((7, 7, 2), (7, 7)),
            ((7, 7), (7, 7)),
            ((2, 7), (2, 7)),
            ((7, 2, 9), (7, 2, 9)),
        ],
    )
    def test_a_larger_last_one_is_no_remainder(
        self, cut: tuple[int, ...], sizes: tuple[int, ...]
    ) -> None:
        assert cut_sizes(cut) == sizes

    def test_a_cut_with_one_beyond_those_measured_is_not_known(self) -> None:
        known = measured(0.0, SIZES[:-1])
        ends = NestedSchedule(((2**18, 3 * 2**18),)), NestedSchedule(((2**18,) * 4,))
        assert [known.knows(NamedCut("answer", schedule=one)) for one in ends] == [False, True]
