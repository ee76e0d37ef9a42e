"""Raw measurements and what is fitted from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from domain.errors import UnreadableTrace
from domain.pipeline import MAX_MESSAGE_BYTES, MAX_OVERHEAD_US, Pipeline, Stage
from domain.solution import Notice

MAX_TIME_US = MAX_OVERHEAD_US
_FIELD = "measurements"


@dataclass(frozen=True, slots=True)
class DirectTrace:
    """Per-stage times of unpipelined messages (Wang98 sec. 5.2: direct measurement), by column.

    Row r is one measured message: `message_bytes[r]`, `repetitions[r]` and, for every stage j,
    `stage_us[j][r]` in µs. Columns, because a trace may have millions of rows. Raises
    UnreadableTrace for times that are negative or not finite, and for sizes out of range.
    """

    stage_names: tuple[str, ...]
    message_bytes: Sequence[int]
    repetitions: Sequence[int]
    stage_us: tuple[Sequence[float], ...]

    def __post_init__(self) -> None:
        if not self.stage_names or len(self.stage_us) != len(self.stage_names):
            raise UnreadableTrace("expected one column per stage, at least one", field=_FIELD)
        rows = len(self.message_bytes)
        if rows == 0:
            raise UnreadableTrace("expected at least one measured row", field=_FIELD)
        if any(len(column) != rows for column in (self.repetitions, *self.stage_us)):
            raise UnreadableTrace("expected columns of the same length", field=_FIELD)
        if not 1 <= min(self.message_bytes) <= max(self.message_bytes) <= MAX_MESSAGE_BYTES:
            raise UnreadableTrace(
                f"expected 1 <= message_bytes <= {MAX_MESSAGE_BYTES}", field=_FIELD
            )
        for column in self.stage_us:
            if (
                not all(map(isfinite, column))
                or not 0.0 <= min(column) <= max(column) <= MAX_TIME_US
            ):
                raise UnreadableTrace(f"expected times from 0 to {MAX_TIME_US:g} µs", field=_FIELD)

    def __len__(self) -> int:
        """How many messages were measured."""
        return len(self.message_bytes)


@dataclass(frozen=True, slots=True)
class StageFit:
    """One stage's fitted line with its uncertainty; intervals are 95 %, (low, high).

    Where an estimate came out negative it was clipped to 0 and `clipped` says which one.
    """

    name: str
    overhead_us: float
    ns_per_byte: float
    overhead_std_error_us: float
    ns_per_byte_std_error: float
    overhead_us_interval: tuple[float, float]
    ns_per_byte_interval: tuple[float, float]
    residual_std_us: float
    r_squared: float
    num_samples: int
    clipped: tuple[str, ...] = ()

    def to_stage(self) -> Stage:
        """The stage that this fit describes."""
        return Stage.of_line(self.name, overhead_us=self.overhead_us, ns_per_byte=self.ns_per_byte)


@dataclass(frozen=True, slots=True)
class PipelineFit:
    """The fit of a whole trace: its stages, what the reader understood, and what to beware of."""

    kind: str
    method: str
    stages: tuple[StageFit, ...]
    understood: tuple[tuple[str, str], ...]
    notices: tuple[Notice, ...] = ()

    def to_pipeline(self) -> Pipeline:
        """The pipeline of the fitted stages."""
        return Pipeline(tuple(stage.to_stage() for stage in self.stages))
