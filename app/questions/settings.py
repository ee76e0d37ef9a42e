"""Profile to a library's configuration: ask, find the table, choose sizes, render.

    export_question -> (here, or in a process of its own) -> export

Each step is a function of values, as in `optimize`. Nothing is written: the same question gives
the same bytes, unless the time for solving ran out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from analysis.audit import (
    SETTING,
    AuditQuestion,
    AuditScope,
    check_time_limit,
)
from analysis.repeated_sizes import admits
from analysis.transferred import TransfersSay, what_transfers_say
from app.questions.question import PreparedQuestion, known_errors, notices_of_costs, stages_of_table
from app.questions.source import Stored
from app.text.transferred import transfers_sentence
from contract.limits import DEFAULT_AUDIT_LIMIT_S
from domain.errors import (
    Conflict,
    InconsistentInput,
    InvalidInput,
    LimitReached,
    StrategyDeclined,
)
from domain.fit import TraceFit
from domain.fragment_setting import FragmentSetting
from domain.machine import check_plain
from domain.model import CostModel
from domain.pipeline import Pipeline
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits, problem_of
from domain.profile import ProfileReference, ProfileRevision
from domain.regret import ChosenSetting, Objective, SizeRule, default_objective
from domain.structure import KnownOverlap
from domain.uncertain_answer import Decision, DecisionCode, Reason, SettingsInDraws
from domain.uncertainty import KnownErrors
from domain.verification import Against, said_of
from domain.workload import DEFAULT_MAX_MESSAGE_BYTES, Workload
from exports.targets.gain import doubts, warnings
from exports.targets.registry import target_named
from exports.targets.target import ExportInput, Takes, Target

if TYPE_CHECKING:
    from analysis.size_choice import Messages
    from exports.table.stored import StoredTable
    from models.session import UnitOfWork


MAX_EXPORT_BYTES = 48 * 2**20
LONG_TABLE_BYTES = 2**17  # what is read and written out in some 20 ms
_SIZED = (Takes.ONE_SIZE, Takes.SIZE_STEPS)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportScope:
    """What is asked for besides the pipeline. Raises InvalidInput.

    `min_message_bytes` None is the table's, but at least 1 KiB where the maximum is no less, as
    without a table; `max_message_bytes` None is the table's, or 16 MiB. `workload` None is
    log-uniform over these; a given one is of these ends. `objective` None is the total time of a
    workload, else the mean regret. `limits` None are the
    table's, or none. `options` are checked by the target. `time_limit_s` is for the solves by which
    sizes are chosen.
    """

    target: str
    options: tuple[tuple[str, str], ...] = ()
    min_message_bytes: int | None = None
    max_message_bytes: int | None = None
    workload: Workload | None = None
    objective: Objective | None = None
    limits: FragmentLimits | None = None
    time_limit_s: float = DEFAULT_AUDIT_LIMIT_S

    @property
    def decides_by(self) -> Objective:
        """What the sizes have the least of."""
        return self.objective or default_objective(self.workload)

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit_s)
        target = target_named(self.target)
        names = [name for name, _ in self.options]
        if len(set(names)) < len(names):
            raise InconsistentInput("expected each option once", field="option")
        try:
            target.options_from(dict(self.options))
        except InvalidInput as refusal:
            raise _together(refusal) from None


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table file by its digest."""

    digest: str
    file: bytes


