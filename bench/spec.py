"""What a benchmark is and what it returns: frozen values, ready for JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

Cell: TypeAlias = str | float | int | None
T = TypeVar("T")
Workload: TypeAlias = Callable[[], AbstractContextManager[Callable[[], object]]]


@dataclass(frozen=True, slots=True)
class Effort:
    """How thorough a run is: "full" is kept under version control, "quick" takes seconds."""

    name: str

    def pick(self, full: T, *, quick: T) -> T:
        """The value for this effort."""
        return quick if self.name == "quick" else full


FULL = Effort("full")
QUICK = Effort("quick")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under column names; the first column labels the row, ratios come next.

    Details are in the stored result alone, and not on the page of all benchmarks.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_detail: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """A figure with a target: met where value <= limit (or >=, where `at_least` is the rule)."""

    what: str
    value: float
    limit: float
    unit: str
    rule: str = "at most"

    @property
    def met(self) -> bool:
        """Whether the figure keeps to its target."""
        return self.value >= self.limit if self.rule == "at least" else self.value <= self.limit


@dataclass(frozen=True, slots=True)
class CaseResult:
    """All that one case found."""

    tables: tuple[Table, ...]
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BenchSpec:
    """A benchmark: `run` measures, `workloads` are what `profile` looks into.

    A workload is a context in which there is a call to be profiled.
    """

    name: str
    title: str
    about: str
    run: Callable[[Effort], CaseResult]
    workloads: Mapping[str, Workload]
