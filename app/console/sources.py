"""What the user names as a source, read and told apart: JSON, CSV, or a stored profile."""

from __future__ import annotations

import codecs
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from app.errors import BodyTooLarge, NotJson
from app.settings import Settings
from domain.errors import InvalidInput, NotFound, UnreadableTrace
from domain.fit import check_enough
from domain.measurement import TraceKind
from domain.profile import PROFILE_NAME_RULE

STANDARD_INPUT = "-"
_LOOKED_AT = 4096  # bytes at the beginning that tell JSON from a trace
_PROFILE_REFERENCE = re.compile(rf"{PROFILE_NAME_RULE}(@[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class RequestSource:
    """A request body, or a pipeline or an aggregate made into one."""

    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TraceSource:
    """The text of a trace."""

    text: str


@dataclass(frozen=True, slots=True)
class ProfileSource:
    """A stored profile by name, or name@revision."""

    reference: str


Source: TypeAlias = RequestSource | TraceSource | ProfileSource


def read_source(name: str, settings: Settings) -> Source:
    """What is behind this name. Raises NotFound, NotJson, UnreadableTrace, BodyTooLarge."""
    if name != STANDARD_INPUT and not Path(name).exists():
        if _PROFILE_REFERENCE.fullmatch(name) and not name.endswith((".json", ".csv")):
            return ProfileSource(name)
        raise NotFound(f"there is no file {_quoted(name)}", field="source")
    raw = _read(name, settings.max_trace_bytes)
    if raw[:_LOOKED_AT].lstrip()[:1] not in (b"{", b"["):
        return TraceSource(_text(raw))
    if len(raw) > settings.max_body_bytes:
        raise BodyTooLarge(f"expected JSON of at most {settings.max_body_bytes} bytes")
    return RequestSource(_request_of(raw))


def read_trace(name: str, settings: Settings) -> str:
    """The text of a trace file or of standard input."""
    if name != STANDARD_INPUT and not Path(name).exists():
        raise NotFound(f"there is no file {_quoted(name)}", field="source")
    return _text(_read(name, settings.max_trace_bytes))


def _read(name: str, limit: int) -> bytes:
    if name == STANDARD_INPUT:
        raw = sys.stdin.buffer.read(limit + 1)
    else:
        try:
            with open(name, "rb") as file:
                raw = file.read(limit + 1)
        except OSError as refusal:
            reason = refusal.strerror or "it cannot be read"
            raise InvalidInput(f"{_quoted(name)}: {reason}", field="source") from None
    if len(raw) > limit:
        raise BodyTooLarge(f"expected at most {limit} bytes (SLUICE_MAX_TRACE_BYTES)")
    return raw.removeprefix(codecs.BOM_UTF8)


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise UnreadableTrace("expected a text file in UTF-8", field="source") from None


def _request_of(raw: bytes) -> dict[str, Any]:
    import orjson

    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError as refusal:
        raise NotJson(
            f"not JSON, line {refusal.lineno}, column {refusal.colno}: {refusal.msg}"
        ) from None
    if not isinstance(document, dict):
        raise InvalidInput("expected a pipeline or a request body, a JSON object", field="source")
    if "stages" in document:
        return {"pipeline": document}
    if "total" in document and "bottleneck" in document:
        return {"aggregate": document}
    if "understood" in document:
        return _fitted(document)
    return document


def _fitted(document: dict[str, Any]) -> dict[str, Any]:
    """The bare model of what `sluice fit --json` printed. Raises MeasurementMissing."""
    try:
        if document["aggregate"] is not None:
            parts = ("total", "bottleneck")
            return {"aggregate": {part: _costs(document["aggregate"][part]) for part in parts}}
        if document["kind"] in (TraceKind.END_TO_END, TraceKind.INDIRECT):
            check_enough(TraceKind(document["kind"]))
        fitted = document["pipeline"]
        stages = [_costs(stage) for stage in fitted["stages"]]
        return {"pipeline": {"stages": stages, "delay_us": fitted["delay_us"]}}
    except (KeyError, TypeError):
        raise InvalidInput("expected a fit with its stages", field="pipeline") from None


def _costs(stage: dict[str, Any]) -> dict[str, Any]:
    return {"name": stage["name"], "ranges": [_bare(line) for line in stage["ranges"]]}


def _bare(line: dict[str, Any]) -> dict[str, Any]:
    return {name: line[name] for name in ("up_to_bytes", "overhead_us", "ns_per_byte")}


def _quoted(name: str) -> str:
    text = ascii(name)
    return text if len(text) <= 200 else text[:197] + "..."


def merged(body: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The body with the options that were given; options win, constraints one by one."""
    given = {name: value for name, value in options.items() if value is not None}
    constraints = given.pop("constraints", {})
    constraints = {name: value for name, value in constraints.items() if value is not None}
    if constraints:
        before = body.get("constraints")
        given["constraints"] = {**(before if isinstance(before, dict) else {}), **constraints}
    return {**body, **given}


def body_of(source: Source) -> dict[str, Any]:
    """The request body that a source stands for; a trace's text is put in later, by `with_text`."""
    if isinstance(source, RequestSource):
        return source.body
    if isinstance(source, ProfileSource):
        return {"profile": source.reference}
    return {"measurements": {"content": ""}}
