"""What was found, as contract/crossover.py sends it; and as a program's setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isfinite

from analysis.crossover import (
    Crossovers,
    Path,
    ThresholdPrice,
    measured_faster,
    notices_of,
    timed_by_both,
)
from app.schemas.base import echoes, notices_out, revision_out
from app.schemas.stages import aggregate_or_none, pipeline_or_none
from app.text.numbers import format_signed_percent, format_size
from app.text.units import format_time
from contract.crossover import (
    CrossoverAtOut,
    CrossoverOut,
    CrossoverPathOut,
    FasterRunOut,
    PathSettingOut,
    ThresholdPriceOut,
    TimedByBothOut,
)
from domain.errors import StrategyDeclined
from exports.targets.path_thresholds import PathThreshold

_MAX_SPANS = 4  # ranges of sizes in a sentence


def sent(
    found: Crossovers, setting: tuple[PathThreshold, Mapping[str, str]] | None
) -> CrossoverOut:
    """Return what was found as it is sent. Raises StrategyDeclined where the program has no setting
    for it, as for paths that are named the other way round.
    """
    question = found.question
    both = timed_by_both(question.a, question.b)
    out = CrossoverOut(
        verdict=found.verdict.value,
        a=_path(question.a),
        b=_path(question.b),
        **echoes(CrossoverOut, question),
        runs=tuple(
            FasterRunOut(run.from_bytes, run.up_to_bytes, run.faster.value, run.is_sure)
            for run in found.runs
        ),
        crossovers=tuple(
            CrossoverAtOut(
                crossover.at_bytes,
                crossover.before.value,
                crossover.after.value,
                crossover.a_us,
                crossover.b_us,
                crossover.basis.value,
                crossover.between_bytes,
            )
            for crossover in found.crossovers
        ),
        advised=_price(found.advised),
        current=_price(found.current),
        timed_by_both=tuple(
            TimedByBothOut(size, a.measured_us, b.measured_us, measured_faster(a, b).value)
            for size, (a, b) in both.items()
        ),
        setting=None,
        warnings=notices_out(notices_of(found)),
    )
    if setting is None:
        return out
    if found.is_swapped:
        raise StrategyDeclined(
            f"{setting[0].name} cannot say this: {out.b.name} is faster below "
            f"{format_size(out.crossovers[0].at_bytes)} and {out.a.name} from there on; a "
            "threshold has the first path below it, so name them the other way round",
            field="target",
        )
    return replace(out, setting=_setting(out, *setting))


def _path(path: Path) -> CrossoverPathOut:
    return CrossoverPathOut(
        path.name,
        pipeline_or_none(path.model),
        aggregate_or_none(path.model),
        revision_out(path.profile),
        path.measured_bytes,
    )


def _price(price: ThresholdPrice | None) -> ThresholdPriceOut | None:
    if price is None:
        return None
    within = price.more_by_within
    return ThresholdPriceOut(
        price.threshold_bytes,
        price.wrong,
        price.worst_bytes,
        price.taken_us,
        price.faster_us,
        _bounded(price.more_by),
        price.basis.value,
        None if within is None else (_bounded(within[0]), _bounded(within[1])),
    )


def _bounded(share: float) -> float | None:
    return share if isfinite(share) else None


# --- in sentences ---------------------------------------------------------------------------------


def name_of(out: CrossoverOut, faster: str) -> str:
    """Return what a path is called, or that it is neither."""
    return {"a": out.a.name, "b": out.b.name}.get(faster, "neither")


def headline(out: CrossoverOut) -> str:
    """Return in a sentence where the faster path changes, if it does."""
    span = f"from {format_size(out.min_message_bytes)} to {format_size(out.max_message_bytes)}"
    if out.verdict == "not_provable":
        return (
            f"Not provable: {span} the errors of the costs leave open at every size which path is "
            "faster. Measure both paths at the same sizes."
        )
    if out.verdict == "none":
        faster = next((run.faster for run in out.runs if run.faster != "neither"), "neither")
        if faster == "neither":
            return f"No crossover: {span} both paths take the same."
        return f"No crossover: {name_of(out, faster)} is the faster path {span}."
    if out.verdict == "one":
        (place,) = out.crossovers
        return (
            f"From {format_size(place.at_bytes)} on {name_of(out, place.after)} is faster, below "
            f"that {name_of(out, place.before)}{between_words(place)}."
        )
    count = len(out.crossovers)
    return f"The faster path changes {count} times {span}: one threshold cannot follow it."


def between_words(place: CrossoverAtOut) -> str:
    """Return between which sizes a change is certain to lie, in brackets; "" where that is not
    known.
    """
    if place.between_bytes is None:
        return ""
    low, high = place.between_bytes
    if low is None and high is None:
        return " (certain on neither side)"
    if low is None or high is None:
        side, end = ("up to", high) if low is None else ("from", low)
        return f" (certain {side} {format_size(end or 0)} alone)" if end else ""
    return f" (between {format_size(low)} and {format_size(high)})"


def threshold_words(threshold_bytes: int | None, out: CrossoverOut) -> str:
    """Return a threshold in words: a size, or one path alone."""
    if threshold_bytes is None:
        return f"{out.a.name} alone"
    return f"{out.b.name} alone" if threshold_bytes == 0 else format_size(threshold_bytes)


def price_words(out: CrossoverOut, price: ThresholdPriceOut) -> str:
    """Return what a threshold costs at its worst size."""
    if price.worst_bytes is None:
        return "no message loses"
    count = sum(last - first + 1 for first, last in price.wrong)
    spans = [
        f"{format_size(first)} to {format_size(last)}" for first, last in price.wrong[:_MAX_SPANS]
    ]
    more = f" and {len(price.wrong) - _MAX_SPANS} more ranges" if price.wrong[_MAX_SPANS:] else ""
    where = f"{', '.join(spans)}{more}" if count > 1 else format_size(price.wrong[0][0])
    return (
        f"messages of {where} take the slower path; at {format_size(price.worst_bytes)} that is "
        f"{_times_words(price)}"
    )


def _times_words(price: ThresholdPriceOut) -> str:
    """Return both times, and how many times the faster one that is."""
    both = f"{format_time(price.taken_us)} in place of {format_time(price.faster_us)}"
    measured = " as measured" if price.basis == "measured" else ""
    if price.more_by is None:
        return f"{both}{measured}"
    within = price.more_by_within
    if within is None or within[0] is None or within[1] is None:
        return f"{both}{measured}, {_factor(price.more_by)}"
    return f"{both}, {_factor(price.more_by)} ({_factor(within[0])} to {_factor(within[1])})"


def _factor(more_by: float) -> str:
    """Return a share as people read it: up to twice in percent, then as a factor."""
    return f"{more_by + 1.0:.3g} x" if more_by >= 1.0 else f"{format_signed_percent(more_by)}"


# --- a setting ------------------------------------------------------------------------------------


def _setting(
    out: CrossoverOut, target: PathThreshold, options: Mapping[str, str]
) -> PathSettingOut:
    """Return the setting of the threshold that is advised."""
    if out.advised is None:
        raise StrategyDeclined(
            "no threshold is provable: within the errors of the costs neither path is faster at "
            "any size; measure both paths at the same sizes",
            field="target",
        )
    text = target.render(out.advised.threshold_bytes, options, tuple(_said(out, out.advised)))
    return PathSettingOut(target.name, f"{target.name}.{target.suffix_for(options)}", text)


def _said(out: CrossoverOut, advised: ThresholdPriceOut) -> Iterator[str]:
    """Yield the lines of the setting's head."""
    yield f"made by Sluice: below it {out.a.name}, from it on {out.b.name}"
    yield headline(out)
    if advised.worst_bytes is not None:
        yield f"with it {price_words(out, advised)}"
    if out.current is not None:
        today = threshold_words(out.current.threshold_bytes, out)
        yield f"with today's threshold of {today} {price_words(out, out.current)}"
    yield from (notice.detail for notice in out.warnings)
