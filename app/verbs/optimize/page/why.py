"""Why an answer takes as long as it does, and what would make it faster, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from analysis.explanation import Cost, Explanation, PathShare, Saving
from app.text.numbers import (
    format_count,
    format_figure,
    format_percent,
    without_zeros,
)
from app.text.units import (
    TimeUnit,
)
from app.ui.panel.choices import ShownUnits
from app.verbs.optimize.show import bottleneck_name
from contract.optimize import OptimizeOut
from contract.pipeline import PipelineOut, StageOut
from domain.errors import NeedsPlainStages

MAX_SAVINGS = 10
_MIN_SHARE = 1e-6  # of the latency: less than this is nothing


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A stage's part of the critical path; widths in per cent of the latency."""

    name: str
    fragments: str
    overhead: str
    bytes: str
    share: str
    overhead_width: float
    bytes_width: float
    is_binding: bool


@dataclass(frozen=True, slots=True)
class SavingRow:
    """What one cost, made cheaper, would save, in the page's unit, and per cent of the latency."""

    cost: str
    stage: str
    saved: str
    share: str
    width: float
    is_solved: bool
    same_cut: str


@dataclass(frozen=True, slots=True)
class WhyView:
    """What templates/answer_why.html is given."""

    unit: str
    binding: str
    shares: tuple[ShareRow, ...]
    savings: tuple[SavingRow, ...]
    more: tuple[SavingRow, ...]
    useless: int
    cheaper_by: str
    is_solved: bool

    @classmethod
    def from_explanation(cls, found: Explanation) -> WhyView:
        unit = TimeUnit.of(found.latency_us)
        rows = tuple(_saving_row(saving, found.latency_us, unit) for saving in worthwhile(found))
        return cls(
            unit=unit.name,
            binding=_format_binding(found),
            shares=tuple(_share_rows(found, unit)),
            savings=rows[:MAX_SAVINGS],
            more=rows[MAX_SAVINGS:],
            useless=len(found.savings) - len(rows),
            cheaper_by=_format_part(found.cheaper_by),
            is_solved=any(row.is_solved for row in rows),
        )


@dataclass(frozen=True, slots=True)
class UnexplainedAnswer:
    """Why an answer is not explained, and what is known of it all the same."""

    reason: str
    known: str

    @classmethod
    def from_answer(cls, answer: OptimizeOut, cells: int, max_cells: int) -> UnexplainedAnswer:
        """Describe an answer with more fragments times stages than are followed."""
        stage = bottleneck_name(answer)
        return cls(
            f"This answer has {format_count(cells)} blocks, fragments times stages. The critical "
            f"path is followed, and cheaper costs are tried, for up to "
            f"{format_count(max_cells)}.",
            f"Known all the same: {stage} is occupied longest, so its cost per byte is what a long "
            "message mostly waits for. An answer for a shorter message, or for larger fragments, "
            "through the same stages is explained.",
        )

    @classmethod
    def of_machine(cls, answer: OptimizeOut, refusal: NeedsPlainStages) -> UnexplainedAnswer:
        """Describe an answer whose stages have words that no explanation knows."""
        return cls(
            f"Why it takes so long is not told stage by stage: {refusal.detail}.",
            f"Known all the same: {bottleneck_name(answer)} is occupied longest.",
        )


def _format_part(part: float) -> str:
    return "a tenth" if part == 0.1 else format_percent(part)


def _format_binding(found: Explanation) -> str:
    binding = found.binding
    if not binding:
        return (
            "No stage holds the message up: the critical path passes each stage with one fragment."
        )
    first = binding[0]
    stated = (
        f"{first.name} holds the message up: {first.fragments} fragments wait for each other "
        f"there, {format_percent(_of_all(found, first))} of the latency"
    )
    others = ", ".join(f"{stage.name} ({stage.fragments})" for stage in binding[1:4])
    more = f" and {len(binding) - 4} more" if len(binding) > 4 else ""
    return f"{stated}; then {others}{more}." if others else f"{stated}."


def _of_all(found: Explanation, one: PathShare) -> float:
    spent = one.overhead_us + one.bytes_us
    return spent / found.latency_us if found.latency_us > 0.0 else 0.0


