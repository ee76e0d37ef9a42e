"""A question about a message that is cut between items, from what is asked to a problem."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from analysis.items import ItemsQuestion
from app.questions.question import check_saved, notices_of_costs
from app.questions.source import FitNow, Resolved, Source, Stored, field_of, resolve
from contract.limits import MAX_SIMULATED
from domain.errors import InconsistentInput, InvalidInput, ItemsDeclined, SluiceError
from domain.fit import FitOptions, FitShape, beyond_measured, cut_sizes
from domain.items import (
    FillRule,
    ItemProblem,
    ItemSequence,
    ItemTimes,
    item_problem_of,
    layout,
)
from domain.model import CostModel
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits
from domain.profile import ProfileRevision
from domain.solution import Notice

_NOT_IN_DRAWS = Notice(
    "answer_not_in_draws",
    "how sure this cut is was not computed: cuts between items are not priced in draws of the "
    "costs. Solve with costs at both ends of their errors, and compare",
)
_QUICK_ITEMS = 500  # items times stages: some milliseconds
_UNTIL = FillRule()
_OF_PIPELINE = ("stages",)
_OF_ITEMS = ("bytes", "ready_us", "stage_us", "names")
_OF_LIMITS = ("max_fragment_bytes", "max_fragments", "max_fragment_items")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedItems:
    """One optimisation of items. `current_bytes` is the cap in use, filled by `fill`. `save_as`
    stores the model under this profile name together with the answer. Raises InvalidInput.
    """

    sequence: ItemSequence
    fill: FillRule
    source: Source
    limits: FragmentLimits
    relative_gap: float
    time_limit_s: float
    fit_options: FitOptions | None = None
    save_as: str | None = None
    current_bytes: int | None = None

    def __post_init__(self) -> None:
        check_saved(self.save_as, self.source)


@dataclass(frozen=True, slots=True)
class PreparedItems:
    """A question whose model is known. `digest` is equal exactly for questions that one stored
    answer can serve.
    """

    asked: AskedItems
    problem: ItemProblem
    found: Resolved
    digest: str

    @property
    def question(self) -> ItemsQuestion:
        """The solver's arguments."""
        asked = self.asked
        return ItemsQuestion(
            self.problem, asked.fill, asked.relative_gap, asked.time_limit_s, asked.current_bytes
        )

    def notices(self, sizes: tuple[int, ...]) -> tuple[Notice, ...]:
        """What is said of the costs, for fragments of these sizes."""
        fit = self.found.fit
        beyond = beyond_measured(cut_sizes(sizes), fit.measured_bytes if fit else None)
        return (
            *self.found.said,
            *(() if beyond is None else (beyond,)),
            *(() if fit is None else (_NOT_IN_DRAWS,)),
        )

    def notices_of_costs(self) -> tuple[Notice, ...]:
        """What is said of the model, and what the fit of it says."""
        return notices_of_costs(self.problem.pipeline, self.found.fit)


def prepare_items(asked: AskedItems, stored: Stored, *, fragment_cap: int) -> PreparedItems:
    """Find or fit the model. Raises NotFound, Infeasible, InvalidInput, NeedsPlainStages,
    ItemsDeclined for what items do not go with, and what a fit does.
    """
    across = items_across(
        asked.source, asked.fit_options, stored, asked.sequence, asked.limits, fragment_cap
    )
    return PreparedItems(
        asked, across.problem, across.found, _digest(asked, across.problem, across.found)
    )


def are_quick(problems: Iterable[ItemProblem]) -> bool:
    """Return whether these are small enough to be solved in the process that is asked."""
    work = sum(len(problem.sequence) * len(problem.pipeline) for problem in problems)
    return work <= _QUICK_ITEMS


@dataclass(frozen=True, slots=True)
class ItemsAcross:
    """Items, the limits of their fragments, and the stages that were found for them."""

    problem: ItemProblem
    limits: FragmentLimits
    found: Resolved

    @property
    def digest(self) -> str:
        """SHA-256 in hexadecimal, equal exactly for the same items across the same found stages."""
        parts = (self.problem.digest(), *_parts_of(self.found))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def notices(self, sizes: Iterable[int]) -> tuple[Notice, ...]:
        """What is said of the model, of fragments of these sizes where it was measured, and of the
        items.
        """
        return (*self.notices_of_costs(sizes), *self.problem.notices)

    def notices_of_costs(self, sizes: Iterable[int]) -> tuple[Notice, ...]:
        """What is said of the model, and of fragments of these sizes where it was measured."""
        fit = self.found.fit
        beyond = beyond_measured(cut_sizes(tuple(sizes)), fit.measured_bytes if fit else None)
        return (
            *self.found.said,
            *(() if beyond is None else (beyond,)),
            *notices_of_costs(self.problem.pipeline, fit),
        )


def items_across(
    source: Source,
    options: FitOptions | None,
    stored: Stored,
    sequence: ItemSequence,
    limits: FragmentLimits,
    fragment_cap: int,
) -> ItemsAcross:
    """Find or fit the stages that items cross. Raises as `prepare_items` does."""
    found = found_for_items(source, options, stored, sequence.total_bytes)
    problem = items_problem(found.model, sequence, limits, source, fragment_cap)
    problem.check_feasible()
    return ItemsAcross(problem, limits, found)