@dataclass(frozen=True, slots=True)
class ExportQuestion:
    """An export whose pipeline and table are known. `profile` None: a pipeline without a name.

    `given_bytes`, rounded up, is written where target and limits admit it, None for the best size,
    of one message for what an answer about it says to set;
    `errors` are those of the costs, None where they are not known or not looked at; `verified` is
    what transfers said of the profile, "" where there were none; `transfers` is what they decide in
    the place of its model; `measured_bytes` are the least and the greatest size that every stage
    was measured at; `overlap` is what is known of the stages'.
    """

    pipeline: CostModel
    profile: ProfileRevision | None
    scope: ExportScope
    table: TableFile | None
    fragment_cap: int
    errors: KnownErrors | None = None
    verified: str = ""
    measured_bytes: tuple[int, int] | None = None
    given_bytes: int | None = None
    transfers: TransfersSay | None = None
    overlap: KnownOverlap = field(default_factory=KnownOverlap)

    @property
    def target(self) -> Target:
        """What it is exported to."""
        return target_named(self.scope.target)

    @property
    def takes_long(self) -> bool:
        """Whether sizes have to be chosen, or a long table be written out."""
        long_table = self.table is not None and len(self.table.file) > LONG_TABLE_BYTES
        return self.target.takes in _SIZED or (self.target.takes is Takes.TABLE and long_table)

    def digest(self) -> str:
        """SHA-256 in hexadecimal; equal exactly for questions of one answer."""
        scope = replace(self.scope, options=tuple(sorted(self.scope.options)))
        table = self.table.digest if self.table else ""
        parts: list[object] = [self.pipeline, self.profile, scope, table]
        parts += [self.fragment_cap, self.errors]
        parts += [self.verified] * bool(self.verified)
        parts += [self.measured_bytes] * bool(self.measured_bytes)
        parts += [("given", self.given_bytes)] * bool(self.given_bytes)
        parts += [self.transfers] * bool(self.transfers)
        parts += [self.overlap] * (self.overlap != KnownOverlap())
        return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Exported:
    """The text as bytes, what it is, a name of a file for it, and the sizes if any were chosen.

    `over_draws` is what these cost over draws of the costs, where their errors are known.
    `is_gain_known` says whether they are known to cost less than the library's default, None where
    no sizes were chosen; `warnings` are what the text begins with.
    """

    content: bytes
    media_type: str
    file_name: str
    chosen: ChosenSetting | None = None
    over_draws: SettingsInDraws | None = None
    is_gain_known: bool | None = None
    warnings: tuple[str, ...] = ()


def export_question(
    model: CostModel,
    profile: ProfileRevision | None,
    scope: ExportScope,
    table: TableFile | None,
    *,
    fragment_cap: int,
    fit: TraceFit | None = None,
    verification: Against | None = None,
) -> ExportQuestion:
    """Return the question about a model. Raises StrategyDeclined, NeedsPlainStages; Conflict
    without a table.

    `fit` is what the model was fitted by and `verification` what transfers said of it, None where
    there was none.
    A table is taken along where the target reads it or where sizes are chosen by it, which needs
    stages.
    """
    check_plain(model, "pipeline" if profile is None else "profile")
    takes = target_named(scope.target).takes
    if not isinstance(model, Pipeline) and takes is Takes.COSTS:
        raise StrategyDeclined(
            "this target needs the stages of a pipeline; of this one only the total and the "
            "bottleneck are known, which is enough for targets of repeated sizes and of tables",
            field="profile",
        )
    if takes is Takes.TABLE and table is None:
        raise Conflict(
            f"{scope.target} takes a compiled table, and there is no active one: compile one for "
            "this revision, or name one",
            field="table",
        )
    is_used = takes is Takes.TABLE or (takes in _SIZED and isinstance(model, Pipeline))
    used = table if is_used else None
    between = (scope.min_message_bytes or 1, scope.max_message_bytes or DEFAULT_MAX_MESSAGE_BYTES)
    errors = None
    if takes in _SIZED:
        errors = known_errors(model, fit, None, message_bytes=between, verification=verification)
    said = said_of(verification)
    verified = said.detail if said else ""
    measured = fit.measured_bytes if fit else None
    question = ExportQuestion(
        model,
        profile,
        scope,
        used,
        fragment_cap,
        errors,
        verified,
        measured,
        overlap=fit.overlap if fit else KnownOverlap(),
    )
    return replace(question, transfers=_transfers(verification, question))


def _transfers(verification: Against | None, question: ExportQuestion) -> TransfersSay | None:
    """What transfers decide of the messages of an export; without ends those are several."""
    scope, table, rule = question.scope, question.table, question.target.sizes
    limits, cap = scope.limits or FragmentLimits(), question.fragment_cap
    if table is not None and None in (scope.min_message_bytes, scope.max_message_bytes):
        between = (1, DEFAULT_MAX_MESSAGE_BYTES)
    else:
        last = scope.max_message_bytes or DEFAULT_MAX_MESSAGE_BYTES
        between = (scope.min_message_bytes or 1, last)
    return what_transfers_say(
        verification,
        messages=between,
        is_admitted=lambda one: (
            rule.admits(one)
            and admits(problem_of(question.pipeline, between[1], limits, fragment_cap=cap), one)
        ),
    )


