"""What an existing setting costs over the optimum, and what to change.

Every regret is an interval: at least what the best schedule found gains, at
most what a proven bound leaves open. docs/audit.md says what decides against a limit.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import solvers
from analysis.best_known import (
    FIRST_REPORT_S,
    SolvedMessages,
    SolvedPart,
    improved,
    left_open,
    time_ended,
)
from analysis.premise import words_taken_as_known
from analysis.setting_price import Averages, Priced, Span, averages_of, of_sizes, price
from analysis.settings_in_draws import SettingsQuestion, repeated_by, settings_in_draws
from analysis.transferred import TransfersSay
from contract.limits import (
    DEFAULT_AUDIT_LIMIT_S,
    MAX_AUDIT_LIMIT_S,
    MAX_AUDIT_WORKLOAD_SIZES,
    MAX_MESSAGE_BYTES,
)
from domain.aggregate import Aggregate
from domain.errors import InconsistentInput, InvalidInput, SluiceError
from domain.fit import beyond_measured
from domain.fragment_setting import FragmentSetting, breakpoints
from domain.machine import Machine
from domain.model import CostModel
from domain.problem import DEFAULT_FRAGMENT_CAP, FragmentLimits
from domain.profile import ProfileRevision
from domain.regret import BestKnown, Objective, Regret, SizeRule, default_objective
from domain.solution import Notice
from domain.uncertain_answer import SettingsInDraws
from domain.uncertainty import UNKNOWN_ERRORS, KnownErrors
from domain.workload import (
    DEFAULT_MAX_MESSAGE_BYTES,
    DEFAULT_MIN_MESSAGE_BYTES,
    Workload,
    powers_of_two,
)

WORTH_SAYING = 1e-3  # a change that gains less regret than this is not advised
SETTING, ADVISED = "setting", ("best_size", "best_size_steps")  # in draws
_PLAIN = FragmentLimits()
Progress = Callable[[int, int], None]  # steps done, of all
SHARE_OF_ADVICE = 0.25  # of the time: for messages at which only the advised settings turn


class Reference(StrEnum):
    """What a regret is compared with where a limit is to be kept."""

    BEST = "best"  # the best schedule found: the setting fails only where better is in hand
    BOUND = "bound"  # the proven bound: the setting passes only where no schedule can be better


class RegretVerdict(StrEnum):
    """What an audit finds about a limit."""

    WITHIN = "within"  # proven: even over the bound
    ABOVE = "above"  # proven: even over the best that was found
    BETWEEN = "between"  # the limit lies inside the interval: the reference decides


class Change(StrEnum):
    """What would cost less than the setting, in the order of how easily it is introduced."""

    NO_OTHER_SIZE = "no_other_size"  # no single size gains WORTH_SAYING
    ONE_SIZE = "one_size"  # another size for all messages
    STEPS = "steps"  # sizes that grow with the message
    LOOKUP = "lookup"  # the repeated size of each message out of a compiled table
    SCHEDULES = "schedules"  # schedules of several sizes out of one


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditScope:
    """What is audited, and over which messages. Raises InvalidInput.

    `workload` None is log-uniform over the range. `rule` has the sizes that the library takes,
    which is what may be advised. `objective` None is the total time of a workload, else the mean
    regret. `max_regret` is a share: 0.05 is 5 %; `in_draws` the share of the draws of
    uncertain costs in which it is to be kept too.
    """

    setting: FragmentSetting
    min_message_bytes: int = DEFAULT_MIN_MESSAGE_BYTES
    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES
    workload: Workload | None = None
    rule: SizeRule = field(default_factory=SizeRule)
    takes_size_steps: bool = True
    objective: Objective | None = None
    max_regret: float | None = None
    reference: Reference = Reference.BEST
    time_limit_s: float = DEFAULT_AUDIT_LIMIT_S
    in_draws: float | None = None

    @property
    def decides_by(self) -> Objective:
        """What is held against the limit, and what is advised for."""
        return self.objective or default_objective(self.workload)

    def __post_init__(self) -> None:
        for name in ("min_message_bytes", "max_message_bytes"):
            if not 1 <= getattr(self, name) <= MAX_MESSAGE_BYTES:
                raise InvalidInput(f"expected 1 <= {name} <= {MAX_MESSAGE_BYTES}", field=name)
        if self.max_message_bytes < self.min_message_bytes:
            raise InconsistentInput(
                "expected min_message_bytes <= max_message_bytes", field="max_message_bytes"
            )
        if self.workload is not None and len(self.workload.sizes) > MAX_AUDIT_WORKLOAD_SIZES:
            raise InvalidInput(
                f"expected at most {MAX_AUDIT_WORKLOAD_SIZES} sizes", field="workload"
            )
        if self.max_regret is not None and not 0.0 <= self.max_regret <= 1e6:
            raise InvalidInput("expected 0 <= max_regret <= 1e6", field="max_regret")
        if self.in_draws is not None and self.max_regret is None:
            raise InconsistentInput("expected max_regret beside in_draws", field="in_draws")
        if self.in_draws is not None and not 0.0 < self.in_draws <= 1.0:
            raise InvalidInput("expected 0 < in_draws <= 1", field="in_draws")
        check_time_limit(self.time_limit_s)


def check_time_limit(time_limit_s: float) -> None:
    """Raise InvalidInput unless 0 < time_limit_s <= MAX_AUDIT_LIMIT_S."""
    if not 0.0 < time_limit_s <= MAX_AUDIT_LIMIT_S:
        raise InvalidInput(
            f"expected 0 < time_limit_s <= {MAX_AUDIT_LIMIT_S:g}", field="time_limit_s"
        )


@dataclass(frozen=True, slots=True)
class AuditQuestion:
    """An audit whose model is known, and the errors of its costs where they are.

    Of a model that was fitted for it, `fit_notices` are the fit's; `measured_bytes` are the least
    and the greatest size at which every stage was measured, None where none was; `verified` is what
    transfers said of a profile, and `transfers` what they decide in the place of its model.
    """

    model: CostModel
    scope: AuditScope
    profile: ProfileRevision | None = None
    fragment_cap: int = DEFAULT_FRAGMENT_CAP
    fit_notices: tuple[Notice, ...] = ()
    measured_bytes: tuple[int, int] | None = None
    errors: KnownErrors | None = None
    verified: tuple[Notice, ...] = ()
    transfers: TransfersSay | None = None

    def __post_init__(self) -> None:
        if self.scope.in_draws is not None and self.errors is None:
            raise InconsistentInput(UNKNOWN_ERRORS, field="uncertainty.relative")

    def digest(self) -> str:
        """Return SHA-256 in hexadecimal; equal exactly for questions of one answer."""
        parts = (getattr(self, name) for name in self.__slots__)
        return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found. `single` and `size_steps` are the best of their kind that was found.

    `worst_of` is how many message sizes each worst regret was looked for among: those of the
    workload; and of a whole range also its powers of two and where the settings turn.
    `repeats` is what the best repeated size of each message costs, were it looked up; None where
    some message has none, or none was looked for in time, and of a machine, which has no table.
    `schedules` is what is left open of the best schedules found. `over_draws` is the setting and
    what may be advised over draws of the costs, None where their errors are not known.
    """

    question: AuditQuestion
    workload: Workload
    worst_of: int
    priced: Priced
    at_powers: tuple[Regret, ...]
    single: Priced
    size_steps: Priced | None
    repeats: Averages | None
    schedules: Averages
    verdict: RegretVerdict | None
    changes: tuple[Change, ...]
    notices: tuple[Notice, ...]
    audit_ms: float
    over_draws: SettingsInDraws | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the limit, if there is one, is kept by the reference that decides, and in enough
        draws.
        """
        wanted = self.question.scope.in_draws
        if (
            wanted is not None
            and self.over_draws
            and (self.over_draws.settings[0].kept or 0.0) < wanted
        ):
            return False
        return is_kept_by(self.verdict, self.question.scope.reference)


def audit(
    question: AuditQuestion,
    progress: Progress | None = None,
    on_best: Callable[[Audit], None] | None = None,
    known: SolvedPart | None = None,
) -> Audit:
    """Price the setting and its alternatives. Raises InvalidInput.

    `progress` is called with messages solved and messages in all; where it takes long `on_best` now
    and then with the audit by what is solved so far, for a caller that has to stop it. What is
    `known` is not solved again, and the time it took is no longer left.
    """
    known = known or SolvedPart((), 0.0)
    started_s = time.perf_counter() - known.seconds
    scope = question.scope
    solved = _solving(question, max(0.0, scope.time_limit_s - known.seconds), progress)
    solved.best = known.best
    if on_best is not None:
        solved.report = lambda best: on_best(_early_audit(question, solved, best, started_s))
    solved.add(set(messages_of(question)), share=1.0 - SHARE_OF_ADVICE)
    solved.improve_by(scope.setting)
    if on_best is not None and time.perf_counter() >= started_s + FIRST_REPORT_S:
        on_best(_early_audit(question, solved, solved.best, started_s))
    chosen = tuple(_chosen(question, solved.best))
    solved.report = None
    solved.add(_turns_of(scope, chosen))
    solved.improve_by(scope.setting, *chosen)
    return _audit_of(question, solved.best, chosen, started_s)


def messages_of(question: AuditQuestion) -> tuple[int, ...]:
    """Return the message sizes that are solved before what may be advised is known, ascending."""
    scope = question.scope
    powers = powers_of_two(scope.min_message_bytes, scope.max_message_bytes)
    turns = _turns(scope, scope.setting)
    return tuple(sorted({*powers, *_sizes_of(_workload_of(scope)), *turns}))


def solve_part(question: AuditQuestion, progress: Progress, *, sizes: Sequence[int]) -> SolvedPart:
    """Solve some of `messages_of` within their share of the time."""
    started_s = time.perf_counter()
    share = len(sizes) / len(messages_of(question))
    solved = _solving(question, share * question.scope.time_limit_s, progress)
    solved.add(set(sizes), share=1.0 - SHARE_OF_ADVICE)
    return SolvedPart(solved.best, time.perf_counter() - started_s)


def _solving(question: AuditQuestion, limit_s: float, progress: Progress | None) -> SolvedMessages:
    return SolvedMessages(question.model, _PLAIN, question.fragment_cap, limit_s, progress=progress)


def _early_audit(
    question: AuditQuestion,
    solved: SolvedMessages,
    best: tuple[BestKnown, ...],
    started_s: float,
) -> Audit:
    """The audit by this alone; where the advised settings turn, messages are between simple limits:
    nobody has looked for a better cut there.
    """
    best = improved(question.model, best, question.scope.setting)
    chosen = tuple(_chosen(question, best))
    best = solved.bounded_at(best, _turns_of(question.scope, chosen))
    best = improved(question.model, best, question.scope.setting, *chosen)
    return _audit_of(question, best, chosen, started_s)


def _audit_of(
    question: AuditQuestion,
    best: tuple[BestKnown, ...],
    chosen: Sequence[FragmentSetting],
    started_s: float,
) -> Audit:
    scope, model, workload = question.scope, question.model, _workload_of(question.scope)
    looked_at = _looked_at(question, best)
    priced, single, *size_steps = (
        price(model, setting, best, workload, also=looked_at)
        for setting in (scope.setting, *chosen)
    )
    powers = powers_of_two(scope.min_message_bytes, scope.max_message_bytes)
    at_powers = solvers.regrets(model, scope.setting, of_sizes(best, powers))
    counted = {size.message_bytes for size in workload.sizes if size.share > 0.0}
    partial = left_open(best, workload, scope.decides_by)
    outcome = Audit(
        question=question,
        workload=workload,
        worst_of=len(counted.union(looked_at)),
        priced=priced,
        at_powers=at_powers,
        single=single,
        size_steps=size_steps[0] if size_steps else None,
        repeats=None if isinstance(model, Machine) else _repeats(best, workload),
        schedules=averages_of([Regret(one, 0, one.latency_us) for one in best], workload),
        verdict=verdict(priced.value(scope.decides_by), scope.max_regret),
        changes=(),
        notices=(
            *question.verified,
            *((time_ended(partial, len(best)),) if partial else ()),
            *_notices(question, (priced.worst, *at_powers)),
        ),
        over_draws=_in_draws(question, workload, chosen),
        audit_ms=(time.perf_counter() - started_s) * 1e3,
    )
    return replace(outcome, changes=tuple(_changes(outcome)))


def _workload_of(scope: AuditScope) -> Workload:
    return scope.workload or Workload.log_uniform(scope.min_message_bytes, scope.max_message_bytes)


def _sizes_of(workload: Workload) -> Iterator[int]:
    return (size.message_bytes for size in workload.sizes)


def ended(best: Audit, why: SluiceError) -> Audit:
    """Return an audit by what was solved so far with the note that it was ended, and why."""
    notice = Notice(why.code, f"{why.detail}; this is by what was solved so far")
    return replace(best, notices=(notice, *best.notices))


def verdict(span: Span, max_regret: float | None) -> RegretVerdict | None:
    """Return what is proven about the limit; None without one."""
    if max_regret is None:
        return None
    if span.at_most <= max_regret:
        return RegretVerdict.WITHIN
    return RegretVerdict.ABOVE if span.at_least > max_regret else RegretVerdict.BETWEEN


def is_kept_by(found: RegretVerdict | None, reference: Reference) -> bool:
    """Return whether the limit, if there is one, is kept by the reference that decides."""
    if found is RegretVerdict.BETWEEN:
        return reference is Reference.BEST
    return found is not RegretVerdict.ABOVE


def _turns(scope: AuditScope, setting: FragmentSetting) -> tuple[int, ...]:
    """Where a setting turns; of a given workload, which is all that is sent, nowhere else."""
    if scope.workload is not None:
        return ()
    return breakpoints(setting, scope.min_message_bytes, scope.max_message_bytes)


def _turns_of(scope: AuditScope, settings: Sequence[FragmentSetting]) -> set[int]:
    return {size for setting in settings for size in _turns(scope, setting)}


def _looked_at(question: AuditQuestion, best: Sequence[BestKnown]) -> tuple[int, ...]:
    """The messages beside the workload that may be the worst; none beside a given workload."""
    return () if question.scope.workload is not None else tuple(one.message_bytes for one in best)


def _chosen(question: AuditQuestion, best: Sequence[BestKnown]) -> Iterator[FragmentSetting]:
    """The best single size, and the best size steps where the library takes them."""
    scope, workload = question.scope, _workload_of(question.scope)
    ways = (solvers.choose_size, *((solvers.choose_size_steps,) if scope.takes_size_steps else ()))
    for choose in ways:
        chosen = choose(question.model, best, workload, rule=scope.rule, objective=scope.decides_by)
        yield chosen.setting


def _in_draws(
    question: AuditQuestion, workload: Workload, chosen: Sequence[FragmentSetting]
) -> SettingsInDraws | None:
    """The setting and those that may be advised, by the names that `AuditOut` has for them."""
    if question.errors is None:
        return None
    scope = question.scope
    named = zip((SETTING, *ADVISED), (scope.setting, *chosen), strict=False)
    settings = tuple((name, repeated_by(setting)) for name, setting in named)
    cap, limit = question.fragment_cap, (scope.max_regret, scope.decides_by)
    return settings_in_draws(
        SettingsQuestion(question.errors, workload, settings, _PLAIN, cap, *limit)
    )


def _repeats(best: Sequence[BestKnown], workload: Workload) -> Averages | None:
    counted = [size.message_bytes for size in workload.sizes if size.share > 0.0]
    if any(one.repeat_us is None for one in of_sizes(best, counted)):
        return None
    return averages_of([Regret(one, 0, one.repeat_us or 0.0) for one in best], workload)


def _notices(question: AuditQuestion, regrets: Sequence[Regret]) -> Iterator[Notice]:
    if isinstance(question.model, Aggregate):
        yield _FROM_OUTSIDE
    if question.errors is not None:
        yield from words_taken_as_known(question.errors.model)
    fragments = max(-(-one.message_bytes // one.size_bytes) for one in regrets)
    if fragments > question.fragment_cap:
        yield Notice(
            "more_fragments_than_planned",
            f"the setting cuts a message into {fragments} fragments; the schedules that it is "
            f"compared with have at most {question.fragment_cap} (SLUICE_MAX_FRAGMENTS)",
        )
    cut = {one.size_bytes for one in regrets if one.size_bytes < one.message_bytes}
    cut.add(max(one.size_bytes for one in regrets))
    if beyond := beyond_measured(cut, question.measured_bytes, "the setting"):
        yield beyond


_FROM_OUTSIDE = Notice(
    "regret_of_upper_bounds",
    "only the total and the bottleneck are known: latencies are the most that a pipeline with "
    "these costs can take, and regrets compare those",
)


def _changes(outcome: Audit) -> Iterator[Change]:
    objective, now = outcome.question.scope.decides_by, outcome.priced
    kept = now.value(objective).at_least
    single = outcome.single.value(objective).at_least
    yield Change.ONE_SIZE if kept - single >= WORTH_SAYING else Change.NO_OTHER_SIZE
    if _gains_by_steps(outcome, min(kept, single)):
        yield Change.STEPS
    if isinstance(outcome.question.model, Machine):
        return  # tables are of plain stages
    gained, repeats = now.averages.value(objective).at_least, outcome.repeats
    if repeats is not None and gained - repeats.value(objective).at_least >= WORTH_SAYING:
        yield Change.LOOKUP
    if gained >= WORTH_SAYING:
        yield Change.SCHEDULES


def _gains_by_steps(outcome: Audit, so_far: float) -> bool:
    size_steps = outcome.size_steps
    if size_steps is None or len(size_steps.setting.steps) == 1:
        return False
    return so_far - size_steps.value(outcome.question.scope.decides_by).at_least >= WORTH_SAYING
