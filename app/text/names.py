"""Names as a terminal and a message show them: nothing in them steers anything, none is endless."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Document = Mapping[str, Any]
OF_MODEL = "of this model"  # what every proof is of: never of the machine that was measured
PROVEN_BOUND = f"proven bound {OF_MODEL}"
NOT_OF_MACHINE = "of the model, not of the machine: its costs are fitted"
MAX_QUOTED = 200


def printable(text: str) -> str:
    """Return the text without characters that could steer a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def quoted(name: str) -> str:
    """Return a name in quotes, in ASCII and not too long, as messages show it."""
    text = ascii(name)
    return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 3] + "..."


def width_of(text: str) -> int:
    """Return the columns that a text takes: East Asian wide characters two, combining ones none."""
    from rich.cells import cell_len  # not before it is needed: the command line starts at once

    return cell_len(printable(text))


def fit_to(text: str, columns: int, *, cut_off: str = "…") -> str:
    """Return the text in exactly so many columns: padded, or cut with a mark."""
    text = printable(text)
    if width_of(text) > columns:
        while text and width_of(text) > columns - 1:
            text = text[:-1]
        text += cut_off
    return text + " " * (columns - width_of(text))
