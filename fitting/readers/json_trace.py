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
from typing import Any

from domain.measurement import (
    DirectTrace,
    MessageTrace,
    Reading,
    Samples,
    SignatureTrace,
    Trace,
    TraceKind,
)
from domain.pipeline import MAX_NAME_LENGTH, MAX_STAGES
from fitting.contract import ReaderSpec
from fitting.readers.kinds import check_kind
from fitting.readers.text import decoded, refuse, sizes_text

FORMAT = "JSON"
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
    },
}


def _recognises(head: str) -> bool:
    return head.removeprefix("\ufeff").lstrip()[:1] == "{"


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    document = _document(decoded(content))
    try:
        told = TraceKind(document.get("kind", kind or ""))
    except (ValueError, TypeError):
        refuse(f"kind: expected one of {', '.join(TraceKind)}")
    unknown = sorted(set(document) - _KEYS[told])
    if unknown:
        refuse(f"{unknown[0][:60]}: not a key of {told} traces")
    trace = _TRACES[told](document)
    check_kind(trace, kind, FORMAT)
    check_kind(trace, told, FORMAT)
    said = (("format", f"{FORMAT}, {told}"), ("time_unit", "µs"), ("size_unit", "bytes"))
    return Reading(FORMAT, trace, (*said, *sizes_text(*_parts(trace))))


def _document(text: str) -> dict[str, Any]:
    def refuse_constant(word: str) -> None:
        refuse(f"expected numbers that are finite, got {word}")

    try:
        document = json.loads(text, parse_constant=refuse_constant)
    except json.JSONDecodeError as refusal:
        refuse(f"not JSON, line {refusal.lineno}, column {refusal.colno}: {refusal.msg}")
    except (RecursionError, ValueError):
        refuse("not JSON that can be read: nested too deeply, or numbers too long")
    if not isinstance(document, dict):
        refuse("expected a JSON object")
    return document


def _direct(document: dict[str, Any]) -> Trace:
    sizes = _whole(document, "message_bytes")
    stages = document.get("stages")
    if not isinstance(stages, list) or not 1 <= len(stages) <= MAX_STAGES:
        refuse(f"stages: expected a list of 1 to {MAX_STAGES} stages")
    names, columns = [], []
    for place, stage in enumerate(stages):
        if not isinstance(stage, dict) or set(stage) != {"name", "time_us"}:
            refuse(f"stages.{place}: expected the keys name and time_us")
        name = stage["name"]
        if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME_LENGTH:
            refuse(f"stages.{place}.name: expected 1 to {MAX_NAME_LENGTH} characters")
        if not name.isprintable() or name in names:
            refuse(f"stages.{place}.name: expected a printable name of its own")
        names.append(name)
        columns.append(_times(stage, "time_us", where=f"stages.{place}."))
    repetitions = _whole(document, "repetition") if "repetition" in document else (0,) * len(sizes)
    total = _times(document, "total_us") if document.get("total_us") is not None else None
    return DirectTrace(tuple(names), sizes, repetitions, tuple(columns), total)


def _messages(document: dict[str, Any]) -> Trace:
    return MessageTrace(_samples(document, "latency"), _samples(document, "interarrival"))


def _signature(document: dict[str, Any]) -> Trace:
    replies = document.get("handles_replies", True)
    if not isinstance(replies, bool):
        refuse("handles_replies: expected true or false")
    return SignatureTrace(
        _whole(document, "message_bytes"),
        _whole(document, "burst"),
        _times(document, "computation_us"),
        _times(document, "cost_us"),
        round_trip=_samples(document, "round_trip"),
        receive=_samples(document, "receive"),
        handles_replies=replies,
    )


_TRACES = {
    TraceKind.DIRECT: _direct,
    TraceKind.INDIRECT: _messages,
    TraceKind.END_TO_END: _messages,
    TraceKind.LOGP: _signature,
}


def _samples(document: dict[str, Any], key: str) -> Samples | None:
    given = document.get(key)
    if given is None:
        return None
    if not isinstance(given, dict) or set(given) != {"message_bytes", "time_us"}:
        refuse(f"{key}: expected the keys message_bytes and time_us")
    sizes = _whole(given, "message_bytes", where=f"{key}.")
    return Samples(sizes, _times(given, "time_us", where=f"{key}."))


def _whole(given: dict[str, Any], key: str, *, where: str = "") -> tuple[int, ...]:
    values = _list(given, key, where)
    if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        refuse(f"{where}{key}: expected whole numbers")
    return tuple(values)


def _times(given: dict[str, Any], key: str, *, where: str = "") -> tuple[float, ...]:
    values = _list(given, key, where)
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        refuse(f"{where}{key}: expected numbers")
    try:
        return tuple(float(value) for value in values)
    except OverflowError:
        return refuse(f"{where}{key}: expected numbers that are finite")


def _list(given: dict[str, Any], key: str, where: str) -> list[Any]:
    values = given.get(key)
    if not isinstance(values, list) or not values:
        return refuse(f"{where}{key}: expected a list of numbers, at least one")
    return values


def _parts(trace: Trace) -> tuple[Samples | None, ...]:
    if isinstance(trace, MessageTrace):
        return trace.latency, trace.interarrival
    times = trace.stage_us[0] if isinstance(trace, DirectTrace) else trace.cost_us
    return (Samples(trace.message_bytes, times),)


SPEC = ReaderSpec(
    format=FORMAT,
    layout='a JSON object with "kind" and columns as arrays',
    recognises=_recognises,
    read=_read,
)
