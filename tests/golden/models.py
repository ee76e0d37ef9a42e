"""The models and the measurements that the golden questions are about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.app.serving import MYRINET
from tests.support.logp_machine import Machine

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "tests" / "data" / "traces"
EXAMPLES = ROOT / "examples"
CSV_HEADER = "message_bytes,repetition,latency_us,interarrival_us\n"


RANGED: dict[str, Any] = {
    "stages": [
        {
            "name": "bus",
            "ranges": [
                {"up_to_bytes": 2048, "overhead_us": 1.0, "ns_per_byte": 9.0},
                {"up_to_bytes": None, "overhead_us": 12.0, "ns_per_byte": 3.0},
            ],
        },
        {"name": "wire <&> µ", "overhead_us": 4.0, "ns_per_byte": 6.5},
        {"name": "disk", "overhead_us": 2.5, "ns_per_byte": 5.0},
    ],
    "delay_us": 3.5,
}
TWO: dict[str, Any] = {
    "stages": [
        {"name": "first", "overhead_us": 1.0, "ns_per_byte": 10.0},
        {"name": "second", "overhead_us": 2.0, "ns_per_byte": 30.0},
    ],
    "delay_us": 5.0,
}
THREE: dict[str, Any] = {"stages": MYRINET["stages"][:3]}
AGGREGATE: dict[str, Any] = {
    "total": {"name": "all", "overhead_us": 20.0, "ns_per_byte": 60.0},
    "bottleneck": {"name": "slowest", "overhead_us": 7.0, "ns_per_byte": 24.0},
}
LIMITS = {
    "min_fragment_bytes": 128,
    "max_fragment_bytes": 2048,
    "alignment_bytes": 64,
    "max_fragments": 12,
}


def trace(name: str) -> str:
    """A trace file's text."""
    return (TRACES / name).read_text()


def example(name: str) -> str:
    """An example file's text."""
    return (EXAMPLES / name).read_text()


def measured_csv(*sizes: int, deviation: float = 0.0) -> str:
    """Times of two stages: 30 µs + 10 ns per byte, then 1 µs + 20 ns per byte.

    Without any deviation, standard errors are what rounding leaves, on each processor another.
    """
    return CSV_HEADER + "".join(
        f"{size},{n},{off * (50 + 0.05 * size)},{off * max(30 + 0.01 * size, 1 + 0.02 * size)}\n"
        for size in sizes
        for n in range(3)
        for off in (1 + deviation * ((3 * size.bit_length() + 2 * n) % 5 - 2),)
    )


def logp_csv() -> str:
    """Signatures of a machine that obeys LogP, without noise, and its round trips."""
    machine = Machine(2.9, 3.3, 5.8, 4.6)
    rows = [
        f"16,{burst},{computation},{machine.burst_us(burst, computation) / burst:.4f}\n"
        for burst in (1, 2, 4, 8, 16, 32, 64)
        for computation in (0.0, 5.0, 10.0, 20.0)
    ]
    trips = [f"16,{n},{machine.round_trip_us}\n" for n in range(3)]
    return (
        "message_bytes,burst,computation_us,cost_us\n"
        + "".join(rows)
        + "\nmessage_bytes,repetition,round_trip_us\n"
        + "".join(trips)
    )
