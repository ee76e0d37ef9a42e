"""The command line's grammar: every command by its section. `sluice --help` makes none of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

import click

from app.console.service_arguments import SERVED
from app.registry import (
    GROUPS,
    SECTIONS,
    VERBS,
    Verb,
    command_words,
    commands_of,
    stands_at_the_top,
)
from app.ui.grammar import Arguments, Command, Entry, Group, parsed

PROGRAM = "sluice"
COMPLETE = f"_{PROGRAM.upper()}_COMPLETE"  # the variable by which a shell's script asks
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


def parse(argv: Sequence[str] | None) -> Arguments:
    """Return the arguments; `command` names it. Raises InvalidInput; SystemExit for help."""
    own, program = _parted(list(sys.argv[1:] if argv is None else argv))
    found = parsed(grammar(), PROGRAM, own)
    if program:
        found.program = [*found.program, *program]
    return found


def own_words(words: Sequence[str]) -> list[str]:
    """Return the words among which options are: those behind -- are names, or of a program."""
    return list(words[: words.index("--")] if "--" in words else words)


def _parted(words: list[str]) -> tuple[list[str], list[str]]:
    """The words before -- and those behind it, of a command that runs a program."""
    if words[:1] != ["sweep"] or "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def grammar() -> Group:
    """Return the group of all commands."""
    top = {section: _entries(section) for section in SECTIONS if section not in GROUPS}
    below = {
        name: Entry(summary, partial(_group, name, summary)) for name, summary in GROUPS.items()
    }
    group = Group(
        PROGRAM,
        {**top, "Less often": below},
        summary="cut messages so that they cross a pipeline fastest, with proof of the model",
        epilog=EPILOG,
        elsewhere=_elsewhere,
    )
    group.params.append(
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="show it and exit",
        )
    )
    return group


def _group(name: str, summary: str) -> Group:
    return Group(name, {"": _entries(name)}, summary=summary, elsewhere=_at_the_top)


def _entries(section: str) -> dict[str, Entry]:
    return {name: _entry(name) for name in commands_of(section)}


def _entry(name: str) -> Entry:
    verb = VERBS.get(name)
    return SERVED[name] if verb is None else Entry(verb.summary, partial(_of_verb, verb))


def _of_verb(verb: Verb) -> click.Command:
    """Return the command of a folder of app/verbs, whose module is imported now."""
    module = verb.module("command")
    if not verb.example:
        group = Group(verb.name, {"": {}}, summary=verb.summary, has_verbs=True)
        module.add_verbs(group)
        return group
    command = Command(verb.name, summary=verb.summary, example=verb.example)
    module.add_arguments(command)
    return command


def _show_version(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    """Print the version, which is imported only then."""
    if is_asked:
        from app.settings import VERSION

        sys.stdout.write(f"{PROGRAM} {VERSION}\n")
        context.exit()


def _elsewhere(word: str) -> str:
    """Return where a command stands that is typed without the word of its group."""
    words = command_words(word)
    return "" if words == word else f"{word!r} stands below another word: {PROGRAM} {words}"


def _at_the_top(word: str) -> str:
    """Return where a command stands that is typed below a group which has it not."""
    if stands_at_the_top(word):
        return f"{word!r} stands at the top: {PROGRAM} {word}"
    return _elsewhere(word)
