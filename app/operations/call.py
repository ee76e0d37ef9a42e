"""What a worker is sent of most verbs: a function that it imports, and the question for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from app.operations.operation import Report

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A function of a module, and the question that it is given.

    `reports` names what of the report it is given behind that, in this order: steps, best.
    """

    function: Callable[..., T]
    question: object
    reports: tuple[str, ...] = ()

    def run(self, report: Report) -> T:
        """Call it. Raises what it raises."""
        return self.function(self.question, *(getattr(report, name) for name in self.reports))
