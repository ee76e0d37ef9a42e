"""A constant fragment size, set by hand, which is what most libraries do; and the whole message.

Source    Wang98 sec. 3 (FM sends 128 bytes, GAM 4 KiB); theory.md sec. 2.
Notation  s: the size; B: message; floor(B/s) fragments of s, then what is left.
Cost      O(k).
Exact     a constant size never claims to be. One fragment is where no overhead is worth paying
          twice, and always for a pipeline of one stage.
Traps     the remainder may be smaller than the least size; then this s has no admitted cut. A
          greatest size below the message forbids one fragment.
"""

from __future__ import annotations

from domain.errors import InvalidInput, StrategyDeclined
from domain.problem import MessageProblem
from domain.solution import Strategy
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec


def run_static(problem: MessageProblem, options: SolveOptions, deadline: Deadline) -> Candidate:
    """Return fragments of `options.static_bytes`. Raises InvalidInput without it,
    StrategyDeclined.
    """
    if options.static_bytes is None:
        raise InvalidInput("the strategy static needs static_bytes", field="static_bytes")
    return Candidate(repeated_cut(problem, options.static_bytes))


def repeated_cut(problem: MessageProblem, size: int) -> tuple[int, ...]:
    """Return floor(B/s) fragments of s and the remainder. Raises StrategyDeclined, naming the
    limit.
    """
    full, rest = divmod(problem.message_bytes, size)
    if full == 0:
        full, size, rest = 1, problem.message_bytes, 0
    count = full + (rest > 0)
    refusal = _refusal(problem, size, rest, count)
    if refusal:
        raise StrategyDeclined(f"fragments of {size} bytes: {refusal}", field="static_bytes")
    return (size,) * full + ((rest,) if rest else ())


def _refusal(problem: MessageProblem, size: int, rest: int, count: int) -> str | None:
    """Which limit forbids this cut, in words; None where none does."""
    limits, counts = problem.limits, problem.count_range()
    if size > problem.largest_fragment_bytes:
        return f"max_fragment_bytes allows {limits.max_fragment_bytes}"
    if count > counts.maximum and counts.capped_by != "min_fragment_bytes":
        return f"{counts.capped_by} allows {counts.maximum} fragments, this needs {count}"
    if count > 1 and min(size, rest or size) < limits.min_fragment_bytes:
        return f"min_fragment_bytes {limits.min_fragment_bytes} is more than the least of them"
    if count > 1 and size % limits.alignment_bytes:
        return f"alignment_bytes {limits.alignment_bytes} does not divide the size"
    return None


STATIC = StrategySpec(
    name=Strategy.STATIC,
    run=run_static,
    needs="static_bytes, and limits that admit the cut it gives",
    optimal_when="only by coincidence; it is here to compare with",
)


def run_single(problem: MessageProblem, options: SolveOptions, deadline: Deadline) -> Candidate:
    """Return the message as one fragment. Raises StrategyDeclined where a greatest size forbids
    it.
    """
    if problem.count_range().minimum > 1:
        most = problem.largest_fragment_bytes
        what = "max_fragment_bytes" if problem.limits.max_fragment_bytes == most else "a window"
        raise StrategyDeclined(
            f"single needs a fragment of all {problem.message_bytes} bytes, and {what} allows "
            f"{most}",
            field="strategy",
        )
    size = problem.message_bytes
    return Candidate((size,), (float(size),))


SINGLE = StrategySpec(
    name=Strategy.SINGLE,
    run=run_single,
    needs="a message no larger than the greatest fragment size",
    optimal_when="the pipeline has one stage, or splitting never repays an overhead",
)
