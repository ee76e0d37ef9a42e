"""The help of every command and verb, as the grammar has them: new ones are among them at once."""

from __future__ import annotations

import re

from app.console.arguments import grammar
from tests.architecture.test_documents import commands
from tests.golden.asked import Command

_USAGE = re.compile(r"\Ausage: .*?\n\n", re.DOTALL)
# `--from SIZE, --to SIZE` of Python to 3.12 is `--from, --to SIZE` of later ones.
_REPEATED = re.compile(
    r"(?P<first>-[\w-]+) (?P<value>[^\s,]+), (?P<second>-[\w-]+) (?P=value)(?!\S)"
)


def in_every_python(text: str) -> str:
    """Return a help text without what differs between versions of argparse: where the lines of the
    usage are broken, and whether each name of an option has its value.
    """
    usage = _USAGE.match(text)
    if usage is not None:
        text = f"{' '.join(usage[0].split())}\n\n{text[usage.end() :]}"
    return _REPEATED.sub(r"\g<first>, \g<second> \g<value>", text)


def _help() -> list[Command]:
    lines = ((), *(names for names, _ in commands(grammar())))
    words = [" ".join(names).split() for names in lines]
    return [Command(f"help/{'-'.join(line) or 'sluice'}", (*line, "--help")) for line in words]


HELP: tuple[Command, ...] = tuple(_help())
