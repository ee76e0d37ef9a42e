"""What an audit of a cap advises, in sentences."""

from __future__ import annotations

from analysis.audit import WORTH_SAYING
from analysis.item_audit import ItemAdvice, ItemAudit
from analysis.items import cap_mib
from app.text.numbers import format_count, format_gap, format_regret_span, format_size
from domain.items import Fill


def cap_words(cap_bytes: int | None) -> str:
    """Return what a cap in use is called."""
    return "one fragment" if cap_bytes is None else format_size(cap_bytes, with_bytes=False)


def change_words(audit: ItemAudit, change: ItemAdvice) -> str:
    """Return one of the audit's changes in words, with what it would cost."""
    asked, best = audit.question, audit.best_cap
    is_until = asked.fill.rule is Fill.UNTIL
    if change is ItemAdvice.KEEP:
        left = audit.span.at_most
        words = "0.1 % or more" if left < WORTH_SAYING else f"more than {format_gap(left)}"
        return f"keep {cap_words(asked.cap_bytes)}: no cut of these items gains {words}"
    if change is ItemAdvice.ONE_CAP and best is not None:
        cap = f"{cap_mib(best.from_bytes, best.to_bytes)!r}"
        how = f"bucket_cap_mb={cap}" if is_until else f"one cap of {cap} MiB"
        span = best.regrets.value(asked.objective)
        costs = format_regret_span(span.at_least, span.at_most, worth_saying=WORTH_SAYING)
        return f"set {how}: {costs} over the best cuts"
    how = "bucket_cap_mb_list" if is_until else "a cap for each fragment"
    if len(audit.sequences) > 1:
        return f"set {how} by sequence, the best cut of each: regret 0 %"
    fragments = len(audit.sequences[0].solution.cut)
    return f"set {how}, of {format_count(fragments)}, which makes the best cut: regret 0 %"
