"""Real movers of eight kinds, recorded: what is found of each, and what its advice loses.

`tests/data/movers/mover.py` wrote the files, of messages of 1 MiB on two virtual processors: stage
times with begins in four sizes, and the times of whole messages in seven. No rule is fitted to
them.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from analysis.uncertainty import assess
from domain.fit import TraceFit
from domain.structure import Structure
from domain.uncertain_answer import DecisionCode, Reason, Uncertainty
from tests.support.measured import fitted, question_of

FOLDER = Path(__file__).parents[1] / "data" / "movers"
MESSAGE = 1 << 20
LOSS = 0.05
KINDS = sorted(path.name.split(".")[0] for path in FOLDER.glob("*.sweep.csv"))


@cache
def fit_of(kind: str) -> TraceFit:
    return fitted((FOLDER / f"{kind}.csv").read_text())


@cache
def swept_us(kind: str) -> Mapping[int, float]:
    """The median time of the message by size, in µs."""
    times = defaultdict[int, list[float]](list)
    with (FOLDER / f"{kind}.sweep.csv").open() as lines:
        for row in csv.DictReader(lines):
            times[int(row["fragment_bytes"])].append(float(row["latency_us"]))
    return {size: median(of_size) for size, of_size in times.items()}


def structure(kind: str) -> Structure:
    found = fit_of(kind).overlap.structure
    assert found is not None
    return found


def answer(kind: str, current: int) -> Uncertainty:
    fit = fit_of(kind)
    return assess(question_of(fit, MESSAGE, current))


def test_there_are_eight() -> None:
    assert len(KINDS) == 8


@pytest.mark.parametrize("kind", KINDS)
def test_advice_from_begins_loses_little_or_is_the_command(kind: str) -> None:
    """What is set is one of the swept sizes' neighbours: the slower one of the two counts."""
    swept = swept_us(kind)
    for current in swept:
        decision = answer(kind, current).decision
        if decision.code is not DecisionCode.SET_IT:
            continue
        size = decision.advised.size_bytes
        assert size is not None
        below = max(one for one in swept if one <= size)
        above = min(one for one in swept if one >= min(size, MESSAGE))
        took_us = max(swept[below], swept[above])
        assert took_us <= (1.0 + LOSS) * swept[current], (kind, current, size)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_priced_is_the_command(kind: str) -> None:
    if structure(kind).is_priced:
        return
    decision = answer(kind, 65536).decision
    assert (decision.code, decision.reason) == (DecisionCode.MEASURE_FIRST, Reason.STRUCTURE)
