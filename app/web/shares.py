"""Shares as they are typed on the page: one convention for every field.

With a % it is per cent. A number alone is a share, and so is below 1: whoever types 5 hardly means
500 %, and what was meant is not guessed.
"""

from __future__ import annotations

import re
from math import isfinite

from domain.errors import InvalidInput

SHARE_RULE = "expected a share, as 5 % or 0.05"
_NUMBER = re.compile(r"[+]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_MOST_CHARACTERS = 40


def share_in(text: str) -> float:
    """A share: "5 %", "5%" and "0.05" are the same. Raises InvalidInput, also for a bare "5"."""
    plain = text.strip()
    number = plain.removesuffix("%").strip()
    if len(plain) > _MOST_CHARACTERS or _NUMBER.fullmatch(number) is None:
        raise InvalidInput(SHARE_RULE)
    value = float(number)
    if not isfinite(value):
        raise InvalidInput(SHARE_RULE)
    if plain.endswith("%"):
        return value / 100.0
    if value >= 1.0:
        raise InvalidInput(f"{number} alone could be a share or per cent: write 5 % or 0.05")
    return value


def share_given(share: float) -> str:
    """A share as `share_in` reads it, exactly: of 1 and more with its sign."""
    return f"{share!r}" if share < 1.0 else f"{100.0 * share:.12g} %"
