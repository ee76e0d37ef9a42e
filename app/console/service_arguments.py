"""The grammar of the commands that run the service, and keep its database."""

from __future__ import annotations

from app.console.argument_parts import (
    SHELLS,
    Root,
    add,
    whole,
)


def add_served(commands: Root) -> None:
    """Add the commands that run the service, and keep its database."""
    _add_service(commands)
    _add_shown(commands)
    _add_upkeep(commands)


def _add_shown(commands: Root) -> None:
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
