"""A compiled table on a page of its own: what is proven, and where it misses its tolerance."""

from __future__ import annotations

from dataclasses import dataclass

from app.schemas.tables import GapRangeOut, TableOut
from app.text.numbers import format_count, format_gap, format_percent
from app.web.views.table_work import missed_words, range_text, range_words


@dataclass(frozen=True, slots=True)
class MissedLine:
    """Message sizes whose schedules are not proven to the tolerance."""

    range: str
    proven: str


@dataclass(frozen=True, slots=True)
class TableView:
    """What templates/profile_table.html is given. `more` is how many ranges are not listed."""

    reference: str
    digest: str
    range: str
    tolerance: str
    worst: str
    worst_repeat: str
    entries: str
    missed: str
    lines: tuple[MissedLine, ...]
    more: str
    warnings: tuple[str, ...]
    is_active: bool

    @classmethod
    def of(cls, table: TableOut, *, is_active: bool) -> TableView:
        """Of a TableOut whose table belongs to a profile."""
        lines = table.missed
        more = table.missed_total - len(lines)
        return cls(
            reference=table.profile.reference if table.profile else "",
            digest=table.digest,
            range=range_words(table),
            tolerance=format_percent(table.relative_gap),
            worst=_worst(table.worst),
            worst_repeat=_worst(table.worst_repeat),
            entries=f"{format_count(table.cut_entries)} cuts, "
            f"{format_count(table.repeat_entries)} repeated sizes",
            missed=missed_words(table),
            lines=tuple(_missed(one) for one in lines),
            more=format_count(more) if more else "",
            warnings=tuple(one.detail for one in table.warnings),
            is_active=is_active,
        )


def _missed(one: GapRangeOut) -> MissedLine:
    return MissedLine(range_text(one), format_gap(one.relative_gap))


def _worst(one: GapRangeOut) -> str:
    return f"{format_gap(one.relative_gap)}, at {range_text(one)}"
