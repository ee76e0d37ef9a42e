"""Fields of a form: text after text is read, and what is wrong is noted by the field's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from contract.limits import MAX_MESSAGE_BYTES
from domain.errors import InvalidInput, SluiceError, UnitMismatch
from domain.problem import FragmentLimits
from domain.units import parse_bytes

T = TypeVar("T")

LONGEST = 200
LIMITS = (
    ("min", "min_fragment_bytes"),
    ("max", "max_fragment_bytes"),
    ("align", "alignment_bytes"),
    ("max_fragments", "max_fragments"),
)


def size_in(text: str) -> int:
    """Return a size of 1 byte or more as it was typed, with its unit. Raises UnitMismatch."""
    size = parse_bytes(text)
    if not 1 <= size <= MAX_MESSAGE_BYTES:
        raise UnitMismatch("expected at least 1 byte and at most 256 TiB")
    return size


@dataclass(slots=True)
class FieldReader:
    """Reads text after text and notes what is wrong, by the field's name."""

    texts: Mapping[str, str]
    mistakes: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return the field as it was typed, without the space around it."""
        return self.texts.get(name, "").strip()

    def read(self, name: str, read: Callable[[str], T], longest: int = LONGEST) -> T | None:
        """Return the value of the field; None where it is empty or wrong."""
        text = self.text(name)
        if not text:
            return None
        try:
            if len(text) > longest:
                raise InvalidInput(f"expected at most {longest} characters")
            return read(text)
        except SluiceError as refusal:
            self.mistakes[name] = refusal.detail
            return None

    def size(self, name: str) -> int | None:
        """Return a size with its unit."""
        return self.read(name, size_in)

    def limits(self) -> FragmentLimits:
        """Return the limits of fragments; those that exclude nothing where a text is wrong."""
        given = {key: self.size(name) for name, key in LIMITS}
        try:
            return FragmentLimits(
                **{name: size for name, size in given.items() if size is not None}
            )
        except SluiceError as refusal:
            self.mistakes[_LIMIT_FIELDS.get(refusal.field or "", "min")] = refusal.detail
            return FragmentLimits()


_LIMIT_FIELDS = {key: name for name, key in LIMITS}