def profile_question(
    reference: ProfileReference,
    scope: ExportScope,
    stored: Stored,
    table: str | None = None,
    *,
    takes_active: bool = True,
    fragment_cap: int,
) -> ExportQuestion:
    """Return the question about a stored profile, with the table of this digest, or where it
    `takes_active` one the revision's active one.

    Raises NotFound, Conflict and StrategyDeclined.
    """
    revision = stored.revision(reference)
    profile = ProfileRevision(revision.profile, revision.number)
    found = None
    if table is not None or takes_active:
        with stored.unit("profile") as unit:
            found = stored_table(unit, profile, table)
    return export_question(
        revision.model,
        profile,
        scope,
        found,
        fragment_cap=fragment_cap,
        fit=stored.fit_of(revision),
        verification=stored.against(revision),
    )


def stored_table(
    unit: UnitOfWork, profile: ProfileRevision, digest: str | None
) -> TableFile | None:
    """Return the table of this digest, or the revision's active one. Raises NotFound, Conflict."""
    if digest is None:
        active = unit.tables.active(profile.name, profile.revision)
        return TableFile(active.digest, active.file) if active else None
    found = unit.tables.get(digest)
    if (found.profile_name, found.profile_revision) != (profile.name, profile.revision):
        raise Conflict("the compiled table belongs to another revision", field="table")
    return TableFile(found.digest, found.file)


def _is_of(table: PlanTable, model: CostModel) -> bool:
    """Whether a table of this file is one of the model; tables know of no handoffs."""
    pipeline = stages_of_table(model)
    return table.pipeline == pipeline.without_handoffs


def export(
    question: ExportQuestion,
    progress: Callable[[int, int], None] | None = None,
    on_best: Callable[[Exported], None] | None = None,
) -> Exported:
    """Choose and render. Raises InconsistentInput, Infeasible, InvalidTable, Conflict for a table
    of another pipeline, and LimitReached. `progress` is called with messages solved and messages in
    all, `on_best` as by `choose_sizes`.
    """
    from exports.table.slt import decode

    stored = decode(question.table.file) if question.table else None
    if stored is not None and not _is_of(stored.table, question.pipeline):
        raise Conflict("the compiled table is of another pipeline", field="table")
    if question.target.takes not in _SIZED:
        return _rendered(question, stored, None, None)
    try:
        messages = _messages(question, stored)
        advised = None if question.given_bytes else _size_to_set(question, messages)

        def report(chosen: ChosenSetting) -> None:
            if on_best is not None:
                on_best(_rendered(question, stored, chosen, advised))

        best = report if on_best else None
        chosen = _chosen(question, stored, messages, advised, progress, best)
    except InvalidInput as refusal:
        raise _together(refusal) from None
    return _rendered(question, stored, chosen, advised)


def _rendered(
    question: ExportQuestion,
    stored: StoredTable | None,
    chosen: ChosenSetting | None,
    advised: _SizeToSet | None,
) -> Exported:
    target = question.target
    try:
        over_draws = _in_draws(question, chosen, stored)
        given = _input(question, stored, chosen, over_draws)
        given = replace(
            given,
            over_default=_over_default(question, given),
            holds_either_way=advised is not None and advised.holds_either_way(chosen),
        )
        content = target.render(given).encode()
    except InvalidInput as refusal:
        raise _together(refusal) from None
    if len(content) > MAX_EXPORT_BYTES:
        raise LimitReached(f"the export is longer than {MAX_EXPORT_BYTES} bytes", field="table")
    suffix, media_type = target.suffix_for(given.options), target.media_type_for(given.options)
    return Exported(
        content,
        media_type,
        f"{_stem(question)}.{suffix}",
        chosen,
        over_draws,
        is_gain_known=None if chosen is None else not doubts(given, target),
        warnings=tuple(warnings(given, target)),
    )


