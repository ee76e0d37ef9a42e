"""What contract/table.py declares, as the domain has it: what a table is for."""

from __future__ import annotations

from app.questions.tables import TableQuestion, TableScope
from app.schemas.base import dump_json, read_request
from app.schemas.stages import constraints_out, limits_of
from contract.jobs import TableJobIn
from contract.table import TableIn, TableOut
from domain.errors import InconsistentInput
from domain.units import format_byte_range


def scope_of(asked: TableIn) -> TableScope:
    """Return what the table is for. Raises InconsistentInput for a range that is none."""
    if asked.max_message_bytes < asked.min_message_bytes:
        raise InconsistentInput(
            "expected min_message_bytes <= max_message_bytes", field="max_message_bytes"
        )
    return TableScope(
        limits_of(asked.constraints),
        asked.min_message_bytes,
        asked.max_message_bytes,
        asked.relative_gap,
        asked.time_limit_s,
    )


def format_table_range(range: TableIn | TableOut) -> str:
    """Return the messages of a table."""
    return format_byte_range(range.min_message_bytes, range.max_message_bytes)


def title(request: bytes) -> str:
    """Return what a job of this request is called."""
    asked = read_request(TableJobIn, request)
    return f"Compiling {format_table_range(asked)} for {asked.profile}"


def request_of(question: TableQuestion, *, activate: bool | None) -> bytes:
    """Return a TableJobIn as JSON; the question has a profile."""
    scope, profile = question.scope, question.profile
    assert profile is not None
    return dump_json(
        {
            "min_message_bytes": scope.min_message_bytes,
            "max_message_bytes": scope.max_message_bytes,
            "relative_gap": scope.relative_gap,
            "constraints": constraints_out(scope.limits),
            "time_limit_s": scope.time_limit_s,
            "profile": f"{profile.name}@{profile.revision}",
            "activate": activate,
        }
    )
