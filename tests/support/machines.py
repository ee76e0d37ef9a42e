"""Machines as requests have them, for tests: each has another of the words."""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]


def _stage(name: str, overhead_us: float = 2.0, ns_per_byte: float = 1.0, **words: Any) -> Body:
    return {"name": name, "overhead_us": overhead_us, "ns_per_byte": ns_per_byte, **words}


def staging() -> Body:
    """One copy engine for both directions, a network with lanes that share a part, two windows."""
    return {
        "stages": [
            _stage("device to host", 7.7, 0.0185, processor="copy engine"),
            _stage("network", 2.8, 0.0204, lanes=2, shared_ns_per_byte=0.01, delay_us=3.0),
            _stage("host to device", 7.7, 0.0185, processor="copy engine"),
        ],
        "delay_us": 1.5,
        "windows": [
            {"from": "device to host", "to": "network", "fragments": 2},
            {"from": "network", "to": "host to device", "bytes": 1 << 22, "return_us": 1.0},
        ],
    }


def lanes() -> Body:
    """Two stages, the first of three lanes."""
    return {"stages": [_stage("read", 8.0, 2.0, lanes=3), _stage("write")]}


def by_word() -> dict[str, Body]:
    """A machine for each word, by the field of a request that is set."""
    plain = [_stage("a"), _stage("b"), _stage("c", 1.0, 0.5)]

    def with_words(at: int, **words: Any) -> Body:
        return {"stages": [one | (words if j == at else {}) for j, one in enumerate(plain)]}

    together = [plain[0] | {"processor": "p"}, plain[1], plain[2] | {"processor": "p"}]
    return {
        "stages.1.lanes": with_words(1, lanes=2),
        "stages.2.delay_us": with_words(2, delay_us=5.0),
        "stages.0.processor": {"stages": together},
        "windows": {"stages": plain, "windows": [{"from": "a", "to": "b", "fragments": 1}]},
    }
