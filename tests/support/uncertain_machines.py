"""Machines whose costs are not known exactly, for tests."""

from __future__ import annotations

from hypothesis import strategies as st

from domain.machine import Machine, StageRules, Window
from domain.pipeline import FitRange, Pipeline, Stage
from domain.uncertainty import UncertainMachine, stated_model

MIB = 2**20
costs = st.sampled_from((0.0, 0.5, 1.0, 3.0)) | st.floats(0.01, 50.0, allow_subnormal=False)


@st.composite
def _stages(draw: st.DrawFn, name: str) -> Stage:
    ends = sorted(draw(st.sets(st.integers(50, 3000), max_size=1)))
    ranges = tuple(FitRange(draw(costs), draw(costs), end) for end in (*ends, None))
    return Stage(name, ranges)


@st.composite
def _rules(draw: st.DrawFn, stage: Stage) -> StageRules:
    lanes = draw(st.sampled_from((1, 1, 2, 3, 5)))
    least = min(part.ns_per_byte for part in stage.ranges)
    shared = draw(st.sampled_from((0.0, 0.0, 0.25, 1.0))) * least if lanes > 1 else 0.0
    return StageRules(lanes, shared, draw(st.sampled_from((0.0, 0.0, 2.5, 40.0))))


@st.composite
def _windows(draw: st.DrawFn, stages: int) -> Window:
    first = draw(st.integers(0, stages - 1))
    last = draw(st.integers(first, stages - 1))
    fragments = draw(st.none() | st.integers(1, 6))
    needs_bytes = fragments is None or draw(st.booleans())
    held = draw(st.integers(9000, 40_000)) if needs_bytes else None
    return Window(first, last, fragments, held, draw(st.sampled_from((0.0, 3.0, 20.0))))


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """One to four stages with lanes, delays, a processor in some, and up to two windows. Every
    window of bytes holds a fragment of 9000.
    """
    number = draw(st.integers(1, 4))
    stages = [draw(_stages(f"s{j}")) for j in range(number)]
    rules = [draw(_rules(stage)) for stage in stages]
    if number > 1 and draw(st.integers(0, 3)) == 0:
        pair = sorted(draw(st.sets(st.integers(0, number - 1), min_size=2, max_size=2)))
        for j in pair:
            rules[j] = StageRules(delay_us=rules[j].delay_us, processor="core")
    windows = draw(st.lists(_windows(number), max_size=2))
    delay_us = draw(st.sampled_from((0.0, 7.5)))
    return Machine(Pipeline(tuple(stages), delay_us), tuple(rules), tuple(windows))


@st.composite
def uncertain_machines(draw: st.DrawFn) -> UncertainMachine:
    """The same, each cost known to some deviation."""
    found = stated_model(draw(machines()), draw(st.sampled_from((0.0, 0.05, 0.4, 1.0))))
    assert isinstance(found, UncertainMachine)
    return found


def line(name: str, overhead_us: float, ns_per_byte: float) -> Stage:
    """A stage of one line."""
    return Stage.of_line(name, overhead_us=overhead_us, ns_per_byte=ns_per_byte)


def s3_connections() -> Machine:
    """Ten connections over a shared uplink, 256 MiB of memory; docs/machines.md."""
    return Machine(
        Pipeline((line("read and hash", 200.0, 0.667), line("connection", 60_000.0, 11.1))),
        (StageRules(), StageRules(lanes=10, shared_ns_per_byte=0.8)),
        (Window(0, 1, bytes=256 * MIB),),
    )
