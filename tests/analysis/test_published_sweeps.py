"""Transfers by fragment size that others have published (each file names its source): what is set,
kept or to be tried is within 5 % of the best that they measured, or nothing is decided.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest

from analysis.transfer_sizes import decide_size
from domain.own_transfers import SizeVerdict
from fitting.own_transfers import read_own_transfers

SWEEPS = sorted(Path("tests/data/sweeps").glob("*.csv"))
_FAST_ENOUGH = 1.05  # of the best measured time


def test_there_are_some() -> None:
    assert len(SWEEPS) == 6


@pytest.mark.parametrize("path", SWEEPS, ids=[path.stem for path in SWEEPS])
def test_a_published_sweep_misleads_nobody(path: Path) -> None:
    transfers = read_own_transfers(path.read_text())
    times = defaultdict[int, list[float]](list)
    for row in transfers.rows:
        times[row.fragment_bytes].append(row.latency_us)
    measured_us = {size: fmean(of_size) for size, of_size in times.items()}
    best_us = min(measured_us.values())
    for current in (None, *measured_us):
        decision = decide_size(transfers, current)
        if decision.verdict is SizeVerdict.NOT_DECIDED:
            continue
        assert decision.size_bytes in measured_us, (current, decision)
        assert measured_us[decision.size_bytes] <= _FAST_ENOUGH * best_us, (current, decision)
