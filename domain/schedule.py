"""Schedules of one cut shared by all stages, and the evaluator of their latency.

The recurrence (Wang98 eq. 1-3): a fragment enters a stage when it has left the stage before it and
when the fragment before it has left this stage. Plain Python on purpose: every latency that Sluice
shows is recomputed here, and the fast kernels are tested to be equal to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from contract.limits import MAX_MESSAGE_BYTES
from domain.errors import InvalidInput
from domain.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Schedule:
    """Fragment sizes in whole bytes, in sending order. Raises InvalidInput."""

    fragment_bytes: tuple[int, ...]

    def __post_init__(self) -> None:
        check_sizes(self.fragment_bytes)

    @property
    def fragments(self) -> int:
        """How many fragments there are."""
        return len(self.fragment_bytes)

    @property
    def message_bytes(self) -> int:
        """The size of the message that this schedule cuts."""
        return sum(self.fragment_bytes)


@dataclass(frozen=True, slots=True)
class FragmentTimes:
    """When each fragment is in each stage. Matrices are (k, n): fragment first, stage second.

    `start_us` and `exit_us` leave out the pipeline's constant delay; `latency_us` contains it.
    """

    start_us: tuple[tuple[float, ...], ...]
    exit_us: tuple[tuple[float, ...], ...]
    delay_us: float

    @property
    def latency_us(self) -> float:
        """Time of the whole message, the delay included."""
        return self.exit_us[-1][-1] + self.delay_us

    def busy_us(self) -> tuple[float, ...]:
        """Return the total time that each stage is occupied, (n,)."""
        columns = range(len(self.exit_us[0]))
        rows = range(len(self.exit_us))
        return tuple(sum(self.exit_us[i][j] - self.start_us[i][j] for i in rows) for j in columns)

    def critical_path(self) -> tuple[tuple[int, int], ...]:
        """Return (fragment, stage) pairs of a longest path, first to last.

        Of two equal predecessors the one in the same stage is taken: it shows the queue.
        """
        i, j = len(self.exit_us) - 1, len(self.exit_us[0]) - 1
        path = [(i, j)]
        while i or j:
            same_stage = self.exit_us[i - 1][j] if i else -1.0
            stage_before = self.exit_us[i][j - 1] if j else -1.0
            if same_stage >= stage_before:
                i -= 1
            else:
                j -= 1
            path.append((i, j))
        return tuple(reversed(path))


def check_sizes(fragment_bytes: Sequence[int]) -> None:
    """Raise InvalidInput unless these are one or more positive whole sizes."""
    if not fragment_bytes:
        raise InvalidInput("expected at least one fragment", field="fragment_bytes")
    if any(kind is bool or not issubclass(kind, int) for kind in set(map(type, fragment_bytes))):
        raise InvalidInput("expected whole fragment sizes", field="fragment_bytes")
    if min(fragment_bytes) < 1:
        raise InvalidInput("expected fragment sizes of at least 1 byte", field="fragment_bytes")
    if sum(fragment_bytes) > MAX_MESSAGE_BYTES:
        raise InvalidInput(
            f"expected fragments that sum to at most {MAX_MESSAGE_BYTES} bytes",
            field="fragment_bytes",
        )


def latency_us(pipeline: Pipeline, fragment_bytes: Sequence[float]) -> float:
    """Return the latency T of this cut in µs, the constant delay included (Wang98 eq. 1-3)."""
    return pipeline.latency_us(fragment_bytes)


def serial_us(pipeline: Pipeline, levels: Sequence[Sequence[int]]) -> float:
    """Return what a cut takes in µs where stages work one after another, not at the same time: what
    all its fragments take in all stages, the constant delay included.

    `levels` is one cut for all stages, or one for each. It is what the stages take as one, of the
    sum of their costs.
    """
    cuts = tuple(levels) * len(pipeline) if len(levels) == 1 else levels
    of_stages = zip(pipeline.stages, cuts, strict=True)
    return pipeline.delay_us + sum(sum(map(stage.time_us, cut)) for stage, cut in of_stages)


def simulate(pipeline: Pipeline, fragment_bytes: Sequence[int]) -> FragmentTimes:
    """Return every (fragment, stage) interval of this cut. Raises InvalidInput for sizes that are
    none.
    """
    check_sizes(fragment_bytes)
    starts: list[tuple[float, ...]] = []
    exits: list[tuple[float, ...]] = []
    free_us = [0.0] * len(pipeline)
    for size in fragment_bytes:
        ready_us, row = 0.0, []
        for j, stage in enumerate(pipeline.stages):
            start_us = max(ready_us, free_us[j])
            ready_us = free_us[j] = start_us + stage.time_us(size)
            row.append(start_us)
        starts.append(tuple(row))
        exits.append(tuple(free_us))
    return FragmentTimes(tuple(starts), tuple(exits), pipeline.delay_us)


def busiest_stage(pipeline: Pipeline, fragment_bytes: Sequence[int]) -> int:
    """Return the index of the stage occupied longest by this cut; the first one of equals."""
    busy = [0.0] * len(pipeline)
    for size in fragment_bytes:
        for stage, time_us in enumerate(pipeline.times_us(size)):
            busy[stage] += time_us
    return busy.index(max(busy))