def sequences_across(
    source: Source,
    options: FitOptions | None,
    stored: Stored,
    sequences: Mapping[str, ItemSequence],
    fragment_cap: int,
) -> tuple[ItemsAcross, ...]:
    """Find or fit the stages that several sequences cross, which stand by their places in the
    request. Raises as `prepare_items` does, naming the place.
    """
    largest = max(sequence.total_bytes for sequence in sequences.values())
    found, free = found_for_items(source, options, stored, largest), FragmentLimits()
    across = list[ItemsAcross]()
    for place, sequence in sequences.items():
        try:
            problem = items_problem(found.model, sequence, free, source, fragment_cap)
        except SluiceError as refusal:
            first, _, rest = (refusal.field or "").partition(".")
            if first == "items":
                refusal.field = f"{place}.{rest}"
            raise
        across.append(ItemsAcross(problem, free, found))
    return tuple(across)


def found_for_items(
    source: Source, options: FitOptions | None, stored: Stored, message_bytes: int
) -> Resolved:
    """Find or fit the model that items cross. Raises as `prepare_items` does."""
    if options is not None and options.shape is FitShape.NARROWED:
        raise ItemsDeclined(
            "a narrowed fit is of fragments that an answer has, and of items these are not known",
            field="fit_options.shape",
        )
    return resolve(source, stored, FitNow(options, message_bytes))


def items_problem(
    model: CostModel,
    sequence: ItemSequence,
    limits: FragmentLimits,
    source: Source,
    fragment_cap: int,
) -> ItemProblem:
    """Return the problem of items across a model. Raises ItemsDeclined and InvalidInput, naming the
    field of the request.
    """
    if not isinstance(model, Pipeline):
        raise ItemsDeclined(
            "items need the time of every stage, and this is an aggregate", field=field_of(source)
        )
    most = limits.max_fragments
    if len(sequence) > fragment_cap:
        most = min(fragment_cap, most or fragment_cap)
    capped = FragmentLimits(
        limits.min_fragment_bytes, limits.max_fragment_bytes, limits.alignment_bytes, most
    )
    try:
        return item_problem_of(model, sequence, capped)
    except SluiceError as refusal:
        refusal.field = _field_in_request(refusal.field, source)
        raise


@dataclass(frozen=True, slots=True)
class ItemsCut:
    """A cut of items: its ends, or where there are none what a cap gives."""

    sequence: ItemSequence
    ends: tuple[int, ...] | None
    cap_bytes: int = 0
    fill: FillRule = _UNTIL


@dataclass(frozen=True, slots=True)
class ItemsRun:
    """The run of a cut between items."""

    problem: ItemProblem
    times: ItemTimes
    said: tuple[Notice, ...]
    profile: ProfileRevision | None


def run_items(
    stored: Stored, source: Source, options: FitOptions | None, cut: ItemsCut
) -> ItemsRun:
    """Run a cut between items on a model. Raises as `prepare_items` does, and InvalidInput for a
    cut of other items, and for too many intervals.
    """
    sequence = cut.sequence
    found = found_for_items(source, options, stored, sequence.total_bytes)
    limits, cap = FragmentLimits(), len(sequence)
    problem = items_problem(found.model, sequence, limits, source, cap)
    ends = layout(sequence, cut.cap_bytes, cut.fill) if cut.ends is None else cut.ends
    try:
        problem.check_cut(ends)
    except InvalidInput as refusal:
        raise InvalidInput(refusal.detail, field="cut") from None
    intervals = len(ends) * len(problem.pipeline)
    if intervals > MAX_SIMULATED:
        raise InconsistentInput(
            f"expected fragments x stages <= {MAX_SIMULATED} intervals in one simulation, got "
            f"{intervals}",
            field="cap_bytes" if cut.ends is None else "cut",
        )
    return ItemsRun(problem, problem.simulate(ends), found.said, found.profile)


def _field_in_request(field: str | None, source: Source) -> str | None:
    """The field of the request that this one of the problem is."""
    first = (field or "").partition(".")[0]
    if first in _OF_PIPELINE:
        return f"pipeline.{field}" if field_of(source) == "pipeline" else field_of(source)
    if first in _OF_ITEMS:
        return f"items.{field}"
    return f"constraints.{field}" if first in _OF_LIMITS else field


def _digest(asked: AskedItems, problem: ItemProblem, found: Resolved) -> str:
    parts = (
        "items 1",
        problem.digest(),
        repr((asked.fill.rule.value, asked.fill.first_bytes)),
        repr(asked.current_bytes),
        repr(float(asked.relative_gap)),
        *_parts_of(found),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _parts_of(found: Resolved) -> tuple[str, ...]:
    """What tells the source of these costs from others."""
    profile, fitted, given = found.profile, found.fitted, found.given
    return (
        repr((profile.name, profile.revision) if profile else None),
        repr((fitted.trace_digests, fitted.request)) if fitted else "",
        given.digest if given else "",
        repr(found.verification) if found.verification else "",
    )
