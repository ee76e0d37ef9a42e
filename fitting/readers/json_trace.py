"""The project's own JSON of every kind of trace: columns as arrays of the same length.

{"kind": "direct", "message_bytes": [...], "repetition": [...],
 "stages": [{"name": "copy", "time_us": [...]}], "total_us": [...]}
{"kind": "indirect", "latency": {"message_bytes": [...], "time_us": [...]},
 "interarrival": {...}}                                 ("end_to_end": latency alone)
{"kind": "logp", "message_bytes": [...], "burst": [...], "computation_us": [...],
 "cost_us": [...], "round_trip": {...}, "receive": {...}, "handles_replies": true}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from contract.limits import MAX_NAME_LENGTH, MAX_STAGES
from domain.measurement import (
    DirectTrace,
    MessageTrace,
    Reading,
    Samples,
    SignatureTrace,
    Trace,
    TraceKind,
)
from domain.pipeline import stage_name
from fitting.contract import JSON_BEGINS, ReaderSpec, mark
from fitting.readers.columns import BURST, REPETITION, SIZE, Column
from fitting.readers.text import (
    BELOW_ZERO,
    check_kind,
    decoded,
    format_reasons,
    format_sizes,
    refuse,
    refuse_below_zero,
)
from fitting.readers.tool_json import TOOLS, tool_of

FORMAT = "JSON"
_Number = TypeVar("_Number", int, float)
_KEYS = {
    TraceKind.DIRECT: {"kind", "message_bytes", "repetition", "stages", "total_us"},
    TraceKind.INDIRECT: {"kind", "latency", "interarrival"},
    TraceKind.END_TO_END: {"kind", "latency"},
    TraceKind.LOGP: {
        "kind",
        "message_bytes",
        "burst",
        "computation_us",
        "cost_us",
        "round_trip",
        "receive",
        "handles_replies",
        "timer_subtracted",
    },
}


def _detects(head: str) -> bool:
    return head.removeprefix("\ufeff").lstrip()[:1] == "{" and tool_of(head) is None


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    document = _document(decoded(content))
    if "kind" not in document and kind is None:
        refuse(
            f"a JSON object without the key kind, one of {', '.join(TraceKind)}: if a tool wrote "
            f"it, what is read is JSON of {', '.join(dict.fromkeys(TOOLS.values()))}; a CSV of its "
            "numbers is read with columns, as in size=bytes,time=copy:us"
        )
    try:
        trace_kind = TraceKind(document.get("kind", kind or ""))
    except (ValueError, TypeError):
        refuse(f"kind: expected one of {', '.join(TraceKind)}")
    unknown = sorted(set(document) - _KEYS[trace_kind])
    if unknown:
        refuse(f"{unknown[0][:60]}: not a key of {trace_kind} traces")
    below = _Below()
    trace = _TRACES[trace_kind](document, below)
    check_kind(trace, kind, FORMAT)
    check_kind(trace, trace_kind, FORMAT)
    stated = (("format", f"{FORMAT}, {trace_kind}"), ("time_unit", "µs"), ("size_unit", "bytes"))
    left_out = format_reasons({BELOW_ZERO: below.rows})
    return Reading(FORMAT, trace, (*stated, *format_sizes(*_parts(trace)), *left_out))


@dataclass(slots=True)
class _Below:
    """Rows that are left out because a time of theirs is below 0."""

    rows: int = 0

    def kept(self, *times: Sequence[float]) -> list[int]:
        """Return the places of the others, and count. Raises UnreadableTrace for none."""
        kept = [row for row, values in enumerate(zip(*times, strict=True)) if min(values) >= 0.0]
        self.rows += len(times[0]) - len(kept)
        if not kept:
            refuse_below_zero(len(times[0]), len(times[0]))
        return kept


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except json.JSONDecodeError as refusal:
        refuse(f"not JSON, line {refusal.lineno}, column {refusal.colno}: {refusal.msg}")
    except (RecursionError, ValueError):
        refuse("not JSON that can be read: nested too deeply, or numbers too long")
    if not isinstance(document, dict):
        refuse("expected a JSON object")
    return document


def _refuse_constant(word: str) -> NoReturn:
    refuse(f"expected numbers that are finite, got {word}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a key given twice is refused, for one of the two would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        refuse(f"{twice[:60]}: given twice")
    return found


def _at(column: Sequence[_Number], rows: list[int]) -> tuple[_Number, ...]:
    return tuple(column) if len(rows) == len(column) else tuple(column[row] for row in rows)


def _direct(document: dict[str, Any], below: _Below) -> Trace:
    sizes = _whole(document, SIZE)
    stages = document.get("stages")
    if not isinstance(stages, list) or not 1 <= len(stages) <= MAX_STAGES:
        refuse(f"stages: expected a list of 1 to {MAX_STAGES} stages")
    names, columns = [], []
    for place, stage in enumerate(stages):
        if not isinstance(stage, dict) or set(stage) - {"name"} != {"time_us"}:
            refuse(f"stages.{place}: expected the keys name and time_us")
        name = stage.get("name", stage_name(place + 1))
        if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME_LENGTH:
            refuse(f"stages.{place}.name: expected 1 to {MAX_NAME_LENGTH} characters")
        if not name.isprintable() or name in names:
            refuse(f"stages.{place}.name: expected a printable name of its own")
        names.append(name)
        columns.append(_times(stage, "time_us", len(sizes), where=f"stages.{place}."))
    repetitions = (0,) * len(sizes)
    if document.get("repetition") is not None:
        repetitions = _whole(document, REPETITION, len(sizes))
    total = None
    if document.get("total_us") is not None:
        total = _times(document, "total_us", len(sizes))
    rows = below.kept(*columns, *(() if total is None else (total,)))
    return DirectTrace(
        tuple(names),
        _at(sizes, rows),
        _at(repetitions, rows),
        tuple(_at(column, rows) for column in columns),
        None if total is None else _at(total, rows),
    )


def _messages(document: dict[str, Any], below: _Below) -> Trace:
    return MessageTrace(
        _samples(document, "latency", below), _samples(document, "interarrival", below)
    )


def _signature(document: dict[str, Any], below: _Below) -> Trace:
    flags = {
        "handles_replies": document.get("handles_replies", True),
        "timer_subtracted": document.get("timer_subtracted", False),
    }
    for name, value in flags.items():
        if not isinstance(value, bool):
            refuse(f"{name}: expected true or false")
    sizes = _whole(document, SIZE)
    bursts = _whole(document, BURST, len(sizes))
    computation, cost = (_times(document, key, len(sizes)) for key in ("computation_us", "cost_us"))
    rows = below.kept(computation, cost)
    return SignatureTrace(
        _at(sizes, rows),
        _at(bursts, rows),
        _at(computation, rows),
        _at(cost, rows),
        round_trip=_samples(document, "round_trip", below),
        receive=_samples(document, "receive", below),
        **flags,
    )


_TRACES = {
    TraceKind.DIRECT: _direct,
    TraceKind.INDIRECT: _messages,
    TraceKind.END_TO_END: _messages,
    TraceKind.LOGP: _signature,
}


def _samples(document: dict[str, Any], key: str, below: _Below) -> Samples | None:
    given = document.get(key)
    if given is None:
        return None
    if not isinstance(given, dict) or set(given) != {"message_bytes", "time_us"}:
        refuse(f"{key}: expected the keys message_bytes and time_us")
    sizes = _whole(given, SIZE, where=f"{key}.")
    times = _times(given, "time_us", len(sizes), where=f"{key}.")
    rows = below.kept(times)
    return Samples(_at(sizes, rows), _at(times, rows))


def _whole(
    given: dict[str, Any], column: Column, length: int | None = None, *, where: str = ""
) -> tuple[int, ...]:
    """A column of whole numbers within its limits. Raises UnreadableTrace naming key and place."""
    values = _list(given, where + column.name, length)
    for place, value in enumerate(values):
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or not column.minimum <= value <= column.maximum:
            refuse(f"{where}{column.name}.{place}: {column.rule}")
    return tuple(values)


def _times(given: dict[str, Any], key: str, length: int, *, where: str = "") -> tuple[float, ...]:
    """A column of times in µs. Raises UnreadableTrace naming key and place."""
    values, column = _list(given, where + key, length), Column(key)
    for place, value in enumerate(values):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not column.lowest <= value <= column.maximum:
            refuse(f"{where}{key}.{place}: {column.rule}")
    return tuple(map(float, values))


def _list(given: dict[str, Any], path: str, length: int | None) -> list[Any]:
    """The list under the last name of this path, of this length. Raises UnreadableTrace."""
    values = given.get(path.rpartition(".")[2])
    if not isinstance(values, list) or not values:
        refuse(f"{path}: expected a list of numbers, at least one")
    if length is not None and len(values) != length:
        refuse(f"{path}: expected {length} numbers, as many as message_bytes, got {len(values)}")
    return values


def _parts(trace: Trace) -> tuple[Samples | None, ...]:
    if isinstance(trace, MessageTrace):
        return trace.latency, trace.interarrival
    times = trace.stage_us[0] if isinstance(trace, DirectTrace) else trace.cost_us
    return (Samples(trace.message_bytes, times),)


SPEC = ReaderSpec(
    format=FORMAT,
    about="the project's own, for every kind of trace",
    layout='a JSON object with "kind" and columns as arrays',
    marks=(
        mark("a { at its beginning", r"^\{"),
        mark('the key "kind"', r'"kind"\s*:'),
    ),
    detects=_detects,
    read=_read,
    begins=JSON_BEGINS,
)
