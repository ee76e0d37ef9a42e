"""JSON that tools print: alone or after lines of text, one document or several."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from typing import Any

from fitting.contract import JSON_BEGINS
from fitting.readers.text import refuse

# What only the JSON of one tool has, and which tool that is.
TOOLS = {
    '"fio version"': "fio",
    '"tcp_mss_default"': "iperf3",
    '"sock_bufsize"': "iperf3",
    '"test_info"': "perftest",
    '"traceEvents"': "trace events",
}


_CUT_OFF = "the file ends there: was the tool stopped? Pass all that it writes"


def tool_of(head: str) -> str | None:
    """Return whose JSON the beginning of a file is; None where nothing tells."""
    if "{" not in head[:4096]:
        return None
    return next((tool for mark, tool in TOOLS.items() if mark in head), None)


def documents_of(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, from the first brace on that begins a line, or from the
    first one. Raises UnreadableTrace.
    """
    decoder = json.JSONDecoder()
    begins = JSON_BEGINS.search(text)
    start = begins.end() - 1 if begins else text.find("{")
    while start >= 0:
        try:
            document, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as refusal:
            refuse(
                f"not JSON, line {refusal.lineno}, column {refusal.colno}: {refusal.msg}"
                + (f"; {_CUT_OFF}" if _is_cut_off(text, refusal) else "")
            )
        except (RecursionError, ValueError):
            refuse("not JSON that can be read: nested too deeply, or numbers too long")
        yield document
        start = text.find("{", end)


def _is_cut_off(text: str, refusal: json.JSONDecodeError) -> bool:
    """Whether what is missing is missing at the end of the text."""
    return refusal.pos >= len(text.rstrip()) or refusal.msg.startswith("Unterminated string")


def part(document: Any, *path: str) -> dict[str, Any]:
    """Return the object below these keys; an empty one where there is none."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def parts(document: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects of the list below this key; none where there is no list."""
    listed = document.get(key)
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def number(document: dict[str, Any], key: str) -> float | None:
    """Return the finite number below this key; None for anything else."""
    value = document.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300:
        return None
    return float(value) if isfinite(value) else None


def whole(document: dict[str, Any], key: str) -> int | None:
    """Return the whole number, 0 or more, below this key; None for anything else."""
    value = document.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 2**63 else None
