"""A message that is cut between items: what is asked, and its answer as it is sent and read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from analysis.items import ItemLimit, ItemPath, ItemsSolved, PricedCap, cap_mib
from app.questions.items import AskedItems, PreparedItems
from app.schemas.base import notices_out, refused_fields, revision_out, timestamp
from app.schemas.fits import fit_out, given_fit_out
from app.schemas.source import options_of, source_of
from app.schemas.stages import constraints_out, limits_of, pipeline_or_none
from app.text.numbers import format_count, format_percent, format_size
from app.text.units import format_against, format_time, printable
from contract.constraints import ConstraintsIn
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
from domain.items import CapChoice, Fill, FillRule, ItemProblem, ItemSequence
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
    refuse_limits(asked.constraints)
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


def refuse_limits(given: ConstraintsIn) -> None:
    """Raise ItemsDeclined for a limit that fragments of items do not have."""
    refuse_beside_items(_DECLINED_LIMITS, given.said(), "constraints.")


def refuse_without_items(said: Mapping[str, object], *names: str) -> None:
    """Raise InconsistentInput for the first of these fields that is said: items alone have it."""
    for name in names:
        if name in said:
            raise InconsistentInput(f"{name} goes with items alone", field=name)


def missing_fields(*names: str) -> InvalidFields:
    """Return the refusal of these fields, required where there are no items, as of any other."""
    rule = "this field is required"
    return refused_fields([FieldProblem(f"/{name}", rule) for name in names])


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


def sequence_of(given: ItemsIn, place: str = "items") -> ItemSequence:
    """Return the items at this place of a request. Raises InconsistentInput, naming the field, for
    values that do not go together: each by itself was checked before.
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
        raise InconsistentInput(refusal.detail, field=f"{place}.{refusal.field}") from None


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
        fill=fill_out(prepared.asked.fill),
        fragment_items=solution.fragment_items,
        set_items=set_items_out(prepared.asked.fill, found),
        best_cap=best_cap_out(found.best_cap, solution.latency_us),
        current=current_cap_out(found.current, solution.latency_us),
        limit=limit_out(problem, found.path),
    )


def items_out(sequence: ItemSequence) -> ItemsOut:
    """Return items as they are sent."""
    return ItemsOut(sequence.item_bytes, sequence.ready_us, sequence.names, dict(sequence.stage_us))


def fill_out(fill: FillRule) -> FillOut:
    """Return a fill rule as it is sent."""
    return FillOut(fill.rule.value, fill.first_bytes)


def best_cap_out(found: CapChoice | None, latency_us: float) -> BestCapOut | None:
    """Return the best cap as it is sent, beside the latency of the best cut, µs."""
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


def current_cap_out(found: PricedCap | None, latency_us: float) -> CurrentCapOut | None:
    """Return the cap in use as it is sent, beside the latency of the best cut, µs."""
    if found is None:
        return None
    return CurrentCapOut(found.cap_bytes, len(found.cut), found.latency_us, found.loss(latency_us))


def set_items_out(fill: FillRule, found: ItemsSolved) -> SetItemsOut:
    """Return what to set, by the rule by which a program fills."""
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


def limit_out(problem: ItemProblem, path: ItemPath, *, is_loading: bool = False) -> ItemsLimitOut:
    """Return what most of a latency is as it is sent; `is_loading`: the calculation is the last
    stage, and not when items are ready.
    """
    stages = problem.pipeline.stages
    named = "" if path.stage is None else printable(stages[path.stage].name)
    calculation = format_time(path.calculation_us)
    of_calculation = f"{calculation} pass until the items are ready that the rest waits for."
    if is_loading:
        of_calculation = f"{calculation} of the run time are its own."
    sentences = {
        ItemLimit.CALCULATION: f"The calculation limits it: {of_calculation}",
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


def items_facts(answer: ItemsOptimizeOut) -> Iterator[tuple[str, str]]:
    """Yield labels and values of what an answer of items has beside those of others."""
    count = len(answer.items.bytes)
    yield "items", f"{format_count(count)}, a fragment: {_items_words(answer.fragment_items)}"
    yield from cap_facts(answer.best_cap, answer.current)
    yield "what limits", answer.limit.sentence


def cap_facts(best: BestCapOut | None, current: CurrentCapOut | None) -> Iterator[tuple[str, str]]:
    """Yield labels and values of the best cap and the one in use, which may not be given."""
    if best is None:
        yield "best cap", "none: the limits admit no layout of one cap"
    else:
        caps = f"{format_count(best.from_bytes)} bytes and more"
        if best.to_bytes == best.from_bytes:
            caps = f"{format_count(best.from_bytes)} bytes"
        elif best.to_bytes is not None:
            caps = f"{format_count(best.from_bytes)} to {format_count(best.to_bytes)} bytes"
        yield "best cap", f"{caps}: {_cap_words(best)}; {format_count(best.layouts)} layouts seen"
    if current is not None:
        yield "your cap", f"{format_size(current.cap_bytes)}: {_cap_words(current)}"


def _cap_words(found: BestCapOut | CurrentCapOut) -> str:
    noun = "fragment" if found.fragments == 1 else "fragments"
    more = f", {format_percent(found.loss)} more" if found.loss > 0.0 else ""
    return f"{format_count(found.fragments)} {noun}, {format_time(found.latency_us)}{more}"


def _items_words(counts: tuple[int, ...]) -> str:
    shown = ", ".join(map(format_count, counts[:_SHOWN_CAPS]))
    return shown if len(counts) <= _SHOWN_CAPS else f"{shown}, …"
