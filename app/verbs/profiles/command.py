"""sluice profiles: list, show, save, roll back and delete profiles, and activate their tables."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.text.units import parse_whole
from app.ui.grammar import Arguments, Group
from domain.errors import Conflict, InvalidInput, NotFound
from domain.profile import ProfileReference, check_profile_name

if TYPE_CHECKING:
    from app.console.files import Source
    from app.questions.profiles import Costs
    from app.questions.tables import TablePage
    from app.settings import Settings
    from app.ui.terminal import Output
    from domain.profile import HardwareProfile
    from models.session import Store

_PAGE = 200
_DIGEST_LENGTH = 64


def add_verbs(command: Group) -> None:
    """Add the verbs."""
    command.add("list", "list all profiles", "--json", is_default=True)
    show = command.add("show", "show a profile's stages", "myrinet-gam")
    show.argument("profile", metavar="PROFILE", help="name or name@revision")
    save = command.add(
        "save",
        "store a pipeline, or the fit of a trace, as a profile's revision",
        "staging examples/kv-staging.json",
    )
    save.argument("profile", metavar="PROFILE")
    save.argument("source", metavar="SOURCE", help="pipeline JSON, CSV, or -")
    revisions = command.add("revisions", "list a profile's revisions", "myrinet-gam")
    revisions.argument("profile", metavar="PROFILE")
    use = command.add("use", "make a revision the current one", "myrinet-gam 1")
    use.argument("profile", metavar="PROFILE")
    use.argument("revision", read=parse_whole, metavar="REVISION")
    tables = command.add("tables", "list a profile's compiled tables", "myrinet-gam")
    tables.argument("profile", metavar="PROFILE", help="name or name@revision")
    activate = command.add(
        "activate",
        "have lookups answer from a compiled table, or again",
        "myrinet-gam 0123abcd",
    )
    activate.argument("profile", metavar="PROFILE", help="name or name@revision")
    activate.argument("digest", metavar="DIGEST", help="of the table; its first 8 or more")
    delete = command.add("delete", "delete a profile and its revisions", "staging --yes")
    delete.argument("profile", metavar="PROFILE")
    delete.flag("--yes", help="without asking")


def run(arguments: Arguments, output: Output) -> int:
    """Carry out the verb."""
    from app.console.commands import opened_store
    from app.console.files import read_source
    from app.settings import Settings

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
        _VERBS[arguments.verb](store, arguments, output)
    return 0


def _list(store: Store, arguments: Arguments, output: Output) -> None:
    from app.console.stored import emit
    from app.questions.profiles import ProfilePage, list_profiles
    from app.verbs.profiles.answer import profiles_out
    from app.verbs.profiles.show import listing

    page = list_profiles(store, limit=_PAGE)
    found = list(page.profiles)
    while page.after is not None:
        page = list_profiles(store, after=page.after, limit=_PAGE)
        found.extend(page.profiles)
    listed = profiles_out(ProfilePage(tuple(found), None))
    emit(listed, output, [listing(listed)])


def _show_one(store: Store, arguments: Arguments, output: Output) -> None:
    from app.console.stored import emit
    from app.questions.profiles import get_profile, get_revision
    from app.questions.source import Stored
    from app.verbs.profiles.answer import revisions_out
    from app.verbs.profiles.show import parts

    reference = ProfileReference.parse(arguments.profile)
    profile = get_profile(store, reference.name)
    if reference.revision is None:
        _show(profile, output)
        return
    known = Stored.of_store(store).with_against((get_revision(store, reference),))
    shown = revisions_out(profile, known).revisions[0]
    emit(shown, output, parts(profile.name, shown))


def _show(profile: HardwareProfile, output: Output) -> None:
    from app.console.stored import emit
    from app.verbs.profiles.answer import profile_out
    from app.verbs.profiles.show import parts

    shown = profile_out(profile)
    emit(shown, output, parts(profile.name, shown))


def _revisions(store: Store, arguments: Arguments, output: Output) -> None:
    from app.console.stored import emit
    from app.questions.profiles import list_revisions
    from app.questions.source import Stored
    from app.verbs.profiles.answer import revisions_out
    from app.verbs.profiles.show import revisions

    profile, found = list_revisions(store, arguments.profile)
    listed = revisions_out(profile, Stored.of_store(store).with_against(found))
    emit(listed, output, [revisions(listed)])


def _use(store: Store, arguments: Arguments, output: Output) -> None:
    from app.questions.profiles import set_current

    if arguments.revision < 1:
        raise InvalidInput("expected a revision from 1", field="revision")
    _show(set_current(store, arguments.profile, arguments.revision), output)


def _tables(store: Store, arguments: Arguments, output: Output) -> None:
    from app.console.stored import emit
    from app.questions.tables import TablePage
    from app.schemas.table import tables_out
    from app.verbs.profiles.show import tables

    reference = ProfileReference.parse(arguments.profile)
    pages = list(_table_pages(store, reference))
    against = {number: of for page in pages for number, of in page.against.items()}
    found = tuple(table for page in pages for table in page.summaries)
    listed = tables_out(TablePage(found, None, against))
    emit(listed, output, tables(listed))


def _activate(store: Store, arguments: Arguments, output: Output) -> None:
    from app.questions.tables import activate_table
    from app.schemas.base import notices_out
    from app.schemas.table import activated
    from app.ui.parts import failures

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
    pages = _table_pages(store, reference)
    known = (table.digest for page in pages for table in page.summaries)
    found = [digest for digest in known if digest.startswith(text)]
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


def _delete(store: Store, arguments: Arguments, output: Output) -> None:
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
    from app.console.commands import fit_source
    from app.console.files import ProfileSource, TraceSource
    from app.questions.fits import FitReference, save_fit
    from app.questions.profiles import create_profile, get_revision, revise_profile
    from app.schemas.base import dump_json, parse_json
    from app.verbs.profiles.request import revision_costs
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
