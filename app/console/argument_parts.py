"""Parts of the command line's grammar: the parser, what several commands share, the types, and what
shells complete words by.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from app.registry import GROUPS, SECTIONS, command_words, commands_of, stands_at_the_top
from app.text.choices import expected_one_of, meant
from app.text.units import parse_counts, parse_sizes, parse_whole
from app.ui.options import argument_of
from domain.errors import InvalidInput
from domain.units import (
    parse_bytes,
    parse_number,
    parse_share,
)

T = TypeVar("T")
Commands = argparse._SubParsersAction  # the name that argparse gives to what add_subparsers returns


_LINE = ("command", "verb")  # the words of a command but for its group's, as the grammar calls them


class Parser(argparse.ArgumentParser):
    """Reports misuse as any other bad input, in one line, instead of usage and exit."""

    def error(self, message: str) -> NoReturn:
        """Raise InvalidInput."""
        raise InvalidInput(f"{message} (see {self.prog} --help)")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the arguments. Raises InvalidInput, for an option with the one that is meant."""
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            line = "".join(f" {found.__dict__[key]}" for key in _LINE if found.__dict__.get(key))
            command = next(one for words, one in _parsers(self) if words.endswith(line))
            known = [one for action in command._actions for one in action.option_strings]
            command.error(f"unknown: {' '.join(rest)}{meant(rest[0], known)}")
        return found

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse what is none of the choices, with the one that is meant (argparse shows reprs)."""
        if action.choices is not None and value not in action.choices:
            refusal = expected_one_of(map(str, action.choices), value)
            if action.dest == "command" and (words := command_words(value)) != value:
                refusal = f"{value!r} stands below another word: sluice {words}"
            elif action.dest == "command" and self.prog != "sluice" and stands_at_the_top(value):
                refusal = f"{value!r} stands at the top: sluice {value}"
            raise argparse.ArgumentError(action, refusal)


# What follows each command in its example; files of examples are there in a checkout.
_EXAMPLES = {
    "demo": "--once",
    "admin completion": "bash",
    "serve": "--port 8080",
    "admin work": "--workers 2",
    "admin engine scheduler": "",
    "admin engine worker": "--workers 2",
    "admin collect": "--keep jobs=30d,answers=90d --dry-run",
    "admin backup": "monday.sluice",
    "admin restore": "monday.sluice",
}


class Root(Parser):
    """The parser of all commands, whose help lists them by section."""

    def __init__(self, **about: Any) -> None:
        super().__init__(prog="sluice", **about)
        self._top = self.add_subparsers(
            dest="command", required=True, metavar="COMMAND", parser_class=Parser
        )
        self._below = {name: self._group(name, summary) for name, summary in GROUPS.items()}

    def _group(self, name: str, summary: str) -> Commands[Parser]:
        group = self._top.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            allow_abbrev=False,
        )
        return group.add_subparsers(
            dest="command", required=True, metavar="COMMAND", parser_class=Parser
        )

    def add_command(self, name: str, **about: Any) -> Parser:
        """Add a command at its place: here, or below the word of its group."""
        group = next((one for one in GROUPS if name in commands_of(one)), "")
        return self._below.get(group, self._top).add_parser(name, **about)

    def format_help(self) -> str:
        """Return the help of all commands, those of a section below its name."""
        text = self._get_formatter()
        text.add_usage(self.usage, self._actions, ())
        text.add_text(self.description)
        shown = {action.dest: action for action in self._top._choices_actions}
        sections = {name: commands_of(name) for name in SECTIONS if name not in GROUPS}
        for name, commands in (*sections.items(), ("Less often", tuple(GROUPS))):
            text.start_section(name)
            text.add_arguments([shown[command] for command in commands])
            text.end_section()
        text.start_section("options")
        text.add_arguments([action for action in self._actions if action.option_strings])
        text.end_section()
        text.add_text(self.epilog)
        return text.format_help()


def add(
    commands: Root | Commands[Parser], name: str, summary: str, example: str | None = None
) -> Parser:
    """Add a command, or a verb of one, with its example, by itself that of the table."""
    place = commands.add_command if isinstance(commands, Root) else commands.add_parser
    parser: Parser = place(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,  # an example is never broken
        allow_abbrev=False,
    )
    if example is None:
        example = _EXAMPLES[parser.prog.removeprefix("sluice ")]
    parser.epilog = f"example: {parser.prog} {example}".rstrip()
    parser.add_argument("--json", action="store_true", help="print the HTTP service's document")
    return parser


def add_above(commands: Root, name: str, summary: str) -> Parser:
    """Add a command that only has verbs, which say their examples."""
    return commands.add_command(name, help=summary, allow_abbrev=False)


def add_listed(parser: Parser) -> Commands[Parser]:
    """Add the place of the verbs of a command that means `list` where none is given."""
    parser.add_argument("--json", action="store_true", help="of the list, where no verb is given")
    return parser.add_subparsers(dest="verb", metavar="VERB", help="default: list")


def add_count_and_owner(parser: Parser) -> None:
    """Add how many are listed, and whose."""
    parser.add_argument(
        "--limit", type=whole, default=20, metavar="COUNT", help="how many at most (20)"
    )
    add_owner(parser)


def add_owner(parser: Parser) -> None:
    """Add whose things are meant."""
    parser.add_argument("--owner", metavar="OWNER", default="local", help="whose (local)")


def add_seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seed", type=whole, default=0, metavar="NUMBER", help="of the random order"
    )


def size(text: str) -> int:
    """Return a size in bytes, as 4096 or 64 KiB."""
    return argument_of(parse_bytes, text)


def sizes(text: str) -> tuple[int, ...]:
    """Return sizes in bytes, as 4KiB,1MiB, or 64..4MiB: both and the powers of two between."""
    return argument_of(parse_sizes, text)


def cpus(text: str) -> tuple[int, ...]:
    """Return the numbers of one processor or two, as 0,1."""
    parts = text.split(",")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise argparse.ArgumentTypeError(f"expected one number or two, as 0,1, got {text!r}")
    return tuple(map(int, parts))


def whole(text: str) -> int:
    """Return a whole number of at most 15 digits, as 4 or -1."""
    return argument_of(parse_whole, text)


def number(text: str) -> float:
    """Return a finite number."""
    return argument_of(parse_number, text)


def share(text: str) -> float:
    """Return a share, as 0.05 or 5%."""
    return argument_of(parse_share, text)


def names(text: str) -> list[str]:
    """Return names that are separated by commas."""
    return [name.strip() for name in text.split(",")]


def counts(text: str) -> list[int]:
    """Return whole numbers, as 4,16,64, or as 4..128, each twice the one before."""
    return argument_of(parse_counts, text)


def condition(text: str) -> tuple[str, str]:
    """Return a condition's name and value, as connections=4."""
    name, equals, value = text.partition("=")
    if not (name.strip() and equals and value.strip()):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, as connections=4, got {text!r}")
    return name.strip(), value.strip()


