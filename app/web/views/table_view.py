"""A compiled table on a page of its own: what is proven, and where it misses its tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.console.words import gap_text
from app.web.views.table_work import missed_words, range_text, range_words
from app.web.words import grouped, share

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
            tolerance=share(document["relative_gap"]),
            worst=_worst(document["worst"]),
            worst_repeat=_worst(document["worst_repeat"]),
            entries=f"{grouped(document['cut_entries'])} cuts, "
            f"{grouped(document['repeat_entries'])} repeated sizes",
            missed=missed_words(document),
            lines=tuple(_missed(one) for one in lines),
            more=grouped(more) if more else "",
            warnings=tuple(one["detail"] for one in document["warnings"]),
            is_active=is_active,
        )


def _missed(one: Document) -> MissedLine:
    return MissedLine(range_text(one), gap_text(one["relative_gap"]))


def _worst(one: Document) -> str:
    return f"{gap_text(one['relative_gap'])}, at {range_text(one)}"
