"""The grammar of the commands that list and show what is in the database."""

from __future__ import annotations

from app.console.argument_parts import (
    Commands,
    Parser,
    Root,
    add,
    add_owner,
    number,
    whole,
)


def add_stored(commands: Root) -> None:
    """Add the commands that list and show what is in the database."""
    _add_profiles(commands)
    _add_jobs(commands)
    _add_keys(commands)


def _add_listed(commands: Root, name: str, summary: str) -> Commands[Parser]:
    """Add a command whose verbs begin with `list`, which it means where none is given."""
    parser = commands.add_command(name, help=summary, allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="of the list, where no verb is given")
    return parser.add_subparsers(dest="verb", metavar="VERB", help="default: list")


def _add_jobs(commands: Root) -> None:
    verbs = _add_listed(commands, "jobs", "durable jobs of the service on this database")
    listing = add(verbs, "list", "list jobs, the newest first")
    listing.add_argument(
        "--state",
        choices=["queued", "running", "done", "failed", "cancelled"],
        metavar="STATE",
        help="queued, running, done, failed or cancelled ones alone",
    )
    _add_count_and_owner(listing)
    show = add(verbs, "show", "show where a job stands, and where its result is")
    show.add_argument("id", metavar="ID", help="of the job")
    add_owner(show)


def _add_count_and_owner(parser: Parser) -> None:
    parser.add_argument(
        "--limit", type=whole, default=20, metavar="COUNT", help="how many at most (20)"
    )
    add_owner(parser)


def _add_profiles(commands: Root) -> None:
    verbs = _add_listed(commands, "profiles", "hardware profiles in the database")
    add(verbs, "list", "list all profiles")
    show = add(verbs, "show", "show a profile's stages")
    show.add_argument("profile", metavar="PROFILE", help="name or name@revision")
    save = add(verbs, "save", "store a pipeline, or the fit of a trace, as a profile's revision")
    save.add_argument("profile", metavar="PROFILE")
    save.add_argument("source", metavar="SOURCE", help="pipeline JSON, CSV, or -")
    revisions = add(verbs, "revisions", "list a profile's revisions")
    revisions.add_argument("profile", metavar="PROFILE")
    use = add(verbs, "use", "make a revision the current one")
    use.add_argument("profile", metavar="PROFILE")
    use.add_argument("revision", type=whole, metavar="REVISION")
    tables = add(verbs, "tables", "list a profile's compiled tables")
    tables.add_argument("profile", metavar="PROFILE", help="name or name@revision")
    activate = add(verbs, "activate", "have lookups answer from a compiled table, or again")
    activate.add_argument("profile", metavar="PROFILE", help="name or name@revision")
    activate.add_argument("digest", metavar="DIGEST", help="of the table; its first 8 or more")
    delete = add(verbs, "delete", "delete a profile and its revisions")
    delete.add_argument("profile", metavar="PROFILE")
    delete.add_argument("--yes", action="store_true", help="without asking")


def _add_keys(commands: Root) -> None:
    keys = commands.add_command(
        "keys", help="keys by which programs and browsers say who they are", allow_abbrev=False
    )
    verbs = keys.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = add(verbs, "list", "list an owner's keys")
    create = add(verbs, "create", "make a key, and print its secret this once")
    create.add_argument("name", metavar="NAME", help="what it is for")
    create.add_argument(
        "--scope",
        choices=["read", "write", "admin", "metrics"],
        required=True,
        help="what it may do",
    )
    create.add_argument("--days", type=number, metavar="DAYS", help="until it expires")
    create.add_argument(
        "--requests-per-s", type=whole, metavar="COUNT", help="fewer than its owner may ask"
    )
    rotate = add(verbs, "rotate", "make a key in the place of another one")
    rotate.add_argument("--keep", type=number, metavar="SECONDS", help="of the other one (3600)")
    revoke = add(verbs, "revoke", "end a key at once")
    for verb in (rotate, revoke):
        verb.add_argument("id", metavar="ID", help="of the key")
    for verb in (listing, create, rotate, revoke):
        add_owner(verb)
