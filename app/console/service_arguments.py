"""The grammar of the commands that start a service: they stand above the verbs, as it does."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from app.console.argument_parts import add_workers
from app.text.units import parse_whole
from app.ui.grammar import Command, Entry


def _serve() -> Command:
    command = Command("serve", summary=SERVED["serve"].summary, example="--port 8080")
    command.option("--host", metavar="HOST", help="default 127.0.0.1, or SLUICE_HOST")
    command.option("--port", read=parse_whole, metavar="PORT", help="default 8080, or SLUICE_PORT")
    command.option(
        "--socket", metavar="PATH", help="a Unix socket for this user alone, in place of a port"
    )
    add_workers(command)
    return command


def _demo() -> Command:
    command = Command("demo", summary=SERVED["demo"].summary, example="--once")
    command.flag("--once", help="stop after printing")
    return command


SERVED: Mapping[str, Entry] = MappingProxyType(
    {
        "serve": Entry("serve the HTTP interface until Ctrl-C", _serve),
        "demo": Entry("serve, solve real input over HTTP, print it, keep serving", _demo),
    }
)
