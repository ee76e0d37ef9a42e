"""sluice profiles, keys and fleet: the hardware profiles in the database, who may ask, and tables
of all of them.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import orjson

from app.console.commands import fit_source, opened_store
from app.console.files import (
    ProfileSource,
    Source,
    TraceSource,
    check_target,
    merged,
    read_source,
    write_whole,
)
from app.console.reports import profile_parts, profiles_table, revisions_table
from app.console.running import counting_line
from app.console.screen import Column, Grid, Output, Part
from app.console.table import constraints_of, tables_table
from app.console.verify import verification_parts
from app.execution.engine import Steps
from app.settings import Settings
from app.text.numbers import format_count
from domain.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    Overloaded,
    QuotaExceeded,
    SluiceError,
    StoreUnavailable,
)
from domain.profile import HardwareProfile, ProfileReference, check_profile_name

if TYPE_CHECKING:
    from app.console.running import Show
    from app.questions.keys import NewKey
    from app.questions.tables import TableScope
    from app.schemas.base import Output as OutputPart
    from app.schemas.profiles import AnyProfileOut, AnyRevisionOut
    from app.schemas.queries import KeyOut
    from app.schemas.tables import FleetItemOut, FleetOut
    from models.records import JobRecord, TableSummary
    from models.session import Store


_PAGE = 200
_DAY_S = 86_400
_MAX_KEPT_S = 30 * _DAY_S
_DIGEST_LENGTH = 64


def profiles(arguments: argparse.Namespace, output: Output) -> int:
    """Carry out the verb."""
    settings = Settings.from_environment()
    if arguments.verb == "save":
        check_profile_name(arguments.profile)
        source = read_source(arguments.source, settings)
        with opened_store(settings) as store:
            _show(_save(store, arguments.profile, source, settings), output)
        return 0
    if arguments.verb == "delete" and not arguments.yes:
        _ask_to_delete(arguments.profile)
    with opened_store(settings) as store:
        _VERBS[arguments.verb or "list"](store, arguments, output)
    return 0


def _list(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.profiles import ProfilePage
    from app.schemas.profiles import ProfilesOut

    listed = ProfilesOut.of(ProfilePage(tuple(_all_profiles(store)), None))
    _emit(listed, output, [profiles_table(listed)])


def _all_profiles(store: Store) -> Iterator[HardwareProfile]:
    from app.questions.profiles import list_profiles

    page = list_profiles(store, limit=_PAGE)
    yield from page.profiles
    while page.after is not None:
        page = list_profiles(store, after=page.after, limit=_PAGE)
        yield from page.profiles


def _show_one(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.profiles import get_profile, get_revision
    from app.schemas.profiles import RevisionsOut

    reference = ProfileReference.parse(arguments.profile)
    profile = get_profile(store, reference.name)
    if reference.revision is None:
        _show(profile, output)
        return
    revision = get_revision(store, reference)
    shown = RevisionsOut.of(profile, (revision,)).revisions[0]
    _emit(shown, output, _parts(profile.name, shown))


def _revisions(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.profiles import list_revisions
    from app.schemas.profiles import RevisionsOut

    listed = RevisionsOut.of(*list_revisions(store, arguments.profile))
    _emit(listed, output, [revisions_table(listed)])


def _use(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.profiles import set_current

    if arguments.revision < 1:
        raise InvalidInput("expected a revision from 1", field="revision")
    _show(set_current(store, arguments.profile, arguments.revision), output)


def _tables(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.tables import TablePage
    from app.schemas.tables import TablesOut

    reference = ProfileReference.parse(arguments.profile)
    listed = TablesOut.of(TablePage(tuple(_all_tables(store, reference)), None))
    _emit(listed, output, [tables_table(listed)])


def _activate(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.tables import activate_table

    reference = ProfileReference.parse(arguments.profile)
    digest = _whole_digest(store, reference, arguments.digest)
    record = activate_table(store, reference, digest)
    if output.wants_json:
        output.document(record.document)
    else:
        of = f"{record.profile_name}@{record.profile_revision}"
        output.parts([f"{of} answers lookups from {record.digest[:16]}"])


def _all_tables(store: Store, reference: ProfileReference) -> Iterator[TableSummary]:
    from app.questions.tables import list_tables

    after: str | None = None
    while True:
        page = list_tables(
            store, reference.name, revision=reference.revision, after=after, limit=_PAGE
        )
        yield from page.summaries
        if page.after is None:
            return
        after = page.after


def _whole_digest(store: Store, reference: ProfileReference, text: str) -> str:
    """Return the digest of the one table of this profile that begins like this."""
    if not re.fullmatch(r"[0-9a-f]{8,64}", text, re.ASCII):
        raise InvalidInput(
            "expected the digest of a compiled table, or its first 8 digits or more",
            field="digest",
        )
    if len(text) == _DIGEST_LENGTH:
        return text
    found = [one.digest for one in _all_tables(store, reference) if one.digest.startswith(text)]
    if len(found) == 1:
        return found[0]
    how_many = "more than one" if found else "no"
    raise Conflict(f"the profile has {how_many} compiled table of this digest", field="digest")


def _ask_to_delete(name: str) -> None:
    """Return if whoever sits at the terminal says so. Raises InvalidInput."""
    if not sys.stdin.isatty():
        raise InvalidInput("expected --yes where nobody can be asked", field="yes")
    question = f"Delete {name} and its revisions? Type yes: "
    if input(question).strip().lower() not in ("y", "yes"):
        raise InvalidInput("not deleted", field="yes")


def _delete(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.profiles import delete_profile

    delete_profile(store, arguments.profile)
    if not output.wants_json:  # as in HTTP, a deletion has no document
        output.parts([f"deleted {arguments.profile}"])


_VERBS = {
    "list": _list,
    "show": _show_one,
    "revisions": _revisions,
    "use": _use,
    "tables": _tables,
    "activate": _activate,
    "delete": _delete,
}


def _save(store: Store, name: str, source: Source, settings: Settings) -> HardwareProfile:
    from app.questions.fits import save_fit
    from app.questions.profiles import create_profile, get_revision, revise_profile
    from app.schemas.base import dump_json, parse_json
    from app.schemas.profiles import SOURCES, RevisionIn

    if isinstance(source, TraceSource):
        fitted = fit_source(source, settings)
        with store.unit_of_work() as unit:
            return save_fit(unit, fitted, name=name).profile
    if isinstance(source, ProfileSource):
        reference = ProfileReference.parse(source.reference)
        model = get_revision(store, reference).model
        detail = f"copied from {source.reference}"
    else:
        given = {name: source.body.get(name) for name in SOURCES}
        model = parse_json(RevisionIn, dump_json(given)).model()
        detail = ""
    try:
        return revise_profile(store, name, model, detail=detail)
    except NotFound:
        return create_profile(store, name, model, detail=detail)


def _show(profile: HardwareProfile, output: Output) -> None:
    from app.schemas.profiles import ProfileOut

    shown = ProfileOut.of(profile)
    _emit(shown, output, _parts(profile.name, shown))


def _parts(name: str, shown: AnyProfileOut | AnyRevisionOut) -> Iterator[Part]:
    """Yield a profile, and what transfers said of it, a failure first."""
    from app.schemas.profiles import VerifiedProfileOut, VerifiedRevisionOut

    if isinstance(shown, VerifiedProfileOut | VerifiedRevisionOut):
        yield from verification_parts(shown.verification)
        yield ""
    yield from profile_parts(name, shown)


def _emit(shown: OutputPart, output: Output, parts: Iterable[Part]) -> None:
    """Print the output as JSON if that is wanted, and else what a person reads."""
    from app.schemas.base import dump_json

    if output.wants_json:
        output.document(dump_json(shown))
    else:
        output.parts(parts)


# --- keys -----------------------------------------------------------------------------------------


def keys(arguments: argparse.Namespace, output: Output) -> int:
    """Carry out the verb of `sluice keys`, in the database itself."""
    from app.questions.keys import check_owner

    settings = Settings.from_environment()
    owner = check_owner(arguments.owner)
    with opened_store(settings) as store:
        _KEY_VERBS[arguments.verb](store.of(owner), arguments, output)
    return 0


def _list_keys(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.keys import list_keys
    from app.schemas.queries import KeyOut, KeysOut

    listed = KeysOut(tuple(map(KeyOut.of, list_keys(store))))
    columns = [Column(name, is_number=False) for name in ("id", "name", "scope", "expires", "is")]
    rows = [
        (one.id, one.name, one.scope.value, _minute_of(one.expires_at), _state_of(one))
        for one in listed.items
    ]
    _emit(listed, output, [Grid(tuple(columns), tuple(rows))])


def _minute_of(timestamp: str | None) -> str:
    """Return a time in UTC to the minute: an identifier has to have room beside it."""
    return "never" if timestamp is None else timestamp[:16].replace("T", " ")


def _state_of(key: KeyOut) -> str:
    if key.revoked_at is not None:
        return "revoked"
    is_old = key.expires_at is not None and datetime.fromisoformat(key.expires_at) <= datetime.now(
        UTC
    )
    return "expired" if is_old else "valid"


def _create_key(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.keys import MAX_AGE_S, create_key
    from models.records import KeyScope

    days, rate = arguments.days, arguments.requests_per_s
    if days is not None and not 0.0 < days * _DAY_S <= MAX_AGE_S:
        raise InvalidInput(f"expected 0 < days <= {MAX_AGE_S // _DAY_S}", field="days")
    if rate is not None and not 1 <= rate <= 10**6:
        raise InvalidInput("expected 1 <= requests-per-s <= 1000000", field="requests-per-s")
    made = create_key(
        store,
        arguments.name,
        KeyScope(arguments.scope),
        expires_in_s=None if days is None else max(1, round(days * _DAY_S)),
        requests_per_s=rate,
    )
    _show_secret(made, output)


def _rotate_key(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.keys import KEPT_S, rotate_key

    kept_s = KEPT_S if arguments.keep is None else arguments.keep
    if not 0 <= kept_s <= _MAX_KEPT_S:
        raise InvalidInput(f"expected 0 <= keep <= {_MAX_KEPT_S}", field="keep")
    _show_secret(rotate_key(store, arguments.id, kept_s=round(kept_s)), output)


def _revoke_key(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.keys import revoke_key
    from app.schemas.queries import KeyOut

    ended = KeyOut.of(revoke_key(store, arguments.id))
    _emit(ended, output, [f"{ended.id} {ended.name}: revoked"])


def _show_secret(made: NewKey, output: Output) -> None:
    from app.schemas.queries import NewKeyOut

    key = made.record
    said = [f"{key.id} {key.name}: {key.scope.value}, of {key.owner}", made.secret]
    _emit(NewKeyOut.of_new(made), output, [*said, "The secret is stored nowhere: keep it."])


_KEY_VERBS = {
    "list": _list_keys,
    "create": _create_key,
    "rotate": _rotate_key,
    "revoke": _revoke_key,
}


# --- tables of many profiles ----------------------------------------------------------------------


REFUSED = 3  # the exit code where a profile has no table
_AHEAD = 2000  # jobs that are open at a time
_LOOK_S, _RETRY_S = 0.2, 1.0
_AGAIN = (StoreUnavailable, Overloaded, QuotaExceeded)


def fleet(arguments: argparse.Namespace, output: Output) -> int:
    """Have a job compile each profile's table, and report what became of them.

    Jobs and tables are stored: what is there is not made again, so that the command goes on where
    it was ended. It runs jobs itself, beside all others that do, unless SLUICE_RUN_JOBS=0.
    """
    from app.jobs.runner import open_runner
    from app.operations.tasks import open_engine
    from app.questions.keys import check_owner
    from app.schemas.base import dump_json
    from app.schemas.tables import FleetOut

    settings = Settings.from_environment()
    if arguments.workers is not None:
        settings = replace(settings, workers=arguments.workers)
    asked = _fleet_scope(arguments)
    references = tuple(map(ProfileReference.parse, arguments.profiles))
    owner = check_owner(arguments.owner)
    if arguments.report is not None:
        check_target(arguments.report, field="report", noun="the report", example="fleet.json")
    with ExitStack() as stack:
        store = stack.enter_context(opened_store(settings))
        if settings.run_jobs:
            engine = open_engine(settings)
            stack.callback(engine.close)
            runner = open_runner(store, engine, settings)
            runner.start()
            stack.callback(runner.close)
        show = stack.enter_context(counting_line(output.err, "profiles"))
        try:
            mine = store.of(owner)
            every = (ProfileReference(one.name) for one in _all_profiles(mine))
            report = FleetOut.of(_Fleet(mine, asked, settings, show).compiled(references or every))
        except KeyboardInterrupt:
            output.note("the same command goes on where this one ended")
            raise
    document = dump_json(report)
    if arguments.report is not None:
        write_whole(arguments.report, document, field="report", noun="the report")
    if output.wants_json:
        output.document(document)
    else:
        output.parts(_fleet_parts(report))
    return REFUSED if report.failed else 0


def _fleet_scope(arguments: argparse.Namespace) -> TableScope:
    from app.schemas.base import dump_json, parse_json
    from app.schemas.tables import TableIn

    names = ("min_message_bytes", "max_message_bytes", "relative_gap", "time_limit_s")
    given = {name: getattr(arguments, name) for name in names}
    given["constraints"] = constraints_of(arguments)
    return parse_json(TableIn, dump_json(merged({}, given))).to_domain()


class _Fleet:
    """The jobs of many profiles, so many at a time as may wait."""

    def __init__(self, store: Store, scope: TableScope, settings: Settings, show: Show) -> None:
        self._store = store
        self._scope = scope
        self._settings = settings
        self._show = show
        self._open: dict[str, str] = {}
        self._items: list[FleetItemOut] = []

    def compiled(self, references: Iterable[ProfileReference]) -> Sequence[FleetItemOut]:
        """Return what became of each, once all have ended. Waits for a database that is away."""
        left, began_s = deque(references), time.monotonic()
        total = len(left)
        while left or self._open:
            pause_s = _LOOK_S
            try:
                while left and len(self._open) < _AHEAD:
                    self._begin(left[0])
                    left.popleft()
            except _AGAIN:
                pause_s = _RETRY_S
            with suppress(StoreUnavailable):
                self._look()
            self._show(Steps(len(self._items), total), time.monotonic() - began_s)
            time.sleep(pause_s if self._open or left else 0.0)
        return self._items

    def _begin(self, asked: ProfileReference) -> None:
        from app.jobs.ledger import accept_job
        from app.operations.tables import table_operation

        reference = f"{asked.name}@{asked.revision}" if asked.revision else asked.name
        try:
            with self._store.reading() as unit:
                made = table_operation(asked, self._scope, unit, self._settings, activate=None)
            job = accept_job(self._store, made)
        except SluiceError as error:
            if isinstance(error, _AGAIN):
                raise
            self._items.append(_failed(reference, error.detail))
            return
        if job.state.is_terminal:
            self._items.append(_item(reference, job, "stored"))
        else:
            self._open[job.id] = reference

    def _look(self) -> None:
        with self._store.reading() as unit:
            ended = unit.jobs.ended(tuple(self._open))
        for job in ended:
            self._items.append(_item(self._open.pop(job.id), job, "compiled"))


def _item(reference: str, job: JobRecord, outcome: Literal["compiled", "stored"]) -> FleetItemOut:
    from app.schemas.base import read_output
    from app.schemas.tables import FleetItemOut, TableOut

    if job.error is not None or job.best is None:
        detail = orjson.loads(job.error)["detail"] if job.error else f"the job is {job.state}"
        return _failed(reference, detail)
    table = read_output(TableOut, job.best)
    name = table.profile.reference if table.profile else reference
    return FleetItemOut(name, outcome, table.digest, table.worst.relative_gap)


def _failed(reference: str, detail: str) -> FleetItemOut:
    from app.schemas.tables import FleetItemOut

    return FleetItemOut(reference, "failed", error=detail)


def _fleet_parts(report: FleetOut) -> Iterator[Part]:
    yield (
        f"{format_count(report.profiles)} profiles: {format_count(report.compiled)} compiled, "
        f"{format_count(report.stored)} were there, {format_count(report.failed)} failed"
    )
    if failed := [(one.profile, one.error) for one in report.items if one.error]:
        columns = (Column("profile", is_number=False), Column("why", is_number=False))
        yield Grid(columns, tuple(failed))
