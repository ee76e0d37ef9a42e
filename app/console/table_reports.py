"""What is told of a compiled plan table, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.console.reports import warning_parts
from app.console.screen import Column, Facts, Grid, Part
from app.text.numbers import format_count, format_gap
from app.text.units import format_time
from domain.units import format_bytes

_MOST_ROWS = 12
_DIGITS = 16  # of a digest: enough to name a table by


def table_parts(document: Mapping[str, Any]) -> Iterator[Part]:
    """The certificate, the numbers of fragments, and where the tolerance is missed."""
    yield f"messages of {_span(document['least_bytes'], document['greatest_bytes'])}{_of(document)}"
    yield ""
    yield Facts(tuple(_facts(document)))
    yield ""
    yield "Fragments by message size:"
    yield _counts_table(document)
    if document["missed"]:
        yield ""
        yield "Where the tolerance is not proven:"
        yield _missed_table(document)
    yield ""
    yield from warning_parts(document)


def tables_table(document: Mapping[str, Any]) -> Grid:
    """A profile's compiled tables, newest first."""
    columns = (
        Column("revision"),
        Column("", is_number=False),
        Column("messages", is_number=False),
        Column("tolerance"),
        Column("created", is_number=False),
        Column("digest", is_number=False),
    )
    rows = [
        (
            str(one["profile"]["revision"]),
            "active" if one["active"] else "",
            _span(one["least_bytes"], one["greatest_bytes"]),
            format_gap(one["relative_gap"]),
            one["created_at"][:19],
            one["digest"][:_DIGITS],
        )
        for one in document["items"]
    ]
    return Grid(columns, tuple(rows))


def _facts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    asked = format_gap(document["relative_gap"])
    yield "tolerance", asked
    yield "schedules", f"at most {_worst(document['worst'])} above the bound over every cut"
    yield (
        "repeated sizes",
        f"at most {_worst(document['worst_repeat'])} above the bound over every repeated size",
    )
    cuts, repeats = (format_count(document[name]) for name in ("cut_entries", "repeat_entries"))
    yield "entries", f"{cuts} cuts, {repeats} repeated sizes"
    yield "file", f"{format_count(document['file_bytes'])} bytes, SHA-256 {document['digest']}"
    yield "compiled", f"{document['created_at']}, in {format_time(1e3 * document['compile_ms'])}"


def _worst(one: Mapping[str, Any]) -> str:
    return f"{format_gap(one['relative_gap'])} ({_span(one['from_bytes'], one['to_bytes'])})"


def _of(document: Mapping[str, Any]) -> str:
    profile = document["profile"]
    return f", profile {profile['name']}@{profile['revision']}" if profile else ""


def _counts_table(document: Mapping[str, Any]) -> Grid:
    columns = (Column("messages", is_number=False), Column("fragments"))
    rows = [
        (_span(run["from_bytes"], run["to_bytes"]), format_count(run["fragments"]))
        for run in document["counts"]
    ]
    return Grid(columns, _shortened(rows, document["counts_total"]))


def _missed_table(document: Mapping[str, Any]) -> Grid:
    columns = (Column("messages", is_number=False), Column("proven"))
    rows = [
        (_span(one["from_bytes"], one["to_bytes"]), format_gap(one["relative_gap"]))
        for one in document["missed"]
    ]
    return Grid(columns, _shortened(rows, document["missed_total"]))


def _shortened(rows: Sequence[tuple[str, str]], total: int) -> tuple[tuple[str, str], ...]:
    if total <= _MOST_ROWS:
        return tuple(rows)
    return (*rows[:_MOST_ROWS], (f"… {total - _MOST_ROWS} more", ""))


def _span(least: int, greatest: int) -> str:
    if least == greatest:
        return format_bytes(least)
    return f"{format_bytes(least)} … {format_bytes(greatest)}"
