"""The command line's grammar. Imports nothing heavy: `sluice --help` answers at once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from app.console.argument_parts import (
    Parser,
    Root,
    add,
    add_above,
)
from app.console.service_arguments import add_served
from app.registry import VERBS, command_words

EPILOG = """\
Sizes take units: 4096, 64K, 64KiB, 1MB (K, M, KiB, MiB: powers of 1024; KB, MB: of 1000).
SOURCE is a file or - for standard input: a pipeline or a request body in JSON, or a trace in any
format that is recognised, also as gzip. A SOURCE that is no file is the name of a stored hardware
profile, as myrinet-gam or myrinet-gam@2. Questions about files touch no database; those about
profiles, and --save-as, use SLUICE_DATABASE_URL. In a SOURCE in JSON, costs and sizes may be texts
with units: "overhead_us": "250 ns", "bandwidth": "12 GB/s", "message_bytes": "64 KiB".

Exit codes: 0 done, 2 bad input, 3 refused (no cut, strategy or fit is possible), 4 not found,
5 conflict, 6 stopped at a limit, 7 a setting costs more than --max-regret or is not kept, a call
more than --max-more, or a model does not hold, 69 not available, 70 a defect, 130 interrupted.
"""


class _ShowVersion(argparse.Action):
    """Prints the version, which is imported only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from app.settings import VERSION

        sys.stdout.write(f"sluice {VERSION}\n")
        parser.exit()


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments; `command` names it. Raises InvalidInput; SystemExit for help."""
    words = list(sys.argv[1:] if argv is None else argv)
    name = " ".join(words[1:3])
    if name in VERBS and command_words(name) == " ".join(words[:3]):
        words[1:3] = [name]  # it may have two words
    own, program = _parted(words)
    found: argparse.Namespace = grammar(own).parse_args(own)
    if program:
        found.program = [*found.program, *program]
    return found


def own_words(words: Sequence[str]) -> list[str]:
    """Return the words that are Sluice's own, without those of a user's program behind --."""
    return _parted(list(words))[0]


def _parted(words: list[str]) -> tuple[list[str], list[str]]:
    """The words before -- and those behind it, of a command that runs a program."""
    if words[:1] != ["sweep"] or "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def grammar(words: Sequence[str] | None = None) -> Parser:
    """Return the parser of all commands, or one that is sufficient for these words: of what is not
    among them the name alone is known.
    """
    parser = Root(
        description="Cut messages so that they cross a pipeline fastest, with proof of the model.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show it and exit")
    for verb in VERBS.values():
        about = verb.name, verb.summary
        own = add(parser, *about, verb.example) if verb.example else add_above(parser, *about)
        if words is None or verb.name in words:
            verb.module("command").add_arguments(own)
    add_served(parser)
    return parser
