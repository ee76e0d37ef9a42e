"""What is said of a name that is none of those that there are."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def expected_one_of(choices: Iterable[str], given: str) -> str:
    """Return what is wrong with a name that is none of these, the nearest one named."""
    known = list(choices)
    return f"expected one of {', '.join(known)}, got {given!r}{meant(given, known)}"


def meant(given: str, known: list[str]) -> str:
    """Return which of these was meant, "" where none is near."""
    near = get_close_matches(given, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""
