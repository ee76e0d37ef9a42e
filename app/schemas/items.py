"""A message that is cut between items: what is asked, and its answer as it is sent and read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import accumulate

from analysis.items import ItemLimit, ItemPath, ItemsSolved, PricedCap, cap_mib
from app.questions.items import AskedItems, PreparedItems, within_cap
from app.schemas.answers import with_unique_names
from app.schemas.base import notices_out, revision_out, timestamp
from app.schemas.fits import fit_out, given_fit_out
from app.schemas.source import options_of, source_of
from app.schemas.stages import constraints_out, limits_of, pipeline_or_none, stored_stages
from app.text.numbers import format_count, format_percent, format_size
from app.text.units import format_against, format_time, printable
from contract.items import (
    BestCapOut,
    CurrentCapOut,
    FillIn,
    FillOut,
    ItemsIn,
    ItemsLimitOut,
    ItemsOut,
    ListedItemsIn,
    SetItemsOut,
)
from contract.limits import MAX_OVERHEAD_US
from contract.optimize import ItemsOptimizeOut, OptimizeIn
from contract.uncertainty import RepeatIn
from domain.errors import (
    FieldProblem,
    InconsistentInput,
    InvalidFields,
    InvalidInput,
    ItemsDeclined,
)
from domain.items import (
    CapChoice,
    Fill,
    FillRule,
    ItemProblem,
    ItemSequence,
    item_problem_of,
)
from domain.profile import ProfileRevision
from domain.solution import relative_excess

_STRATEGIES = ("auto", "exact")
_SHOWN_CAPS = 8  # of a list in the first sentence
MIB = 2**20
# What a message that is cut between items cannot have, by field, and why.
_DECLINED: Mapping[str, str] = {
    "message_bytes": "items are given: they are the message, and their sizes say its own",
    "transfers": "own transfers are of a message that repeats one size, and not of items",
    "aggregate": "items need the time of every stage, and this is an aggregate",
    "allow_refragmentation": "all stages share the cut of items",
    "static_bytes": "items have sizes of their own, so that none is repeated",
}
_DECLINED_LIMITS: Mapping[str, str] = {
    "alignment_bytes": "fragments end where items do",
    "min_fragment_bytes": "an item may be smaller",
}


def asked_items(asked: OptimizeIn) -> AskedItems:
    """Return the question about items. Raises ItemsDeclined, naming the field, for what they do not
    go with, and InvalidInput for items that break a rule.
    """
    assert asked.items is not None, "items are asked about"
    refuse_beside_items(_DECLINED, asked.said())
    refuse_beside_items(_DECLINED_LIMITS, asked.constraints.said(), "constraints.")
    if asked.strategy not in _STRATEGIES:
        raise ItemsDeclined(
            f"of items there are the strategies {' and '.join(_STRATEGIES)} alone", field="strategy"
        )
    sequence = sequence_of(asked.items)
    return AskedItems(
        sequence=sequence,
        fill=fill_of(asked.fill) or FillRule(),
        source=source_of(asked),
        limits=limits_of(asked.constraints),
        relative_gap=asked.relative_gap,
        time_limit_s=asked.time_limit_s,
        fit_options=options_of(asked),
        save_as=asked.save_as,
        current_bytes=_current_bytes(asked, sequence),
    )


def refuse_beside_items(
    rules: Mapping[str, str], said: Mapping[str, object], place: str = ""
) -> None:
    """Raise ItemsDeclined for the first field of these that is said."""
    for name, rule in rules.items():
        if name in said:
            raise ItemsDeclined(f"{name} does not go with items: {rule}", field=f"{place}{name}")


def fill_alone() -> InvalidFields:
    """Return the refusal of a fill rule of a message without items."""
    rule = "fill goes with items alone"
    return InvalidFields(f"/fill: {rule}", problems=(FieldProblem("/fill", rule),))


def _current_bytes(asked: OptimizeIn, sequence: ItemSequence) -> int | None:
    """The cap in use. Raises ItemsDeclined for what else is asked of errors."""
    if asked.uncertainty is None:
        return None
    for name in asked.uncertainty.said():
        if name != "current":
            raise ItemsDeclined(
                f"{name} does not go with items: their cuts are not priced in draws of the costs",
                field=f"uncertainty.{name}",
            )
    current = asked.uncertainty.current
    return current.repeat if isinstance(current, RepeatIn) else sequence.total_bytes


def sequence_of(given: ItemsIn) -> ItemSequence:
    """Return the items. Raises InconsistentInput, naming the field, for values that do not go
    together: each by itself was checked before.
    """
    try:
        if isinstance(given, ListedItemsIn):
            return ItemSequence.of(
                given.bytes, given.ready_us, stage_us=given.stage_us, names=given.names
            )
        count, every_us = given.repeat, given.ready_every_us
        if every_us is not None and every_us * count > MAX_OVERHEAD_US:
            raise InvalidInput(
                f"expected the last item to be ready within {MAX_OVERHEAD_US:g} µs: repeat times "
                "ready_every_us",
                field="ready_every_us",
            )
        return ItemSequence.of(
            (given.bytes,) * count,
            None if every_us is None else [every_us * place for place in range(1, count + 1)],
            stage_us={name: (us,) * count for name, us in (given.stage_us or {}).items()},
        )
    except InvalidInput as refusal:
        raise InconsistentInput(refusal.detail, field=f"items.{refusal.field}") from None


def fill_of(given: FillIn | None) -> FillRule | None:
    """Return the fill rule, None where none is given. Raises InvalidInput."""
    if given is None:
        return None
    try:
        return FillRule.named(given.rule, given.first_bytes)
    except InvalidInput as refusal:
        raise InvalidInput(refusal.detail, field=f"fill.{refusal.field}") from None


# --- as it is sent --------------------------------------------------------------------------------


def items_answer(
    prepared: PreparedItems,
    found: ItemsSolved,
    *,
    id: str,
    created_at: datetime,
    profile: ProfileRevision | None,
) -> ItemsOptimizeOut:
    """Return an answer about items as it is sent and stored."""
    solution, problem = found.solution, prepared.problem
    sizes = solution.fragment_bytes
    fitted, given = prepared.found.fitted, prepared.found.given
    busy = problem.simulate(solution.cut).in_stages.busy_us()
    return ItemsOptimizeOut(
        id=id,
        created_at=timestamp(created_at),
        strategy="exact",
        message_bytes=problem.sequence.total_bytes,
        fragment_bytes=sizes,
        fragments=len(sizes),
        latency_us=solution.latency_us,
        unrounded_latency_us=None,
        lower_bound_us=solution.lower_bound_us,
        relative_gap=solution.relative_gap,
        rounding_gap=None,
        status=solution.status.value,
        limited_by=None,
        levels=None,
        latency_paper_us=None,
        bottleneck_stage=busy.index(max(busy)),
        best_fixed=None,
        baselines=(),
        constraints=constraints_out(prepared.asked.limits),
        allow_refragmentation=False,
        pipeline=pipeline_or_none(problem.pipeline),
        aggregate=None,
        fit=fit_out(fitted, None) if fitted else given_fit_out(given) if given else None,
        profile=revision_out(profile),
        solve_ms=round(found.solve_ms, 3),
        warnings=notices_out(
            (*prepared.notices(sizes), *solution.notices, *prepared.notices_of_costs())
        ),
        items=items_out(problem.sequence),
        fill=FillOut(prepared.asked.fill.rule.value, prepared.asked.fill.first_bytes),
        fragment_items=solution.fragment_items,
        set_items=_set_items(prepared.asked.fill, found),
        best_cap=_best_cap_out(found.best_cap, solution.latency_us),
        current=_current_out(found.current, solution.latency_us),
        limit=limit_out(problem, found.path),
    )


def items_out(sequence: ItemSequence) -> ItemsOut:
    """Return items as they are sent."""
    return ItemsOut(sequence.item_bytes, sequence.ready_us, sequence.names, dict(sequence.stage_us))


def _best_cap_out(found: CapChoice | None, latency_us: float) -> BestCapOut | None:
    if found is None:
        return None
    return BestCapOut(
        rule=found.rule.rule.value,
        from_bytes=found.from_bytes,
        to_bytes=found.to_bytes,
        fragments=len(found.cut),
        latency_us=found.latency_us,
        loss=relative_excess(found.latency_us, latency_us, latency_us),
        layouts=found.layouts,
        is_complete=found.is_complete,
    )


def _current_out(found: PricedCap | None, latency_us: float) -> CurrentCapOut | None:
    if found is None:
        return None
    return CurrentCapOut(found.cap_bytes, len(found.cut), found.latency_us, found.loss(latency_us))


def _set_items(fill: FillRule, found: ItemsSolved) -> SetItemsOut:
    solution, best, current = found.solution, found.best_cap, found.current
    caps = tuple(size / MIB for size in solution.fragment_bytes)
    cap = None if best is None else cap_mib(best.from_bytes, best.to_bytes)
    listed = ", ".join(map(repr, caps[:_SHOWN_CAPS]))
    if len(caps) > _SHOWN_CAPS:
        listed += f", … {format_count(len(caps))} in all"
    of_list, of_cap = (
        ("bucket_cap_mb_list=", "bucket_cap_mb=")
        if fill.rule is Fill.UNTIL
        else ("caps in MiB: ", "one cap in MiB: ")
    )
    words = f"Set {of_list}[{listed}]"
    if cap is not None:
        words += f" (or {of_cap}{cap!r})"
    if current is not None:
        yours = f"your {format_size(current.cap_bytes, with_bytes=False)}"
        words += f": {format_against(solution.latency_us, current.latency_us, yours)}"
    return SetItemsOut(f"{words}.", caps, cap)


def limit_out(problem: ItemProblem, path: ItemPath) -> ItemsLimitOut:
    """Return what most of a latency is as it is sent."""
    stages = problem.pipeline.stages
    named = "" if path.stage is None else printable(stages[path.stage].name)
    sentences = {
        ItemLimit.CALCULATION: (
            f"The calculation limits it: {format_time(path.calculation_us)} pass until the items "
            "are ready that the rest waits for."
        ),
        ItemLimit.BYTES: (
            f"Bytes limit it, those of {named} most: {format_time(path.bytes_us)} of the latency."
        ),
        ItemLimit.OVERHEADS: (
            f"Overheads limit it, those of {named} most: {format_time(path.overheads_us)} of the "
            "latency."
        ),
    }
    return ItemsLimitOut(
        path.limit.value,
        path.stage,
        path.calculation_us,
        path.bytes_us,
        path.overheads_us,
        sentences[path.limit],
    )


# --- as it is read --------------------------------------------------------------------------------


def stored_problem(answer: ItemsOptimizeOut, *, fragment_cap: int | None = None) -> ItemProblem:
    """Return what a stored answer is about, its stages with names of their own; the service's own
    cap on fragments counts where it is given. Raises InvalidInput.
    """
    named = with_unique_names(answer)
    assert named.pipeline is not None, "items cross stages"
    sequence, limits = stored_sequence(answer), limits_of(answer.constraints)
    if fragment_cap is not None:
        limits = within_cap(limits, len(sequence), fragment_cap)
    return item_problem_of(stored_stages(named.pipeline), sequence, limits)


def stored_sequence(answer: ItemsOptimizeOut) -> ItemSequence:
    """Return the items of a stored answer."""
    items = answer.items
    return ItemSequence.of(items.bytes, items.ready_us, stage_us=items.stage_us, names=items.names)


def stored_fill(answer: ItemsOptimizeOut) -> FillRule:
    """Return how a stored answer has fragments filled."""
    return FillRule(Fill(answer.fill.rule), answer.fill.first_bytes)


def stored_cut(answer: ItemsOptimizeOut) -> tuple[int, ...]:
    """Return the ends of a stored answer's cut."""
    return tuple(accumulate(answer.fragment_items))


