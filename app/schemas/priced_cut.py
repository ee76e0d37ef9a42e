"""What a cut takes where all stages are known together, and the slowest of them alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.questions.compare import PricedCut, Simulation
from app.schemas.base import Output, ProfileRevisionOut
from app.schemas.simulate import SimulateOut
from app.schemas.stages import AggregateOut
from app.text.numbers import format_count, format_sizes
from app.text.units import format_time
from domain.units import format_bytes


@dataclass(frozen=True)
class PricedCutOut(Output):
    """What a cut takes at most by the total and the bottleneck of an aggregate, and one piece."""

    message_bytes: int
    fragment_bytes: tuple[int, ...]
    latency_us: float
    one_piece_us: float
    aggregate: AggregateOut
    profile: ProfileRevisionOut | None

    @classmethod
    def of(cls, priced: PricedCut) -> PricedCutOut:
        """Return the same as it is sent."""
        return cls(
            priced.message_bytes,
            priced.fragment_bytes,
            priced.latency_us,
            priced.aggregate.latency_us((priced.message_bytes,)),
            AggregateOut.of(priced.aggregate),
            ProfileRevisionOut.of(priced.profile),
        )

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield labels and values, as a person reads them."""
        profile = self.profile
        of = f", profile {profile.name}@{profile.revision}" if profile else ""
        sizes = self.fragment_bytes
        most = "at most " if len(set(sizes)) > 1 else ""  # equal fragments take just that
        what = f"{format_bytes(self.message_bytes)} through a pipeline seen from outside"
        yield "message", f"{what}{of}"
        yield "fragments", f"{format_count(len(sizes))}: {format_sizes(sizes)} bytes"
        yield "latency", f"{most}{format_time(self.latency_us)}"
        yield "one piece", format_time(self.one_piece_us)


def simulated(found: Simulation | PricedCut) -> SimulateOut | PricedCutOut:
    """Return what a cut takes as it is sent."""
    return PricedCutOut.of(found) if isinstance(found, PricedCut) else SimulateOut.of(found)
