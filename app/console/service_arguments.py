"""The grammar of the commands that run the service, show it, and keep its database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import click

from app.text.units import parse_whole
from app.ui.grammar import Command, Entry, Group

SHELLS = ("bash", "zsh", "fish")


def _made(
    name: str, summary: str, example: str, add_arguments: Callable[[Command], None] | None = None
) -> tuple[str, Entry]:
    """Return a command by its name, whose arguments are added when it is made."""

    def make() -> click.Command:
        command = Command(name, summary=summary, example=example)
        if add_arguments is not None:
            add_arguments(command)
        return command

    return name, Entry(summary, make)


def _demo(command: Command) -> None:
    command.flag("--once", help="stop after printing")


def _completion(command: Command) -> None:
    command.argument("shell", choices=SHELLS, help=", ".join(SHELLS))


def _serve(command: Command) -> None:
    command.option("--host", metavar="HOST", help="default 127.0.0.1, or SLUICE_HOST")
    command.option("--port", read=parse_whole, metavar="PORT", help="default 8080, or SLUICE_PORT")
    command.option(
        "--socket", metavar="PATH", help="a Unix socket for this user alone, in place of a port"
    )
    _workers(command)


def _workers(command: Command) -> None:
    command.option(
        "--workers", read=parse_whole, metavar="COUNT", help="child processes that solve"
    )


def _engine() -> click.Command:
    group = Group("engine", {"": {}}, summary=_CLUSTER, has_verbs=True)
    group.add("scheduler", "route work at SLUICE_DASK_ADDRESS until Ctrl-C", "")
    _workers(group.add("worker", "run what its scheduler has to be done", "--workers 2"))
    return group


def _collect(command: Command) -> None:
    command.option("--keep", metavar="RULES", help="in its place, such as jobs=30d/10000")
    command.option("--owner", metavar="OWNER", help="of one owner alone")
    command.flag("--remember", help="store --keep, for OWNER or for all")
    command.flag("--forget", help="delete the rules of OWNER")
    command.flag("--dry-run", help="delete nothing; say what would go")


def _backup(command: Command) -> None:
    command.argument("file", metavar="FILE", help="which is not there yet")


def _restore(command: Command) -> None:
    command.argument("file", metavar="FILE", help="a backup, of either database")
    command.flag("--replace", help="first delete all that is there")
    command.flag("--without-keys", help="leave out all keys: one may be revoked by now")


_CLUSTER = "the parts of a cluster, which runs work on machines"
# Commands without a folder: they stand above the verbs, as the service does.
SERVED: Mapping[str, Entry] = MappingProxyType(
    {
        "engine": Entry(_CLUSTER, _engine),
        **dict(
            (
                _made(
                    "demo",
                    "serve, solve real input over HTTP, print it, keep serving",
                    "--once",
                    _demo,
                ),
                _made(
                    "completion",
                    "print what a shell completes sluice's words by",
                    "bash",
                    _completion,
                ),
                _made("serve", "serve the HTTP interface until Ctrl-C", "--port 8080", _serve),
                _made(
                    "work",
                    "run durable jobs of the same database, without HTTP",
                    "--workers 2",
                    _workers,
                ),
                _made(
                    "collect",
                    "delete what is kept no longer, as SLUICE_RETENTION says",
                    "--keep jobs=30d,answers=90d --dry-run",
                    _collect,
                ),
                _made(
                    "backup",
                    "write everything that is stored into one file",
                    "monday.sluice",
                    _backup,
                ),
                _made("restore", "put a backup into an empty database", "monday.sluice", _restore),
            )
        ),
    }
)
