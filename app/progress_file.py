"""How far a child process is, told through a file without a name: one record, over and over.

Neither side ever waits for the other. A record that is read while it is written does not fit its
checksum, and is not believed; the next one is.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass

MOST_STEPS = 2**31 - 1
_STEPS = struct.Struct("<QQ")
_SUM = struct.Struct("<I")
_LENGTH = _STEPS.size + _SUM.size


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps that are done, of all."""

    done: int
    total: int


def write_steps(descriptor: int, done: int, total: int) -> None:
    """Tell how far it is."""
    steps = _STEPS.pack(done, total)
    os.pwrite(descriptor, steps + _SUM.pack(zlib.crc32(steps)), 0)


def read_steps(descriptor: int) -> Steps | None:
    """What was told last; None where nothing was, or nothing that can be believed."""
    record = os.pread(descriptor, _LENGTH, 0)
    if len(record) < _LENGTH:
        return None
    if _SUM.unpack_from(record, _STEPS.size)[0] != zlib.crc32(record[: _STEPS.size]):
        return None
    done, total = _STEPS.unpack_from(record)
    return Steps(done, total) if done <= total <= MOST_STEPS else None