def add_mpi(parser: argparse.ArgumentParser) -> None:
    """Add the compiler wrapper and the launcher of an installed MPI."""
    parser.add_argument("--mpicc", metavar="NAME", help="compiler wrapper, as mpicc.mpich (mpicc)")
    parser.add_argument("--launcher", metavar="NAME", help="default: named like the wrapper")
    parser.add_argument(
        "--allow-run-as-root", action="store_true", help="have Open MPI start programs as root"
    )


# --- what a shell completes words by ----------------------------------------------------------


SHELLS = ("bash", "zsh", "fish")
_FILES = {"FILE", "OUT", "SOURCE", "LAYER", "BASELINE", "TABLE", "FOLDER", "DIR"}
# Both shells have this table: it sets `line`, the command's words, and then what fits behind them.
_TABLE = """\
_sluice_step() {
    case "$line $1" in
        %(lines)s) line="$line $1" ;;
    esac
}
_sluice_table() {
    kind=none found= options=
    case "$line $1" in
%(values)s
    esac
    case "$line" in
%(commands)s
    esac
}
"""
_BASH = """\
# sluice in bash: source <(sluice admin completion bash)
%s_sluice() {
    local kind found options line= at word=${COMP_WORDS[COMP_CWORD]}
    local before=${COMP_WORDS[COMP_CWORD-1]}
    if [ "$word" = = ]; then word=; fi
    if [ "$before" = = ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
    for ((at = 1; at < COMP_CWORD; at++)); do _sluice_step "${COMP_WORDS[at]}"; done
    _sluice_table "$before"
    case "$word" in -*) kind=none found=$options ;; esac
    COMPREPLY=($(compgen -W "$found" -- "$word"))
    if [ "$kind" = none ]; then compopt +o default 2>/dev/null; fi
}
complete -o default -F _sluice sluice
"""
_ZSH = """\
#compdef sluice
# sluice in zsh: source <(sluice admin completion zsh), or the file _sluice in a folder of $fpath
%s_sluice() {
    local kind found options line= at word=$words[CURRENT] before=$words[CURRENT-1]
    if [[ $word == --*=* ]]; then before=${word%%%%=*} word=; compset -P '*='; fi
    for ((at = 2; at < CURRENT; at++)); do _sluice_step "$words[at]"; done
    _sluice_table "$before"
    if [[ $word == -* ]]; then kind=none found=$options; fi
    if [[ -n $found ]]; then compadd -- ${=found}; fi
    if [[ $kind == files ]]; then _files; fi
}
if [[ $funcstack[1] == _sluice ]]; then _sluice "$@"; else compdef _sluice sluice; fi
"""
_FISH = """\
# sluice in fish: sluice admin completion fish > ~/.config/fish/completions/sluice.fish
function __sluice_line
    set -l line
    for word in (commandline -opc)[2..-1]
        if contains -- "$line $word" %s
            set line "$line $word"
        end
    end
    echo "$line"
end
complete -c sluice -f
%s
"""


