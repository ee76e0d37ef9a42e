"""Stored tables as they are sent: listed, activated, and with what was measured since."""

from __future__ import annotations

from dataclasses import replace

from analysis.transferred import TransfersSay
from app.questions.tables import (
    MeasuredModel,
    TablePage,
    TableQuestion,
    transfers_of_table,
)
from app.schemas.base import (
    dump_json,
    notices_out,
    read_output,
    timestamp,
)
from app.schemas.settings_in_draws import measured_settings
from app.schemas.stages import constraints_out, limits_of
from contract.profile import ProfileRevisionOut
from contract.table import (
    TableOut,
    TablesOut,
    TableSummaryOut,
)
from domain.model import CostModel
from domain.solution import Notice
from domain.verification import Against, said_of
from models.records import TableRecord, TableSummary


def table_summary_out(summary: TableSummary, against: Against | None) -> TableSummaryOut:
    """Return what a page shows of a profile's table, and what was measured of its revision."""
    said = said_of(against)
    name, revision = summary.profile_name, summary.profile_revision
    assert name is not None
    assert revision is not None
    return TableSummaryOut(
        digest=summary.digest,
        created_at=timestamp(summary.created_at),
        profile=ProfileRevisionOut(name, revision),
        min_message_bytes=summary.min_message_bytes,
        max_message_bytes=summary.max_message_bytes,
        relative_gap=summary.relative_gap,
        constraints=constraints_out(summary.limits),
        fragment_cap=summary.fragment_cap,
        worst_relative_gap=summary.worst_gap,
        file_bytes=summary.file_bytes,
        active=summary.is_active,
        warnings=notices_out(() if said is None else (said,)),
    )


def tables_out(page: TablePage) -> TablesOut:
    """Return a page of a profile's tables as it is sent."""
    against = page.against
    items = (
        table_summary_out(summary, against.get(summary.profile_revision))
        for summary in page.summaries
    )
    return TablesOut(tuple(items), page.after)


def said_now(document: bytes, model: CostModel, against: Against) -> bytes:
    """Return a TableOut as JSON with what was measured of its revision until now."""
    table = read_output(TableOut, document)
    between = table.min_message_bytes, table.max_message_bytes
    limits, cap = limits_of(table.constraints), table.fragment_cap
    say = transfers_of_table(against, model, between, limits, fragment_cap=cap)
    return _said_first(table, against.notice(), say)


def activated(record: TableRecord, measured: MeasuredModel | None) -> bytes:
    """Return the TableOut of a table that lookups answer from now, as JSON."""
    return record.document if measured is None else said_now(record.document, *measured)


def said_first(document: bytes, question: TableQuestion) -> bytes:
    """Return a TableOut as JSON with what transfers say of the profile now: that stands before its
    other warnings, and decides in the place of the draws.
    """
    if question.said is None:
        return document
    return _said_first(read_output(TableOut, document), question.said, question.transfers)


def _said_first(table: TableOut, said: Notice, say: TransfersSay | None) -> bytes:
    known = table.uncertainty
    if known is not None and say is not None:
        known = measured_settings(known, say)
    warnings = (*notices_out((said,)), *table.warnings)
    return dump_json(replace(table, warnings=warnings, uncertainty=known))
