"""The pipeline's section of a table file: all that enters a problem's digest, in order."""

from __future__ import annotations

import struct
from math import copysign
from typing import Any

from contract.limits import MAX_RANGES, MAX_STAGES
from domain.errors import InvalidTable
from domain.pipeline import FitRange, Pipeline, Stage
from exports.table.layout import PIPELINE, RANGE, STAGE, padded


def pack_pipeline(pipeline: Pipeline) -> bytes:
    """The section; its length is a multiple of 8. Raises InvalidTable for an unwritable name."""
    parts = [PIPELINE.pack(pipeline.delay_us, len(pipeline.stages), 0)]
    for stage in pipeline.stages:
        name = _utf8(stage.name)
        parts.append(STAGE.pack(len(name), len(stage.ranges)))
        parts += [
            RANGE.pack(part.up_to_bytes or 0, part.overhead_us, part.ns_per_byte)
            for part in stage.ranges
        ]
        parts.append(name.ljust(padded(len(name)), b"\0"))
    return b"".join(parts)


def unpack_pipeline(section: memoryview) -> Pipeline:
    """The pipeline of a whole section. Raises InvalidInput and InvalidTable."""
    reader = _Reader(section)
    delay_us, stages, zero = reader.take(PIPELINE)
    if zero or not 1 <= stages <= MAX_STAGES:
        raise InvalidTable(f"the pipeline needs 1 to {MAX_STAGES} stages and zero behind them")
    found = tuple(_stage(reader) for _ in range(stages))
    reader.finish()
    return Pipeline(found, positive(delay_us))


def positive(value: float) -> float:
    """The number. Raises InvalidTable for a minus sign, before zero too; NaN passes."""
    if copysign(1.0, value) < 0.0 and value == value:
        raise InvalidTable("expected no number with a minus sign")
    return value


def _stage(reader: _Reader) -> Stage:
    name_bytes, count = reader.take(STAGE)
    if not 1 <= count <= MAX_RANGES:
        raise InvalidTable(f"a stage needs 1 to {MAX_RANGES} ranges")
    ranges = tuple(_range(*reader.take(RANGE)) for _ in range(count))
    try:
        return Stage(reader.text(name_bytes), ranges)
    except UnicodeDecodeError:
        raise InvalidTable("a stage's name must be UTF-8") from None


def _range(up_to_bytes: int, overhead_us: float, ns_per_byte: float) -> FitRange:
    return FitRange(positive(overhead_us), positive(ns_per_byte), up_to_bytes or None)


def _utf8(name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError:
        raise InvalidTable("a stage's name must be without lone surrogates") from None


class _Reader:
    """Takes bytes from the front; never past the end."""

    def __init__(self, section: memoryview) -> None:
        self._rest = section

    def take(self, shape: struct.Struct) -> tuple[Any, ...]:
        return shape.unpack(self._bytes(shape.size))

    def text(self, length: int) -> str:
        taken = bytes(self._bytes(padded(length)))
        if any(taken[length:]):
            raise InvalidTable("expected zeros behind a stage's name")
        return taken[:length].decode()

    def finish(self) -> None:
        if self._rest:
            raise InvalidTable("expected nothing behind the last stage")

    def _bytes(self, length: int) -> memoryview:
        if length > len(self._rest):
            raise InvalidTable("the pipeline ends too early")
        taken, self._rest = self._rest[:length], self._rest[length:]
        return taken
