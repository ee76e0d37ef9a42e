"""The one size that is best for messages of a range: what an answer about one message does not say.

Source    the rule of audits and exports, every octave alike, over powers of two alone: they choose
          among all sizes, and solve every message. Here each is priced in the best of these sizes.
Cost      O(octaves^2 x stages).

from analysis.range_size import range_size
found = range_size(problem, measured_bytes=(64, 2**20))
found.size_bytes
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.draw_costs import regrets_over, repeated_us
from analysis.draws import at_estimates
from analysis.repeated_sizes import is_admitted
from domain.errors import Infeasible
from domain.pipeline import Pipeline
from domain.problem import MessageProblem, problem_of
from domain.workload import DEFAULT_MIN_MESSAGE_BYTES


@dataclass(frozen=True, slots=True)
class RangeSize:
    """Messages from the least to the greatest, in bytes, and the power of two for all of them.

    It is that whose mean regret over the best of such sizes is least.
    """

    min_message_bytes: int
    max_message_bytes: int
    size_bytes: int


def range_size(problem: MessageProblem, *, measured_bytes: tuple[int, int]) -> RangeSize | None:
    """Return the best size, of those that were measured, for messages of 1 KiB to the problem's.

    None where there is no such range, the limits or the measured sizes admit no power of two, or
    stages hand bytes on as they move.
    """
    model, last = problem.model, problem.message_bytes
    first = DEFAULT_MIN_MESSAGE_BYTES
    if last <= first or (isinstance(model, Pipeline) and model.hands_on):
        return None
    sizes = 2 ** np.arange(last.bit_length(), dtype=np.int64)
    sizes = sizes[(measured_bytes[0] <= sizes) & (sizes <= measured_bytes[1])]
    messages = [2**power for power in range(first.bit_length() - 1, last.bit_length())]
    try:
        for message_bytes in dict.fromkeys((*messages, last)):
            cap = problem.fragment_cap
            shorter = problem_of(model, message_bytes, problem.limits, fragment_cap=cap)
            sizes = sizes[is_admitted(shorter, sizes)]
    except Infeasible:
        return None
    if not len(sizes):
        return None
    exact = at_estimates(model)
    regrets = np.zeros(len(sizes))
    for message_bytes in dict.fromkeys((*messages, last)):
        latency_us = repeated_us(exact, message_bytes, sizes)[:, 0]
        regrets += regrets_over(latency_us, latency_us.min())
    return RangeSize(first, last, int(sizes[regrets.argmin()]))
