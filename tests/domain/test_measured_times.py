"""What the sizes of a fit took: medians, means, and which means are pooled."""

from __future__ import annotations

import pytest

from domain.fit import SizeFit
from domain.measured_times import mean_ratio, measured_times
from tests.support.measured import fitted, trace

SIZES = (1024, 4096, 16384, 65536, 262144)


def size(
    message_bytes: int, mean_us: float | None, *, error: float = 0.01, samples: int = 20
) -> SizeFit:
    """A size with a median of 100 µs."""
    errors = (None, None) if mean_us is None else (1.0, error * 100.0)
    return SizeFit(message_bytes, samples, 100.0, 100.0, 0.0, 0.05, 0, mean_us, *errors)


class TestRatio:
    """How much the means of a stage are above its medians."""

    def test_sizes_count_by_their_samples(self) -> None:
        """Not by their own errors: the sizes without a long time would outweigh those with one."""
        found = mean_ratio([size(1, 100.0, error=0.001), size(2, 110.0, error=0.05)])
        assert found.value == pytest.approx(1.05)
        assert found.error == pytest.approx((0.001**2 + 0.05**2) ** 0.5 / 2)
        assert mean_ratio([size(1, 100.0, samples=30), size(2, 140.0, samples=10)]).value == 1.1

    def test_fits_of_earlier_versions_have_medians_alone(self) -> None:
        """Their means are their medians, and the errors follow from the spread."""
        assert mean_ratio([size(1, None)]) == mean_ratio([])
        assert mean_ratio([size(1, None)]).value == 1.0


class TestTimes:
    """What the file says of each size."""

    def test_they_are_the_fit_s_own(self) -> None:
        """Medians as they are; sizes that every stage has; the same digest for the same times."""
        text = trace(SIZES, 8, [lambda x: 5.0 + x / 1e3, lambda x: 9.0 + x / 2e3])
        fit = fitted(text)
        found = measured_times(fit)
        assert found is not None
        assert found.common_bytes == SIZES
        for stage, known in zip(found.stages, fit.stages, strict=True):
            medians = [one.median_us for one in stage.sizes]
            assert medians == [one.median_us for one in known.sizes]
        again = measured_times(fitted(text))
        assert again == found
        assert again is not None
        assert again.digest == found.digest
        other = measured_times(fitted(trace(SIZES, 8, [lambda x: 5.0 + x / 1e3] * 2)))
        assert other is not None
        assert other.digest != found.digest

    def test_a_mean_far_from_the_pooled_one_is_the_size_s_own(self) -> None:
        """One size of five is bimodal: the others have the pooled ratio."""
        rows = "".join(
            f"{x},{r},{(10.0 + x / 1e3) * (3.0 if x == 16384 and r % 3 == 0 else 1.0)}\n"
            for x in SIZES
            for r in range(21)
        )
        found = measured_times(fitted(f"message_bytes,repetition,a_us\n{rows}"))
        assert found is not None
        (stage,) = found.stages
        is_own = {one.message_bytes: one.is_own for one in stage.sizes}
        assert is_own[16384]
        odd = next(one for one in stage.sizes if one.message_bytes == 16384)
        assert odd.mean_us == pytest.approx(odd.median_us * (1.0 + 2.0 / 3.0), rel=0.01)
