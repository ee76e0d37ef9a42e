"""Pipeline to compiled plan table: ask, look for a stored one, compile, keep.

    table_question -> find_table -> compile_table (in a process of its own) -> keep_table

Each step is a function of values, as in `optimize`. Only `keep_table` writes, and all that it
writes is one transaction: a compilation that is ended leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

from analysis.repeated_sizes import admits
from analysis.table_facts import TableFacts, facts_of
from analysis.transferred import TransfersSay, what_transfers_say
from app.questions.question import known_errors, stages_of_table
from app.questions.source import Stored
from contract.limits import (
    DEFAULT_TABLE_GAP,
    DEFAULT_TABLE_MESSAGE_BYTES,
    DIGEST_RULE,
    MAX_COMPILE_S,
    MAX_PROFILE_NAME,
)
from domain.errors import Conflict, InvalidInput, NotFound, SolverFailed
from domain.fit import TraceFit
from domain.hiding import HiddenBehind
from domain.model import CostModel
from domain.pipeline import Pipeline
from domain.plan_table import (
    PlanTable,
    check_table_gap,
    check_table_range,
)
from domain.problem import FragmentLimits, problem_of
from domain.profile import ProfileReference, ProfileRevision
from domain.solution import Notice
from domain.uncertain_answer import SettingsInDraws
from domain.uncertainty import KnownErrors, NamedCut
from domain.verification import Against, said_of
from domain.workload import Workload
from models.identifiers import IDENTIFIER, new_id
from models.records import TableRecord, TableSummary

if TYPE_CHECKING:
    from models.session import Store, UnitOfWork


PROGRESS_STEPS = 1_000
_HIDDEN = "hidden"  # at the end of the name in the file of such a table
REPEATS, CUTS = "repeats", "cuts"  # the table's two ways of cutting, in draws
_DIGEST = re.compile(DIGEST_RULE, re.ASCII)


@dataclass(frozen=True, slots=True)
class TableScope:
    """The messages that a table is for, how they may be cut, and the tolerance.

    Raises InvalidInput.
    """

    limits: FragmentLimits = field(default_factory=FragmentLimits)
    min_message_bytes: int = 1
    max_message_bytes: int = DEFAULT_TABLE_MESSAGE_BYTES
    relative_gap: float = DEFAULT_TABLE_GAP
    time_limit_s: float = MAX_COMPILE_S

    def __post_init__(self) -> None:
        if not 0.0 < self.time_limit_s <= MAX_COMPILE_S:
            raise InvalidInput(
                f"expected 0 < time_limit_s <= {MAX_COMPILE_S:g}", field="time_limit_s"
            )
        check_table_range(self.min_message_bytes, self.max_message_bytes)
        check_table_gap(self.relative_gap)


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """What to compile. `profile` is None for a model without a name.

    `errors` are those of the costs, None where they are not known; the table is the same. Where
    messages are hidden `behind` a calculation, it is compiled for run times; no such one is stored.
    `measured_bytes` are the least and the greatest size that every stage was measured at. `said` is
    what transfers said of the profile, and `transfers` what they decide in the place of its model:
    neither is part of the table, and of its document as it is stored.
    """

    model: CostModel
    profile: ProfileRevision | None
    scope: TableScope
    fragment_cap: int
    errors: KnownErrors | None = None
    behind: HiddenBehind | None = None
    measured_bytes: tuple[int, int] | None = None
    said: Notice | None = None
    transfers: TransfersSay | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The stages that the table's figures are of. Raises StrategyDeclined."""
        return stages_of_table(self.model)

    def digest(self, *, cut_off: bool = False) -> str:
        """SHA-256 in hexadecimal; equal exactly for questions that one stored table answers.

        The time limit is no part of it. A table whose search time has `cut_off` answers none.
        """
        scope = self.scope
        cap = self.fragment_cap
        problem = problem_of(self.model, scope.max_message_bytes, scope.limits, fragment_cap=cap)
        parts = (
            problem.digest(),
            repr(scope.min_message_bytes),
            repr(float(scope.relative_gap)),
            repr((self.profile.name, self.profile.revision) if self.profile else None),
            *(("cut off", repr(scope.time_limit_s)) if cut_off else ()),
            *((repr(self.behind),) if self.behind else ()),
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class CompiledTable:
    """A table file by its digest, and the facts about it.

    `over_draws` is what its repeated sizes and its cuts cost over draws of the costs.
    """

    question: TableQuestion
    file: bytes
    digest: str
    facts: TableFacts
    compile_ms: float
    created_at: datetime
    over_draws: SettingsInDraws | None = None


Render: TypeAlias = Callable[[CompiledTable], bytes]
MeasuredModel: TypeAlias = tuple[CostModel, Against]
MeasuredTable: TypeAlias = tuple[TableRecord, MeasuredModel | None]


def table_question(
    model: CostModel,
    profile: ProfileRevision | None,
    scope: TableScope,
    *,
    fragment_cap: int,
    fit: TraceFit | None = None,
    verification: Against | None = None,
) -> TableQuestion:
    """Return the question about a model. Raises StrategyDeclined for one that has no tables.

    `fit` is what the model was fitted by and `verification` what transfers said of it, None where
    there was none.
    """
    stages_of_table(model)
    between = (scope.min_message_bytes, scope.max_message_bytes)
    errors = known_errors(model, fit, None, message_bytes=between)
    measured = fit.measured_bytes if fit else None
    return TableQuestion(
        model,
        profile,
        scope,
        fragment_cap,
        errors,
        measured_bytes=measured,
        said=said_of(verification),
        transfers=transfers_of_table(
            verification, model, between, scope.limits, fragment_cap=fragment_cap
        ),
    )


def transfers_of_table(
    against: Against | None,
    model: CostModel,
    between: tuple[int, int],
    limits: FragmentLimits,
    *,
    fragment_cap: int,
) -> TransfersSay | None:
    """Return what transfers say of a table's messages; None where its model is left to decide."""
    return what_transfers_say(
        against,
        messages=between,
        is_admitted=lambda one: admits(
            problem_of(model, between[1], limits, fragment_cap=fragment_cap), one
        ),
    )


def find_table(unit: UnitOfWork, question: TableQuestion) -> TableRecord | None:
    """Return a stored table of the identical question."""
    return None if question.profile is None else unit.tables.find(question.digest())


def compile_table(
    question: TableQuestion,
    progress: Callable[[int, int], None] | None = None,
    is_ended: Callable[[], bool] | None = None,
) -> CompiledTable:
    """Compile in this process. Raises Infeasible, LimitReached and SolverFailed.

    `progress` is called with steps done and steps in all, which are PROGRESS_STEPS; `is_ended` is
    asked whether time is up before its limit.
    """
    from exports.table.slt import digest_of, encode

    started_s = time.perf_counter()
    table, loosened_gap, is_cut_off = _plan_table(question, progress, is_ended)
    compile_ms = (time.perf_counter() - started_s) * 1e3
    profile = _named(question)
    file = encode(table, profile=profile.name, revision=profile.revision)
    is_outside = question.model.stages is None
    facts = facts_of(table, are_cuts_repeated=is_outside)
    worst = max(facts.worst_repeat.relative_gap, 0.0 if is_outside else facts.worst.relative_gap)
    is_cut_off = is_cut_off and worst > table.relative_gap
    facts = replace(facts, loosened_gap=loosened_gap, is_cut_off=is_cut_off)
    return CompiledTable(
        question,
        file,
        digest_of(file),
        facts,
        compile_ms,
        datetime.now(UTC),
        _in_draws(question, table),
    )


def _named(question: TableQuestion) -> ProfileRevision:
    """The name in the file, which says so where its figures are run times."""
    if question.behind is None:
        return question.profile or ProfileRevision("", 0)
    if question.profile is None:
        return ProfileRevision(_HIDDEN, 1)
    name = question.profile.name[: MAX_PROFILE_NAME - len(_HIDDEN) - 1]
    return ProfileRevision(f"{name}.{_HIDDEN}", question.profile.revision)


def _in_draws(question: TableQuestion, table: PlanTable) -> SettingsInDraws | None:
    """What the table's ways of cutting cost over draws of the costs, in the mean over its range.

    Its cuts are left out where they have very many fragments: that would take long.
    """
    from analysis.settings_in_draws import CutOf, SettingsQuestion, settings_in_draws
    from analysis.uncertainty import MAX_CELLS

    if question.errors is None or question.behind is not None:
        return None

    def cut(message_bytes: int) -> NamedCut:
        return NamedCut.of_fragments(CUTS, table.cut_at(message_bytes))

    def repeat(message_bytes: int) -> NamedCut:
        size = table.repeated_size_at(message_bytes)
        return NamedCut(REPEATS, size) if size else cut(message_bytes)

    scope = question.scope
    workload = Workload.log_uniform(scope.min_message_bytes, scope.max_message_bytes)
    settings: tuple[tuple[str, CutOf], ...] = ((REPEATS, repeat), (CUTS, cut))
    fragments = max(entry.fragments for entry in table.cuts)
    if question.model.stages is None or fragments * len(question.model.stages) > MAX_CELLS:
        settings = settings[:1]
    cap = question.fragment_cap
    return settings_in_draws(
        SettingsQuestion(question.errors, workload, settings, scope.limits, cap)
    )


def _plan_table(
    question: TableQuestion,
    progress: Callable[[int, int], None] | None,
    is_ended: Callable[[], bool] | None,
) -> tuple[PlanTable, float | None, bool]:
    """Return the table, the tolerance of its cuts where that is looser than the one asked, and
    whether time ended the compilation.
    """
    import solvers

    scope = question.scope
    loosened: list[float] = []
    cut_off: list[bool] = []
    try:
        table = solvers.compile_table(
            question.model,
            scope.limits,
            min_message_bytes=scope.min_message_bytes,
            max_message_bytes=scope.max_message_bytes,
            relative_gap=scope.relative_gap,
            fragment_cap=question.fragment_cap,
            time_limit_s=scope.time_limit_s,
            behind=question.behind,
            on_progress=_in_steps(progress) if progress else None,
            on_loosened=loosened.append,
            on_cut_off=lambda: cut_off.append(True),
            is_ended=is_ended,
        )
    except InvalidInput as defect:  # the question was checked: these are entries that break a rule
        raise SolverFailed(f"the compiler broke its contract: {defect.detail}") from defect
    return table, loosened[0] if loosened else None, bool(cut_off)


def _in_steps(progress: Callable[[int, int], None]) -> Callable[[float], None]:
    """Return a function that takes the share that is done."""
    return lambda share: progress(min(PROGRESS_STEPS, int(share * PROGRESS_STEPS)), PROGRESS_STEPS)


def keep_table(
    unit: UnitOfWork, compiled: CompiledTable, render: Render, *, activate: bool | None = None
) -> TableRecord:
    """Store the table in this unit of work; of the same bytes the record that is stored already.

    `activate` is as for `choose_table`. Raises Conflict where its revision was deleted meanwhile,
    also where another one has its name and number now.
    """
    question, scope = compiled.question, compiled.question.scope
    profile = question.profile
    unit.tables.add(
        TableRecord(
            digest=compiled.digest,
            id=new_id(),
            created_at=compiled.created_at,
            profile_name=profile.name if profile else None,
            profile_revision=profile.revision if profile else None,
            min_message_bytes=scope.min_message_bytes,
            max_message_bytes=scope.max_message_bytes,
            relative_gap=scope.relative_gap,
            limits=scope.limits,
            fragment_cap=question.fragment_cap,
            worst_gap=compiled.facts.worst.relative_gap,
            file_bytes=len(compiled.file),
            question_digest=question.digest(cut_off=compiled.facts.is_cut_off),
            file=compiled.file,
            document=render(compiled),
        )
    )
    _check_pipeline(unit, question)
    record = unit.tables.get(compiled.digest)
    choose_table(unit, record, activate=activate)
    return record


def _check_pipeline(unit: UnitOfWork, question: TableQuestion) -> None:
    """Raise Conflict where the revision has changed; storing has locked its profile."""
    profile = question.profile
    if profile is None:
        return
    if unit.profiles.revision(profile.name, profile.revision).model != question.model:
        raise Conflict("the revision that was compiled is not stored any more", field="profile")


def choose_table(unit: UnitOfWork, record: TableRecord, *, activate: bool | None) -> None:
    """Have the lookups of the table's revision answer from it.

    None: only where that revision has no active table yet; False: not at all.
    """
    if record.profile_name is None or activate is False:
        return
    if activate:
        unit.tables.activate(record.profile_name, record.digest)
    else:
        unit.tables.activate_first(record.digest)


def needs_choosing(unit: UnitOfWork, record: TableRecord, *, activate: bool | None) -> bool:
    """Return whether `choose_table` would change anything."""
    if record.profile_name is None or activate is False:
        return False
    active = unit.tables.active_summary(record.profile_name, record.profile_revision)
    return active is None or (bool(activate) and active.digest != record.digest)


# --- stored tables --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TablePage:
    """One page, newest first; `after` is where the next one starts, None at the end. `against` is
    what was measured for or against revisions, by their numbers.
    """

    summaries: tuple[TableSummary, ...]
    after: str | None
    against: Mapping[int | None, Against | None] = field(default_factory=dict)


def get_table(store: Store, digest: str) -> TableRecord:
    """Return the stored table of this digest. Raises NotFound."""
    if _DIGEST.fullmatch(digest) is None:
        raise NotFound("there is no compiled table of this digest")
    with store.reading() as unit:
        return unit.tables.get(digest)


def active_table(store: Store, reference: ProfileReference) -> TableRecord:
    """Return the active compiled table of a profile's revision. Raises NotFound."""
    with store.reading() as unit:
        found = unit.tables.active(reference.name, reference.revision)
        if found is None:
            unit.profiles.revision(reference.name, reference.revision)
            raise NotFound("this revision of the profile has no active table", field="profile")
        return found


def activate_table(
    store: Store,
    reference: ProfileReference,
    digest: str,
    *,
    expected: Callable[[str | None], None] = lambda _: None,
    then: Callable[[UnitOfWork, MeasuredTable], None] = lambda _unit, _table: None,
) -> MeasuredTable:
    """Have lookups answer from this table from now on, or again; store with it what `then` stores.

    `expected` is given the digest of the table that is active so far, and may raise. Raises
    NotFound for a profile that is not stored, Conflict for a digest of no table of it.
    """
    with store.unit_of_work() as unit:
        unit.profiles.lock(reference.name)
        unit.profiles.revision(reference.name, reference.revision)
        active = unit.tables.active_summary(reference.name, reference.revision)
        expected(None if active is None else active.digest)
        try:
            unit.tables.activate(reference.name, digest, revision=reference.revision)
        except NotFound as error:
            raise Conflict(
                "the profile has no compiled table of this digest", field="digest"
            ) from error
        record = unit.tables.get(digest)
        table = record, _measured_in(unit, record)
        then(unit, table)
        return table


def json_twin(file: bytes) -> bytes:
    """Return the JSON twin of a table file. Raises InvalidTable."""
    from exports.table.slt import decode
    from exports.table.twin import encode_json

    stored = decode(file)
    return encode_json(stored.table, profile=stored.profile, revision=stored.revision)


def list_tables(
    store: Store,
    profile: str,
    *,
    revision: int | None = None,
    after: str | None = None,
    limit: int = 50,
) -> TablePage:
    """Return a page of a profile's tables. Raises NotFound, and InvalidInput for the cursor."""
    if after is not None and IDENTIFIER.fullmatch(after) is None:
        raise InvalidInput("expected the next_cursor of an earlier page", field="cursor")
    with store.reading() as unit:
        unit.profiles.revision(profile, revision)
        found = tuple(unit.tables.list(profile, revision=revision, after=after, limit=limit + 1))
        numbers = {one.profile_revision or 0 for one in found[:limit]}
        of = unit.profiles.revisions(profile, numbers=numbers)
        against: dict[int | None, Against | None] = {
            one.number: against for one, against in Stored.of_unit(unit).with_against(of)
        }
    return TablePage(found[:limit], found[limit - 1].id if len(found) > limit else None, against)


def measured_of(store: Store, record: TableRecord) -> MeasuredModel | None:
    """Return the model of a stored table, and what was measured for or against it until now; None
    where nothing was, or the profile is gone.
    """
    if record.profile_name is None:
        return None
    with store.reading() as unit:
        return _measured_in(unit, record)


def _measured_in(unit: UnitOfWork, record: TableRecord) -> MeasuredModel | None:
    if record.profile_name is None:
        return None
    revision = unit.profiles.revision(record.profile_name, record.profile_revision)
    against = Stored.of_unit(unit).against(revision)
    return None if against is None else (revision.model, against)
