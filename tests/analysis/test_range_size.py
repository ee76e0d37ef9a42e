"""The one size for messages of a range: the best of all powers of two, tried one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analysis.range_size import range_size
from domain.pipeline import Pipeline, Stage
from domain.problem import FragmentLimits, problem_of
from domain.schedule import latency_us
from tests.support.records import a_pipeline, an_aggregate

costs = st.tuples(st.floats(0.0, 100.0), st.floats(0.001, 50.0))
MEASURED = (64, 2**20)


LIMITS = FragmentLimits()


def cut(size: int, message_bytes: int) -> tuple[int, ...]:
    whole, rest = divmod(message_bytes, size)
    return (size,) * whole + ((rest,) if rest else ())


@given(st.lists(costs, min_size=1, max_size=4), st.integers(2**10 + 1, 2**17))
def test_it_is_the_best_of_those_that_were_measured(
    lines: list[tuple[float, float]], message_bytes: int
) -> None:
    """In the mean over octaves, and the message itself, of the regret over the best of them."""
    pipeline = Pipeline(
        tuple(
            Stage.of_line(f"s{at}", overhead_us=overhead, ns_per_byte=per_byte)
            for at, (overhead, per_byte) in enumerate(lines)
        )
    )
    found = range_size(problem_of(pipeline, message_bytes, LIMITS), measured_bytes=MEASURED)
    assert found is not None
    assert (found.min_message_bytes, found.max_message_bytes) == (1024, message_bytes)
    sizes = [2**power for power in range(6, message_bytes.bit_length())]
    messages = [2**power for power in range(10, message_bytes.bit_length())]
    regrets = dict.fromkeys(sizes, 0.0)
    for shorter in dict.fromkeys((*messages, message_bytes)):
        times = {size: latency_us(pipeline, cut(min(size, shorter), shorter)) for size in sizes}
        for size in sizes:
            regrets[size] += times[size] / min(times.values()) - 1.0
    assert regrets[found.size_bytes] <= min(regrets.values()) + 1e-9


def test_limits_and_measured_sizes_are_kept() -> None:
    """None where no power of two keeps them for every message of the range."""
    limits = FragmentLimits(max_fragment_bytes=8192, alignment_bytes=512)
    problem = problem_of(an_aggregate(), 2**20, limits)
    found = range_size(problem, measured_bytes=(1000, 2**30))
    assert found is not None
    assert 1024 <= found.size_bytes <= 8192
    assert range_size(problem, measured_bytes=(2**14, 2**30)) is None
    assert range_size(problem_of(a_pipeline(), 1024, LIMITS), measured_bytes=MEASURED) is None