def compared_cap(answer: ItemsOptimizeOut) -> tuple[str, int] | None:
    """Return the cap that a list is compared with, its name and bytes: the one in use, else the
    best; None where neither is slower.
    """
    current, best = answer.current, answer.best_cap
    if current is not None and current.loss > 0.0:
        return "your cap", current.cap_bytes
    return None if best is None or best.loss <= 0.0 else ("the best cap", best.from_bytes)


def items_facts(answer: ItemsOptimizeOut) -> Iterator[tuple[str, str]]:
    """Yield labels and values of what an answer of items has beside those of others."""
    count = len(answer.items.bytes)
    yield "items", f"{format_count(count)}, a fragment: {_items_words(answer.fragment_items)}"
    best = answer.best_cap
    if best is None:
        yield "best cap", "none: the limits admit no layout of one cap"
    else:
        caps = f"{format_count(best.from_bytes)} bytes and more"
        if best.to_bytes == best.from_bytes:
            caps = f"{format_count(best.from_bytes)} bytes"
        elif best.to_bytes is not None:
            caps = f"{format_count(best.from_bytes)} to {format_count(best.to_bytes)} bytes"
        yield "best cap", f"{caps}: {_cap_words(best)}; {format_count(best.layouts)} layouts seen"
    if answer.current is not None:
        cap = format_size(answer.current.cap_bytes)
        yield "your cap", f"{cap}: {_cap_words(answer.current)}"
    yield "what limits", answer.limit.sentence


def _cap_words(found: BestCapOut | CurrentCapOut) -> str:
    noun = "fragment" if found.fragments == 1 else "fragments"
    more = f", {format_percent(found.loss)} more" if found.loss > 0.0 else ""
    return f"{format_count(found.fragments)} {noun}, {format_time(found.latency_us)}{more}"


def _items_words(counts: tuple[int, ...]) -> str:
    shown = ", ".join(map(format_count, counts[:_SHOWN_CAPS]))
    return shown if len(counts) <= _SHOWN_CAPS else f"{shown}, …"
