"""What transfers say of every candidate size: its time in draws of the errors, and its regret.

Where a curve holds around the best size, it stands for the sizes it was fitted to and those between
them; elsewhere measured sizes alone count. A size that was run twice outvotes the curve.

Source    docs/decisions/0029-own-transfers-decide.md. Regret is T/min T - 1 in a draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import exp

import numpy as np
from numpy.typing import NDArray

from analysis.cut_curve import CutCurve, curve_around_best
from analysis.size_centres import Centres, TimedRun, centres_of
from domain.own_transfers import NEAR_BEST, GainInterval, OwnTransfer, TransferredSize

Floats = NDArray[np.float64]

_PAIRS_OF_DRAWS = 100  # each draw and its mirror image, so that their mean is the centre
_QUANTILE_90, _QUANTILE_95 = 1.28, 1.645
_REGRET_SHARE = 0.9


def round_sizes(message_bytes: int, smallest_bytes: int, *more: int) -> tuple[int, ...]:
    """Return 2^i and 3·2^i from the smallest to below the message, the whole message, and `more`.

    One of them is within 2.1 % of the best size of any curve of cut_curve.
    """
    powers = [1 << exponent for exponent in range(message_bytes.bit_length())]
    rounded = {size for power in powers for size in (power, 3 * power)}
    admitted = {size for size in rounded if smallest_bytes <= size < message_bytes}
    return tuple(sorted({*admitted, message_bytes, *more}))


def timed_runs(rows: Sequence[OwnTransfer], blocks: Sequence[int] | None = None) -> list[TimedRun]:
    """Return the runs of usable transfers in the blocks given, by default in their own."""
    numbers = [row.block or 0 for row in rows] if blocks is None else blocks
    return [
        TimedRun(block, row.fragment_bytes, row.latency_us)
        for row, block in zip(rows, numbers, strict=True)
        if row.latency_us is not None
    ]


class SizeEvidence:
    """Centres, the curve around the best, and draws of the log time at every candidate.

    Candidates between the sizes of a curve that holds have times as well. The draws are the same
    for the same transfers. At least one run is needed.
    """

    def __init__(
        self,
        runs: Sequence[TimedRun],
        message_bytes: int,
        candidates: Sequence[int],
        *,
        has_slope: bool = False,
    ) -> None:
        self.centres: Centres = centres_of(runs, has_slope=has_slope)
        self.curve: CutCurve = curve_around_best(self.centres, message_bytes)
        random = np.random.default_rng(len(runs))
        half = random.standard_normal((_PAIRS_OF_DRAWS, len(self.sizes)))
        mirrored = np.concatenate((half, -half))
        factor = np.linalg.cholesky(self.centres.covariance + 1e-12 * np.eye(len(self.sizes)))
        draws = self.centres.log_us + mirrored @ factor.T
        self._log_us = {size: draws[:, at] for at, size in enumerate(self.sizes)}
        self._unknown: Floats = np.zeros(len(draws))
        if self.curve.holds:
            low, high = self.curve.sizes[0], self.curve.sizes[-1]
            inside = [size for size in candidates if low <= size <= high]
            inside = sorted({*inside, *self.curve.sizes})
            fitted = self.curve.log_us(draws[:, list(self.curve.places)], inside)
            self._log_us |= {size: fitted[:, at] for at, size in enumerate(inside)}
            self._unknown = random.standard_normal(len(draws)) * self.curve.missed

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that were run, ascending."""
        return self.centres.sizes

    @property
    def noise(self) -> float:
        """The relative spread of one run."""
        return self.centres.noise

    @property
    def known_sizes(self) -> tuple[int, ...]:
        """The sizes with a time: those that were run, and those between them on the curve."""
        return tuple(self._log_us)

    @cached_property
    def means(self) -> dict[int, float]:
        """The expected log time of each known size."""
        return {size: float(draws.mean()) for size, draws in self._log_us.items()}

    @property
    def by_mean(self) -> list[int]:
        """The sizes that were run, the fastest first; of equal ones the smaller."""
        return sorted(self.sizes, key=lambda size: self.means[size])

    def lead(self, size: int, other: int) -> tuple[float, float]:
        """Return by how much the log time of a known size is below another's, and its spread."""
        leads = self._log_us[other] - self._log_us[size]
        return float(leads.mean()), float(leads.std())

    def expected_loss(self, size: int, other: int) -> float:
        """Return by how much log time a size is expected to lose where another is faster."""
        return float(np.maximum(0.0, self._log_us[size] - self._log_us[other]).mean())

    def gain(self, size: int, current: int) -> GainInterval:
        """Return the 90 % interval of the gain of one size that was run over another."""
        lead, error = self.centres.lead(size, current)
        wide = _QUANTILE_95 * error
        return GainInterval(1.0 - exp(wide - lead), 1.0 - exp(-wide - lead))

    def regret(self, size: int) -> float:
        """Return what a known size costs at most over the best one, with 90 %.

        It is no less than by how much a size run twice is measured to be slower than another such
        one, where that is more than 2 % and 1.28 standard errors.
        """
        regrets = np.exp(self._log_us[size] + self._unknown - self._fastest) - 1.0
        found = max(0.0, float(np.quantile(regrets, _REGRET_SHARE)))
        if self.centres.runs_of(size) < 2:
            return found
        for other in self.sizes:
            lag, error = self.centres.lead(other, size)
            is_repeated = self.centres.runs_of(other) > 1
            if is_repeated and lag > max(NEAR_BEST, _QUANTILE_90 * max(1e-6, error)):
                found = max(found, exp(lag) - 1.0)
        return found

    @cached_property
    def _fastest(self) -> Floats:
        """The least log time of any known size, by draw."""
        found: Floats = np.minimum.reduce(list(self._log_us.values()))
        return found

    def found(self) -> tuple[TransferredSize, ...]:
        """Return what was found of each size that was run."""
        centres = self.centres
        return tuple(
            TransferredSize(
                size,
                centres.runs[at],
                float(np.exp(centres.log_us[at])),
                float(centres.errors[at]),
                self.regret(size),
            )
            for at, size in enumerate(self.sizes)
        )
