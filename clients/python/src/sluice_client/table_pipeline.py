"""The pipeline's section of a table file: rule 8, and the stages for display."""

from __future__ import annotations

import struct
from typing import Any, Final

from sluice_client.errors import InvalidTable
from sluice_client.table_description import TablePipeline, TableRange, TableStage
from sluice_client.table_layout import padded

_MAX_STAGES = 64
_MAX_RANGES = 64
_MAX_NAME_LENGTH = 100
_MAX_OVERHEAD_US = 1e12
_MAX_NS_PER_BYTE = 1e9
_MAX_UP_TO_BYTES = 2**48
_PIPELINE: Final = struct.Struct("<dII")  # delay, stages, zero
_STAGE: Final = struct.Struct("<II")  # name's bytes, ranges
_RANGE: Final = struct.Struct("<Qdd")  # up to (0: open), overhead, ns per byte


def read_pipeline(section: memoryview) -> TablePipeline:
    """Return the pipeline of a whole section. Raises InvalidTable."""
    taker = _Taker(section)
    delay_us, stages, zero = taker.take(_PIPELINE)
    if zero or not 1 <= stages <= _MAX_STAGES:
        raise InvalidTable(f"the pipeline needs 1 to {_MAX_STAGES} stages and zero behind them")
    _check_cost("delay_us", delay_us, _MAX_OVERHEAD_US)
    found = tuple(_stage(taker) for _ in range(stages))
    taker.finish()
    return TablePipeline(found, delay_us)


def _stage(taker: _Taker) -> TableStage:
    name_bytes, count = taker.take(_STAGE)
    if not 1 <= count <= _MAX_RANGES:
        raise InvalidTable(f"a stage needs 1 to {_MAX_RANGES} ranges")
    ranges = tuple(_range(*taker.take(_RANGE)) for _ in range(count))
    ends = [part.up_to_bytes for part in ranges]
    if ends.pop() is not None:
        raise InvalidTable("the last range must be open")
    closed = [end for end in ends if end is not None]
    if len(closed) < len(ends):
        raise InvalidTable("only the last range may be open")
    if any(low >= high for low, high in zip(closed, closed[1:])):
        raise InvalidTable("up_to_bytes must increase from range to range")
    name = taker.text(name_bytes)
    if not 1 <= len(name) <= _MAX_NAME_LENGTH:
        raise InvalidTable(f"a stage needs a name of 1 to {_MAX_NAME_LENGTH} characters")
    return TableStage(name, ranges)


def _range(up_to_bytes: int, overhead_us: float, ns_per_byte: float) -> TableRange:
    if up_to_bytes > _MAX_UP_TO_BYTES:
        raise InvalidTable("expected up_to_bytes <= 2^48")
    _check_cost("overhead_us", overhead_us, _MAX_OVERHEAD_US)
    _check_cost("ns_per_byte", ns_per_byte, _MAX_NS_PER_BYTE)
    return TableRange(overhead_us, ns_per_byte, up_to_bytes or None)


def _check_cost(name: str, value: float, maximum: float) -> None:
    # -0.0 compares equal to 0 and is refused all the same; NaN fails the comparison.
    if not 0.0 <= value <= maximum or str(value).startswith("-"):
        raise InvalidTable(f"expected 0 <= {name} <= {maximum:g}, without a minus sign")


class _Taker:
    """Takes bytes from the front; never past the end."""

    def __init__(self, section: memoryview) -> None:
        self._rest = section

    def take(self, shape: struct.Struct) -> tuple[Any, ...]:
        return shape.unpack(self._bytes(shape.size))

    def text(self, length: int) -> str:
        taken = bytes(self._bytes(padded(length)))
        if any(taken[length:]):
            raise InvalidTable("expected zeros behind a stage's name")
        try:
            return taken[:length].decode()
        except UnicodeDecodeError:
            raise InvalidTable("a stage's name must be UTF-8") from None

    def finish(self) -> None:
        if self._rest:
            raise InvalidTable("expected nothing behind the last stage")

    def _bytes(self, length: int) -> memoryview:
        if length > len(self._rest):
            raise InvalidTable("the pipeline ends too early")
        taken, self._rest = self._rest[:length], self._rest[length:]
        return taken
