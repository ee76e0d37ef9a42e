"""The JSON twin of a table file: the same content for people and for programs without a reader.

Source    docs/format.md, "The JSON twin".
Cost      linear; several times the size of the table file.
Exact     deterministic to the byte; numbers are written so that they read back as they were.
Traps     text from anywhere: every refusal is InvalidTable, and none quotes the text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from domain.errors import InvalidInput, InvalidTable
from domain.pipeline import FitRange, Pipeline, Stage
from domain.plan_table import PlanTable, TableCut, TableRepeat
from domain.problem import FragmentLimits
from exports.table.stored import StoredTable

FORMAT = "sluice-table"
VERSION = 1
_MAX_VALUE = 2**63
_LIMITS = tuple(FragmentLimits.__slots__)
_ENTRY = ("message_bytes", "latency_us", "relative_gap")

T = TypeVar("T")


def encode_json(table: PlanTable, *, profile: str, revision: int) -> bytes:
    """The document, UTF-8, without a line break. Raises InvalidInput for a bad name."""
    document = _document(StoredTable(profile, revision, table))
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidTable("a stage's name must be without lone surrogates") from None


def decode_json(data: bytes) -> StoredTable:
    """The plan table of a document, which is checked in everything. Raises InvalidTable."""
    try:
        return _stored(_parsed(data))
    except InvalidTable:
        raise
    except InvalidInput as refusal:
        raise InvalidTable(f"not a valid plan table: {refusal.detail}") from None


# --- writing --------------------------------------------------------------------------------------


def _document(named: StoredTable) -> dict[str, object]:
    table = named.table
    return {
        "format": FORMAT,
        "version": VERSION,
        "profile": named.profile,
        "revision": named.revision,
        "pipeline": _pipeline_document(table.pipeline),
        "constraints": {name: getattr(table.limits, name) for name in _LIMITS},
        "fragment_cap": table.fragment_cap,
        "min_message_bytes": table.min_message_bytes,
        "max_message_bytes": table.max_message_bytes,
        "relative_gap": float(table.relative_gap),
        "cuts": [{**_entry(cut), "fragment_bytes": cut.fragment_bytes} for cut in table.cuts],
        "repeats": [{**_entry(one), "size_bytes": one.size_bytes} for one in table.repeats],
    }


def _entry(entry: TableCut | TableRepeat) -> dict[str, object]:
    return {
        "message_bytes": entry.message_bytes,
        "latency_us": float(entry.latency_us) + 0.0,  # which also turns -0 to 0
        "relative_gap": float(entry.relative_gap) + 0.0,
    }


def _pipeline_document(pipeline: Pipeline) -> dict[str, object]:
    stages = [
        {
            "name": stage.name,
            "ranges": [
                {name: getattr(part, name) for name in FitRange.__slots__} for part in stage.ranges
            ],
        }
        for stage in pipeline.stages
    ]
    return {"stages": stages, "delay_us": pipeline.delay_us}


# --- reading --------------------------------------------------------------------------------------


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):  # also what is no UTF-8, and numbers of 5 000 digits
        raise InvalidTable("expected a JSON document in UTF-8 with finite numbers") from None


def _no_constant(_: str) -> NoReturn:
    raise ValueError("no number")


def _stored(document: object) -> StoredTable:
    names = (
        *("format", "version", "profile", "revision", "pipeline", "constraints", "fragment_cap"),
        *("min_message_bytes", "max_message_bytes", "relative_gap", "cuts", "repeats"),
    )
    top = _object(document, names, where="the document")
    if top["format"] != FORMAT or _whole(top["version"]) != VERSION:
        raise InvalidTable(f"expected format {FORMAT} and version {VERSION}")
    table = PlanTable(
        _pipeline(top["pipeline"]),
        _limits(top["constraints"]),
        _whole(top["fragment_cap"]),
        _whole(top["min_message_bytes"]),
        _whole(top["max_message_bytes"]),
        _number(top["relative_gap"]),
        _list(top["cuts"], _cut, where="cuts"),
        _list(top["repeats"], _repeat, where="repeats"),
    )
    return StoredTable(_text(top["profile"]), _whole(top["revision"]), table)


def _pipeline(value: object) -> Pipeline:
    given = _object(value, ("stages", "delay_us"), where="pipeline")
    return Pipeline(_list(given["stages"], _stage, where="stages"), _number(given["delay_us"]))


def _stage(value: object) -> Stage:
    given = _object(value, ("name", "ranges"), where="stages")
    return Stage(_text(given["name"]), _list(given["ranges"], _range, where="ranges"))


def _range(value: object) -> FitRange:
    given = _object(value, tuple(FitRange.__slots__), where="ranges")
    return FitRange(
        _number(given["overhead_us"]),
        _number(given["ns_per_byte"]),
        _whole_or_none(given["up_to_bytes"]),
    )


def _limits(value: object) -> FragmentLimits:
    given = _object(value, _LIMITS, where="constraints")
    return FragmentLimits(
        _whole(given["min_fragment_bytes"]),
        _whole_or_none(given["max_fragment_bytes"]),
        _whole(given["alignment_bytes"]),
        _whole_or_none(given["max_fragments"]),
    )


def _cut(value: object) -> TableCut:
    given = _object(value, (*_ENTRY, "fragment_bytes"), where="cuts")
    return TableCut(
        _whole(given["message_bytes"]),
        _list(given["fragment_bytes"], _whole, where="fragment_bytes"),
        _number(given["latency_us"]),
        _number(given["relative_gap"]),
    )


def _repeat(value: object) -> TableRepeat:
    given = _object(value, (*_ENTRY, "size_bytes"), where="repeats")
    return TableRepeat(
        _whole(given["message_bytes"]),
        _whole(given["size_bytes"]),
        _number(given["latency_us"]),
        _number(given["relative_gap"]),
    )


def _object(value: object, names: tuple[str, ...], *, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict) or value.keys() != set(names):
        raise InvalidTable(f"{where}: expected an object with exactly {', '.join(names)}")
    return value


def _list(value: object, read: Callable[[object], T], *, where: str) -> tuple[T, ...]:
    if not isinstance(value, list):
        raise InvalidTable(f"{where}: expected a list")
    return tuple(map(read, value))


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidTable("expected a whole number where one belongs")
    if abs(value) > _MAX_VALUE:
        raise InvalidTable("expected whole numbers of at most 2^63")
    return value


def _whole_or_none(value: object) -> int | None:
    return None if value is None else _whole(value)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidTable("expected a number where one belongs")
    try:
        return float(value)
    except OverflowError:
        raise InvalidTable("expected finite numbers") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidTable("expected text where it belongs")
    return value
