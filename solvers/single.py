"""One fragment: the whole message at once.

Source    theory.md sec. 2.
Notation  B: message.
Cost      O(1).
Exact     where no overhead is worth paying twice; always for a pipeline of one stage.
Traps     a greatest size below the message forbids it.
"""

from __future__ import annotations

from domain.errors import StrategyDeclined
from domain.problem import MessageProblem
from domain.solution import Strategy
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec


def run(problem: MessageProblem, options: SolveOptions, deadline: Deadline) -> Candidate:
    """The message as one fragment. Raises StrategyDeclined where a greatest size forbids it."""
    if problem.count_range().least > 1:
        raise StrategyDeclined(
            f"single needs a fragment of all {problem.message_bytes} bytes, and "
            f"max_fragment_bytes allows {problem.limits.max_fragment_bytes}",
            field="strategy",
        )
    size = problem.message_bytes
    return Candidate((size,), (float(size),))


SPEC = StrategySpec(
    name=Strategy.SINGLE,
    run=run,
    needs="a message no larger than the greatest fragment size",
    optimal_when="the pipeline has one stage, or splitting never repays an overhead",
)
