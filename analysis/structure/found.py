"""A structure as it is found, by the places of its stages."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.replay import Rules
from domain.structure import StructureKind

NEVER = 0.02  # a rule may be broken by so many begins


@dataclass(frozen=True, slots=True)
class Found:
    """A structure by the places of its stages."""

    kind: StructureKind
    rules: Rules
    return_us: float = 0.0
    late: float = 0.0
    left: float = 0.0
    reason: str = ""
