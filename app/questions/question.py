"""A question about one message, from what is asked to a problem whose model is known: found in the
store, or fitted now, with what its errors are.

The same way for all that ask about a message: to cut it, to hide it, to audit what it is cut by.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

import solvers
from analysis.narrowed_fit import SizesUsed, equal_sizes
from analysis.uncertainty import UncertaintyQuestion
from app.questions.fits import FittedTrace, GivenFit
from app.questions.source import FitNow, Resolved, Source, Stored, check_asked_of, resolve
from app.questions.transfers import MAX_ROWS_BESIDE, TransfersQuestion, TransfersWork
from contract.limits import DEFAULT_RELATIVE_GAP, DEFAULT_TIME_LIMIT_S, MAX_SEED, MAX_TIME_LIMIT_S
from domain.aggregate import Aggregate
from domain.default_sizes import CURRENT, default_sizes
from domain.errors import InconsistentInput, InvalidInput, StrategyDeclined
from domain.fit import MAY_BE_PIPELINED, FitOptions, FitShape, TraceFit, taken_for_granted
from domain.machine import check_plain
from domain.measured_times import measured_times
from domain.model import CostModel
from domain.own_transfers import SizeDecision
from domain.pipeline import Pipeline
from domain.problem import AnyProblem, FragmentLimits, problem_of
from domain.profile import ProfileReference, ProfileRevision, check_profile_name
from domain.solution import Notice, Strategy
from domain.structure import KnownOverlap
from domain.uncertain_fit import measured_whole_us, misfit_at, uncertain_model
from domain.uncertainty import (
    UNKNOWN_ERRORS,
    KnownErrors,
    NamedCut,
    StatedInterval,
    seed_of,
    stated_model,
)
from domain.verification import Against


@dataclass(frozen=True, slots=True)
class UncertaintyOptions:
    """How to say how sure an answer is.

    `seed` fixes the draws, which else follow from the question. `relative` is the deviation of
    every cost, as a share, in the place of those of a fit, `intervals` those of single costs, of
    which the others are known exactly, or by `relative`; `ready_relative` is the deviation of the
    ready times of items. `current_bytes` is the size that the
    user repeats today, `sends_whole` that messages are sent whole. `robust` asks for the cut of
    least worst regret. Raises InvalidInput.
    """

    draws: int = 400
    seed: int | None = None
    relative: float | None = None
    current_bytes: int | None = None
    sends_whole: bool = False
    mtu_bytes: int | None = None
    robust: bool = False
    intervals: tuple[StatedInterval, ...] = ()
    ready_relative: float | None = None

    @property
    def only_names_current(self) -> bool:
        """Whether the setting in use is all that was given: it is then only compared with."""
        has_current = self.sends_whole or self.current_bytes is not None
        return has_current and self == UncertaintyOptions(
            current_bytes=self.current_bytes, sends_whole=self.sends_whole
        )

    def __post_init__(self) -> None:
        if self.seed is not None and not 0 <= self.seed <= MAX_SEED:
            raise InvalidInput("expected a seed of 64 bits", field="uncertainty.seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One optimisation. `source` is a model, a stored profile, measurements to fit, or a fit.

    `fit_options` go with measurements. `save_as` stores the model under this profile name together
    with the answer, or not at all. Without `uncertainty` fitted costs have the default one. Own
    `transfers` of the message decide in the place of the model. Raises InvalidInput.
    """

    message_bytes: int
    source: Source
    strategy: Strategy = Strategy.AUTO
    static_bytes: int | None = None
    limits: FragmentLimits = field(default_factory=FragmentLimits)
    allow_refragmentation: bool = False
    relative_gap: float = DEFAULT_RELATIVE_GAP
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    save_as: str | None = None
    fit_options: FitOptions | None = None
    uncertainty: UncertaintyOptions | None = None
    transfers: TransfersQuestion | None = None

    @property
    def current_bytes(self) -> int | None:
        """The size that is repeated today, the message's where it is sent whole."""
        options = self.uncertainty
        if options is None:
            return None
        return self.message_bytes if options.sends_whole else options.current_bytes

    def __post_init__(self) -> None:
        check_static_bytes(self.strategy, self.static_bytes)
        if not 0.0 < self.time_limit_s <= MAX_TIME_LIMIT_S:
            raise InvalidInput(
                f"expected 0 < time_limit_s <= {MAX_TIME_LIMIT_S:g}", field="time_limit_s"
            )
        if self.transfers is not None and self.limits != FragmentLimits():
            raise InconsistentInput(
                "own transfers decide among the sizes that were transferred, without limits",
                field="constraints",
            )
        check_saved(self.save_as, self.source)


def check_static_bytes(strategy: Strategy, static_bytes: int | None) -> None:
    """Raise InvalidInput unless a size to repeat is given exactly where it is used."""
    if strategy is Strategy.STATIC and static_bytes is None:
        raise InconsistentInput("strategy static needs static_bytes", field="static_bytes")
    if strategy is not Strategy.STATIC and static_bytes is not None:
        raise InconsistentInput("static_bytes goes with strategy static only", field="static_bytes")


