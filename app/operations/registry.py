"""A durable job's request, read again by whoever runs it: the operation of its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from app.operations.audits import requested_audit
from app.operations.compare import requested_compare
from app.operations.exports import requested_export
from app.operations.operation import Operation, OperationKind
from app.operations.optimize import requested_optimize
from app.operations.tables import requested_table

if TYPE_CHECKING:
    from app.settings import Settings
    from models.session import UnitOfWork

Prepare: TypeAlias = Callable[[bytes, "UnitOfWork", "Settings"], Operation[Any]]

_PREPARE: dict[OperationKind, Prepare] = {
    OperationKind.OPTIMIZE: requested_optimize,
    OperationKind.COMPARE: requested_compare,
    OperationKind.TABLE: requested_table,
    OperationKind.EXPORT: requested_export,
    OperationKind.AUDIT: requested_audit,
}


def prepare_request(
    kind: str, request: bytes, unit: UnitOfWork, settings: Settings
) -> Operation[Any]:
    """Return the operation that a stored request asks for.

    Raises what its checks raise: NotFound for what was deleted since, InvalidInput, what a fit
    does; ValueError for a kind that is no job's.
    """
    return _PREPARE[OperationKind(kind)](request, unit, settings)