def completion_of(parser: Parser, shell: str) -> str:
    """Return the script by which a shell completes the words of this grammar."""
    commands = [_Completed.of(line, one) for line, one in _parsers(parser)]
    lines = [one.line for one in commands if one.line]
    for one in commands:
        behind = [line[len(one.line) + 1 :] for line in lines if line.startswith(one.line + " ")]
        one.words[:0] = dict.fromkeys(words.split()[0] for words in behind)
    if shell == "fish":
        rules = [rule for one in commands for rule in one.fish_rules()]
        return _FISH % (" ".join(map(_quoted, lines)), "\n".join(rules))
    values = [value for one in commands for value in one.values()]
    table = {
        "lines": " | ".join(map(_quoted, lines)),
        "values": "\n".join(f"        {value}" for value in values),
        "commands": "\n".join(f"        {one.case()}" for one in commands),
    }
    return (_BASH if shell == "bash" else _ZSH) % (_TABLE % table)


def _parsers(parser: argparse.ArgumentParser, line: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each command and verb by its words, a blank before each."""
    yield line, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from _parsers(below, f"{line} {name}")


@dataclass(frozen=True, slots=True)
class _Completed:
    """What may stand behind the words `line` of a command: `words`, files, and options."""

    line: str
    words: list[str]
    summaries: dict[str, str]
    takes_files: bool
    options: list[argparse.Action]

    @classmethod
    def of(cls, line: str, parser: Parser) -> _Completed:
        places = [one for one in parser._actions if not one.option_strings]
        verbs = [one for one in places if isinstance(one, argparse._SubParsersAction)]
        return cls(
            line,
            [word for one in places if one not in verbs for word in one.choices or ()],
            {one.dest: one.help or "" for verb in verbs for one in verb._choices_actions},
            any(one.metavar in _FILES for one in places),
            [one for one in parser._actions if one.option_strings],
        )

    def values(self) -> Iterator[str]:
        """Yield what bash and zsh put behind each option that takes a value."""
        for option in self.options:
            if option.nargs != 0:
                before = " | ".join(_quoted(f"{self.line} {one}") for one in option.option_strings)
                yield f"{before}) {_value(option)}; return ;;"

    def case(self) -> str:
        """Return what bash and zsh put behind these words."""
        names = [one for option in self.options for one in option.option_strings]
        kind = "files" if self.takes_files else "none"
        words, options = _quoted(" ".join(self.words)), _quoted(" ".join(names))
        return f"{_quoted(self.line)}) kind={kind} found={words} options={options} ;;"

    def fish_rules(self) -> Iterator[str]:
        """Yield what fish reads."""
        rule = "complete -c sluice -n " + _quoted(f'test (__sluice_line) = "{self.line}"')
        if self.takes_files:
            yield f"{rule} -F"
        for word in self.words:
            yield f"{rule} -a {word} -d {_quoted(self.summaries.get(word, ''))}"
        for option in self.options:
            names = " ".join(
                f"-l {one[2:]}" if one.startswith("--") else f"-s {one[1:]}"
                for one in option.option_strings
            )
            takes = "" if option.nargs == 0 else " -r -F" if option.metavar in _FILES else " -x"
            if option.nargs != 0 and option.choices:
                takes += f" -a {_quoted(' '.join(option.choices))}"
            summary = (option.help or "").replace("%%", "%")
            yield f"{rule} {names}{takes} -d {_quoted(summary)}"


def _value(option: argparse.Action) -> str:
    if option.choices is not None:
        return f"found={_quoted(' '.join(option.choices))}"
    return "kind=files" if option.metavar in _FILES else "kind=none"


def _quoted(text: str) -> str:
    """Return a text as every one of these shells reads it: the only mark that ends it is apart."""
    return "'" + text.replace("'", "’") + "'"