def check_saved(save_as: str | None, source: Source) -> None:
    """Raise InvalidInput, naming save_as, where a profile may not have this name, and
    InconsistentInput for costs that are stored already.
    """
    if save_as is None:
        return
    if isinstance(source, ProfileReference):
        raise InconsistentInput(
            "save_as stores what the request itself holds; a profile is stored already",
            field="save_as",
        )
    check_save_as(save_as)


def check_save_as(name: str) -> None:
    """Raise InvalidInput, naming save_as, unless a profile may have this name."""
    try:
        check_profile_name(name)
    except InvalidInput as refusal:
        raise InvalidInput(refusal.detail, field="save_as") from None


def stages_of_table(model: CostModel) -> Pipeline:
    """Return the pipeline that a table of this model has in its file: where only the total and the
    bottleneck are known, the slowest one with these. Raises StrategyDeclined where there is none.
    """
    if isinstance(model, Pipeline):
        return model
    if isinstance(model, Aggregate):
        return model.slowest_pipeline()
    check_plain(model, "profile")
    raise StrategyDeclined(f"there are no plan tables of the kind {model.kind}", field="profile")


def notices_of_costs(model: CostModel, fit: TraceFit | None) -> tuple[Notice, ...]:
    """Return what is said of a model's costs: its premise, and what else the fit of them says."""
    premise = (taken_for_granted(model.premise),) if model.premise else ()
    of_fit = () if fit is None else fit.notices
    return (*premise, *(one for one in of_fit if one.code != MAY_BE_PIPELINED))


def known_errors(
    model: CostModel,
    fit: TraceFit | None,
    options: UncertaintyOptions | None,
    *,
    message_bytes: tuple[int, int],
    verification: Against | None = None,
) -> KnownErrors | None:
    """Return the errors of a model's costs, of its fit or as typed; None where none are known.

    `message_bytes` are the least and the greatest message that they are for; by how much transfers
    contradicted the model, its `verification` says. Raises InconsistentInput where errors of costs
    are asked for and none are known.
    """
    asked = options or UncertaintyOptions()
    misfit = verification.misfit if verification else 0.0
    if asked.relative is not None or asked.intervals:
        try:
            stated = stated_model(model, asked.relative or 0.0, asked.intervals)
        except InvalidInput as refusal:
            raise type(refusal)(refusal.detail, field=f"uncertainty.{refusal.field}") from None
        own = fit is not None and fit.to_model() == model
        times = measured_times(fit) if fit is not None and own else None
        overlap = fit.overlap if fit is not None and own else KnownOverlap()
        return KnownErrors(stated, misfit, asked.draws, asked.seed, times=times, overlap=overlap)
    known = None if fit is None else uncertain_model(fit)
    if fit is not None and known is not None and known.model == model:
        whole_us = tuple((one.message_bytes, one.measured_us) for one in fit.whole_messages)
        misfit = max(misfit, misfit_at(fit, *message_bytes))
        times = measured_times(fit)
        return KnownErrors(known, misfit, asked.draws, asked.seed, whole_us, times, fit.overlap)
    if options is None or options.only_names_current or options.ready_relative is not None:
        return None
    raise InconsistentInput(UNKNOWN_ERRORS, field="uncertainty.relative")


# --- its model found ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PreparedQuestion:
    """A question whose model is known: a problem, and where its costs came from.

    `digest` is equal exactly for questions that one stored answer can serve. `uncertain` is what
    is known of the costs' errors, None where nothing is; `fit` what the costs were fitted by;
    `verification` what transfers said of the profile, None where there were none. `given` is there
    where a fit was the source; `own` is what a user's own transfers decide, where there are any.
    """

    question: Question
    problem: AnyProblem
    profile: ProfileRevision | None
    fitted: FittedTrace | None
    digest: str
    uncertain: UncertaintyQuestion | None = None
    fit: TraceFit | None = None
    verification: Against | None = None
    given: GivenFit | None = None
    own: SizeDecision | None = None


def prepare(
    question: Question, stored: Stored, *, fragment_cap: int, machines: bool = False
) -> PreparedQuestion:
    """Find or fit the model. Who takes `machines`, and not plain stages alone, says so.

    Raises NotFound, UnreadableTrace, PoorFit, MeasurementMissing, Infeasible, NeedsPlainStages, and
    InconsistentInput where uncertainty is asked for and no errors are known.
    """
    found = resolve(question.source, stored, _fit_now(question, fragment_cap), machines=machines)
    check_asked_of(
        found.model,
        {
            "allow_refragmentation": question.allow_refragmentation,
            "uncertainty.robust": question.uncertainty is not None and question.uncertainty.robust,
        },
    )
    problem = problem_of(
        found.model,
        question.message_bytes,
        question.limits,
        fragment_cap=fragment_cap,
        allow_refragmentation=question.allow_refragmentation,
    )
    problem.count_range()  # what no cut can satisfy is refused before anything is queued
    uncertain = _uncertain(question, problem, found.fit, fragment_cap, found.verification)
    own = None
    if question.transfers is not None:
        own = stored.read(TransfersWork(question.transfers, MAX_ROWS_BESIDE)).decision
    return PreparedQuestion(
        question=question,
        problem=problem,
        profile=found.profile,
        fitted=found.fitted,
        digest=_digest(question, problem, found, uncertain, own),
        uncertain=uncertain,
        fit=found.fit,
        verification=found.verification,
        given=found.given,
        own=own,
    )


