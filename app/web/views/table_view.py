"""A compiled table on a page of its own: what is proven, and where it misses its tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.text.numbers import format_count, format_gap, format_percent
from app.web.views.table_work import missed_words, range_text, range_words

Document = Mapping[str, Any]


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
    def of(cls, document: Document, *, is_active: bool) -> TableView:
        """Of a TableOut whose table belongs to a profile."""
        profile, lines = document["profile"], document["missed"]
        more = document["missed_total"] - len(lines)
        return cls(
            reference=f"{profile['name']}@{profile['revision']}",
            digest=document["digest"],
            range=range_words(document),
            tolerance=format_percent(document["relative_gap"]),
            worst=_worst(document["worst"]),
            worst_repeat=_worst(document["worst_repeat"]),
            entries=f"{format_count(document['cut_entries'])} cuts, "
            f"{format_count(document['repeat_entries'])} repeated sizes",
            missed=missed_words(document),
            lines=tuple(_missed(one) for one in lines),
            more=format_count(more) if more else "",
            warnings=tuple(one["detail"] for one in document["warnings"]),
            is_active=is_active,
        )


def _missed(one: Document) -> MissedLine:
    return MissedLine(range_text(one), format_gap(one["relative_gap"]))


def _worst(one: Document) -> str:
    return f"{format_gap(one['relative_gap'])}, at {range_text(one)}"
