"""Quantities with units, in and out. Nobody else converts.

Accepted: sizes ("64 KiB", "64K", "1MB", "4096"), with KiB, MiB, GiB, TiB and K, M, G, T binary
(as dd and the suffixes of most tools have them) and kB/KB, MB, GB, TB decimal. Times are printed
in µs, sizes in the binary unit that divides them.
"""

from __future__ import annotations

import re

from domain.errors import UnitMismatch

_SIZE_UNITS = {
    "": 1,
    "B": 1,
    "K": 2**10,
    "M": 2**20,
    "G": 2**30,
    "T": 2**40,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
_SIZE = re.compile(r"\s*([0-9]+)(?:\.([0-9]+))?\s*([A-Za-z]*)\s*", re.ASCII)


def parse_bytes(text: str) -> int:
    """A size in bytes from text such as "64 KiB". Raises UnitMismatch."""
    match = _SIZE.fullmatch(text)
    if match is None or match[3].upper() not in _SIZE_UNITS or len(text) > 40:
        raise UnitMismatch(
            "expected a size such as 4096, 64K, 64KiB or 1MB (K, M, G, T and KiB, MiB, GiB, TiB "
            "are powers of 1024; KB, MB, GB, TB powers of 1000)"
        )
    unit = _SIZE_UNITS[match[3].upper()]
    fraction = match[2] or ""
    scaled = int(match[1] + fraction) * unit
    size, rest = divmod(scaled, int(10 ** len(fraction)))
    if rest:
        raise UnitMismatch("expected a whole number of bytes")
    return size


def format_bytes(size: int) -> str:
    """A size in the largest binary unit that divides it: 65536 -> "64 KiB"."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 2**power and size % 2**power == 0:
            return f"{size >> power} {unit}"
    return f"{size} B"


def ns_per_byte_from_us_per_kb(us_per_kb: float, *, bytes_per_kb: int) -> float:
    """Per-byte cost in ns from µs per KB; the source says whether its KB has 1000 or 1024 bytes."""
    return us_per_kb * 1000.0 / bytes_per_kb


def ns_per_byte_from_mb_per_s(mb_per_s: float, *, bytes_per_mb: int) -> float:
    """Per-byte cost in ns from a bandwidth in MB/s of this many bytes a MB."""
    return 1e9 / (mb_per_s * bytes_per_mb)
