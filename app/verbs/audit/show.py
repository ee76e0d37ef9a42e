"""An audit: the regret over the workload, the verdict, regrets at powers of two, advice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.text.numbers import (
    format_count,
    format_counted,
    format_percent,
    format_probability,
    format_proven_regret,
    format_regret,
    format_regret_span,
    format_step_size,
)
from app.text.regrets import REGRET_OF, changes_title, format_advised_regret, format_averages
from app.text.units import OF_MODEL, PROVEN_BOUND, format_proven, format_time, printable
from app.ui.parts import Column, Facts, Grid, Part, failures, noted, others
from contract.audit import (
    AuditedItemsOut,
    AuditOut,
    AuditRowOut,
    BucketOut,
    ItemsAuditOut,
    PricedOut,
    SpanOut,
)
from contract.setting import SettingStepOut
from domain.units import format_bytes

_MAX_STEPS = 4
_SHOWN_BUCKETS = 20
_DECIDED_BY = {"best": "the best schedule found", "bound": f"the {PROVEN_BOUND}"}


def parts(audit: AuditOut | ItemsAuditOut) -> Iterator[Part]:
    """Yield the regret over the workload, the verdict, regrets at powers of two, and advice."""
    if isinstance(audit, ItemsAuditOut):
        yield from items_parts(audit)
        return
    setting = audit.setting
    yield from failures(audit.warnings)
    yield f"{_format_steps(setting.steps)}{_of(audit)}"
    yield ""
    if audit.uncertainty:
        yield printable(audit.uncertainty.sentence)
        yield ""
    yield Facts(tuple(_facts(audit)))
    yield ""
    yield "By message size:"
    yield _powers(audit.at_powers)
    yield ""
    yield f"{title_of_changes(audit)}:"
    yield from (f"- {printable(change)}" for change in audit.changes)
    yield ""
    yield from noted(others(audit.warnings))
    if audit.fit_warnings:
        yield f"note: the fit has {len(audit.fit_warnings)} warnings; sluice fit tells them"


# --- caps of items --------------------------------------------------------------------------------


def items_parts(audit: ItemsAuditOut) -> Iterator[Part]:
    """Yield what a cap in use costs over the best cuts, the verdict, what to set, and the fragments
    that it makes.
    """
    yield from failures(audit.warnings)
    of_profile = f", profile {audit.profile.reference}" if audit.profile else ""
    yield f"{title_of_cap(audit)}{of_profile}"
    yield ""
    if len(audit.sequences) == 1 and audit.advice == "set":
        yield audit.sequences[0].set_items.sentence
        yield ""
    yield Facts(tuple(_cap_facts(audit)))
    yield ""
    yield "What to set:"
    yield from (f"- {printable(change)}" for change in audit.changes)
    for place, one in enumerate(audit.sequences, start=1):
        yield ""
        number = f" of sequence {place}" if len(audit.sequences) > 1 else ""
        yield f"The fragments{number} that it makes:"
        yield _buckets(one)
        if len(one.buckets) > _SHOWN_BUCKETS:
            more = format_count(len(one.buckets) - _SHOWN_BUCKETS)
            yield f"… and {more} fragments more: --json has all"
    yield ""
    yield from noted(others(audit.warnings))


def title_of_cap(audit: ItemsAuditOut) -> str:
    """Return the cap in use, and how it is filled."""
    if audit.cap_bytes is None:
        return "one fragment"
    first = audit.fill.first_bytes
    first_words = "" if first is None else f", the first {format_bytes(first)}"
    return f"{format_bytes(audit.cap_bytes)}, filled {audit.fill.rule}{first_words}"


def _cap_facts(audit: ItemsAuditOut) -> Iterator[tuple[str, str]]:
    setting, best = audit.setting, audit.best_cap
    if len(audit.sequences) == 1:
        one = audit.sequences[0]
        took, bound = format_proven(one.best_us, one.lower_bound_us)
        noun = format_counted(len(one.buckets), "fragment")
        yield (
            "your cap",
            f"{noun}, {format_time(one.latency_us)}: {span(setting.time)} over the best",
        )
        count = format_counted(len(one.fragment_items), "fragment")
        yield "best cut", f"{count}, {took}, {PROVEN_BOUND} {bound}"
    else:
        yield "total time", f"{span(setting.time)} over the best cuts of all sequences"
        yield "mean regret", span(setting.mean)
        yield "worst regret", span(setting.worst)
    if best is not None:
        regret = {"time": best.regret.time, "mean": best.regret.mean, "worst": best.regret.worst}
        over = span(regret[audit.objective])
        end = "and more" if best.to_bytes is None else f"to {format_count(best.to_bytes)}"
        yield "best cap", f"{format_count(best.from_bytes)} {end} bytes: {over} over the best"
    if len(audit.sequences) == 1:
        yield "what limits", audit.sequences[0].limit.sentence
    if audit.verdict:
        yield "verdict", _cap_verdict(audit)


def _cap_verdict(audit: ItemsAuditOut) -> str:
    of = f"the {REGRET_OF[audit.objective]}"
    limit = f"{'within' if audit.is_kept else 'over'} {format_percent(audit.max_regret or 0.0)}"
    if audit.verdict != "between":
        return f"{limit}: {of}"
    return f"{limit}, by {_DECIDED_BY[audit.over]}, which decides: {of}"


def _buckets(found: AuditedItemsOut) -> Grid:
    columns = (
        *(Column("fragment"), Column("items", is_number=False), Column("bytes")),
        *(Column("ready"), Column("begins"), Column("done")),
    )
    rows = tuple(
        (
            format_count(place),
            printable(_items_words(one)),
            format_count(one.bytes),
            format_time(one.ready_us),
            format_time(one.begins_us),
            format_time(one.done_us),
        )
        for place, one in enumerate(found.buckets[:_SHOWN_BUCKETS], start=1)
    )
    return Grid(columns, rows, "The fragments that the cap in use makes")


def _items_words(bucket: BucketOut) -> str:
    if bucket.items == 1:
        return bucket.first_item
    between = "and" if bucket.items == 2 else "to"
    return f"{bucket.first_item} {between} {bucket.last_item}"


# --- settings -------------------------------------------------------------------------------------


def _facts(audit: AuditOut) -> Iterator[tuple[str, str]]:
    setting = audit.setting
    worst = setting.worst
    if setting.time is not None:
        yield "total time", f"{span(setting.time)} over the best, of {audit.workload.words}"
    yield "mean regret", span(setting.mean)
    at = f"at {format_bytes(worst.message_bytes)}, of {audit.worst_of} sizes"
    yield "worst regret", f"{span(setting.worst_span)}, {at}"
    yield "best size", _priced(audit.best_size)
    if audit.best_size_steps:
        yield "best size steps", _priced(audit.best_size_steps)
    if audit.best_repeats is not None:
        yield "size by lookup", format_averages(audit.best_repeats_time, audit.repeats_span)
    if known := audit.uncertainty:
        regret = known.settings[0].regret
        figures = f"mean {format_regret(regret.mean)}, at most {format_regret(regret.p95)} in 95 %"
        yield f"in {known.draws} draws", f"{figures}, over the best repeated sizes"
    if audit.verdict:
        yield "verdict", _verdict(audit)
    if known and audit.in_draws is not None:
        kept = format_probability(known.settings[0].kept or 0.0)
        yield "in draws", f"kept {kept}, asked for {format_percent(audit.in_draws)} of them"


def _verdict(audit: AuditOut) -> str:
    of = f"the {REGRET_OF[audit.objective]}"
    limit = f"{'within' if audit.is_kept else 'over'} {format_percent(audit.max_regret or 0.0)}"
    if audit.verdict != "between":
        return f"{limit}: {of}"
    return f"{limit}, by {_DECIDED_BY[audit.over]}, which decides: {of}"


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
    return f"{_format_steps(priced.steps)}: {advised(priced)}"


def advised(priced: PricedOut) -> str:
    """Return what another setting costs."""
    worst = format_advised_regret(priced.worst_span.at_least, priced.worst_span.at_most)
    return f"{format_averages(priced.time, priced.mean)}, worst {worst}"


def _format_steps(steps: Sequence[SettingStepOut]) -> str:
    if len(steps) == 1:
        return format_step_size(steps[0].size_bytes)
    shown = [
        f"from {format_bytes(step.from_bytes)} {format_step_size(step.size_bytes)}"
        for step in steps[:_MAX_STEPS]
    ]
    more = len(steps) - len(shown)
    return ", ".join(shown) + (f" and {more} more steps" if more else "")


def _of(audit: AuditOut) -> str:
    return f", profile {audit.profile.reference}" if audit.profile else ""


def span(found: SpanOut) -> str:
    """Return a regret between its limits."""
    return format_regret_span(found.at_least, found.at_most)


def title_of_changes(audit: AuditOut) -> str:
    """Return what heads the changes."""
    known = audit.uncertainty
    # In the place of the draws' sentence and of the changes alike stands what transfers say.
    by_transfers = known is not None and audit.changes == (known.sentence,)
    decided = (known.decision, known.reason) if known else (None, None)
    return changes_title(*decided, by_transfers=by_transfers)


# --- on the page ----------------------------------------------------------------------------------


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
    """What page/audit_result.html is given; `chart` is what its chart draws."""

    title: str
    verdict: str
    badge: str
    badge_words: str
    figures: tuple[AuditFigure, ...]
    decision: str
    changes_title: str
    changes: tuple[str, ...]
    size_steps: str
    rows: tuple[AuditLine, ...]
    warnings: tuple[str, ...]
    profile: str
    workload: str
    took: str
    chart: Mapping[str, object]

    @classmethod
    def from_audit(cls, audit: AuditOut) -> AuditView:
        badge, badge_words, verdict = _badge(audit)
        notices = (*audit.warnings, *audit.fit_warnings)
        return cls(
            title=format_setting(audit.setting.steps),
            verdict=verdict,
            badge=badge,
            badge_words=badge_words,
            figures=tuple(_figures(audit)),
            decision=audit.uncertainty.sentence if audit.uncertainty else "",
            changes_title=title_of_changes(audit),
            changes=tuple(audit.changes),
            size_steps=_size_steps(audit),
            rows=tuple(_line(row, audit.max_regret) for row in audit.at_powers),
            warnings=tuple(dict.fromkeys(notice.detail for notice in notices)),
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
        f"{format_step_size(step.size_bytes)} from {format_bytes(step.from_bytes)}"
        for step in steps
    ]
    more = len(shown) - MAX_STEPS
    return ", ".join(shown[:MAX_STEPS]) + (f" and {more} more steps" if more > 0 else "")


def _figures(audit: AuditOut) -> Iterator[AuditFigure]:
    setting = audit.setting
    worst = setting.worst
    if setting.time is not None:
        yield AuditFigure("Total time", span(setting.time), "over the best, of the workload")
    yield AuditFigure("Mean regret", span(setting.mean), "of its messages")
    at = f"at {format_bytes(worst.message_bytes)}"
    if count := audit.worst_of:  # audits that were kept before had none
        at += f", of {count} sizes"
    yield AuditFigure("Worst regret", span(setting.worst_span), at)
    yield _figure("Best single size", audit.best_size)
    if audit.best_size_steps and len(audit.best_size_steps.steps) > 1:
        size_steps = audit.best_size_steps
        steps = f"{len(size_steps.steps)} steps"
        yield AuditFigure("Best size steps", steps, advised(size_steps))
    if audit.best_repeats is not None:
        value = format_averages(audit.best_repeats_time, audit.repeats_span)
        yield AuditFigure("Size by lookup", value, "in a compiled table")


def _size_steps(audit: AuditOut) -> str:
    """Return the best sizes by message size; "" where a library takes one, or one is best."""
    size_steps = audit.best_size_steps
    return format_setting(size_steps.steps) if size_steps and len(size_steps.steps) > 1 else ""


def _figure(name: str, priced: PricedOut) -> AuditFigure:
    chosen = format_step_size(priced.steps[0].size_bytes)
    return AuditFigure(name, chosen, advised(priced))


def _badge(audit: AuditOut) -> tuple[str, str, str]:
    """Return its colour, its word and its sentence; empty without a limit."""
    if audit.verdict is None or audit.max_regret is None:
        return "", "", ""
    allowed = format_percent(audit.max_regret)
    regret, limit = f"the {REGRET_OF[audit.objective]}", f"the {allowed} that is allowed"
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
    limit, setting = audit.max_regret, audit.setting
    is_of_time = audit.objective == "time" and setting.time is not None
    name, average = ("total time", setting.time) if is_of_time else ("mean", setting.mean)
    return {
        "sizes": [row.message_bytes for row in rows],
        "names": [format_bytes(row.message_bytes) for row in rows],
        "atLeast": [_percent(row.regret.at_least) for row in rows],
        "atMost": [_percent(row.regret.at_most) for row in rows],
        "average": _percent(average.at_least if average else None),
        "averageName": name,
        "allowed": None if limit is None else _percent(limit),
    }


def _percent(regret: float | None) -> float | None:
    return None if regret is None else 100.0 * regret
