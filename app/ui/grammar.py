"""The grammar of the command line, on click: commands, what they take, and groups that make a
command when it is asked for.

    command = Command("optimize", summary="find the best cut of one message", example="path.json")
    command.argument("source", help="file, - or profile")
    command.option("--bytes", read=parse_bytes, metavar="SIZE", help="size of the message")
    command.flag("--robust", help="seek the cut whose greatest regret is least")
    command.parsed(["path.json", "--bytes", "4KiB"]).bytes  # 4096
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from app.text.choices import expected_one_of, meant
from domain.errors import InvalidInput

CONTEXT: Mapping[str, Any] = MappingProxyType({"help_option_names": ["-h", "--help"]})
_TYPED = ParameterSource.COMMANDLINE
FILES = frozenset(
    {"FILE", "OUT", "SOURCE", "A", "B", "LAYER", "BASELINE", "TABLE", "FOLDER", "DIR"}
)


class Arguments(SimpleNamespace):
    """What was typed: `command` and `verb` name the command, and each parameter has its value."""


class Refused(click.UsageError):
    """A word that is no command, in a sentence that needs nothing more."""


class _Value(click.ParamType[Any]):
    """A value that is read by a function which raises InvalidInput, or that is one of `choices`."""

    name = "value"

    def __init__(
        self, read: Callable[[str], Any], choices: Sequence[str], metavar: str | None
    ) -> None:
        self.read, self.choices = read, tuple(choices)
        self.takes_files = metavar in FILES

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what is meant by a text. Raises BadParameter."""
        if self.choices:
            if value not in self.choices:
                self.fail(expected_one_of(self.choices, value), param, ctx)
            return value
        try:
            return self.read(value)
        except InvalidInput as refusal:
            self.fail(refusal.detail, param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the words that begin so, and have the shell offer files where it takes them."""
        words = [*self.choices, *(_behind(ctx) if isinstance(param, click.Argument) else ())]
        return [
            *([CompletionItem(incomplete, type="file")] if self.takes_files else ()),
            *(CompletionItem(word) for word in words if word.startswith(incomplete)),
        ]


def _behind(ctx: click.Context) -> list[str]:
    """Return the words that make another command of this one, as `count` behind `layer`."""
    above = ctx.parent
    is_begun = any(ctx.get_parameter_source(name) is _TYPED for name in ctx.params)
    if above is None or not isinstance(above.command, Group) or is_begun:
        return []
    first = f"{ctx.command.name} "
    return [name.removeprefix(first) for name in above.command.entries if name.startswith(first)]


def as_typed(text: str) -> str:
    """Return the text itself."""
    return text


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a parameter's value is made of: `rest` where it is not given, `mark` for a flag."""

    rest: Any = None
    mark: Any = None
    is_flag: bool = False
    is_list: bool = False

    def value(self, found: Any) -> Any:
        if self.is_flag:
            return self.mark if found else self.rest
        if self.is_list:
            return list(found) if found else self.rest
        return self.rest if found is None else found


class Command(click.Command):
    """A command, what it takes, and an example that follows its words."""

    def __init__(self, name: str, *, summary: str, example: str) -> None:
        super().__init__(name, help=f"{summary[0].upper()}{summary[1:]}.", params=[])
        self.summary, self.example = summary, example
        self._taken: dict[str, _Taken] = {}
        self._several: set[str] = set()
        self.callback = self._arguments
        self.flag("--json", help="print the HTTP service's document")

    def argument(
        self,
        name: str,
        *,
        help: str = "",
        metavar: str | None = None,
        read: Callable[[str], Any] = as_typed,
        choices: Sequence[str] = (),
        is_optional: bool = False,
        takes_several: bool = False,
        rest: Any = None,
    ) -> None:
        """Add a word that stands at its place; `rest` is its value where it is not typed."""
        shown = metavar or name.upper()
        if is_optional:
            shown = f"[{shown}]"
        self._add(
            click.Argument(
                [name],
                type=_Value(read, choices, metavar),
                required=not is_optional,
                nargs=-1 if takes_several else 1,
                metavar=f"{shown}..." if takes_several else shown,
                help=help,
            ),
            _Taken([] if takes_several and rest is None else rest, is_list=takes_several),
        )

    def option(
        self,
        *names: str,
        help: str,
        name: str = "",
        metavar: str | None = None,
        read: Callable[[str], Any] = as_typed,
        choices: Sequence[str] = (),
        is_required: bool = False,
        is_repeated: bool = False,
        takes_several: bool = False,
        rest: Any = None,
    ) -> None:
        """Add an option that takes a value, or that may be repeated, or several behind it.

        `name` is that of its value, by itself that of the first option; `rest` its value where it
        is not given.
        """
        if takes_several:
            self._several.update(names)
        shown = metavar or (f"[{'|'.join(choices)}]" if choices else "TEXT")
        self._add(
            click.Option(
                [*names, name or _name(names[0])],
                type=_Value(read, choices, metavar),
                required=is_required,
                multiple=is_repeated or takes_several,
                metavar=f"{shown}..." if takes_several else shown,
                help=help,
            ),
            _Taken(rest, is_list=is_repeated or takes_several),
        )

    def flag(
        self, *names: str, help: str, name: str = "", mark: Any = True, rest: Any = False
    ) -> None:
        """Add an option without a value: `mark` where it is given, `rest` where it is not."""
        parameter = click.Option(
            [*names, name or _name(names[0])], is_flag=True, default=False, help=help
        )
        self._add(parameter, _Taken(rest, mark, is_flag=True))

    def _add(self, parameter: click.Parameter, taken: _Taken) -> None:
        self.params.append(parameter)
        self._taken[parameter.name] = taken

    def _arguments(self, **found: Any) -> Arguments:
        values = {name: self._taken[name].value(value) for name, value in found.items()}
        above = click.get_current_context().parent
        if above is not None and isinstance(above.command, Group) and above.command.has_verbs:
            return Arguments(command=above.command.name, verb=self.name, **values)
        return Arguments(command=self.name, **values)

    def parsed(self, words: Sequence[str]) -> Arguments:
        """Return what these words of the command say. Raises InvalidInput."""
        return parsed(self, self.name or "", words)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; one option with several values is as many options with one."""
        words, refusal = self._apart(ctx, args)
        if refusal is not None and not ctx.resilient_parsing:
            raise refusal
        try:
            return super().parse_args(ctx, words)
        except click.UsageError as refused:
            refused.ctx = refused.ctx or ctx  # its own parser does not know it
            raise

    def _apart(
        self, ctx: click.Context, args: Sequence[str]
    ) -> tuple[list[str], click.UsageError | None]:
        """Return the words with one value an option, and what is wrong with the first option at
        fault. Who asks for help gets it whatever else is said.
        """
        options, words = _options(self, ctx), list[str]()
        refusal: click.UsageError | None = None
        several, left = "", iter(args)
        for word in left:
            if word == "--":
                return [*words, word, *left], refusal
            if not _is_option(word):
                words += [several, word] if several else [word]
                continue
            if word in ctx.help_option_names:
                return [word], None
            words.append(word)
            name, equals, _ = word.partition("=")
            option, several = options.get(name), ""
            if option is None:
                refusal = refusal or click.NoSuchOption(name, ctx=ctx)
            elif not (option.is_flag or equals):
                several = name if name in self._several else ""
                value = next(left, None)
                words += [] if value is None else [value]
                refusal = refusal or _no_value(name, value, options, ctx)
        return words, refusal

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example, whose line is never broken."""
        formatter.write_paragraph()
        formatter.write(f"example: {ctx.command_path} {self.example}".rstrip() + "\n")


def _options(command: click.Command, ctx: click.Context) -> dict[str, click.Option]:
    """Return the options of a command by each of their names, that of help among them."""
    found = (each for each in command.get_params(ctx) if isinstance(each, click.Option))
    return {name: each for each in found for name in each.opts}


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _no_value(
    name: str, value: str | None, known: Container[str], ctx: click.Context
) -> click.UsageError | None:
    """Return a refusal where the word behind an option is another option; what is meant as a value
    can be said in one word.
    """
    if value is None:
        return None  # click says so
    if value not in known and (not value.startswith("--") or " " in value):
        return None
    means = f"option '{name}' requires an argument, and {value} looks like an option"
    return click.UsageError(f"{means}: {name}={value} has it as one", ctx)


@dataclass(frozen=True, slots=True)
class Entry:
    """A command of a group: what a list says of it, and how it is made."""

    summary: str
    make: Callable[[], click.Command]


class Group(click.Group):
    """Commands below a word, by section; each is made when it is asked for.

    `has_verbs`: the word itself is the command, and what stands below it are its verbs, of which
    one may be meant where none is named. `elsewhere` says where a command of a name stands which is
    none of these, "" where nowhere.
    """

    def __init__(
        self,
        name: str,
        sections: Mapping[str, Mapping[str, Entry]],
        *,
        summary: str,
        has_verbs: bool = False,
        epilog: str = "",
        elsewhere: Callable[[str], str] = lambda word: "",
    ) -> None:
        super().__init__(
            name, help=f"{summary[0].upper()}{summary[1:]}.", invoke_without_command=True
        )
        self.summary, self.default = summary, ""
        self.sections = {section: dict(entries) for section, entries in sections.items()}
        self.entries = {key: one for part in sections.values() for key, one in part.items()}
        self.has_verbs, self._what = has_verbs, "VERB" if has_verbs else "COMMAND"
        self._closing, self._elsewhere = epilog, elsewhere
        self.subcommand_metavar = f"{self._what} ..."
        self.callback = self._check_named

    def add(self, name: str, summary: str, example: str, *, is_default: bool = False) -> Command:
        """Return a new command below this word, made for all times; it may be the default one."""
        command = Command(name, summary=summary, example=example)
        self.entries[name] = self.sections[""][name] = Entry(summary, lambda: command)
        if is_default:
            self.default = name
        return command

    def _check_named(self, **_: Any) -> None:
        ctx = click.get_current_context()
        if ctx.invoked_subcommand is None:
            raise Refused(f"missing: {self._what}, one of {', '.join(self.entries)}", ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they are shown."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, made now."""
        entry = self.entries.get(cmd_name)
        return None if entry is None else entry.make()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of the group itself, and put in the command that is meant by none."""
        says_none = not args or (
            _is_option(args[0]) and args[0] not in ("--", *ctx.help_option_names)
        )
        if self.default and says_none and (args or not ctx.resilient_parsing):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is named, of two words before one. Raises Refused."""
        for count in (2, 1):
            name = " ".join(args[:count])
            if len(args) >= count and name in self.entries:
                return name, self.get_command(ctx, name), args[count:]
        if ctx.resilient_parsing:
            return None, None, args[1:]
        refusal = self._elsewhere(args[0]) or expected_one_of(self.entries, args[0])
        raise Refused(f"argument {self._what}: {refusal}", ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, and then the options."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section's commands, without making them."""
        for section, entries in self.sections.items():
            if entries:
                with formatter.section(section or f"{self._what.capitalize()}s"):
                    formatter.write_dl([(name, one.summary) for name, one in entries.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the text below the help as it is."""
        if self._closing:
            formatter.write_paragraph()
            formatter.write(self._closing)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin so, and options, those of the command that is meant where
        none is named; no other command is made.
        """
        own = self.get_command(ctx, self.default) or self
        firsts = {name.split()[0]: one.summary for name, one in reversed(self.entries.items())}
        return [
            *(
                CompletionItem(name, help=firsts[name])
                for name in dict.fromkeys(each.split()[0] for each in self.entries)
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(own, ctx, incomplete),
        ]


def parsed(command: click.Command, program: str, words: Sequence[str]) -> Arguments:
    """Return what words say. Raises InvalidInput, and SystemExit after help was printed."""
    try:
        with command.make_context(program, list(words), **CONTEXT) as ctx:
            found: Arguments = command.invoke(ctx)
            return found
    except click.exceptions.Exit as end:
        raise SystemExit(end.exit_code) from None
    except click.UsageError as refusal:
        raise InvalidInput(_sentence(refusal)) from None


def _sentence(refusal: click.UsageError) -> str:
    """Return a refusal in one line, with the parameter at fault and where help is."""
    ctx = refusal.ctx
    where = "" if ctx is None else f" (see {ctx.command_path} --help)"
    return f"{_said(refusal)}{where}"


def _said(refusal: click.UsageError) -> str:
    if isinstance(refusal, click.NoSuchOption):
        ctx = refusal.ctx
        known = [] if ctx is None else list(_options(ctx.command, ctx))
        return f"unknown: {refusal.option_name}{meant(refusal.option_name, known)}"
    if isinstance(refusal, click.MissingParameter) and refusal.param is not None:
        return f"missing: {_named(refusal.param)}"
    if isinstance(refusal, click.BadParameter) and refusal.param is not None:
        return f"argument {_named(refusal.param)}: {refusal.message}"
    return f"{refusal.message[:1].lower()}{refusal.message[1:]}".rstrip(".")


def _named(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return "/".join(parameter.opts)
    return (parameter.metavar or parameter.name.upper()).strip("[].")


def _name(option: str) -> str:
    return option.lstrip("-").replace("-", "_")