def _together(refusal: InvalidInput) -> InconsistentInput:
    """Return the error of what is valid alone but does not go with the target or the pipeline."""
    field = "option" if refusal.field == "options" else refusal.field
    return InconsistentInput(refusal.detail, field=field)


def _input(
    question: ExportQuestion,
    stored: StoredTable | None,
    chosen: ChosenSetting | None,
    over_draws: SettingsInDraws | None,
) -> ExportInput:
    profile = question.profile or ProfileRevision("", 0)
    return ExportInput(
        profile=profile.name,
        revision=profile.revision,
        model=question.pipeline,
        options=question.target.options_from(dict(question.scope.options)),
        chosen=chosen,
        over_draws=over_draws,
        table=stored,
        table_digest=question.table.digest if question.table else "",
        table_bytes=question.table.file if question.table else b"",
        verified=question.verified,
        measured_bytes=question.measured_bytes,
        refused=_refused(question.transfers),
        overlap=question.overlap,
    )


def _refused(say: TransfersSay | None) -> str:
    """Why a model that failed sets no size, as a clause; "" where none did."""
    if say is None or not say.against.has_failed:
        return ""
    sentence = transfers_sentence(say).rstrip(".")
    is_decided = say.reason is Reason.TRANSFERRED
    return f"this model failed its verification: {sentence}" if is_decided else sentence


def _stem(question: ExportQuestion) -> str:
    """Return a file's name without its suffix."""
    profile = question.profile
    source = f"{profile.name}-{profile.revision}" if profile else "pipeline"
    return f"{_UNSAFE.sub('_', source)}-{question.target.name}"


def _messages(question: ExportQuestion, stored: StoredTable | None) -> Messages:
    from analysis.size_choice import messages_of

    scope, table = question.scope, stored.table if stored else None
    return messages_of(
        scope.min_message_bytes, scope.max_message_bytes, scope.limits, table, scope.workload
    )


def _chosen(
    question: ExportQuestion,
    stored: StoredTable | None,
    messages: Messages,
    advised: _SizeToSet | None,
    progress: Callable[[int, int], None] | None,
    on_best: Callable[[ChosenSetting], None] | None,
) -> ChosenSetting:
    from analysis.size_choice import choose_sizes

    scope, target = question.scope, question.target
    table = stored.table if stored else None
    return choose_sizes(
        question.pipeline,
        messages,
        rule=target.sizes,
        takes_size_steps=target.takes is Takes.SIZE_STEPS,
        objective=scope.decides_by,
        table=table,
        fragment_cap=question.fragment_cap,
        default=target.default(target.options_from(dict(scope.options))).setting,
        measured_bytes=question.measured_bytes,
        given_bytes=advised.size_bytes if advised else question.given_bytes,
        time_limit_s=scope.time_limit_s,
        progress=progress,
        on_best=on_best,
    )


@dataclass(frozen=True, slots=True)
class _SizeToSet:
    """What an answer about a message says to set, and what its draws have decided, if any did."""

    size_bytes: int | None
    decision: Decision | None = None

    def holds_either_way(self, chosen: ChosenSetting | None) -> bool:
        """Whether this is written, and nothing of it depends on what of the stages overlaps.

        Beside a default that has a price, that is what decides of a size that is faster than one
        piece.
        """
        if chosen is None or not chosen.is_given or self.decision is None:
            return False
        if self.decision.code is DecisionCode.SET_IT:
            return self.decision.reason is Reason.EITHER_WAY and chosen.default is None
        return self.decision.code is DecisionCode.NO_GAIN_PROVABLE


