"""Settings and workloads as a person types them, as the JSON of a request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from domain.default_sizes import CURRENT
from domain.errors import InvalidInput
from domain.units import format_bytes, parse_bytes, parse_number

_WHOLE = "whole"
_UNCUT = frozenset({_WHOLE, "never cut", "not cut", "uncut"})
_RULE = "expected a size as 512 KiB, or whole, or steps as whole, from 64 KiB: 16 KiB"
_FILLER = re.compile(r"\b(always|(for )?(every|all) messages?)\b")


def parse_setting(text: str) -> dict[str, Any]:
    """Return the setting of 512KiB, whole, or 1:whole,64KiB:512KiB. Raises InvalidInput.

    So are "always 512K", with the powers of 1024 that libraries' own settings mean by bare letters;
    "never cut"; and "whole, from 64 KiB: 16 KiB" or "16 KiB from 64 KiB". Below a first step that
    says "from", messages are whole.
    """
    plain = " ".join(_FILLER.sub(" ", text.lower()).split())
    words = [word.strip() for word in re.split(r"[,;]", plain)]
    if len(words) == 1 and not _is_step(words[0]):
        size = _step_size(words[0])
        return {_WHOLE: True} if size is None else {"static_bytes": size}
    return {"steps": list(_steps(words))}


def format_setting_name(name: str) -> str:
    """Return what another setting is called: the system that comes with it, or whose it is."""
    return "your setting" if name == CURRENT else name


def format_repeated(fragment_bytes: int, default_bytes: int | None = None) -> str:
    """Return a size that is repeated, and which default was rounded up to it."""
    each = f"{format_bytes(fragment_bytes)} each"
    if default_bytes in (None, fragment_bytes):
        return each
    return f"{each} ({format_bytes(default_bytes or 0)} rounded up)"


def _steps(words: Sequence[str]) -> Iterator[dict[str, Any]]:
    for number, word in enumerate(words):
        begin, size = _parted(word) if number or _is_step(word) else ("1", word)
        from_bytes = _size(begin)
        if number == 0 and from_bytes > 1 and "from" in word:
            yield {"from_bytes": 1, "size_bytes": None}
        yield {"from_bytes": from_bytes, "size_bytes": _step_size(size)}


def _is_step(word: str) -> bool:
    return ":" in word or "from " in word


def _parted(word: str) -> tuple[str, str]:
    """Return where a step begins and its size, of "64KiB:16KiB" or "16 KiB from 64 KiB"."""
    if ":" in word:
        begin, _, size = word.removeprefix("from ").partition(":")
        return begin, size
    size, _, begin = word.partition("from ")
    return begin, size


def _step_size(text: str) -> int | None:
    return None if text.strip() in _UNCUT else _size(text)


def _size(text: str) -> int:
    try:
        size = parse_bytes(text)
    except InvalidInput:
        raise InvalidInput(_RULE, field="setting") from None
    if size == 0:
        raise InvalidInput("expected a size of at least 1 byte", field="setting")
    return size


def parse_workload(text: str) -> list[dict[str, Any]]:
    """Return lines SIZE or SIZE WEIGHT; # begins a comment. Raises InvalidInput with the line."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = re.split(r"[\s,;]+", line.partition("#")[0].strip(" \t,;"))
        if words == [""]:
            continue
        try:
            found.append(_workload_size(words))
        except (InvalidInput, ValueError):
            raise InvalidInput(
                f"line {number}: expected a size and a weight, as 64KiB 3", field="workload"
            ) from None
    return found


def _workload_size(words: list[str]) -> dict[str, Any]:
    size, *weights = words
    if len(weights) > 1:
        raise ValueError
    return {"message_bytes": parse_bytes(size), "weight": float(weights[0]) if weights else 1.0}


# --- several of something -------------------------------------------------------------------------


def parse_sizes(text: str) -> tuple[int, ...]:
    """Return sizes in bytes, as 4KiB,1MiB, or 64..4MiB: both and the powers of two between.

    Raises InvalidInput.
    """
    found: list[int] = []
    for part in text.split(","):
        first, dots, last = part.partition("..")
        low = parse_bytes(first)
        high = parse_bytes(last) if dots else low
        if not 1 <= low <= high:
            raise InvalidInput(f"expected sizes as 64..4MiB, got {text!r}")
        between = (2**power for power in range(low.bit_length(), high.bit_length()))
        found += [low, *(one for one in between if low < one < high), high]
    return tuple(sorted(set(found)))


def parse_prices(text: str) -> dict[str, float]:
    """Return numbers by name, as reg=1,mem=1,dev=5. Raises InvalidInput."""
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(name.strip() and equals for name, equals, _ in pairs):
        raise InvalidInput("expected cycles by class, as reg=1,mem=1,dev=5")
    return {name.strip(): parse_number(value.strip()) for name, _, value in pairs}


def parse_counts(text: str) -> list[int]:
    """Return whole numbers, as 4,16,64, or as 4..128, each twice the one before.

    Raises InvalidInput.
    """
    first, dots, last = text.partition("..")
    numbers = [first, last] if dots else text.split(",")
    if not all(re.fullmatch(r"[0-9]{1,9}", one.strip(), re.ASCII) for one in numbers):
        raise InvalidInput("expected whole numbers, as 4,16,64 or 4..128")
    if not dots:
        return [int(one) for one in numbers]
    found, end = [max(1, int(first))], int(last)
    while 2 * found[-1] <= end:
        found.append(2 * found[-1])
    return found
