"""A question about a message that is cut between items, from what is asked to a problem."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.items import ItemsQuestion
from app.questions.question import (
    UncertaintyOptions,
    check_saved,
    known_errors,
    notices_of_costs,
)
from app.questions.source import FitNow, Resolved, Source, Stored, field_of, resolve
from contract.limits import MAX_SIMULATED
from domain.errors import (
    InconsistentInput,
    Infeasible,
    InvalidInput,
    ItemsDeclined,
    NeedsPlainStages,
    SluiceError,
)
from domain.fit import FitOptions, FitShape, beyond_measured, cut_sizes
from domain.items import (
    FillRule,
    ItemCut,
    ItemProblem,
    ItemSequence,
    ItemTimes,
    item_problem_of,
    layout,
)
from domain.machine import Machine
from domain.model import CostModel
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits
from domain.profile import ProfileRevision
from domain.solution import Notice
from domain.uncertainty import KnownErrors, seed_of, stated_model

if TYPE_CHECKING:
    from domain.uncertain_items import ItemErrors, SureItems

_ERRORS_NOT_KNOWN = Notice(
    "errors_not_known",
    "how sure this cut is cannot be told: the errors of its fitted costs are not known. Measure "
    "more sizes of each stage, and fit them again, or give the deviation of the costs (relative)",
)
_NO_CAP = Notice(
    "answer_not_in_draws",
    "how sure this cut is was not computed: the limits admit no layout of one cap to compare it "
    "with",
)
_QUICK_ITEMS = 500  # items times stages: some milliseconds
_QUICK_IN_WINDOWS = 50  # the same where labels have the places of windows, too
_UNTIL = FillRule()
_OF_PIPELINE = ("stages", "windows")
_OF_ITEMS = ("bytes", "ready_us", "stage_us", "names")
_OF_LIMITS = ("max_fragment_bytes", "max_fragments", "max_fragment_items")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedItems:
    """One optimisation of items. `current_bytes` is the cap in use, filled by `fill`. `save_as`
    stores the model under this profile name together with the answer. Without `uncertainty` fitted
    costs have the default one. Raises InvalidInput.
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
    max_fragment_items: int | None = None
    uncertainty: UncertaintyOptions | None = None

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
    errors: ItemErrors | None = None

    @property
    def question(self) -> ItemsQuestion:
        """The solver's arguments."""
        asked = self.asked
        return ItemsQuestion(
            self.problem,
            asked.fill,
            asked.relative_gap,
            asked.time_limit_s,
            asked.current_bytes,
            self.errors,
        )

    def notices(self, sizes: tuple[int, ...], sure: SureItems | None) -> tuple[Notice, ...]:
        """What is said of the costs, for fragments of these sizes, and of what draws left open."""
        fit = self.found.fit
        beyond = beyond_measured(cut_sizes(sizes), fit.measured_bytes if fit else None)
        return (
            *self.found.said,
            *(() if beyond is None else (beyond,)),
            *self._unsure(sure),
        )

    def _unsure(self, sure: SureItems | None) -> tuple[Notice, ...]:
        """What is said where it is not known, or not wholly, how sure the answer is."""
        if self.errors is None:
            return () if self.found.fit is None else (_ERRORS_NOT_KNOWN,)
        if sure is None:
            return (_NO_CAP,)
        return () if sure.is_complete else (_some_layouts(sure),)

    def notices_of_costs(self) -> tuple[Notice, ...]:
        """What is said of the model, and what the fit of it says."""
        return notices_of_costs(self.problem.pipeline, self.found.fit)


def prepare_items(asked: AskedItems, stored: Stored, *, fragment_cap: int) -> PreparedItems:
    """Find or fit the model. Raises NotFound, Infeasible, InvalidInput, NeedsPlainStages,
    ItemsDeclined for what items do not go with, and what a fit does.
    """
    across = items_across(
        asked.source,
        asked.fit_options,
        stored,
        asked.sequence,
        asked.limits,
        fragment_cap,
        max_fragment_items=asked.max_fragment_items,
        machines=True,
    )
    problem, found = across.problem, across.found
    if asked.current_bytes is not None:
        cut = layout(asked.sequence, asked.current_bytes, asked.fill)
        _check_fits(problem, cut, "uncertainty.current")
    errors = _errors(asked, found, problem)
    return PreparedItems(asked, problem, found, _digest(asked, problem, found, errors), errors)


def are_quick(problems: Iterable[ItemProblem]) -> bool:
    """Return whether these are small enough to be solved in the process that is asked."""
    share = 0.0
    for problem in problems:
        most = _QUICK_IN_WINDOWS if problem.windows else _QUICK_ITEMS
        share += len(problem.sequence) * len(problem.pipeline) / most
    return share <= 1.0


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
    *,
    max_fragment_items: int | None = None,
    machines: bool = False,
) -> ItemsAcross:
    """Find or fit the stages that items cross, with `machines` windows among them. Raises as
    `prepare_items` does.
    """
    found = found_for_items(source, options, stored, machines=machines)
    problem = items_problem(
        found.model, sequence, limits, source, fragment_cap, max_fragment_items=max_fragment_items
    )
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
    found = found_for_items(source, options, stored, machines=False)
    free = FragmentLimits()
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


