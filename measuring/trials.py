"""A setting against none: the same programs with it and without it, in turns.

Each pair is one start of the programs with the setting and one without, in random order, so that
what comes and goes on the machine hits both alike. Of each program and size the pair's ratio is
what counts: how many times as long it took with the setting. Its interval is that of the median
over the pairs, by order statistics, at 95 % for all programs and sizes together (each at 5 % over
their number): where nothing differs, one in twenty trials says that anything does.

Faster and slower are by more than FLOOR. A setting is kept where no size is slower, at least one is
faster, and none looks slower by more than TOLERANCE without being decided; and then only if all of
it is so once more, with new pairs.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, isnan, log2, nan
from pathlib import Path
from random import Random
from statistics import median
from typing import TypeAlias

from domain.errors import InvalidInput, NotMeasurable
from measuring.mpi import Mpi
from measuring.running import compiled, output_of
from measuring.tools import TOOLS, free_port, printed_by, times_of
from measuring.verdict import median_interval

SIZES = tuple(1 << power for power in range(10, 23, 2))
MAX_CELLS = 400  # programs times sizes
MAX_PAIRS = 1000
MAX_BYTES = 1 << 28
TOLERANCE = 0.05  # of a ratio that is not decided
FLOOR = 0.02  # what programs that are started anew differ by, whatever the setting
OUTSIDE = 0.05  # of the intervals of a trial, all together
MPI_PROGRAMS = ("ping-pong", "bcast", "reduce", "allreduce", "ibcast", "ireduce", "iallreduce")
MPI_BLOCKING = MPI_PROGRAMS[:4]
UCX_PROGRAMS = ("tag_lat", "tag_bw")
_SOURCE = Path(__file__).with_name("trial_mpi.c")
_US_EACH = 30_000  # of one program and size in one start
_START_S = 60.0  # of one start of the programs
_RANKS = re.compile(r"ranks (\d+) of ([^\n]+)")
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_UCX_WARM_UP = 50
# How variables begin that these libraries, and those that they stand on, read.
_READ = ("UCX_", "OMPI_MCA_", "MPIR_CVAR_", "FI_")

Key: TypeAlias = tuple[str, int]  # program, message bytes
Times: TypeAlias = Mapping[Key, float]  # µs; NaN where the result was wrong
Start: TypeAlias = Callable[[Mapping[str, str]], Times]  # with these variables over the own ones


class Outcome(StrEnum):
    """What the interval of a ratio says of one program and size."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"  # within TOLERANCE on both sides
    UNDECIDED = "undecided"
    WRONG = "wrong data"


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """Which programs and sizes (bytes), how many pairs, for how long, and the seed of the order.

    Raises InvalidInput.
    """

    programs: tuple[str, ...]
    sizes: tuple[int, ...] = SIZES
    pairs: int = 30
    time_limit_s: float = 300.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.programs or not self.sizes or self.cells > MAX_CELLS:
            raise InvalidInput(f"expected 1 to {MAX_CELLS} programs times sizes", field="programs")
        if not all(4 <= size <= MAX_BYTES and size % 4 == 0 for size in self.sizes):
            raise InvalidInput(f"expected multiples of 4 bytes up to {MAX_BYTES}", field="bytes")
        if not self.min_pairs <= self.pairs <= MAX_PAIRS:
            raise InvalidInput(
                f"expected {self.min_pairs} to {MAX_PAIRS} pairs: of fewer, {self.cells} programs "
                "and sizes together have no 95 % interval",
                field="pairs",
            )
        if not self.time_limit_s > 0.0:
            raise InvalidInput("expected time_limit > 0", field="time_limit")

    @property
    def cells(self) -> int:
        """How many programs and sizes are compared."""
        return len(self.programs) * len(self.sizes)

    @property
    def min_pairs(self) -> int:
        """The fewest pairs of which there is an interval."""
        return ceil(1.0 + log2(self.cells / OUTSIDE))


