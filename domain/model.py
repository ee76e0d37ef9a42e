"""What a message crosses, as far as it is known: the interface that every kind of model has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from domain.pipeline import Stage

Cost: TypeAlias = Stage | tuple[Stage, ...]


class CostModel(Protocol):
    """What any cut of a message costs. Values are frozen, compared and hashed by their costs.

    Another kind is a class of its own, with a problem (`domain.problem.PROBLEMS`), a way to be read
    from the store (`models.documents`) and a backend that solves it (`solvers.backends`).
    """

    @property
    def kind(self) -> str:
        """The name of this kind in stored documents and in the registries."""

    @property
    def delay_us(self) -> float:
        """A constant part of every latency, in µs."""

    @property
    def stages(self) -> tuple[Stage, ...] | None:
        """The stages in order, or None where they are not distinguished."""

    @property
    def premise(self) -> str:
        """What is taken for granted because nobody has said it; "" where nothing is."""

    @property
    def range_ends(self) -> tuple[int, ...]:
        """Sizes in bytes at which a cost passes to its next range, ascending."""

    def costs(self) -> Mapping[str, Cost]:
        """Return all that costs time but the delay, by name: stored, and digested."""

    def words(self) -> Mapping[str, object]:
        """Return what else the model consists of, as plain values by name, stored and digested too;
        what is not said is left out, so that what is stored of such questions is found again.
        """

    def latency_us(self, fragment_bytes: Sequence[float]) -> float:
        """Return the latency of this cut in µs, the delay included: the most that it can take."""

    def equal_us(self, fragment_bytes: float, count: int) -> float:
        """Return the latency in µs of `count` fragments of this (real) size, without the delay."""
