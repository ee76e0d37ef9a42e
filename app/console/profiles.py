"""sluice profiles, jobs, keys and open: what is in the database, and who may ask."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

from app.console.commands import fit_source, opened_store
from app.console.files import ProfileSource, Source, TraceSource, read_source
from app.console.reports import (
    profile_parts,
    profiles_table,
    revisions_table,
    tables_table,
)
from app.settings import Settings
from app.text.units import PROVEN_BOUND, format_proven, printable
from app.ui.notices import failures
from app.ui.parts import Column, Facts, Grid, Part
from app.ui.terminal import Output
from app.ui.verification import verification_parts
from contract.limits import (
    DEFAULT_KEY_KEPT_S,
    MAX_KEY_AGE_S,
    MAX_KEY_KEPT_S,
    MAX_KEY_REQUESTS_PER_S,
)
from domain.errors import Conflict, InvalidInput, NotFound, NotReady
from domain.profile import HardwareProfile, ProfileReference, check_profile_name
from domain.verification import CONTRADICTED

if TYPE_CHECKING:
    from app.questions.keys import NewKey
    from app.questions.profiles import Costs
    from app.questions.tables import TablePage
    from contract.declare import Output as OutputPart
    from contract.jobs import JobOut
    from contract.keys import KeyOut
    from contract.profiles import AnyProfileOut, AnyRevisionOut
    from models.session import Store


_PAGE = 200
_DAY_S = 86_400
_DIGEST_LENGTH = 64
_LISTED, _MAX_LISTED = 20, 1000
_ADDRESS = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?", re.ASCII)
_HAS_BROWSER = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")  # else a browser in the terminal would run
_ANSWERS_S = 2.0
_JOB_COLUMNS = ("created", "kind", "state")


def profiles(arguments: argparse.Namespace, output: Output) -> int:
    """Carry out the verb."""
    settings = Settings.from_environment()
    if arguments.verb == "save":
        check_profile_name(arguments.profile)
        source = read_source(arguments.source, settings)
        with opened_store(settings) as store:
            _show(_save(store, arguments.profile, source, settings, output), output)
        return 0
    if arguments.verb == "delete" and not arguments.yes:
        _ask_to_delete(arguments.profile)
    with opened_store(settings) as store:
        _VERBS[arguments.verb or "list"](store, arguments, output)
    return 0


def _list(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.profiles import ProfilePage, list_profiles
    from app.schemas.profiles import profiles_out

    page = list_profiles(store, limit=_PAGE)
    found = list(page.profiles)
    while page.after is not None:
        page = list_profiles(store, after=page.after, limit=_PAGE)
        found.extend(page.profiles)
    listed = profiles_out(ProfilePage(tuple(found), None))
    _emit(listed, output, [profiles_table(listed)])


def _show_one(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.profiles import get_profile, get_revision
    from app.questions.source import Stored
    from app.schemas.profiles import revisions_out

    reference = ProfileReference.parse(arguments.profile)
    profile = get_profile(store, reference.name)
    if reference.revision is None:
        _show(profile, output)
        return
    known = Stored.of_store(store).with_against((get_revision(store, reference),))
    shown = revisions_out(profile, known).revisions[0]
    _emit(shown, output, _parts(profile.name, shown))


def _revisions(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.profiles import list_revisions
    from app.questions.source import Stored
    from app.schemas.profiles import revisions_out

    profile, revisions = list_revisions(store, arguments.profile)
    listed = revisions_out(profile, Stored.of_store(store).with_against(revisions))
    _emit(listed, output, [revisions_table(listed)])


def _use(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.profiles import set_current

    if arguments.revision < 1:
        raise InvalidInput("expected a revision from 1", field="revision")
    _show(set_current(store, arguments.profile, arguments.revision), output)


def _tables(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.tables import TablePage
    from app.schemas.table import tables_out

    reference = ProfileReference.parse(arguments.profile)
    pages = list(_table_pages(store, reference))
    against = {number: of for page in pages for number, of in page.against.items()}
    found = tuple(one for page in pages for one in page.summaries)
    listed = tables_out(TablePage(found, None, against))
    said = {one.code + one.detail: one for item in listed.items for one in item.warnings}
    _emit(listed, output, [*failures(said.values()), tables_table(listed)])


def _activate(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.tables import activate_table
    from app.schemas.base import notices_out
    from app.schemas.table import activated

    reference = ProfileReference.parse(arguments.profile)
    digest = _whole_digest(store, reference, arguments.digest)
    record, measured = activate_table(store, reference, digest)
    if output.wants_json:
        output.document(activated(record, measured))
        return
    said = failures(notices_out((measured[1].notice(),))) if measured else ()
    of = f"{record.profile_name}@{record.profile_revision}"
    output.parts([*said, f"{of} answers lookups from {record.digest[:16]}"])


def _table_pages(store: Store, reference: ProfileReference) -> Iterator[TablePage]:
    from app.questions.tables import list_tables

    after: str | None = None
    while True:
        page = list_tables(
            store, reference.name, revision=reference.revision, after=after, limit=_PAGE
        )
        yield page
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
    known = (one.digest for page in _table_pages(store, reference) for one in page.summaries)
    found = [one for one in known if one.startswith(text)]
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


def _save(
    store: Store, name: str, source: Source, settings: Settings, output: Output
) -> HardwareProfile:
    from app.questions.fits import save_fit
    from app.questions.profiles import create_profile, get_revision, revise_profile
    from app.questions.question import FitReference
    from app.schemas.base import dump_json, parse_json
    from app.schemas.profiles import revision_costs
    from contract.profiles import SOURCES_OF_REVISION, RevisionIn

    if isinstance(source, TraceSource):
        fitted = fit_source(source, settings, output.err)
        with store.unit_of_work() as unit:
            return save_fit(unit, fitted, name=name).profile
    if isinstance(source, ProfileSource):
        revision = get_revision(store, ProfileReference.parse(source.reference))
        fit_id = revision.provenance.fit_id
        costs: Costs = revision.model if fit_id is None else FitReference(fit_id)
        detail = f"copied from {source.reference}"
    else:
        given = {name: source.body.get(name) for name in SOURCES_OF_REVISION}
        costs = revision_costs(parse_json(RevisionIn, dump_json(given)))
        detail = ""
    try:
        return revise_profile(store, name, costs, detail=detail)
    except NotFound as missing:
        if missing.field != "profile":
            raise
        return create_profile(store, name, costs, detail=detail)


def _show(profile: HardwareProfile, output: Output) -> None:
    from app.schemas.profiles import profile_out

    shown = profile_out(profile)
    _emit(shown, output, _parts(profile.name, shown))


def _parts(name: str, shown: AnyProfileOut | AnyRevisionOut) -> Iterator[Part]:
    """Yield a profile, and what transfers said of it, a failure first."""
    from contract.profiles import RevisionOut, VerifiedProfileOut, VerifiedRevisionOut

    if isinstance(shown, RevisionOut):
        yield from failures(notice for notice in shown.warnings if notice.code == CONTRADICTED)
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


# --- jobs -----------------------------------------------------------------------------------------


def jobs(arguments: argparse.Namespace, output: Output) -> int:
    """List durable jobs, or show where one stands."""
    from app.jobs.ledger import list_jobs, shown_job
    from app.schemas.jobs import job_out
    from contract.jobs import JobsOut
    from models.records import JobState

    with _owned_store(arguments) as store:
        if arguments.verb == "show":
            shown = job_out(shown_job(store, arguments.id))
            _emit(shown, output, [Facts(tuple(_job_facts(shown)))])
            return 0
        state = getattr(arguments, "state", None)
        found = list_jobs(store, state and JobState(state), limit=_limit(arguments))
    listed = JobsOut(tuple(map(job_out, found)))
    columns = [Column("id"), *(Column(name, is_number=False) for name in _JOB_COLUMNS)]
    rows = tuple(
        (one.id, _minute_of(one.created_at), one.kind, one.state, _progress_of(one))
        for one in listed.items
    )
    _emit(listed, output, [Grid((*columns, Column("done")), rows)])
    return 0


def _job_facts(job: JobOut) -> Iterator[tuple[str, str]]:
    from models.records import JobState

    yield "kind", job.kind
    yield "state", job.state
    yield "created", _minute_of(job.created_at)
    if done := _progress_of(job):
        yield "done", done
    progress = job.progress
    if progress.best_latency_us is not None and progress.lower_bound_us is not None:
        latency, bound = format_proven(progress.best_latency_us, progress.lower_bound_us)
        yield "best so far", f"{latency}, {PROVEN_BOUND} {bound}"
    if job.answer_id is not None:
        yield "answer", f"sluice answers show {job.answer_id}"
    elif job.error is not None:
        stored: Any = job.error  # JSON already, as `job_out` has it
        yield "error", printable(json.loads(bytes(stored))["detail"])
    elif JobState(job.state).is_terminal:
        yield "result", "in the document of --json"


def _progress_of(job: JobOut) -> str:
    done, total = job.progress.steps_done, job.progress.steps_total
    return "" if done is None or not total else f"{done / total:.0%}"


def _limit(arguments: argparse.Namespace) -> int:
    limit = getattr(arguments, "limit", _LISTED)
    if not 1 <= limit <= _MAX_LISTED:
        raise InvalidInput(f"expected 1 <= limit <= {_MAX_LISTED}", field="limit")
    return int(limit)


@contextmanager
def _owned_store(arguments: argparse.Namespace) -> Iterator[Store]:
    """Return what is stored of the owner who is named; who names none is `local`."""
    from app.questions.keys import check_owner

    owner = check_owner(getattr(arguments, "owner", "local"))
    with opened_store(Settings.from_environment()) as store:
        yield store.of(owner)


# --- pages ----------------------------------------------------------------------------------------


def open_page(arguments: argparse.Namespace, output: Output) -> int:
    """Open a page in the browser where there is one, and print its address."""
    settings = Settings.from_environment()
    service = arguments.address or f"http://127.0.0.1:{settings.port}{settings.root_path}"
    if _ADDRESS.fullmatch(service) is None:
        raise InvalidInput("expected an address, as http://127.0.0.1:8080", field="address")
    path = "/"
    if arguments.what is not None:
        with _owned_store(arguments) as store:
            path = _page_of(store, arguments.what)
    address = service.rstrip("/") + path
    output.parts([address])
    if not _answers(service.rstrip("/") + "/healthz"):
        raise NotReady("no service answers there; sluice serve starts one")
    if sys.platform == "darwin" or any(os.environ.get(name) for name in _HAS_BROWSER):
        webbrowser.open(address)
    return 0


def _page_of(store: Store, name: str) -> str:
    """Return the path of the page of what has this identifier or name. Raises NotFound."""
    from app.jobs.ledger import shown_job
    from app.questions.answers import get_answer
    from app.questions.fits import get_fit
    from app.questions.profiles import get_profile
    from app.questions.question import IDENTIFIER

    if IDENTIFIER.fullmatch(name) is None:
        get_profile(store, ProfileReference.parse(name).name)
        return f"/ui/profiles/{name}"
    finders: dict[str, Callable[[Store, str], object]]
    finders = {"answers": get_answer, "jobs": shown_job, "fits": get_fit}
    for kind, find in finders.items():
        with suppress(NotFound):
            find(store, name)
            return f"/ui/{kind}/{name}"
    raise NotFound("there is no answer, job or fit", field="what", subject=name)


def _answers(address: str) -> bool:
    """Return whether a service answers at this address, whatever it says."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(address, timeout=_ANSWERS_S).close()
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError, HTTPException):
        return False
    return True


