# analysis/curve.py
"""Curves: the latency of messages of every power of two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import solvers
from domain.model import CostModel
from domain.problem import FragmentLimits, problem_of

Curve = tuple[tuple[int, float], ...]  # bytes and µs


@dataclass(frozen=True, slots=True)
class CurveQuestion:
    """What messages cross, and the largest of them."""

    model: CostModel
    max_message_bytes: int


def curve(question: CurveQuestion, on_step: Callable[[int, int], None]) -> Curve:
    """Return the least latency of each message, solved one after the other; O(solves).

    Raises what `solvers.solve` does.
    """
    found = []
    sizes = [2**power for power in range(question.max_message_bytes.bit_length())]
    for done, message_bytes in enumerate(sizes, start=1):
        problem = problem_of(question.model, message_bytes, FragmentLimits())
        found.append((message_bytes, solvers.solve(problem).latency_us))
        on_step(done, len(sizes))
    return tuple(found)