def _errors(asked: AskedItems, found: Resolved, problem: ItemProblem) -> ItemErrors | None:
    """What is known of the errors of costs and ready times, None where nothing is. Raises
    InconsistentInput where errors are asked for and none are known, ItemsDeclined with windows.
    """
    if problem.windows:
        _check_no_errors(asked.uncertainty)
        return None
    options, size, fit = asked.uncertainty, asked.sequence.total_bytes, found.fit
    relative = None if options is None else options.ready_relative
    if relative is not None and asked.sequence.ready_us is None:
        raise InconsistentInput(
            "ready_relative goes with ready times: these items are all ready at once",
            field="uncertainty.ready_relative",
        )
    known = known_errors(
        found.model, fit, options, message_bytes=(size, size), verification=found.verification
    )
    if known is None and options is not None and relative is not None:
        exact = stated_model(found.model, 0.0)
        known = KnownErrors(exact, draws=options.draws, seed=options.seed)
    if known is None:
        return None
    from domain.uncertain_items import ItemErrors

    return ItemErrors(known, relative or 0.0, None if fit is None else fit.measured_bytes)


def _check_no_errors(options: UncertaintyOptions | None) -> None:
    for field in ("relative", "intervals", "ready_relative"):
        if options is not None and getattr(options, field):
            raise ItemsDeclined(
                "with windows cuts between items are not priced in draws: solve with costs at both "
                "ends of their errors, and compare",
                field=f"uncertainty.{field}",
            )


def found_for_items(
    source: Source, options: FitOptions | None, stored: Stored, *, machines: bool
) -> Resolved:
    """Find or fit the model that items cross, machines too or plain stages alone. Raises as
    `prepare_items` does.
    """
    if options is not None and options.shape is FitShape.NARROWED:
        raise ItemsDeclined(
            "a narrowed fit is of fragments that an answer has, and of items these are not known",
            field="fit_options.shape",
        )
    try:
        return resolve(source, stored, FitNow(options), machines=machines)
    except NeedsPlainStages as refusal:
        words = "items cross plain stages alone here; optimize and simulate take windows, too"
        raise NeedsPlainStages(words, field=refusal.field) from None


def items_problem(
    model: CostModel,
    sequence: ItemSequence,
    limits: FragmentLimits,
    source: Source,
    fragment_cap: int,
    *,
    max_fragment_items: int | None = None,
) -> ItemProblem:
    """Return the problem of items across a model. Raises ItemsDeclined, InvalidInput, Infeasible,
    and NeedsPlainStages for a machine that has more than windows, naming the field of the request.
    """
    if not isinstance(model, Pipeline | Machine):
        raise ItemsDeclined(
            "items need the time of every stage, and this is an aggregate", field=field_of(source)
        )
    try:
        capped = within_cap(limits, len(sequence), fragment_cap)
        problem = item_problem_of(model, sequence, capped, max_fragment_items=max_fragment_items)
        problem.check_feasible()
        return problem
    except SluiceError as refusal:
        refusal.field = _field_in_request(refusal.field, source)
        raise


def within_cap(limits: FragmentLimits, count: int, fragment_cap: int) -> FragmentLimits:
    """Return the limits with this cap on fragments, where there are more items."""
    if count <= fragment_cap:
        return limits
    most = min(fragment_cap, limits.max_fragments or fragment_cap)
    return FragmentLimits(
        limits.min_fragment_bytes, limits.max_fragment_bytes, limits.alignment_bytes, most
    )


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
    found = found_for_items(source, options, stored, machines=True)
    limits, cap = FragmentLimits(), len(sequence)
    problem = items_problem(found.model, sequence, limits, source, cap)
    ends = layout(sequence, cut.cap_bytes, cut.fill) if cut.ends is None else cut.ends
    try:
        problem.check_cut(ends)
    except InvalidInput as refusal:
        raise InvalidInput(refusal.detail, field="cut") from None
    _check_fits(problem, ends, "cap_bytes" if cut.ends is None else "cut")
    intervals = len(ends) * len(problem.pipeline)
    if intervals > MAX_SIMULATED:
        raise InconsistentInput(
            f"expected fragments x stages <= {MAX_SIMULATED} intervals in one simulation, got "
            f"{intervals}",
            field="cap_bytes" if cut.ends is None else "cut",
        )
    return ItemsRun(problem, problem.simulate(ends), found.said, found.profile)


def _check_fits(problem: ItemProblem, cut: ItemCut, field: str) -> None:
    """Raise Infeasible, which names this field, where a fragment does not fit a window."""
    try:
        problem.places(cut)
    except Infeasible as refusal:
        raise Infeasible(refusal.detail, field=field) from None


def _field_in_request(field: str | None, source: Source) -> str | None:
    """The field of the request that this one of the problem is."""
    first = (field or "").partition(".")[0]
    if first in _OF_PIPELINE:
        return f"pipeline.{field}" if field_of(source) == "pipeline" else field_of(source)
    if first in _OF_ITEMS:
        return f"items.{field}"
    return f"constraints.{field}" if first in _OF_LIMITS else field


def _some_layouts(sure: SureItems) -> Notice:
    return Notice(
        "some_layouts_in_draws",
        f"how sure this cut is was computed beside {sure.priced} of {sure.layouts} layouts "
        "that one cap gives, those of least latency at the costs as they stand: where another is "
        "best in a draw, caps are told as good that are a little further from it",
        values=(("priced", sure.priced), ("layouts", sure.layouts)),
    )


def _digest(
    asked: AskedItems, problem: ItemProblem, found: Resolved, errors: ItemErrors | None
) -> str:
    parts: tuple[str, ...] = (
        "items 1",
        problem.digest(),
        repr((asked.fill.rule.value, asked.fill.first_bytes)),
        repr(asked.current_bytes),
        repr(float(asked.relative_gap)),
        *_parts_of(found),
    )
    if errors is not None:
        known = errors.known
        drawn = seed_of(known.model), known.misfit, known.draws, known.seed, known.overlap
        parts += (repr((drawn, errors.ready_relative, errors.measured_bytes)),)
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
