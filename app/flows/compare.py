"""A table of what each strategy gives on each message size of one pipeline or aggregate."""

from __future__ import annotations

from dataclasses import dataclass, field

from analysis.comparison import Cell
from app.flows.questions import DEFAULT_RELATIVE_GAP, DEFAULT_TIME_LIMIT_S, check_static_bytes
from app.flows.solve_message import FindRevision
from domain.errors import InconsistentInput
from domain.model import CostModel
from domain.problem import FragmentLimits
from domain.profile import ProfileReference, ProfileRevision
from domain.solution import Strategy

MAX_CELLS = 1_000  # message sizes x strategies in one comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What to compare. `time_limit_s` is for the entire table. Raises InvalidInput."""

    source: CostModel | ProfileReference
    message_bytes: tuple[int, ...]
    strategies: tuple[Strategy, ...]
    static_bytes: int | None = None
    limits: FragmentLimits = field(default_factory=FragmentLimits)
    allow_refragmentation: bool = False
    relative_gap: float = DEFAULT_RELATIVE_GAP
    time_limit_s: float = DEFAULT_TIME_LIMIT_S

    def __post_init__(self) -> None:
        if len(self.message_bytes) * len(self.strategies) > MAX_CELLS:
            raise InconsistentInput(
                f"expected message sizes x strategies <= {MAX_CELLS} in one comparison",
                field="message_bytes",
            )
        if self.static_bytes is not None or Strategy.STATIC in self.strategies:
            wanted = Strategy.STATIC if Strategy.STATIC in self.strategies else Strategy.AUTO
            check_static_bytes(wanted, self.static_bytes)


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """The rows by message size, then in the order of the strategies asked for."""

    model: CostModel
    profile: ProfileRevision | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Resolved:
    """A comparison whose model is known, and the profile it came from."""

    comparison: Comparison
    model: CostModel
    profile: ProfileRevision | None


def resolve(comparison: Comparison, find_revision: FindRevision) -> Resolved:
    """Find the model. Raises NotFound."""
    if not isinstance(comparison.source, ProfileReference):
        return Resolved(comparison, comparison.source, None)
    revision = find_revision(comparison.source)
    profile = ProfileRevision(revision.profile, revision.number)
    return Resolved(comparison, revision.model, profile)
