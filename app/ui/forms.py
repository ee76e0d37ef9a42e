"""A page's form of declared words: texts in; the request, or mistakes by field, out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Generic, TypeVar, cast

from app.errors import field_problems
from app.schemas.base import dump_json, parse_json
from app.ui.fields import FieldReader
from app.ui.options import MAX_FILE_CHARACTERS, command_line
from app.ui.words import read
from contract.declare import Asked, Input, document_of, words_of
from domain.errors import SluiceError

T = TypeVar("T", bound=Input)


def nothing(_: object) -> None:
    """Check no more of a request."""


@dataclass(frozen=True)
class RequestForm(Generic[T]):
    """The words of a request that a page asks for, and what it always asks with them.

    `begins_with` are texts to begin with, by field, in place of those that the words declare.
    `optional` are fields that may be empty here, though a request has them. `check` raises
    SluiceError for a request whose fields exclude each other.
    """

    kind: type[T]
    command: str
    always: Mapping[str, Any] = field(default_factory=dict)
    begins_with: Mapping[str, str] = field(default_factory=dict)
    optional: Collection[str] = ()
    check: Callable[[T], object] = nothing

    @cached_property
    def words(self) -> Sequence[Asked]:
        """Those with a label."""
        return [word for word in words_of(cast(Any, self.kind)) if word.label]

    def texts(self, query: Mapping[str, str]) -> tuple[dict[str, str], bool]:
        """Return the texts, those to begin with where none is given; and whether any is."""
        if any(query.get(word.name) for word in self.words):
            return {word.name: query.get(word.name) or word.usual for word in self.words}, True
        return self.first_texts(), False

    def first_texts(self) -> dict[str, str]:
        """Return the texts that a form begins with."""
        return {
            word.name: self.begins_with.get(word.name) or word.begins_with or word.usual
            for word in self.words
        }

    def asked(self, texts: Mapping[str, str]) -> tuple[T | None, dict[str, str]]:
        """Return the request, None where a text is wrong, and what is wrong by field."""
        document, mistakes = self.document(texts)
        if mistakes:
            return None, mistakes
        try:
            asked = parse_json(self.kind, dump_json(document))
            self.check(asked)
        except SluiceError as refusal:
            return None, self.mistakes(refusal)
        return asked, {}

    def document(self, texts: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the body that the texts say, and what cannot be read, by field."""
        reader = FieldReader(texts)
        values: dict[tuple[str, ...], Any] = {}
        for word in self.words:
            is_any = word.is_long or word.mark is not None  # whatever marks a box
            longest = MAX_FILE_CHARACTERS if is_any else word.max_characters
            value = reader.read(word.name, partial(read, word), longest)
            is_needed = word.is_required and word.name not in self.optional
            if is_needed and not reader.text(word.name):
                reader.mistakes[word.name] = "expected one"
            if value is not None and (not word.needs or reader.text(word.needs)):
                values[word.place] = value
        return {**document_of(self.words, values), **self.always}, reader.mistakes

    def mistakes(self, refusal: SluiceError) -> dict[str, str]:
        """Return what is refused by field, "" for what fits none."""
        found: dict[str, str] = {}
        for problem in field_problems(refusal):
            found.setdefault(self.place(problem.pointer), problem.detail)
        return found or {"": refusal.detail}

    def place(self, pointer: str) -> str:
        """Return the field that a pointer lies in, the nearest one, else one that lies in it, else
        one that it names without its block; "" for none.
        """
        around = [word for word in self.words if f"{pointer}/".startswith(f"{word.pointer}/")]
        if around:
            return max(around, key=lambda word: len(word.place)).name
        inside = [word for word in self.words if word.pointer.startswith(f"{pointer}/")]
        named = (word for word in self.words if pointer == f"/{word.place[-1]}")
        return next((word.name for word in (*inside, *named)), "")

    def shell(self, texts: Mapping[str, str], before: Sequence[str] = ()) -> str:
        """Return the command that asks the same, with these words before its options."""
        return command_line(self.command, self.words, texts, before)
