"""What contract/table.py declares, as the domain has it: what a table is for."""

from __future__ import annotations

from app.questions.tables import TableScope
from app.schemas.stages import limits_of
from contract.table import TableIn
from domain.errors import InconsistentInput


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
