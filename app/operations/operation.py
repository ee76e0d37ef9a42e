"""The shape of everything that may take long: prepared from the store, run anywhere, kept.

    prepare(kind, request, unit, settings) -> Operation     reads the store, checks, finds digests
    operation.run(report)                  -> result        pure, in a worker process or here
    operation.keep(unit, result)           -> Outcome       the only step that writes

A request that waits submits the operation, awaits it, and cancels it when its client goes away. A
durable job is the operation's `kind` and `request` in the ledger, prepared again by whichever
runner claims it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from app.execution.engine import Pool
from app.settings import VERSION

if TYPE_CHECKING:
    from domain.errors import SluiceError
    from models.session import UnitOfWork


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
P = TypeVar("P")


class OperationKind(StrEnum):
    """What an operation does; jobs store it."""

    OPTIMIZE = "optimize"
    COMPARE = "compare"
    TABLE = "table"
    EXPORT = "export"
    AUDIT = "audit"
    FIT = "fit"
    PLOT = "plot"
    DRAW = "draw"
    LAYER = "layer"
    HIDE = "hide"
    THRESHOLDS = "thresholds"
    CROSSOVER = "crossover"


class Report(Protocol):
    """What an operation reports while it runs; any of its threads may call it."""

    @property
    def files(self) -> Sequence[int]:
        """The descriptors of the operation's files, in the process that runs it."""

    def steps(self, done: int, total: int) -> None:
        """Report how far it is."""

    def best(self, result: object) -> None:
        """Report a complete result, better than those before; it counts after a cut-off."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was kept: the document that is the result, and what was stored where something was."""

    document: bytes
    answer_id: str | None = None
    table_digest: str | None = None
    hidden_id: str | None = None


@dataclass(frozen=True, slots=True)
class BestSoFar:
    """What a job shows of its best result so far."""

    document: bytes
    latency_us: float
    lower_bound_us: float


class Work(Protocol[T_co]):
    """What a worker is sent. Picklable."""

    def run(self, report: Report, /) -> T_co:
        """Compute the result. Pure: equal work gives equal results. Raises SluiceError."""
        ...


class Operation(Work[T], Protocol[T]):
    """A question with all its inputs at hand. Immutable; its `work` is picklable.

    `request` is the JSON that the ledger stores and `prepare` reads again; `digest` is equal
    exactly for operations of one result. `noun` names it in refusals. `time_s` is the limit after
    which it is cut off from outside. `files` are open descriptors of this process, which its worker
    reads as `report.files`.
    """

    @property
    def kind(self) -> OperationKind: ...

    @property
    def noun(self) -> str: ...

    @property
    def pool(self) -> Pool: ...

    @property
    def time_s(self) -> float: ...

    @property
    def request(self) -> bytes: ...

    @property
    def digest(self) -> str: ...

    @property
    def files(self) -> Sequence[int]: ...

    @property
    def stores(self) -> bool:
        """Whether `stored` and `keep` may write; else they are given a unit that only reads."""
        ...

    def stored(self, unit: UnitOfWork) -> Outcome | None:
        """Return the result where it is stored already and good enough, or made at once.

        The unit may write: a stored table that is asked for to be active becomes so here.
        """
        ...

    def run_here(self) -> T | None:
        """Return the result, where it is quick enough to be computed in this process; else None."""
        ...

    @property
    def work(self) -> Work[T]:
        """What a worker is sent to run: this operation, or the part of it that `run` needs."""
        ...

    def unreported(self) -> T | None:
        """Return the best so far where nothing was reported; None where there is none then."""
        ...

    def cut_off(self, best: T, why: SluiceError) -> T | None:
        """Return the best so far as a result that names the limit; None where there is none."""
        ...

    def best_so_far(self, result: T) -> BestSoFar | None:
        """Return what a job shows of this result; None stands for `Outcome.document`."""
        ...

    def keep(self, unit: UnitOfWork, result: T) -> Outcome:
        """Store what is to be stored, in this unit of work."""
        ...


class OperationDefaults(Generic[T]):
    """What is the same of most operations: nothing stored, no files, no partial results."""

    __slots__ = ()

    @property
    def pool(self) -> Pool:
        return Pool.LONG

    @property
    def files(self) -> Sequence[int]:
        return ()

    @property
    def stores(self) -> bool:
        return False

    def stored(self, unit: UnitOfWork) -> Outcome | None:
        return None

    def run_here(self) -> T | None:
        return None

    def unreported(self) -> T | None:
        return None

    def cut_off(self, best: T, why: SluiceError) -> T | None:
        return None

    def best_so_far(self, result: T) -> BestSoFar | None:
        return None


class PartDefaults(OperationDefaults[T]):
    """What is the same of all parts of a job, which are not asked for by themselves."""

    __slots__ = ()

    @property
    def request(self) -> bytes:
        """None."""
        return b""

    def keep(self, unit: UnitOfWork, result: T) -> Outcome:
        """Store nothing."""
        return Outcome(b"")


class Divisible(Operation[T], Protocol[T, P]):
    """An operation whose parts can run in several workers at once.

    The parts are a function of the operation alone, never of the number of workers, so that what
    joins them gives the same bytes as `run(report)`, but for how long it took.
    """

    def split(self) -> Sequence[Operation[P]]:
        """Return the parts, in their order; none where it is done as quickly in one."""
        ...

    def join(self, results: Sequence[P]) -> Operation[T]:
        """Return what makes the result of the whole of the parts'; here, where that is quick."""
        ...


# --- digests --------------------------------------------------------------------------------------


def digest_of(kind: OperationKind, *parts: object) -> str:
    """Return the SHA-256 in hexadecimal of the kind, these parts, and the program's version."""
    return hashlib.sha256("\n".join(map(repr, (VERSION, kind, *parts))).encode()).hexdigest()
