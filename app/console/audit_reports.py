"""What an audit found, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.console.reports import warning_parts
from app.console.screen import Column, Facts, Grid, Part
from app.console.words import printable, time_text
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
    yield "worst regret", f"{_span(worst['regret'])}, at {format_bytes(worst['message_bytes'])}"
    yield "best size", _priced(document["best_size"])
    if document["best_ladder"]:
        yield "best ladder", _priced(document["best_ladder"])
    if document["best_repeats"] is not None:
        yield "size by look-up", f"mean {_share(document['best_repeats'])}"
    if document["verdict"]:
        yield "verdict", _verdict(document)


def _verdict(document: Document) -> str:
    limit = f"the {document['objective']} regret, {_share(document['max_regret'])} allowed"
    if document["verdict"] == "within":
        return f"kept: {limit}"
    if document["verdict"] == "above":
        return f"not kept: {limit}"
    kept = "kept" if document["is_kept"] else "not kept"
    rule = {"best": "the best schedule found", "bound": "the proven bound"}[document["over"]]
    return f"{kept}, by {rule}, which decides: {limit}"


def _powers(rows: list[Document]) -> Grid:
    columns = tuple(
        Column(heading)
        for heading in ("message", "fragments", "takes", "best", "at least", "at most")
    )
    return Grid(columns, tuple(map(_row, rows)))


def _row(row: Document) -> tuple[str, ...]:
    return (
        format_bytes(row["message_bytes"]),
        str(row["fragments"]),
        time_text(row["latency_us"]),
        time_text(row["best_us"]),
        _share(row["regret"]["at_least"]),
        _share(row["regret"]["at_most"]),
    )


def _priced(priced: Document) -> str:
    mean, worst = priced["mean"]["at_least"], priced["worst"]["regret"]["at_least"]
    return f"{_words(priced['steps'])}: mean {_share(mean)}, worst {_share(worst)}"


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
    least, most = _share(span["at_least"]), _share(span["at_most"])
    return least if least == most else f"at least {least}, at most {most}"


def _share(share: float | None) -> str:
    if share is None:
        return "unbounded"
    return f"{share:.0%}".replace("%", " %") if abs(share) >= 1.0 else f"{100.0 * share:.2f} %"
