"""All stages together and the slowest of them: what can be known of a pipeline from outside.

Notation  x_i: fragment sizes in bytes, k of them; t_j: time of stage j; S(x) = sum_j t_j(x), the
          total; b(x) = max_j t_j(x), the bottleneck's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domain.pipeline import MAX_OVERHEAD_US, Stage, check_cost


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The summed time of all stages and the time of the slowest one, each as a stage.

    `total` is an unpipelined message's latency, `bottleneck` the inter-arrival time of back-to-back
    messages (Wang98 sec. 5.3). Any constant delay is part of the total's overhead, unless it is
    known and given as `delay_us` (theory.md sec. 7). Raises InvalidStage.
    """

    total: Stage
    bottleneck: Stage
    delay_us: float = 0.0

    def __post_init__(self) -> None:
        check_cost("delay_us", self.delay_us, MAX_OVERHEAD_US)
        object.__setattr__(self, "delay_us", float(self.delay_us) + 0.0)

    def total_us(self, fragment_bytes: float) -> float:
        """S(x) in µs: never below the bottleneck's time, whatever the two fits say."""
        return max(self.total.time_us(fragment_bytes), self.bottleneck.time_us(fragment_bytes))

    def latency_us(self, fragment_bytes: Sequence[float]) -> float:
        """The latency, in µs, that this cut does not exceed in any pipeline with these two costs.

        T(x) <= S(x_m) + sum_{i != m} b(x_i), x_m the greatest fragment, delay included; equality
        where all fragments are equal. Derivation: a path through the grid of fragments and stages
        has n + k - 1 cells; leave out of every fragment but m the cell of the stage that it shares
        with its neighbour on m's side; what is left are n cells of n different stages, each at
        most t_j(x_m), and each cell left out is at most b(x_i). Stage times must not fall with the
        size.
        """
        greatest = max(range(len(fragment_bytes)), key=fragment_bytes.__getitem__)
        others = (x for i, x in enumerate(fragment_bytes) if i != greatest)
        rest_us = sum(self.bottleneck.time_us(x) for x in others)
        return self.delay_us + self.total_us(fragment_bytes[greatest]) + rest_us