def _share_rows(found: Explanation, unit: TimeUnit) -> Iterator[ShareRow]:
    for share in found.shares:
        yield ShareRow(
            share.name,
            str(share.fragments),
            unit.text(share.overhead_us),
            unit.text(share.bytes_us),
            format_percent(_of_all(found, share)),
            _width(share.overhead_us, found.latency_us),
            _width(share.bytes_us, found.latency_us),
            share.is_binding,
        )
    if found.delay_us > 0.0:
        part = _width(found.delay_us, found.latency_us)
        yield ShareRow(
            "constant delay",
            "",
            unit.text(found.delay_us),
            "",
            format_percent(part / 100),
            part,
            0.0,
            False,
        )


def _width(part_us: float, whole_us: float) -> float:
    return round(100.0 * part_us / whole_us, 3) if whole_us > 0.0 else 0.0


def _time(time_us: float, unit: TimeUnit) -> str:
    """Return a time in the unit of its column, or that it is below its digits."""
    if 0.0 < time_us < 0.5 * unit.step_us:
        return f"< {unit.text(unit.step_us)}"
    return unit.text(time_us)


def _saving_row(one: Saving, latency_us: float, unit: TimeUnit) -> SavingRow:
    part = saved_us(one) / latency_us
    return SavingRow(
        cost="overhead" if one.cost is Cost.OVERHEAD else "per byte",
        stage=one.name,
        saved=_time(saved_us(one), unit),
        share=format_percent(part),
        width=round(1000.0 * min(part, 0.1), 3),
        is_solved=one.best_cut_us is not None,
        same_cut=_time(one.same_cut_us, unit),
    )


# --- what helps most ------------------------------------------------------------------------------


def saved_us(one: Saving) -> float:
    """Return what the best schedule then saves where that was solved, else the same schedule."""
    return one.same_cut_us if one.best_cut_us is None else one.best_cut_us


def worthwhile(found: Explanation) -> list[Saving]:
    """Return the savings that are more than nothing, the largest first."""
    ranked = sorted(found.savings, key=lambda one: -saved_us(one))
    return [saving for saving in ranked if saved_us(saving) > _MIN_SHARE * found.latency_us]


def advice_of(found: Explanation, pipeline: PipelineOut, units: ShownUnits) -> str:
    """Return the one cost of one stage whose change helps most; "" where none does."""
    useful = worthwhile(found)
    if not useful:
        return ""
    best = useful[0]
    unit, saved = TimeUnit.of(found.latency_us), saved_us(best)
    if saved < unit.step_us:  # microseconds of an answer of seconds
        unit = TimeUnit.of(saved)
    how = _change(pipeline.stages[best.stage], best, units, left=1.0 - found.cheaper_by)
    anew = ", cut anew" if best.best_cut_us is not None else ""
    part = format_percent(saved / found.latency_us)
    return f"{best.name} {how}: −{unit.named(saved)} ({part}){anew}."


def _change(stage: StageOut, saving: Saving, units: ShownUnits, *, left: float) -> str:
    ranges = stage.parts
    if saving.cost is Cost.OVERHEAD:
        one_us = units.overhead.to_us(1.0)
        times = [part.overhead_us / one_us for part in ranges]
        return f"with an overhead of {_instead(times, left)} {units.overhead.words}"
    one_ns, costs = units.cost.to_ns_per_byte(1.0), [part.ns_per_byte for part in ranges]
    if units.cost.is_bandwidth and min(costs) > 0.0:
        rates = [one_ns / cost for cost in costs]
        return f"at {_instead(rates, 1.0 / left)} {units.cost.words}"
    if units.cost.is_bandwidth:
        return f"at {_instead(costs, left)} ns/byte"
    return f"at {_instead([cost / one_ns for cost in costs], left)} {units.cost.words}"


def _instead(values: Iterable[float], factor: float) -> str:
    """Return the values changed, and as they are; of several ranges the first to the last."""
    kept = list(values)
    return f"{_from_to([value * factor for value in kept])} instead of {_from_to(kept)}"


def _from_to(values: list[float]) -> str:
    return " to ".join(
        dict.fromkeys(without_zeros(format_figure(value)) for value in (values[0], values[-1]))
    )
