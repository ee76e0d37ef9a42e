"""What an audit found, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from app.console.reports import warning_parts
from app.console.screen import Column, Facts, Grid, Part
from app.text.names import printable
from app.text.numbers import format_count, format_percent, format_proven_regret, format_regret
from app.text.units import format_time
from domain.units import format_bytes

if TYPE_CHECKING:
    from app.schemas.audit import AuditOut, AuditRowOut, PricedOut, SpanOut, StepOut

_MOST_STEPS = 4


def audit_parts(audit: AuditOut) -> Iterator[Part]:
    """The regret over the mix, the verdict, the regret at powers of two, and what to change."""
    setting = audit.setting
    yield f"{_words(setting.steps)}{_of(audit)}"
    yield ""
    yield Facts(tuple(_facts(audit)))
    yield ""
    yield "By message size:"
    yield _powers(audit.at_powers)
    yield ""
    yield "What to change:"
    yield from (f"- {printable(change)}" for change in audit.changes)
    yield ""
    yield from warning_parts(audit.warnings)
    if audit.fit_warnings:
        yield f"note: the fit has {len(audit.fit_warnings)} warnings; sluice fit tells them"


def _facts(audit: AuditOut) -> Iterator[tuple[str, str]]:
    setting = audit.setting
    worst = setting.worst
    yield "mean regret", f"{_span(setting.mean)}, over {audit.mix.words}"
    at = f"at {format_bytes(worst.message_bytes)}, of {audit.worst_of} sizes"
    yield "worst regret", f"{_span(worst.regret)}, {at}"
    yield "best size", _priced(audit.best_size)
    if audit.best_ladder:
        yield "best ladder", _priced(audit.best_ladder)
    if audit.best_repeats is not None:
        yield "size by look-up", f"mean {format_regret(audit.best_repeats)}"
    if audit.verdict:
        yield "verdict", _verdict(audit)


def _verdict(audit: AuditOut) -> str:
    of = f"the {audit.objective} regret"
    limit = f"{'within' if audit.is_kept else 'over'} {format_percent(audit.max_regret or 0.0)}"
    if audit.verdict != "between":
        return f"{limit}: {of}"
    rule = {"best": "the best schedule found", "bound": "the proven bound"}[audit.over]
    return f"{limit}, by {rule}, which decides: {of}"


def _powers(rows: Sequence[AuditRowOut]) -> Grid:
    columns = tuple(
        Column(heading)
        for heading in ("message", "fragments", "takes", "best", "at least", "at most")
    )
    return Grid(columns, tuple(map(_row, rows)))


def _row(row: AuditRowOut) -> tuple[str, ...]:
    return (
        format_bytes(row.message_bytes),
        format_count(row.fragments),
        format_time(row.latency_us),
        format_time(row.best_us),
        format_regret(row.regret.at_least),
        format_proven_regret(row.regret.at_most, row.regret.at_least),
    )


def _priced(priced: PricedOut) -> str:
    mean, worst = priced.mean.at_least, priced.worst.regret.at_least
    return f"{_words(priced.steps)}: mean {format_regret(mean)}, worst {format_regret(worst)}"


def _words(steps: Sequence[StepOut]) -> str:
    if len(steps) == 1:
        return _size(steps[0].size_bytes)
    shown = [
        f"from {format_bytes(step.from_bytes)} {_size(step.size_bytes)}"
        for step in steps[:_MOST_STEPS]
    ]
    more = len(steps) - len(shown)
    return ", ".join(shown) + (f" and {more} more steps" if more else "")


def _size(size_bytes: int | None) -> str:
    return "whole" if size_bytes is None else format_bytes(size_bytes)


def _of(audit: AuditOut) -> str:
    return f", profile {audit.profile.reference}" if audit.profile else ""


def _span(span: SpanOut) -> str:
    least = format_regret(span.at_least)
    most = format_proven_regret(span.at_most, span.at_least)
    return least if least == most else f"at least {least}, at most {most}"
