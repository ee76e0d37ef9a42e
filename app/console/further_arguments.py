"""The grammar of the other commands: those that stand on papers, `apply`, what is stored, and the
service."""

from __future__ import annotations

from app.console.argument_parts import (
    SHELLS,
    Commands,
    Parser,
    Root,
    add,
    add_mpi,
    add_time_limit,
    counts,
    cpus,
    number,
    share,
    size,
    sizes,
    whole,
)

LAYER_VERBS = ("count", "check")


def add_of_papers(commands: Root) -> None:
    """Add all commands that stand on papers."""
    _add_layer_counts(commands)
    _add_mover(commands)
    _add_reproduce(commands)


def _add_layer_counts(commands: Root) -> None:
    count = add(commands, "layer count", "count an installed MPI's instructions under callgrind")
    _add_counting(count)
    count.add_argument("--bytes", type=size, nargs="+", metavar="SIZE", help="sizes (8 64 256)")
    count.add_argument("--output", metavar="FILE", help="write the layer as JSON")
    check = add(commands, "layer check", "count again, and say what takes more instructions now")
    check.add_argument("baseline", metavar="BASELINE", help="a file of sluice model layer count")
    _add_counting(check)
    check.add_argument(
        "--max-more", type=share, default=0.01, metavar="SHARE", help="exit with 7 above it (1%%)"
    )


def _add_counting(parser: Parser) -> None:
    add_mpi(parser)
    parser.add_argument("--repetitions", type=whole, metavar="COUNT", help="of each call (8)")
    add_time_limit(parser, "default 120")


def _add_reproduce(commands: Root) -> None:
    parser = add(commands, "reproduce", "the numbers of a paper, published beside computed")
    parser.add_argument(
        "paper",
        metavar="PAPER",
        help="wang98, yocum97, strumpen94, culler96, karamcheti94 or all",
    )
    parser.add_argument("--only", metavar="ITEM", help="one table or figure")
    parser.add_argument(
        "--measure", action="store_true", help="measure strumpen94's figures on this machine"
    )
    parser.add_argument("--between", metavar="PLACE", help="there: namespaces, as a/b/10.0.0.2")
    parser.add_argument("--output", metavar="DIR", help="folder for CSV, SVG, HTML and JSON")


def _add_mover(commands: Root) -> None:
    parser = add(commands, "mover", "measure by the reference mover: stages, hiding, heat")
    parser.add_argument("what", metavar="WHAT", help="calibrate, exchange or heat")
    parser.add_argument("variant", metavar="VARIANT", nargs="?", help="one of them (all)")
    parser.add_argument("--bytes", type=sizes, metavar="SIZES", help="of a message, or messages")
    parser.add_argument("--fragments", type=counts, metavar="COUNTS", help="predict and measure")
    parser.add_argument("--fragment", type=size, metavar="SIZE", help="cut into these (4KiB)")
    parser.add_argument("--table", metavar="FILE", help="cut by this table instead")
    parser.add_argument("--calculation", type=number, metavar="US", help="of an iteration, in µs")
    parser.add_argument("--spin", action="store_true", help="calculate here, not elsewhere")
    parser.add_argument("--between", metavar="PLACE", help="namespaces, as a/b/10.0.0.2")
    parser.add_argument("--buffer", type=size, metavar="SIZE", help="of the sockets")
    for name, of in (("pack", "ns a byte of a sender"), ("unpack", "ns a byte of a receiver")):
        parser.add_argument(f"--{name}", type=number, metavar="NS", help=f"{of}'s own")
        parser.add_argument(f"--{name}-each", type=number, metavar="US", help="µs a fragment")
    parser.add_argument("--cpus", type=cpus, metavar="CPUS", help="of both ends, as 0,1")
    parser.add_argument("--repetitions", type=whole, metavar="COUNT", help="of each (20)")
    for name, most in (("columns", "64"), ("rows", "64"), ("steps", "50"), ("processes", "2")):
        parser.add_argument(f"--{name}", type=whole, metavar="COUNT", help=f"of heat ({most})")
    parser.add_argument("--output", metavar="FILE", help="stages as CSV, times, or the grid")
    parser.add_argument("--plot", metavar="FILE", help="draw the overlap into this SVG file")


def add_target_options(parser: Parser) -> None:
    """Add the options that a target of exports has of its own."""
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the target; may be repeated",
    )


# --- what is stored ---------------------------------------------------------------------------


def add_stored(commands: Root) -> None:
    """Add the commands that list and show what is in the database."""
    _add_profiles(commands)
    _add_answers(commands)
    _add_jobs(commands)
    _add_keys(commands)


