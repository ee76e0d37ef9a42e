"""Parts of sentences as a page shows them."""

from __future__ import annotations


def capitalised(text: str) -> str:
    """Return the text with a capital, the rest as it is."""
    return text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """Return a refusal's words with a capital and a full stop; a name of a field stays as it is."""
    first = text.partition(" ")[0]
    begun = text[:1].upper() + text[1:] if first.isalpha() else text
    return begun if not begun or begun.endswith((".", "!", "?", ":")) else f"{begun}."
