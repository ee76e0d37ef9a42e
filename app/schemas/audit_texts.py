"""Settings and mixes of messages as people type them, as parts of an AuditIn."""

from __future__ import annotations

import re
from typing import Any

from domain.errors import InvalidInput
from domain.units import parse_bytes

_WHOLE = "whole"


def setting_of_text(text: str) -> dict[str, Any]:
    """512KiB, whole, or steps as 1:whole,64KiB:512KiB. Raises InvalidInput."""
    if ":" not in text:
        return {_WHOLE: True} if text == _WHOLE else {"static_bytes": _size(text)}
    steps = []
    for word in text.split(","):
        begin, _, size = word.partition(":")
        steps.append({"from_bytes": _size(begin), "size_bytes": _step_size(size)})
    return {"steps": steps}


def _step_size(text: str) -> int | None:
    return None if text.strip() == _WHOLE else _size(text)


def _size(text: str) -> int:
    try:
        size = parse_bytes(text)
    except InvalidInput as refusal:
        raise InvalidInput(
            f"{refusal.detail}; or whole, or steps as 1:whole,64KiB:512KiB", field="setting"
        ) from None
    if size == 0:
        raise InvalidInput("expected a size of at least 1 byte", field="setting")
    return size


def mix_of_text(text: str) -> list[dict[str, Any]]:
    """Lines SIZE or SIZE WEIGHT; # begins a comment. Raises InvalidInput naming the line."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = re.split(r"[\s,;]+", line.partition("#")[0].strip(" \t,;"))
        if words == [""]:
            continue
        try:
            found.append(_mix_size(words))
        except (InvalidInput, ValueError):
            raise InvalidInput(
                f"line {number}: expected a size and a weight, as 64KiB 3", field="mix"
            ) from None
    return found


def _mix_size(words: list[str]) -> dict[str, Any]:
    size, *weights = words
    if len(weights) > 1:
        raise ValueError
    return {"message_bytes": parse_bytes(size), "weight": float(weights[0]) if weights else 1.0}
