"""Forms that change something, and texts of forms that are sizes and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from fastapi import Request

from app.web.input_form import read_form
from app.web.views.listed import size_in
from domain.errors import InvalidInput, SluiceError
from domain.problem import FragmentLimits

LONGEST = 200
LIMITS = (
    ("min", "min_fragment_bytes"),
    ("max", "max_fragment_bytes"),
    ("align", "alignment_bytes"),
    ("most", "max_fragments"),
)

T = TypeVar("T")


async def sent_fields(request: Request) -> dict[str, str]:
    """The fields of a form, the last of each name. Raises what `read_form` does."""
    return dict(await read_form(request))


@dataclass(slots=True)
class FieldReader:
    """Reads text after text and notes what is wrong, by the field's name."""

    texts: Mapping[str, str]
    mistakes: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """As it was typed, without the space around it."""
        return self.texts.get(name, "").strip()

    def read(self, name: str, read: Callable[[str], T]) -> T | None:
        """What the text says; None where it is empty or wrong."""
        text = self.text(name)
        if not text:
            return None
        try:
            if len(text) > LONGEST:
                raise InvalidInput(f"expected at most {LONGEST} characters")
            return read(text)
        except SluiceError as refusal:
            self.mistakes[name] = refusal.detail
            return None

    def size(self, name: str) -> int | None:
        """A size with its unit."""
        return self.read(name, size_in)

    def limits(self) -> FragmentLimits:
        """The limits of fragments; those that exclude nothing where a text is wrong."""
        given = {key: self.size(name) for name, key in LIMITS}
        try:
            return FragmentLimits(
                **{name: size for name, size in given.items() if size is not None}
            )
        except SluiceError as refusal:
            self.mistakes[_LIMIT_FIELDS.get(refusal.field or "", "min")] = refusal.detail
            return FragmentLimits()


_LIMIT_FIELDS = {key: name for name, key in LIMITS}
