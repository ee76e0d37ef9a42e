"""What an audit found, as its page shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.schemas.audit import AuditOut, AuditRowOut, PricedOut, SettingStepOut, SpanOut
from app.text.names import OF_MODEL, PROVEN_BOUND
from app.text.notices import format_advised_regret
from app.text.numbers import (
    format_count,
    format_percent,
    format_proven_regret,
    format_regret,
    format_regret_span,
    format_step_size,
)
from app.text.units import format_time
from domain.units import format_bytes

MAX_STEPS = 8
_REFERENCES = {"best": "The best schedule found", "bound": f"The {PROVEN_BOUND}"}


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One message size."""

    message: str
    size: str
    fragments: str
    latency: str
    best: str
    at_least: str
    at_most: str
    best_repeat: str
    is_over: bool


@dataclass(frozen=True, slots=True)
class AuditFigure:
    """A number with its name above it and a remark beside it."""

    name: str
    value: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class AuditView:
    """What templates/audit_result.html is given; `chart` is what its chart draws."""

    title: str
    verdict: str
    badge: str
    badge_words: str
    figures: tuple[AuditFigure, ...]
    decision: str
    changes: tuple[str, ...]
    size_steps: str
    rows: tuple[AuditLine, ...]
    warnings: tuple[str, ...]
    profile: str
    workload: str
    took: str
    chart: Mapping[str, object]

    @classmethod
    def of(cls, audit: AuditOut) -> AuditView:
        badge, badge_words, verdict = _verdict(audit)
        notices = (*audit.warnings, *audit.fit_warnings)
        return cls(
            title=format_setting(audit.setting.steps),
            verdict=verdict,
            badge=badge,
            badge_words=badge_words,
            figures=tuple(_figures(audit)),
            decision=audit.uncertainty.sentence if audit.uncertainty else "",
            changes=tuple(audit.changes),
            size_steps=_size_steps(audit),
            rows=tuple(_line(row, audit.max_regret) for row in audit.at_powers),
            warnings=tuple(dict.fromkeys(one.detail for one in notices)),
            profile=audit.profile.reference if audit.profile else "",
            workload=audit.workload.words,
            took=format_time(audit.audit_ms * 1e3),
            chart=_chart(audit),
        )


def format_setting(steps: Sequence[SettingStepOut]) -> str:
    """Return a setting, of many steps the first."""
    if len(steps) == 1:
        one = format_step_size(steps[0].size_bytes)
        return "every message whole" if one == "whole" else f"{one} for every message"
    shown = [
        f"{format_step_size(one.size_bytes)} from {format_bytes(one.from_bytes)}" for one in steps
    ]
    more = len(shown) - MAX_STEPS
    return ", ".join(shown[:MAX_STEPS]) + (f" and {more} more steps" if more > 0 else "")


def _span(span: SpanOut) -> str:
    return format_regret_span(span.at_least, span.at_most)


def _figures(audit: AuditOut) -> Iterator[AuditFigure]:
    setting = audit.setting
    worst = setting.worst
    yield AuditFigure("Mean regret", _span(setting.mean), "over the workload")
    at = f"at {format_bytes(worst.message_bytes)}"
    if count := audit.worst_of:  # audits that were kept before had none
        at += f", of {count} sizes"
    yield AuditFigure("Worst regret", _span(setting.worst_span), at)
    yield _priced("Best single size", audit.best_size)
    if audit.best_size_steps and len(audit.best_size_steps.steps) > 1:
        size_steps = audit.best_size_steps
        steps = f"{len(size_steps.steps)} steps"
        yield AuditFigure("Best size steps", steps, _advised(size_steps))
    if audit.best_repeats is not None:
        value = f"mean {_advised_span(audit.repeats_span)}"
        yield AuditFigure("Size by lookup", value, "in a compiled table")


def _size_steps(audit: AuditOut) -> str:
    """Return the best sizes by message size; "" where a library takes one, or one is best."""
    size_steps = audit.best_size_steps
    return format_setting(size_steps.steps) if size_steps and len(size_steps.steps) > 1 else ""


def _priced(name: str, priced: PricedOut) -> AuditFigure:
    chosen = format_step_size(priced.steps[0].size_bytes)
    return AuditFigure(name, chosen, _advised(priced))


def _advised(priced: PricedOut) -> str:
    mean, worst = map(_advised_span, (priced.mean, priced.worst_span))
    return f"mean {mean}, worst {worst}"


def _advised_span(span: SpanOut) -> str:
    return format_advised_regret(span.at_least, span.at_most)


def _verdict(audit: AuditOut) -> tuple[str, str, str]:
    """Return its colour, its word and its sentence; empty without a limit."""
    if audit.verdict is None or audit.max_regret is None:
        return "", "", ""
    allowed = format_percent(audit.max_regret)
    regret, limit = f"the {audit.objective} regret", f"the {allowed} that is allowed"
    word = f"{'within' if audit.is_kept else 'over'} {allowed}"
    if audit.verdict == "within":
        return "good", word, f"Proven {OF_MODEL}: over any schedule, {regret} keeps to {limit}."
    if audit.verdict == "above":
        return (
            "bad",
            word,
            f"Proven {OF_MODEL}: {regret} is above {limit}; a better schedule is in hand.",
        )
    rule = _REFERENCES[audit.over]
    known = f"{limit} is inside what is known of {regret}. {rule} decides."
    return "warn", word, f"Not proven {OF_MODEL}: {known}"


def _line(row: AuditRowOut, allowed: float | None) -> AuditLine:
    regret = row.regret
    repeat = row.best_repeat_bytes
    minimum = regret.at_least
    return AuditLine(
        message=format_bytes(row.message_bytes),
        size=format_bytes(row.size_bytes),
        fragments=format_count(row.fragments),
        latency=format_time(row.latency_us),
        best=format_time(row.best_us),
        at_least=format_regret(minimum),
        at_most=format_proven_regret(regret.at_most, minimum),
        best_repeat=format_bytes(repeat) if repeat else "none",
        is_over=allowed is not None and (minimum is None or minimum > allowed),
    )


def _chart(audit: AuditOut) -> Mapping[str, object]:
    """Return message sizes in bytes and regrets in per cent; what is unbounded is null."""
    rows = audit.at_powers
    limit = audit.max_regret
    return {
        "sizes": [row.message_bytes for row in rows],
        "names": [format_bytes(row.message_bytes) for row in rows],
        "atLeast": [_percent(row.regret.at_least) for row in rows],
        "atMost": [_percent(row.regret.at_most) for row in rows],
        "mean": _percent(audit.setting.mean.at_least),
        "allowed": None if limit is None else _percent(limit),
    }


def _percent(regret: float | None) -> float | None:
    return None if regret is None else 100.0 * regret
