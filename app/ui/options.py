"""Declared words as options of a command, and back: options as a body, texts as a command."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from app.errors import pointer_of
from app.registry import command_words
from app.text.units import parse_whole, quoted
from app.ui.grammar import Arguments, Command
from app.ui.words import UNITS, parts_of
from contract.declare import Asked, document_of
from domain.errors import InvalidFields, InvalidInput, NotFound
from domain.units import parse_bytes

T = TypeVar("T")
MAX_FILE_CHARACTERS = 2**20


def add_items(command: Command) -> None:
    """Add the file of items, and how fragments are filled."""
    command.option(
        "--items",
        metavar="FILE",
        help="CSV in place of --bytes: bytes, ready (us), name, a column a stage, as copy (us)",
    )
    command.option("--fill", metavar="RULE", help="with --items: until (the default) or before")
    command.option(
        "--first-bytes",
        read=parse_bytes,
        metavar="SIZE",
        help="with --items: a cap of its own for the first fragment",
    )


def add_most_items(command: Command) -> None:
    """Add the limit on the items of a fragment."""
    command.option(
        "--max-fragment-items",
        read=parse_whole,
        metavar="COUNT",
        help="with --items: most items of a fragment",
    )


def with_most_items(body: dict[str, Any], arguments: Arguments) -> dict[str, Any]:
    """Return a request with the limit of `add_most_items`, where it is given."""
    if arguments.max_fragment_items is None:
        return body
    limits = body.get("constraints") or {}
    limited = {**limits, "max_fragment_items": arguments.max_fragment_items}
    return {**body, "constraints": limited}


def says_items(arguments: Arguments) -> bool:
    """Return whether an option of `add_items` is given."""
    given = (arguments.items, arguments.fill, arguments.first_bytes)
    return any(value is not None for value in given)


def add_words(
    command: Command,
    words: Sequence[Asked],
    *,
    required: Collection[str] = (),
    rests: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Add an option for each word that has one; those of blocks stand behind the request's own, but
    where a block is another way to say one of these.

    `required` are the options without which this command asks nothing, `rests` what stands for
    options that are not given, by option.
    """
    own = {word.place[0] for word in words if len(word.place) == 1}
    for word in sorted(words, key=lambda word: word.place[0] not in own):
        if not word.option:
            continue
        names = tuple(filter(None, (word.option, word.also)))
        text = word.help or word.means
        if word.mark is not None:
            command.flag(*names, name=_name(word), mark=word.mark, rest=None, help=text)
            continue
        command.option(
            *names,
            name=_name(word),
            metavar=word.metavar or None,
            read=partial(_read, word),
            choices=tuple(value for value, _ in word.choices if value),
            takes_several=word.takes_several,
            is_repeated=word.is_repeated and not word.takes_several,
            is_required=word.option in required,
            rest=rests.get(word.option),
            help=text,
        )


def body_of_options(words: Sequence[Asked], arguments: Arguments) -> dict[str, Any]:
    """Return what the options say, as requests have it.

    Raises NotFound and InvalidInput for a file that an option names.
    """
    values = {word.place: _value(word, arguments) for word in words if word.option}
    return document_of(words, values)


@contextmanager
def options_named(words: Sequence[Asked]) -> Iterator[None]:
    """Have a refusal of what an option says name the option, where no field at fault is another's.

    Raises InvalidInput in place of InvalidFields.
    """
    try:
        yield
    except InvalidFields as refusal:
        options = {pointer_of(list(word.place)): word.option for word in words if word.option}
        if not all(problem.pointer in options for problem in refusal.problems):
            raise
        said = (f"{options[problem.pointer]}: {problem.detail}" for problem in refusal.problems)
        raise InvalidInput("; ".join(said)) from None


def _value(word: Asked, arguments: Arguments) -> Any:
    value = getattr(arguments, _name(word))
    if word.unit == "condition" and value is not None:
        return ",".join(value)  # a request has all of them in one text
    if value is not None and _is_parted(word):
        return UNITS[word.unit](",".join(value))
    if value is None or not (word.file or word.choices):
        return value
    return UNITS[word.unit](text_of_file(value, field=word.option[2:]) if word.file else value)


def text_of_file(name: str, *, field: str) -> str:
    """Return the text of a file that an option names. Raises NotFound and InvalidInput."""
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read(MAX_FILE_CHARACTERS + 1)
    except FileNotFoundError:
        raise NotFound(f"there is no file {quoted(name)}", field=field) from None
    except OSError as refusal:
        reason = refusal.strerror or "it cannot be read"
        raise InvalidInput(f"{quoted(name)}: {reason}", field=field) from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{quoted(name)} is no text in UTF-8", field=field) from None
    if len(text) > MAX_FILE_CHARACTERS:
        raise InvalidInput(f"expected at most {MAX_FILE_CHARACTERS} characters", field=field)
    return text


def command_line(
    name: str, words: Sequence[Asked], texts: Mapping[str, str], before: Sequence[str] = ()
) -> str:
    """Return the command that asks what the texts of a page ask; `before` stands before them."""
    return shlex.join(["sluice", *command_words(name).split(), *before, *_typed(words, texts)])


def _typed(words: Sequence[Asked], texts: Mapping[str, str]) -> Iterator[str]:
    for word in sorted(words, key=lambda word: not word.is_source):
        text = texts.get(word.name, "").strip() if word.label else ""
        if not text or (word.needs and not texts.get(word.needs)):
            continue
        if word.is_source:
            yield word.file or text
        elif word.mark is not None:
            yield word.option
        elif word.file:
            yield from (word.option, word.file)
        elif _is_parted(word):
            yield from (word.option, *(_narrowed(word, part) for part in text.split(",")))
        elif word.takes_several:
            yield from (word.option, *parts_of(text))
        elif word.is_repeated:
            for part in parts_of(text):
                yield from _given(word.option, part)
        elif not word.usual or text != word.usual:
            yield from _given(word.option, _narrowed(word, text))


def _narrowed(word: Asked, text: str) -> str:
    """Return a text without its blanks where it means the same, as 512KiB or 5%."""
    narrow = text.replace(" ", "")
    try:
        is_same = word.unit != "text" and UNITS[word.unit](narrow) == UNITS[word.unit](text)
    except InvalidInput:
        is_same = False
    return narrow if is_same else text


def _given(option: str, text: str) -> tuple[str, ...]:
    """Return an option and its value, in one word where the value looks like an option."""
    return (f"{option}={text}",) if text.startswith("-") else (option, text)


def _name(word: Asked) -> str:
    return "_".join(word.place)


def _read(word: Asked, text: str) -> Any:
    if word.choices or word.file:
        return text  # read when it is known to be one of them, or what the file holds
    value = UNITS[word.unit](text)
    return text if _is_parted(word) else value  # all parts are read together


def _is_parted(word: Asked) -> bool:
    """Whether one option takes the parts of one text."""
    return word.takes_several and not word.is_repeated