@dataclass(frozen=True, slots=True)
class Compared:
    """One program and size: medians in µs, and the ratio of with to without, with its interval."""

    program: str
    message_bytes: int
    before_us: float
    after_us: float
    ratio: float
    low: float
    high: float

    @property
    def outcome(self) -> Outcome:
        """What the interval says."""
        if isnan(self.after_us):
            return Outcome.WRONG
        if self.high < 1.0 - FLOOR:
            return Outcome.FASTER
        if self.low > 1.0 + FLOOR:
            return Outcome.SLOWER
        if self.low >= 1.0 - TOLERANCE and self.high <= 1.0 + TOLERANCE:
            return Outcome.SAME
        return Outcome.UNDECIDED


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial found. `failure`: why the programs did not end with the setting, else empty."""

    compared: tuple[Compared, ...]
    pairs: int
    failure: str = ""

    def of(self, *outcomes: Outcome) -> tuple[Compared, ...]:
        """Return the programs and sizes with one of these outcomes."""
        return tuple(one for one in self.compared if one.outcome in outcomes)

    @property
    def looking_slower(self) -> tuple[Compared, ...]:
        """The programs and sizes that look slower without being decided."""
        return tuple(one for one in self.of(Outcome.UNDECIDED) if one.ratio > 1.0 + TOLERANCE)

    @property
    def is_harmless(self) -> bool:
        """Whether nothing is slower or wrong, nor looks slower without being decided."""
        is_bad = self.failure or self.of(Outcome.SLOWER, Outcome.WRONG) or self.looking_slower
        return not is_bad

    @property
    def is_gain(self) -> bool:
        """Whether it is harmless and faster somewhere."""
        return self.is_harmless and bool(self.of(Outcome.FASTER))

    def confirms(self, first: Trial) -> bool:
        """Whether this is harmless, and faster again somewhere where the first trial was."""
        again = {(one.program, one.message_bytes) for one in self.of(Outcome.FASTER)}
        faster = {(one.program, one.message_bytes) for one in first.of(Outcome.FASTER)}
        return self.is_harmless and bool(again & faster)


def compare(
    plan: TrialPlan,
    start: Start,
    setting: Mapping[str, str],
    on_pair: Callable[[int, int], None] = lambda left, done: None,
) -> Trial:
    """Run the pairs, and return what they say of the setting.

    `on_pair` is given how many pairs are to come and how many are done. Where the programs do not
    end with the setting, the trial ends with the failure. Raises NotMeasurable where they do not
    without it, or give wrong data, and where time ends before there are pairs enough.
    """
    order, end_s = Random(plan.seed), time.monotonic() + plan.time_limit_s
    befores, afters = list[Times](), list[Times]()
    _checked(start({}))  # the first start of all finds no cache warm
    while len(afters) < plan.pairs and (not afters or time.monotonic() < end_s):
        on_pair(plan.pairs - len(afters), len(afters))
        pair: dict[bool, Times] = {}
        for is_with in order.sample((False, True), 2):
            try:
                pair[is_with] = start(setting if is_with else {})
            except NotMeasurable as refusal:
                if not is_with:
                    raise
                return Trial((), len(afters), refusal.detail)
        befores.append(_checked(pair[False]))
        afters.append(pair[True])
        if any(isnan(time_us) for time_us in pair[True].values()):
            return Trial(tuple(_compared(plan, befores, afters, interval=False)), len(afters))
    if len(afters) < plan.min_pairs:
        raise NotMeasurable(
            f"{len(afters)} pairs in {plan.time_limit_s:g} s, and {plan.min_pairs} are needed for "
            f"{plan.cells} programs and sizes: give more time, or fewer of these"
        )
    return Trial(tuple(_compared(plan, befores, afters, interval=True)), len(afters))


@dataclass(frozen=True, slots=True)
class Checked:
    """What is kept of a setting, None where nothing is, and the trials that say so."""

    text: str | None
    trials: tuple[Trial, ...]


Ranges: TypeAlias = tuple[tuple[int, int | None], ...]  # of messages: from, and before


def check(
    plan: TrialPlan,
    start: Start,
    text: str,
    in_force: Callable[[str], Mapping[str, str]],
    without: Callable[[str, Ranges], str | None] | None = None,
    on_pair: Callable[[int, int], None] = lambda left, done: None,
) -> Checked:
    """Return what of a setting is faster and not slower, in two trials one after the other.

    `in_force` has the variables that put a text into effect. Where a setting loses at some messages
    and wins at others, and `without` can take these out of it, what is left is tried anew. Raises
    what `compare` does.
    """
    trials = [compare(plan, start, in_force(text), on_pair)]
    if not trials[0].is_harmless and without is not None:
        left = _not_faster(plan, trials[0])
        rest = without(text, left) if left and not trials[0].failure else None
        if rest is None:
            return Checked(None, tuple(trials))
        text = rest
        trials.append(compare(replace(plan, seed=plan.seed + 2), start, in_force(text), on_pair))
    if not trials[-1].is_gain:
        return Checked(None, tuple(trials))
    trials.append(compare(replace(plan, seed=plan.seed + 1), start, in_force(text), on_pair))
    is_kept = trials[-1].confirms(trials[-2])
    return Checked(text if is_kept else None, tuple(trials))


def _not_faster(plan: TrialPlan, trial: Trial) -> Ranges:
    """Messages at which nothing is faster, or something is not harmless; none where no size wins.

    Each size stands for what is between it and the next one.
    """
    sizes = sorted(plan.sizes)
    good = set()
    for size in sizes:
        at = tuple(one for one in trial.compared if one.message_bytes == size)
        if Trial(at, trial.pairs).is_gain:
            good.add(size)
    if not good:
        return ()
    ends = [*sizes[1:], None]
    left = [(size, end) for size, end in zip(sizes, ends, strict=True) if size not in good]
    return ((0, sizes[0]), *left)


def _checked(before: Times) -> Times:
    wrong = next((program for (program, _), us in before.items() if isnan(us)), None)
    if wrong is not None:
        raise NotMeasurable(f"{wrong}: its result is wrong without the setting")
    return before


def _compared(
    plan: TrialPlan, befores: Sequence[Times], afters: Sequence[Times], *, interval: bool
) -> Iterator[Compared]:
    for key in ((program, size) for program in plan.programs for size in plan.sizes):
        before = [times[key] for times in befores]
        after = [times[key] for times in afters]
        if any(map(isnan, after)):
            yield Compared(*key, median(before), nan, nan, nan, nan)
            continue
        ratios = [one / max(other, 1e-9) for one, other in zip(after, before, strict=True)]
        found = median_interval(ratios, OUTSIDE / plan.cells) if interval else None
        low, high = found or (0.0, float("inf"))
        yield Compared(*key, median(before), median(after), median(ratios), low, high)


@dataclass(frozen=True, slots=True)
class Installed:
    """A library that is installed here, its version as numbers, and how programs start over it."""

    library: str
    version: tuple[int, ...]
    start: Start

    def described(self, environment: Mapping[str, str], setting: Iterable[str] = ()) -> str:
        """Return the library, and what an environment tells it: in all starts alike, but for what
        the setting's own variables replace.
        """
        said = {False: list[str](), True: list[str]()}
        for name, value in sorted(environment.items()):
            if name in setting or name.startswith(_READ):
                said[name in setting].append(f"{name}={value}")
        alike, replaced = (", ".join(said[key]) for key in (False, True))
        return "".join(
            (
                self.library,
                f"; set in the environment: {alike}" if alike else "",
                f"; before, not the library's default but {replaced}" if replaced else "",
            )
        )


@contextmanager
def mpi_programs(mpi: Mpi, plan: TrialPlan) -> Iterator[Installed]:
    """Compile the programs by an MPI's wrapper, and yield how its ranks of them are started.

    Raises InvalidInput for a wrapper, a launcher or a program that is not there, and NotMeasurable.
    """
    if not set(plan.programs) <= set(MPI_PROGRAMS):
        raise InvalidInput(f"expected programs of {', '.join(MPI_PROGRAMS)}", field="programs")
    compiler, launch = mpi.compiler(), mpi.launch_bound()
    line = [compiler, "-std=gnu11", "-O2", str(_SOURCE)]
    with compiled(line, "the programs", name=mpi.mpicc, field="mpicc") as program:
        words = [*launch, str(program)]

        def printed(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
            found = output_of(
                [*words, *arguments], name="trial", limit_s=_START_S, environment=environment
            )
            return found.checked("trial").decode(errors="replace")

        said = _RANKS.search(printed(["1", plan.programs[0], "4"], {}))
        if said is None:
            raise NotMeasurable(f"{mpi.starts_with} starts nothing that answers")
        if said[1] == "1":
            raise mpi.alone(said[2])
        if said[1] != str(mpi.ranks):
            raise NotMeasurable(f"{mpi.starts_with} starts {said[1]} ranks and not {mpi.ranks}")
        listed = [str(_US_EACH), ",".join(plan.programs), ",".join(map(str, plan.sizes))]
        yield Installed(
            f"{' '.join(said[2].split())}, {mpi.ranks} ranks",
            version_in(said[2]),
            lambda environment: _mpi_times(printed(listed, environment), plan),
        )


def version_in(text: str) -> tuple[int, ...]:
    """Return the first version in a text as numbers; () where there is none."""
    found = _VERSION.search(text)
    return tuple(map(int, found[0].split("."))) if found else ()


def _mpi_times(printed: str, plan: TrialPlan) -> Times:
    rows = [line.split() for line in printed.splitlines() if not line.startswith("ranks ")]
    found = {
        (row[0], int(row[1])): float(row[2]) / 1e3 if row[3] != "0" else nan
        for row in rows
        if len(row) == 4 and row[0] in MPI_PROGRAMS
    }
    if len(found) != plan.cells:
        raise NotMeasurable(f"trial: {len(found)} of {plan.cells} programs and sizes answered")
    return found


@contextmanager
def ucx_programs(plan: TrialPlan) -> Iterator[Installed]:
    """Yield how ucx_perftest is started, both sides here. Raises InvalidInput, NotMeasurable."""
    if not set(plan.programs) <= set(UCX_PROGRAMS):
        raise InvalidInput(f"expected programs of {', '.join(UCX_PROGRAMS)}", field="programs")
    tool = TOOLS["ucx_perftest"]
    if tool.missing is not None:
        raise NotMeasurable(f"{tool.name}: {tool.missing}")
    said = tool.version_line()

    def start(environment: Mapping[str, str]) -> Times:
        return {
            (program, size): _ucx_us(program, size, environment)
            for program in plan.programs
            for size in plan.sizes
        }

    library = f"UCX, {said.lstrip('# ')}, by ucx_perftest, which compares no data"
    yield Installed(library, version_in(said), start)


def _ucx_us(program: str, size: int, environment: Mapping[str, str]) -> float:
    port = ("-p", str(free_port()))
    count = ("-n", str(times_of(size)), "-w", str(_UCX_WARM_UP))
    # A processor for each side: two that share one wait for each other by whole time slices.
    processors = sorted(os.sched_getaffinity(0))
    here, there = (("-c", str(one)) for one in (processors[-1], processors[0]))
    asked = ("-t", program, "-s", str(size), *count, "-fv")
    words = ("ucx_perftest", "127.0.0.1", *port, *here, *asked)
    server = ("ucx_perftest", *port, *there)
    printed = printed_by(
        words, server, name="ucx_perftest", limit_s=_START_S, environment=environment
    )
    rows = [line.split(",") for line in printed.decode(errors="replace").splitlines()]
    found = next((row for row in rows if len(row) == 8 and row[0].strip().isdigit()), None)
    if found is None:
        raise NotMeasurable(f"ucx_perftest: {program} of {size} bytes prints no time")
    # The median of latencies; of a stream, the whole time over the number of messages.
    return float(found[1] if program == "tag_lat" else found[3])
