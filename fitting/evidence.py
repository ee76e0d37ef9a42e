"""What is known about one stage when its lines have been fitted.

Notation  by cell of fitting/centres.py, (m,); by entry of fitting/samples.py, (N,).
Cost      O(N + m) each.
Exact     yes, of what was fitted.
Traps     residuals of lines next to 0 have no bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from domain.fit import FitMethod
from fitting.centres import Centres
from fitting.pieces import Piece
from fitting.samples import Floats, SortedSamples

MODEL = 0.01  # of deviation that every size is granted


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about one stage when its lines have been fitted."""

    name: str
    method: FitMethod
    samples: SortedSamples
    centres: Centres
    pieces: tuple[Piece, ...]
    tick_us: float
    deviation: float = 0.0
    ranges_wanted: int = 1
    max_ranges: int = 1

    def fitted(self) -> Floats:
        """Return fitted times of all entries, (N,), µs."""
        return np.concatenate([piece.estimate.times_us(piece.samples.x) for piece in self.pieces])

    def weights(self) -> Floats:
        """Return weights of all entries, (N,)."""
        return np.concatenate([piece.estimate.weights for piece in self.pieces])

    def fitted_centres(self) -> Floats:
        """Return fitted times at all cells, (m,), µs."""
        return np.concatenate(
            [piece.estimate.times_us(self.centres.x[piece.cells]) for piece in self.pieces]
        )

    def residuals(self, piece: Piece) -> tuple[Floats, Floats]:
        """Return r and e of a piece's cells."""
        f = piece.at(self.centres.x[piece.cells])
        tick = self.tick_us / f / 2.0
        with np.errstate(over="ignore"):  # lines next to 0
            r = np.clip(self.centres.z[piece.cells] / f - 1.0, -1.0, 1e9)
        return r, np.sqrt(self.centres.errors()[piece.cells] ** 2 + MODEL**2 + tick**2)
