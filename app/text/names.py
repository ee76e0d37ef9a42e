"""Names as a terminal and a message show them: nothing in them steers anything, none is endless."""

from __future__ import annotations

MAX_QUOTED = 200


def printable(text: str) -> str:
    """Return the text without characters that could steer a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def quoted(name: str) -> str:
    """Return a name in quotes, in ASCII and not too long, as messages show it."""
    text = ascii(name)
    return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 3] + "..."
