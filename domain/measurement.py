"""Raw measurements and what is fitted from them."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from domain.errors import UnreadableTrace
from domain.pipeline import MAX_MESSAGE_BYTES, Pipeline, Stage
from domain.solution import Notice


@dataclass(frozen=True, slots=True)
class DirectSample:
    """Stage times (µs), one per stage, of one unpipelined message."""

    message_bytes: int
    repetition: int
    stage_us: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class DirectTrace:
    """Per-stage times of unpipelined messages (Wang98 sec. 5.2: direct measurement).

    Raises UnreadableTrace for times that are negative or not finite, and sizes out of range.
    """

    stage_names: tuple[str, ...]
    samples: tuple[DirectSample, ...]

    def __post_init__(self) -> None:
        if not self.stage_names:
            raise UnreadableTrace("expected at least one stage column", field="measurements")
        for sample in self.samples:
            if not 1 <= sample.message_bytes <= MAX_MESSAGE_BYTES:
                raise UnreadableTrace(
                    f"expected 1 <= message_bytes <= {MAX_MESSAGE_BYTES}", field="measurements"
                )
            if len(sample.stage_us) != len(self.stage_names):
                raise UnreadableTrace("expected one time per stage", field="measurements")
            if not all(isfinite(time) and time >= 0.0 for time in sample.stage_us):
                raise UnreadableTrace("expected finite times >= 0", field="measurements")


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
        return Stage.of_line(
            self.name, overhead_us=self.overhead_us, ns_per_byte=self.ns_per_byte
        )


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