def _uncertain(
    question: Question,
    problem: AnyProblem,
    fit: TraceFit | None,
    fragment_cap: int,
    verification: Against | None,
) -> UncertaintyQuestion | None:
    options = question.uncertainty or UncertaintyOptions()
    size = problem.message_bytes
    errors = known_errors(
        problem.model,
        fit,
        question.uncertainty,
        message_bytes=(size, size),
        verification=verification,
    )
    if errors is None:
        return None
    current_bytes = question.current_bytes
    return UncertaintyQuestion(
        errors.model,
        problem.message_bytes,
        problem.limits,
        fragment_cap,
        current=None if current_bytes is None else NamedCut(CURRENT, current_bytes),
        defaults=tuple(
            NamedCut(default.name, default.fragment_bytes)
            for default in default_sizes(problem, current_bytes=current_bytes)
        ),
        mtu_bytes=options.mtu_bytes,
        misfit=errors.misfit,
        measured_us=None if fit is None else measured_whole_us(fit, size),
        measured_bytes=None if fit is None else fit.measured_bytes,
        times=errors.times,
        overlap=errors.overlap,
        draws=errors.draws,
        seed=errors.seed,
        robust=options.robust,
    )


def _fit_now(question: Question, fragment_cap: int) -> FitNow:
    options = question.fit_options
    is_narrowed = options is not None and options.shape is FitShape.NARROWED
    if not is_narrowed:
        return FitNow(options)
    sizes_used = SizesOfQuestion(replace(question, source=(), save_as=None), fragment_cap)
    return FitNow(options, question.message_bytes, sizes_used)


@dataclass(frozen=True, slots=True)
class SizesOfQuestion:
    """The fragment sizes that a question's answer would have for a model. Picklable.

    Where its strategy may take long, the best equal fragments stand for it: which sizes a fit is
    of must not depend on how busy the machine is.
    """

    question: Question
    fragment_cap: int

    def __call__(self, model: CostModel) -> tuple[int, ...]:
        """Solve for this model."""
        question = self.question
        problem = problem_of(
            model,
            question.message_bytes,
            question.limits,
            fragment_cap=self.fragment_cap,
            allow_refragmentation=question.allow_refragmentation,
        )
        if not solvers.is_quick(problem, question.strategy):
            return equal_sizes(problem)
        solution = solvers.solve(
            problem,
            question.strategy,
            relative_gap=question.relative_gap,
            static_bytes=question.static_bytes,
        )
        return solution.schedule.fragment_bytes


def sizes_used_for(message_bytes: int | None, *, fragment_cap: int) -> SizesUsed:
    """Return the same for a message without a question; asked only where there is one."""
    if message_bytes is None:
        return lambda _: ()
    return SizesOfQuestion(Question(message_bytes=message_bytes, source=()), fragment_cap)


# Another one when the rules that decide change: what others decided is not given for an answer.
_DECIDED_BY = "rules 5"


def _digest(
    question: Question,
    problem: AnyProblem,
    found: Resolved,
    uncertain: UncertaintyQuestion | None,
    own: SizeDecision | None,
) -> str:
    # The answer's body names the profile, shows the fit and says how it was verified, so all three
    # are part of the question.
    profile, fitted, given = found.profile, found.fitted, found.given
    parts: tuple[str, ...] = (
        problem.digest(),
        str(question.strategy),
        repr(question.static_bytes),
        repr(float(question.relative_gap)),
        repr((profile.name, profile.revision) if profile else None),
        repr((fitted.trace_digests, fitted.request)) if fitted else "",
        _DECIDED_BY,
    )
    if given is not None:
        parts += (given.digest,)
    if uncertain is not None:
        errors = seed_of(uncertain.model)
        cuts, drawn = (uncertain.current, uncertain.mtu_bytes), (uncertain.draws, uncertain.seed)
        parts += (repr((errors, uncertain.misfit, cuts, drawn)),)
        parts += ("robust",) if uncertain.robust else ()
        parts += (repr(uncertain.measured_bytes),) if uncertain.measured_bytes else ()
        parts += (uncertain.times.digest,) if uncertain.times else ()
        parts += () if uncertain.overlap == KnownOverlap() else (repr(uncertain.overlap),)
        parts += (repr(uncertain.measured_us),) if uncertain.measured_us else ()
    elif question.current_bytes is not None:
        parts += (repr(("current", question.current_bytes)),)
    if found.verification is not None:
        parts += (repr(found.verification), repr(found.verification.notice()))
    if own is not None:
        parts += (repr(own),)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
