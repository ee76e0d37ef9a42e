"""The help of every command and verb, as the grammar has them: new ones are among them at once."""

from __future__ import annotations

from tests.golden.asked import Command
from tests.support.commands import commands


def _help() -> list[Command]:
    lines = ((), *(names for names, _ in commands()))
    words = [" ".join(names).split() for names in lines]
    return [Command(f"help/{'-'.join(line) or 'sluice'}", (*line, "--help")) for line in words]


HELP: tuple[Command, ...] = tuple(_help())
