"""Signatures of a simulated pair of end points that obey LogP, with noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from domain.logp_machine import LogPMachine
from domain.measurement import Samples, SignatureTrace


@dataclass(frozen=True, slots=True)
class Machine(LogPMachine):
    """LogP's parameters in µs, and traces of what would be measured of them."""

    def signature(
        self,
        message_bytes: int,
        *,
        bursts: tuple[int, ...],
        computations_us: tuple[float, ...],
        repetitions: int,
        noise: float,
        seed: int,
    ) -> SignatureTrace:
        """Mean costs, and as many round trips, with multiplicative noise."""
        rng = np.random.default_rng(seed)
        rows = [
            (messages, computation, self.burst_us(messages, computation) / messages)
            for messages in bursts
            for computation in computations_us
            for _ in range(repetitions)
        ]
        counts, computation, cost = zip(*rows, strict=True)
        noisy = np.asarray(cost) * (1.0 + noise * rng.standard_normal(len(rows)))
        trips = self.round_trip_us * (1.0 + noise * rng.standard_normal(repetitions))
        return SignatureTrace(
            (message_bytes,) * len(rows),
            counts,
            computation,
            tuple(noisy.tolist()),
            round_trip=Samples((message_bytes,) * repetitions, tuple(trips.tolist())),
        )
