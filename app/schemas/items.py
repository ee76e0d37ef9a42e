"""A message that is cut between items: what is asked, and its answer as it is sent and read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import accumulate

from analysis.items import (
    ItemLimit,
    ItemPath,
    ItemsSolved,
    PricedCap,
    WindowSlots,
)
from app.questions.items import AskedItems, PreparedItems, within_cap
from app.schemas.answers import with_unique_names
from app.schemas.base import notices_out, refused_fields, revision_out, same_named, timestamp
from app.schemas.fits import fit_out, given_fit_out
from app.schemas.in_flight import ends_of
from app.schemas.source import options_of, source_of
from app.schemas.stages import constraints_out, limits_of, pipeline_or_none, stored_stages
from app.schemas.uncertainty import draws_of, with_sentence
from app.text.in_flight import format_in_budget
from app.text.numbers import format_count, format_counted, format_percent, format_size
from app.text.units import format_time, printable
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
    SlotsOut,
)
from contract.limits import MAX_OVERHEAD_US
from contract.optimize import ItemsOptimizeOut, OptimizeIn
from contract.pipeline import PipelineOut
from contract.uncertainty import RepeatIn, UncertaintyOut
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
from domain.machine import Machine
from domain.pipeline import Pipeline
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
_DECLINED_DRAWS: Mapping[str, str] = {
    "mtu_bytes": "caps are told in MiB, and none is rounded",
    "robust": "of items there is no cut that is best in the worst draw",
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
        limits=limits_of(asked.constraints, items=True),
        relative_gap=asked.relative_gap,
        time_limit_s=asked.time_limit_s,
        fit_options=options_of(asked),
        save_as=asked.save_as,
        current_bytes=_current_bytes(asked, sequence),
        max_fragment_items=asked.constraints.max_fragment_items,
        uncertainty=None if asked.uncertainty is None else draws_of(asked.uncertainty),
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
    """The cap in use. Raises ItemsDeclined for what is said of sizes that are repeated."""
    if asked.uncertainty is None:
        return None
    refuse_beside_items(_DECLINED_DRAWS, asked.uncertainty.said(), "uncertainty.")
    current = asked.uncertainty.current
    if isinstance(current, RepeatIn):
        return current.repeat
    return sequence.total_bytes if current == "whole" else None


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
    known = _uncertainty_out(prepared, found)
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
        constraints=constraints_out(prepared.asked.limits, prepared.asked.max_fragment_items),
        allow_refragmentation=False,
        pipeline=pipeline_or_none(crossed_by(problem)),
        aggregate=None,
        fit=fit_out(fitted, None) if fitted else given_fit_out(given) if given else None,
        profile=revision_out(profile),
        solve_ms=round(found.solve_ms, 3),
        warnings=notices_out(
            (
                *prepared.notices(sizes, found.sure),
                *solution.notices,
                *prepared.notices_of_costs(),
            )
        ),
        uncertainty=known,
        items=items_out(problem.sequence),
        fill=fill_out(prepared.asked.fill),
        fragment_items=solution.fragment_items,
        set_items=set_items_out(prepared.asked.fill, found, known),
        best_cap=best_cap_out(problem, found.best_cap, solution.latency_us),
        current=current_cap_out(problem, found.current, solution.latency_us),
        limit=limit_out(problem, found.path),
    )


def items_out(sequence: ItemSequence) -> ItemsOut:
    """Return items as they are sent."""
    return ItemsOut(sequence.item_bytes, sequence.ready_us, sequence.names, dict(sequence.stage_us))


def crossed_by(problem: ItemProblem) -> Pipeline | Machine:
    """Return what the items cross: plain stages, or with windows a machine."""
    return problem.model if problem.windows else problem.pipeline


def slots_out(found: Iterable[WindowSlots]) -> tuple[SlotsOut, ...]:
    """Return the slots of windows as they are sent."""
    return tuple(same_named(SlotsOut, one) for one in found)


def fill_out(fill: FillRule) -> FillOut:
    """Return a fill rule as it is sent."""
    return FillOut(fill.rule.value, fill.first_bytes)


def best_cap_out(
    problem: ItemProblem, found: CapChoice | None, latency_us: float
) -> BestCapOut | None:
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
        slots=problem.places(found.cut),
    )


def current_cap_out(
    problem: ItemProblem, found: PricedCap | None, latency_us: float
) -> CurrentCapOut | None:
    """Return the cap in use as it is sent, beside the latency of the best cut, µs."""
    if found is None:
        return None
    return CurrentCapOut(
        found.cap_bytes,
        len(found.cut),
        found.latency_us,
        found.loss(latency_us),
        problem.places(found.cut),
    )


def _uncertainty_out(prepared: PreparedItems, found: ItemsSolved) -> UncertaintyOut | None:
    """How sure the answer is, where that was computed."""
    if found.sure is None:
        return None
    from app.text.items import ItemWords, items_sentence

    asked, errors = prepared.asked, prepared.errors
    assert errors is not None, "it was computed from them"
    words = ItemWords.of(asked.fill, found)
    sentence = items_sentence(
        found.sure, words, prepared.problem, asked.fill, errors, asked.current_bytes
    )
    known = with_sentence(found.sure.uncertainty, sentence)
    return replace(known, regret=replace(known.regret, basis="best cap"))


def set_items_out(
    fill: FillRule, found: ItemsSolved, known: UncertaintyOut | None = None
) -> SetItemsOut:
    """Return what to set, by the rule by which a program fills; `known` is how sure that is."""
    from app.text.items import one_cap_mib, what_to_set

    caps, cap = tuple(size / MIB for size in found.solution.fragment_bytes), one_cap_mib(found)
    sentence = what_to_set(fill, found) if known is None else known.sentence
    return SetItemsOut(sentence, caps, cap, slots_out(found.slots))


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
        ItemLimit.RETURN: (
            f"Windows limit it: {format_time(path.return_us)} pass until their places are free "
            "again."
        ),
    }
    return ItemsLimitOut(
        path.limit.value,
        path.stage,
        path.calculation_us,
        path.bytes_us,
        path.overheads_us,
        sentences[path.limit],
        path.return_us,
    )


# --- as it is read --------------------------------------------------------------------------------


def stored_problem(answer: ItemsOptimizeOut, *, fragment_cap: int | None = None) -> ItemProblem:
    """Return what a stored answer is about, its stages with names of their own; the service's own
    cap on fragments counts where it is given. Raises InvalidInput.
    """
    named = with_unique_names(answer)
    assert named.pipeline is not None, "items cross stages"
    sequence, limits = stored_sequence(answer), limits_of(answer.constraints, items=True)
    if fragment_cap is not None:
        limits = within_cap(limits, len(sequence), fragment_cap)
    return item_problem_of(
        stored_stages(named.pipeline),
        sequence,
        limits,
        max_fragment_items=answer.constraints.max_fragment_items,
    )


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
    yield from cap_facts(answer.best_cap, answer.current)
    yield from slots_facts(answer.set_items.slots, answer.pipeline)
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


def slots_facts(
    slots: Iterable[SlotsOut], pipeline: PipelineOut | None
) -> Iterator[tuple[str, str]]:
    """Yield labels and values of the slots of windows."""
    for found in slots:
        assert pipeline is not None, "windows are of a pipeline"
        window = pipeline.windows[found.window]
        budget = window.get("bytes")
        size = format_in_budget(
            found.slot_bytes, budget if isinstance(budget, int) else found.slot_bytes
        )
        words = [
            f"{format_counted(found.slots, 'slot')} of {size}",
            f"{format_count(found.used)} in use at once",
            f"{format_count(found.enough)} enough for this cut",
        ]
        if found.costs_us > 0.0:
            words.append(f"{format_time(found.costs_us)} less without it")
        yield "window", f"{ends_of(window)}: {', '.join(words)}"


def _cap_words(found: BestCapOut | CurrentCapOut) -> str:
    noun = "fragment" if found.fragments == 1 else "fragments"
    more = f", {format_percent(found.loss)} more" if found.loss > 0.0 else ""
    at_once = f", {format_counted(found.slots[0], 'slot')}" if found.slots else ""
    took = format_time(found.latency_us)
    return f"{format_count(found.fragments)} {noun}{at_once}, {took}{more}"


def _items_words(counts: tuple[int, ...]) -> str:
    shown = ", ".join(map(format_count, counts[:_SHOWN_CAPS]))
    return shown if len(counts) <= _SHOWN_CAPS else f"{shown}, …"
