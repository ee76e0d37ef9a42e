"""A question whose model is known: found in the store, or fitted now, with what its errors are.

The same way for all that ask about a message: to cut it, to hide it, to audit what it is cut by.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import solvers
from analysis.narrowed_fit import SizesUsed, equal_sizes
from analysis.uncertainty import UncertaintyQuestion
from app.questions.fits import FittedTrace
from app.questions.question import GivenFit, Question, UncertaintyOptions, known_errors
from app.questions.source import FitNow, Resolved, Stored, check_asked_of, resolve
from app.questions.transfers import MAX_ROWS_BESIDE, TransfersWork
from domain.default_sizes import CURRENT, default_sizes
from domain.fit import FitShape, TraceFit
from domain.model import CostModel
from domain.own_transfers import SizeDecision
from domain.problem import AnyProblem, problem_of
from domain.profile import ProfileRevision
from domain.structure import KnownOverlap
from domain.uncertain_fit import measured_whole_us
from domain.uncertainty import NamedCut, seed_of
from domain.verification import Against


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
