"""What the advice does to simulated users, and to files with a switch in their last sizes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.users.cliffs import judged_grid
from bench.users.kinds import Kind, user_of
from bench.users.switched import judged_files
from bench.users.ticks import over_measured, ticking_user
from bench.users.verdicts import checks, judged, judged_users, table, tally
from domain.solution import Strategy

USERS, GRID, FILES, CLOCKS = 504, 288, 200, 100
SEED = 37
MIN_SET = 0.95  # of the gains above 10 % where there is no cliff
MOST_TIMES = 10.0  # the measured sum: where the interval of a coarse clock is to end
_Part = tuple[tuple[Table, ...], tuple[Check, ...]]


def _run(effort: Effort) -> CaseResult:
    parts = [
        _users(effort.pick(USERS, quick=24)),
        _grid(effort.pick(GRID, quick=24)),
        _files(effort.pick(FILES, quick=20)),
        _clocks(effort.pick(CLOCKS, quick=10)),
    ]
    return CaseResult(
        tuple(one for tables, _ in parts for one in tables),
        tuple(check for _, found in parts for check in found),
    )


def _users(count: int) -> _Part:
    verdicts = judged_users(count, SEED)
    title = f"{count} users, harm: more than 1 % slower than before; gains: those above 10 %"
    return (table(verdicts, title),), checks(verdicts)


def _grid(count: int) -> _Part:
    rows: list[tuple[Cell, ...]] = []
    found = judged_grid(count, SEED)
    for slope, verdicts in found.items():
        one = tally(verdicts)
        missed = f"{one.missed}/{one.could_gain}"
        rows.append((f"× {slope:g}", one.users, one.sets, one.harmed, missed))
    columns = ("cost a byte above the last sizes", "users", "set_it", "harmed", "gains missed")
    harmed = sum(tally(some).harmed for slope, some in found.items() if slope > 1.0)
    flat = tally(found[1.0])
    return (
        Table("A cost a byte that rises above the last one to three sizes", columns, tuple(rows)),
    ), (
        Check("users harmed where costs rise above the last sizes", harmed, 0, "users"),
        Check("gains set where they do not", 1.0 - flat.missed_share, MIN_SET, "share", "at least"),
    )


def _files(count: int) -> _Part:
    verdicts = judged_files(count, SEED)
    decisions = sorted({one.stated.decision for one in verdicts})
    rows: list[tuple[Cell, ...]] = [
        (
            decision,
            sum(one.stated.decision == decision for one in verdicts),
            sum(one.is_slowed for one in verdicts if one.stated.decision == decision),
        )
        for decision in decisions
    ]
    columns = ("decision", "files", "slower by the file's own times")
    slowed = sum(one.is_slowed for one in verdicts)
    return (Table("Files with a switch in the last one or two sizes", columns, tuple(rows)),), (
        Check("files whose advice is slower by their own times", slowed, 0, "files"),
    )


def _clocks(count: int) -> _Part:
    found = [over_measured(ticking_user(number, SEED)) for number in range(count)]
    stated = [one for one in found if one is not None]
    check = Check(
        "end of the interval over the measured sum, ticks up to 10 µs",
        max(stated, default=0.0),
        MOST_TIMES,
        "ratio",
    )
    row = ("coarse clocks", count, len(stated), round(max(stated, default=0.0), 2))
    columns = ("users", "asked", "with an interval", "greatest end over the measured sum")
    return (Table("Clocks with a tick of 0.5 to 10 µs", columns, (row,)),), (check,)


def _workload(kind: Kind) -> AbstractContextManager[Callable[[], object]]:
    return nullcontext(partial(judged, user_of((SEED, 0), kind), Strategy.REPEAT))


SPEC = BenchSpec(
    name="advice",
    title="What the advice does to users",
    about=(
        "Simulated users of machines whose costs are known: they measure, name a message and the "
        "setting in use, and ask as `POST /optimize` does, by turns for a size to repeat and for "
        "any cut. What is to be set is judged by the machine's expected latency, the mean of "
        "simulated messages; a file of few times by its own medians. A gain is missed where it is "
        "above 10 % and nothing is to be set; an interval is that stated of the advised cut, 90 %."
    ),
    run=_run,
    workloads={str(kind): partial(_workload, kind) for kind in (Kind.CLEAN, Kind.CLIFF)},
)
