"""What is said of the difference between two revisions."""

from __future__ import annotations

import pytest

from app.verbs.profiles.page.revision_changes import MAX_LISTED, changes_between
from domain.aggregate import Aggregate
from domain.model import CostModel
from domain.pipeline import FitRange, Pipeline, Stage


def line(name: str, overhead_us: float = 1.0, ns_per_byte: float = 2.0) -> Stage:
    """A stage of one line."""
    return Stage.of_line(name, overhead_us=overhead_us, ns_per_byte=ns_per_byte)


def ranged(name: str, *, overhead_us: float = 1.0) -> Stage:
    """A stage of two."""
    return Stage(name, (FitRange(overhead_us, 2.0, 4096), FitRange(3.0, 1.0)))


A, B = line("in"), line("out")
AB = Pipeline((A, B))
OUTSIDE = Aggregate(line("total"), line("bottleneck"))


@pytest.mark.parametrize(
    ("before", "after", "stated"),
    [
        (AB, AB, ()),
        (AB, Pipeline((line("in", 1.25), B)), ("in: overhead +25 %",)),
        (
            AB,
            Pipeline((A, line("out", 0.5, 4.0))),
            ("out: overhead −50 %, cost a byte +100 %",),
        ),
        (Pipeline((line("in", 0.0), B)), AB, ("in: overhead 1 µs instead of none",)),
        (AB, Pipeline((A, line("out", 0.0))), ("out: overhead −100 %",)),
        (AB, Pipeline((A, B), 3.0), ("delay 3 µs instead of none",)),
        (AB, Pipeline((B, A)), ("the order of the stages",)),
        (AB, Pipeline((A, line("wire"), B)), ("wire: added",)),
        (AB, Pipeline((B,)), ("in: removed",)),
        (
            AB,
            Pipeline((ranged("in"), B)),
            ("in: 2 fit ranges (up to 4 KiB) instead of one line",),
        ),
        (
            Pipeline((ranged("in"), B)),
            Pipeline((ranged("in", overhead_us=2.0), B)),
            ("in up to 4 KiB: overhead +100 %",),
        ),
        (
            Pipeline((A, A)),
            Pipeline((A, line("in", 2.0))),
            ("stage 2, in: overhead +100 %",),
        ),
        (Pipeline((A, A)), Pipeline((A, B)), ("stage 2: out instead of in",)),
        (Pipeline((A, A)), Pipeline((A, A, B)), ("stage 3, out: added",)),
        (AB, OUTSIDE, ("the total and the bottleneck instead of stages",)),
        (OUTSIDE, AB, ("2 stages instead of the total and the bottleneck",)),
        (
            OUTSIDE,
            Aggregate(line("total", 2.0), line("bottleneck")),
            ("total: overhead +100 %",),
        ),
    ],
)
def test_changes(before: CostModel, after: CostModel, stated: tuple[str, ...]) -> None:
    """Which stages, and by how many per cent."""
    assert changes_between(before, after) == stated


def test_of_many_the_first_are_told() -> None:
    """And how many more there are."""
    before = Pipeline(tuple(line(f"s{number}") for number in range(20)))
    after = Pipeline(tuple(line(f"s{number}", 2.0) for number in range(20)))
    stated = changes_between(before, after)
    assert len(stated) == MAX_LISTED
    assert stated[-1] == f"and {20 - MAX_LISTED + 1} more"
