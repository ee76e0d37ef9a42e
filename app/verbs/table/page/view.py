"""A compiled table as its page shows it: its figures, and where it misses its tolerance."""

from __future__ import annotations

from dataclasses import dataclass

from app.text.numbers import format_size
from app.ui.html import as_html
from app.ui.parts import Facts
from app.verbs.table import show
from app.verbs.table.request import format_table_range
from contract.table import TableOut
from domain.verification import Against, said_of

_FILE = "file"  # which the page leads to


@dataclass(frozen=True, slots=True)
class TableView:
    """What table.html is given: `figures` and `ranges` are HTML."""

    reference: str
    digest: str
    range: str
    figures: str
    file: str
    missed: str
    ranges: str
    warnings: tuple[str, ...]
    is_active: bool
    said: str
    has_failed: bool

    @classmethod
    def from_table(cls, table: TableOut, against: Against | None, *, is_active: bool) -> TableView:
        said = said_of(against)
        pairs = tuple(pair for pair in show.figures(table).pairs if pair[0] != _FILE)
        ranges = [show.missed(table, most=len(table.missed))] if table.missed else []
        return cls(
            reference=table.profile.reference if table.profile else "",
            digest=table.digest,
            range=format_table_range(table),
            figures=as_html([Facts(pairs)]),
            file=format_size(table.file_bytes),
            missed=show.format_missed(table),
            ranges=as_html(ranges),
            warnings=tuple(notice.detail for notice in table.warnings),
            is_active=is_active,
            said=said.detail if said else "",
            has_failed=against is not None and against.has_failed,
        )
