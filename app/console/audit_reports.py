"""What an audit found, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.console.reports import warning_parts
from app.console.screen import Column, Facts, Grid, Part
from app.text.names import printable
from app.text.numbers import format_count, format_percent, format_proven_regret, format_regret
from app.text.units import format_time
from domain.units import format_bytes

Document = Mapping[str, Any]
_MOST_STEPS = 4


def audit_parts(document: Document) -> Iterator[Part]:
    """The regret over the mix, the verdict, the regret at powers of two, and what to change."""
    setting = document["setting"]
    yield f"{_words(setting['steps'])}{_of(document)}"
    yield ""
    yield Facts(tuple(_facts(document)))
    yield ""
    yield "By message size:"
    yield _powers(document["at_powers"])
    yield ""
    yield "What to change:"
    yield from (f"- {printable(change)}" for change in document["changes"])
    yield ""
    yield from warning_parts(document)
    if document["fit_warnings"]:
        yield f"note: the fit has {len(document['fit_warnings'])} warnings; sluice fit tells them"


def _facts(document: Document) -> Iterator[tuple[str, str]]:
    setting = document["setting"]
    worst = setting["worst"]
    yield "mean regret", f"{_span(setting['mean'])}, over {document['mix']['words']}"
    at = f"at {format_bytes(worst['message_bytes'])}, of {document['worst_of']} sizes"
    yield "worst regret", f"{_span(worst['regret'])}, {at}"
    yield "best size", _priced(document["best_size"])
    if document["best_ladder"]:
        yield "best ladder", _priced(document["best_ladder"])
    if document["best_repeats"] is not None:
        yield "size by look-up", f"mean {format_regret(document['best_repeats'])}"
    if document["verdict"]:
        yield "verdict", _verdict(document)


def _verdict(document: Document) -> str:
    of = f"the {document['objective']} regret"
    limit = (
        f"{'within' if document['is_kept'] else 'over'} {format_percent(document['max_regret'])}"
    )
    if document["verdict"] != "between":
        return f"{limit}: {of}"
    rule = {"best": "the best schedule found", "bound": "the proven bound"}[document["over"]]
    return f"{limit}, by {rule}, which decides: {of}"


def _powers(rows: list[Document]) -> Grid:
    columns = tuple(
        Column(heading)
        for heading in ("message", "fragments", "takes", "best", "at least", "at most")
    )
    return Grid(columns, tuple(map(_row, rows)))


def _row(row: Document) -> tuple[str, ...]:
    return (
        format_bytes(row["message_bytes"]),
        format_count(row["fragments"]),
        format_time(row["latency_us"]),
        format_time(row["best_us"]),
        format_regret(row["regret"]["at_least"]),
        format_proven_regret(row["regret"]["at_most"], row["regret"]["at_least"]),
    )


def _priced(priced: Document) -> str:
    mean, worst = priced["mean"]["at_least"], priced["worst"]["regret"]["at_least"]
    return f"{_words(priced['steps'])}: mean {format_regret(mean)}, worst {format_regret(worst)}"


def _words(steps: list[Document]) -> str:
    if len(steps) == 1:
        return _size(steps[0]["size_bytes"])
    shown = [
        f"from {format_bytes(step['from_bytes'])} {_size(step['size_bytes'])}"
        for step in steps[:_MOST_STEPS]
    ]
    more = len(steps) - len(shown)
    return ", ".join(shown) + (f" and {more} more steps" if more else "")


def _size(size_bytes: int | None) -> str:
    return "whole" if size_bytes is None else format_bytes(size_bytes)


def _of(document: Document) -> str:
    profile = document["profile"]
    return f", profile {profile['name']}@{profile['revision']}" if profile else ""


def _span(span: Document) -> str:
    least = format_regret(span["at_least"])
    most = format_proven_regret(span["at_most"], span["at_least"])
    return least if least == most else f"at least {least}, at most {most}"