def _size_to_set(question: ExportQuestion, messages: Messages) -> _SizeToSet | None:
    """Return what an answer about this message says to set; None for several messages."""
    from analysis.size_curve import choose_size
    from analysis.uncertainty import UncertaintyQuestion, assess

    size, errors, known = messages.min_message_bytes, question.errors, None
    if size != messages.max_message_bytes:
        return None
    if question.transfers is not None and question.transfers.choice is not None:
        measured = question.transfers.choice
        if measured.code is not DecisionCode.MEASURE_FIRST:
            return _SizeToSet(measured.size_bytes)
        return _SizeToSet(None if measured.best is None else measured.best.fragment_bytes)
    limits, cap = messages.limits, question.fragment_cap
    with suppress(StrategyDeclined):
        if errors is not None:
            asked = UncertaintyQuestion(errors.model, size, limits, cap, misfit=errors.misfit)
            asked = replace(asked, draws=errors.draws, seed=errors.seed)
            measured_us = dict(errors.whole_us).get(size)
            known = assess(
                replace(
                    asked,
                    measured_us=measured_us,
                    measured_bytes=question.measured_bytes,
                    times=errors.times,
                    overlap=errors.overlap,
                )
            )
    problem = problem_of(question.pipeline, size, limits, fragment_cap=cap)
    choice = choose_size(problem, known, current_bytes=None)
    size_bytes = choice.chosen.size_bytes if choice else None
    return _SizeToSet(size_bytes, known.decision if known else None)


def _in_draws(
    question: ExportQuestion, chosen: ChosenSetting | None, stored: StoredTable | None
) -> SettingsInDraws | None:
    from analysis.settings_in_draws import SettingsQuestion, repeated_by, settings_in_draws
    from analysis.size_choice import narrowed

    if chosen is None or question.errors is None:
        return None
    limits = question.scope.limits or (stored.table.limits if stored else FragmentLimits())
    settings = {SETTING: chosen.setting}
    for size in _powers_around(chosen.setting, narrowed(question.target.sizes, limits, 1)):
        settings[str(size)] = FragmentSetting.always(size)
    named = tuple((name, repeated_by(setting)) for name, setting in settings.items())
    return settings_in_draws(
        SettingsQuestion(
            errors=question.errors,
            workload=chosen.workload,
            settings=named,
            limits=limits,
            fragment_cap=question.fragment_cap,
            objective=chosen.objective,
        )
    )


def _over_default(question: ExportQuestion, given: ExportInput) -> SettingsInDraws | None:
    """What the chosen sizes gain over the library's default in draws of the costs."""
    from analysis.settings_in_draws import SettingsQuestion, repeated_by, settings_in_draws

    chosen = given.chosen
    if chosen is None or chosen.default is None or question.errors is None:
        return None
    settings = (("default", chosen.default.setting), (SETTING, chosen.setting))
    named = tuple((name, repeated_by(setting)) for name, setting in settings)
    limits = FragmentLimits()  # a default keeps no limits, and only the two are compared
    return settings_in_draws(
        SettingsQuestion(
            errors=question.errors,
            workload=chosen.workload,
            settings=named,
            limits=limits,
            fragment_cap=question.fragment_cap,
            objective=chosen.objective,
        )
    )


def _powers_around(setting: FragmentSetting, rule: SizeRule) -> Iterator[int]:
    """The powers of two on both sides of a single size, where the rule admits them."""
    size = setting.steps[0].size_bytes
    if len(setting.steps) > 1 or size is None or not size & (size - 1):
        return
    below = 1 << (size.bit_length() - 1)
    for power in (below, 2 * below):
        if rule.min_bytes <= power <= rule.max_bytes and power % rule.multiple_of == 0:
            yield power


# --- audits ---------------------------------------------------------------------------------------


def audit_question(
    prepared: PreparedQuestion, scope: AuditScope, *, fragment_cap: int
) -> AuditQuestion:
    """Return the audit of a model that was found or fitted."""
    from analysis.size_choice import from_measured

    said = said_of(prepared.verification)
    model, between = prepared.problem.model, (scope.min_message_bytes, scope.max_message_bytes)
    measured = prepared.fit.measured_bytes if prepared.fit else None
    return AuditQuestion(
        model=model,
        profile=prepared.profile,
        scope=replace(scope, rule=from_measured(scope.rule, measured)),
        fragment_cap=fragment_cap,
        fit_notices=notices_of_costs(model, prepared.fit),
        measured_bytes=measured,
        errors=known_errors(
            model,
            prepared.fit,
            prepared.question.uncertainty,
            message_bytes=between,
            verification=prepared.verification,
        ),
        verified=(said,) if said else (),
        transfers=what_transfers_say(
            prepared.verification,
            messages=between,
            current_bytes=scope.setting.size_at(scope.max_message_bytes),
        ),
    )