# --- keys -----------------------------------------------------------------------------------------


def keys(arguments: argparse.Namespace, output: Output) -> int:
    """Carry out the verb of `sluice keys`, in the database itself."""
    with _owned_store(arguments) as store:
        _KEY_VERBS[arguments.verb](store, arguments, output)
    return 0


def _list_keys(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.keys import list_keys
    from app.schemas.keys import key_out
    from contract.keys import KeysOut

    listed = KeysOut(tuple(map(key_out, list_keys(store))))
    columns = [Column(name, is_number=False) for name in ("id", "name", "scope", "expires", "is")]
    rows = [
        (one.id, one.name, one.scope, _minute_of(one.expires_at), _state_of(one))
        for one in listed.items
    ]
    _emit(listed, output, [Grid(tuple(columns), tuple(rows))])


def _minute_of(timestamp: str | None) -> str:
    """Return a time in UTC to the minute: an identifier has to have room beside it."""
    return "never" if timestamp is None else timestamp[:16].replace("T", " ")


def _state_of(key: KeyOut) -> str:
    if key.revoked_at is not None:
        return "revoked"
    end = key.expires_at
    is_old = end is not None and datetime.fromisoformat(end) <= datetime.now(UTC)
    return "expired" if is_old else "valid"


def _create_key(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.keys import create_key
    from models.records import KeyScope

    days, rate = arguments.days, arguments.requests_per_s
    if days is not None and not 0.0 < days * _DAY_S <= MAX_KEY_AGE_S:
        raise InvalidInput(f"expected 0 < days <= {MAX_KEY_AGE_S // _DAY_S}", field="days")
    if rate is not None and not 1 <= rate <= MAX_KEY_REQUESTS_PER_S:
        raise InvalidInput("expected 1 <= requests-per-s <= 1000000", field="requests-per-s")
    expires_in_s = None if days is None else max(1, round(days * _DAY_S))
    limits = {"expires_in_s": expires_in_s, "requests_per_s": rate}
    _show_secret(create_key(store, arguments.name, KeyScope(arguments.scope), **limits), output)


def _rotate_key(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.keys import rotate_key

    kept_s = DEFAULT_KEY_KEPT_S if arguments.keep is None else arguments.keep
    if not 0 <= kept_s <= MAX_KEY_KEPT_S:
        raise InvalidInput(f"expected 0 <= keep <= {MAX_KEY_KEPT_S}", field="keep")
    _show_secret(rotate_key(store, arguments.id, kept_s=round(kept_s)), output)


def _revoke_key(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.keys import revoke_key
    from app.schemas.keys import key_out

    ended = key_out(revoke_key(store, arguments.id))
    _emit(ended, output, [f"{ended.id} {ended.name}: revoked"])


def _show_secret(made: NewKey, output: Output) -> None:
    from app.schemas.keys import new_key_out

    key = made.record
    said = [f"{key.id} {key.name}: {key.scope.value}, of {key.owner}", made.secret]
    _emit(new_key_out(made), output, [*said, "The secret is stored nowhere: keep it."])


_KEY_VERBS = {
    "list": _list_keys,
    "create": _create_key,
    "rotate": _rotate_key,
    "revoke": _revoke_key,
}
