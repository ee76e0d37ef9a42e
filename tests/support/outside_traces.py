"""What would be measured of Table 1 of Wang et al. 1998 from outside, in the project's own CSV."""

from __future__ import annotations

from collections.abc import Callable

TOTAL_OVERHEAD_US, TOTAL_NS_PER_BYTE = 27.3, 63.37890625
SLOWEST_OVERHEAD_US, SLOWEST_NS_PER_BYTE = 7.5, 24.31640625

_SIZES = tuple(2**i for i in range(6, 16))
_NOISE = (0.0, 0.01, -0.01, 0.02, -0.02, 0.005, -0.005)


def latency_us(size: int) -> float:
    """All stages, one after the other."""
    return TOTAL_OVERHEAD_US + TOTAL_NS_PER_BYTE * size / 1000.0


def interarrival_us(size: int) -> float:
    """The slowest stage."""
    return SLOWEST_OVERHEAD_US + SLOWEST_NS_PER_BYTE * size / 1000.0


def message_csv(**columns: Callable[[int], float]) -> str:
    """A message trace of these columns, seven repetitions a size, a few per cent apart."""
    rows = [",".join(["message_bytes", "repetition", *columns])]
    rows += [
        ",".join(
            [
                str(size),
                str(r),
                *(f"{time_us(size) * (1.0 + noise)}" for time_us in columns.values()),
            ]
        )
        for size in _SIZES
        for r, noise in enumerate(_NOISE)
    ]
    return "\n".join(rows) + "\n"


LATENCY_CSV = message_csv(latency_us=latency_us)
INTERARRIVAL_CSV = message_csv(interarrival_us=interarrival_us)
BOTH_CSV = message_csv(latency_us=latency_us, interarrival_us=interarrival_us)