def _add_listed(commands: Root, name: str, summary: str) -> Commands[Parser]:
    """Add a command whose verbs begin with `list`, which it means where none is given."""
    parser = commands.add_command(name, help=summary, allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="of the list, where no verb is given")
    return parser.add_subparsers(dest="verb", metavar="VERB", help="default: list")


def _add_answers(commands: Root) -> None:
    verbs = _add_listed(commands, "answers", "stored answers to optimize")
    listing = add(verbs, "list", "list stored answers, the newest first")
    listing.add_argument("--profile", metavar="PROFILE", help="of name or name@revision alone")
    listing.add_argument("--bytes", type=size, metavar="SIZE", help="of this message alone")
    _add_count_and_owner(listing)
    show = add(verbs, "show", "show a stored answer as it was given")
    naming = add(verbs, "name", "give a stored answer a name and a note")
    for parser in (show, naming):
        parser.add_argument("id", metavar="ID", help="of the answer")
        _add_owner(parser)
    naming.add_argument("name", metavar="NAME", nargs="?", help='of one line; "" for none')
    naming.add_argument("--note", metavar="TEXT", help='about it; "" for none')


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
    _add_owner(show)


def _add_count_and_owner(parser: Parser) -> None:
    parser.add_argument(
        "--limit", type=whole, default=20, metavar="COUNT", help="how many at most (20)"
    )
    _add_owner(parser)


def _add_owner(parser: Parser) -> None:
    parser.add_argument("--owner", metavar="OWNER", default="local", help="whose (local)")


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
        _add_owner(verb)


# --- the service ------------------------------------------------------------------------------


def add_served(commands: Root) -> None:
    """Add the commands that run the service, show it, and keep its database."""
    _add_service(commands)
    _add_shown(commands)
    _add_upkeep(commands)


def _add_shown(commands: Root) -> None:
    opened = add(commands, "open", "open the page, or that of a profile, an answer, a job or a fit")
    opened.add_argument(
        "what", metavar="WHAT", nargs="?", help="a profile's name, or an ID (default the workbench)"
    )
    opened.add_argument(
        "--address", metavar="URL", help="of the service (SLUICE_PORT here, or 8080)"
    )
    _add_owner(opened)
    demo = add(commands, "demo", "serve, solve real input over HTTP, print it, keep serving")
    demo.add_argument("--once", action="store_true", help="stop after printing")
    completion = add(commands, "completion", "print what a shell completes sluice's words by")
    completion.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def _add_service(commands: Root) -> None:
    serve = add(commands, "serve", "serve the HTTP interface until Ctrl-C")
    serve.add_argument("--host", metavar="HOST", help="default 127.0.0.1, or SLUICE_HOST")
    serve.add_argument("--port", type=whole, metavar="PORT", help="default 8080, or SLUICE_PORT")
    serve.add_argument(
        "--socket", metavar="PATH", help="a Unix socket for this user alone, in place of a port"
    )
    work = add(commands, "work", "run durable jobs of the same database, without HTTP")
    engine = commands.add_command(
        "engine", help="the parts of a cluster, which runs work on machines", allow_abbrev=False
    )
    verbs = engine.add_subparsers(dest="verb", required=True, metavar="VERB")
    add(verbs, "scheduler", "route work at SLUICE_DASK_ADDRESS until Ctrl-C")
    worker = add(verbs, "worker", "run what its scheduler has to be done")
    for parser in (serve, work, worker):
        parser.add_argument(
            "--workers", type=whole, metavar="COUNT", help="child processes that solve"
        )


def _add_upkeep(commands: Root) -> None:
    changes = add(commands, "changes", "show who changed what, the newest first")
    changes.add_argument(
        "subject", metavar="SUBJECT", nargs="?", help="a profile, or the identifier of what changed"
    )
    changes.add_argument("--limit", type=whole, metavar="COUNT", default=50, help="so many (50)")
    _add_owner(changes)
    collect = add(commands, "collect", "delete what is kept no longer, as SLUICE_RETENTION says")
    collect.add_argument("--keep", metavar="RULES", help="in its place, such as jobs=30d/10000")
    collect.add_argument("--owner", metavar="OWNER", help="of one owner alone")
    collect.add_argument(
        "--remember", action="store_true", help="store --keep, for OWNER or for all"
    )
    collect.add_argument("--forget", action="store_true", help="delete the rules of OWNER")
    collect.add_argument("--dry-run", action="store_true", help="delete nothing; say what would go")
    backup = add(commands, "backup", "write everything that is stored into one file")
    backup.add_argument("file", metavar="FILE", help="which is not there yet")
    restore = add(commands, "restore", "put a backup into an empty database")
    restore.add_argument("file", metavar="FILE", help="a backup, of either database")
    restore.add_argument("--replace", action="store_true", help="first delete all that is there")
    restore.add_argument(
        "--without-keys", action="store_true", help="leave out all keys: one may be revoked by now"
    )
