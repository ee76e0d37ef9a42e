"""Real programs under `sluice sweep`: what it sets, beside a full sweep of round sizes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from analysis.size_evidence import round_sizes
from bench import own_movers
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from measuring.own_program import OwnProgram
from measuring.printed_times import TimeReader

KIB, MIB = 1 << 10, 1 << 20
_PYTHON = (sys.executable, "-S", own_movers.__file__)
_KEY = ("-K", "0" * 32, "-iv", "0" * 32)
_QUIET = 0.07  # relative noise, below which the best has to be found
_NEAR, _SLOWER = 0.05, 0.01
_PAIRS = 7  # afterwards, of what was set and what was in use


@dataclass(frozen=True, slots=True)
class RealProgram:
    """A program, the message that it moves, and the smallest size that is run.

    `is_printed` says that it prints its own time, else it is timed from start to end.
    """

    name: str
    words: tuple[str, ...]
    message_bytes: int
    smallest_bytes: int
    is_printed: bool = True

    @property
    def time(self) -> str:
        """What `sluice sweep --time` is given."""
        return "last" if self.is_printed else "wall"

    def sizes(self) -> list[int]:
        """All sizes that may be set."""
        return sorted(round_sizes(self.message_bytes, self.smallest_bytes))

    def own(self, folder: Path) -> OwnProgram:
        """The program with its files in a folder."""
        words = tuple(word.replace("{folder}", str(folder)) for word in self.words)
        return OwnProgram(words, self.message_bytes, reader=TimeReader.of(self.time))


def _mover(kind: str, message_bytes: int, smallest_bytes: int = 4 * KIB) -> RealProgram:
    words = (*_PYTHON, kind, "{folder}", "{bytes}")
    return RealProgram(kind, words, message_bytes, smallest_bytes)


_SOURCE = "{folder}/source.bin"
PROGRAMS = (
    _mover("stop", 4 * MIB),
    _mover("window", 4 * MIB),
    _mover("lanes", 8 * MIB, 16 * KIB),
    _mover("threads", 4 * MIB),
    _mover("copy", 32 * MIB, 8 * KIB),
    _mover("sqlite", 4 * MIB),
    _mover("pipe", 16 * MIB),
    _mover("checksum", 32 * MIB, 8 * KIB),
    _mover("gzip", 4 * MIB),
    RealProgram(
        "dd",
        ("dd", f"if={_SOURCE}", "of={folder}/target.bin", "bs={bytes}", "iflag=fullblock"),
        32 * MIB,
        4 * KIB,
        is_printed=False,
    ),
    RealProgram(
        "openssl enc",
        (
            *("openssl", "enc", "-aes-128-ctr", *_KEY, "-bufsize", "{bytes}"),
            *("-in", _SOURCE, "-out", "/dev/null"),
        ),
        32 * MIB,
        1 * KIB,
        is_printed=False,
    ),
    RealProgram(
        "zstd",
        ("zstd", "-q", "-1", "-T2", "-B{bytes}", "-f", "-o", "{folder}/target.zst", _SOURCE),
        32 * MIB,
        64 * KIB,
        is_printed=False,
    ),
)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder with 32 MiB to move, a quarter of which is zeros."""
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as name:
        folder = Path(name)
        random = np.random.default_rng(0).bytes(24 * MIB)
        (folder / "source.bin").write_bytes(random + bytes(8 * MIB))
        yield folder


# --- the truth ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FullSweep:
    """Medians in µs of all round sizes, the spread of one run, and what it took."""

    medians_us: dict[int, float]
    noise: float
    runs: int
    seconds: float

    @property
    def best(self) -> int:
        """The size with the smallest median."""
        return min(self.medians_us, key=lambda size: self.medians_us[size])

    def regret(self, size: int) -> float:
        """What a size takes over the best."""
        return self.medians_us[size] / self.medians_us[self.best] - 1.0


def full_sweep(program: RealProgram, folder: Path, repeats: int) -> FullSweep:
    """Run every size so often, in turns, in random order."""
    own, random = program.own(folder), np.random.default_rng(1)
    sizes = program.sizes()
    times: dict[int, list[float]] = {size: [] for size in sizes}
    begun_s = time.monotonic()
    for _ in range(repeats):
        for size in random.permutation(sizes).tolist():
            run = own.run(int(size), limit_s=60.0)
            if run.latency_us is not None:
                times[size].append(run.latency_us)
    found = {size: median(taken) for size, taken in times.items() if len(taken) == repeats}
    spreads = [
        1.4826 * median(abs(one / found[size] - 1.0) for one in times[size]) for size in found
    ]
    return FullSweep(found, median(spreads), repeats * len(sizes), time.monotonic() - begun_s)


# --- the command ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Swept:
    """What `sluice sweep` said from a size in use, and how it is beside the truth.

    Regrets of fresh pairs are medians and their standard errors, in log time: `over_best` of the
    size left with over the best of the full sweep, `over_current` over the one in use; None where
    both are the same. A full sweep's best median of thirty is low by luck, fresh pairs are not.
    """

    program: str
    current: int
    verdict: str
    size: int
    runs: int
    seconds: float
    noise: float
    before: float
    over_best: tuple[float, float] | None
    over_current: tuple[float, float] | None

    @property
    def regret(self) -> float:
        """What the size left with takes over the best, in fresh pairs."""
        return math.expm1(self.over_best[0]) if self.over_best else 0.0

    @property
    def sure_regret(self) -> float:
        """What of that is beyond the pairs' own error."""
        return math.expm1(self.over_best[0] - 2.0 * self.over_best[1]) if self.over_best else 0.0

    @property
    def is_slower(self) -> bool:
        """Whether a size was set that is slower by more than 1 %, beyond the pairs' own error."""
        pairs = self.over_current
        return pairs is not None and pairs[0] - 2.0 * pairs[1] > _SLOWER

    def row(self) -> tuple[Cell, ...]:
        """The cells of a table."""
        again = None if self.over_current is None else math.expm1(self.over_current[0])
        error = None if self.over_best is None else self.over_best[1]
        return (
            f"{self.program} from {self.current // KIB} KiB",
            self.before,
            self.verdict,
            self.size // KIB,
            self.regret,
            error,
            again,
            self.runs,
            self.seconds,
        )


def swept(program: RealProgram, folder: Path, truth: FullSweep, current: int, seed: int) -> Swept:
    """Run the command from a size in use."""
    own = program.own(folder)
    options = ["--bytes", str(program.message_bytes), "--current", str(current), "--json"]
    options += ["--min-fragment-bytes", str(program.smallest_bytes), "--seed", str(seed)]
    options += ["--time", program.time, "--quiet", "--out", str(folder / "own.csv")]
    line = [sys.executable, "-m", "app.cli", "sweep", *options, "--", *own.words]
    begun_s = time.monotonic()
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun_s
    if done.returncode not in (0, 6):
        raise SystemExit(f"{program.name}: {done.stderr}")
    found = json.loads(done.stdout)
    verdict, size = found["set_this"]["verdict"], found["set_this"]["size_bytes"]
    return Swept(
        program.name,
        current,
        verdict,
        size,
        found["runs"],
        seconds,
        truth.noise,
        truth.regret(current),
        _pairs(own, size, truth.best) if size != truth.best else None,
        _pairs(own, size, current) if verdict == "set" else None,
    )


def _pairs(own: OwnProgram, size: int, current: int) -> tuple[float, float]:
    """The log of a size's time over that of the one in use, in fresh pairs."""
    logs = list[float]()
    for place in range(_PAIRS):
        order = (size, current) if place % 2 else (current, size)
        times = {one: own.run(one, limit_s=60.0).latency_us for one in order}
        if all(times.values()):
            logs.append(math.log((times[size] or 1.0) / (times[current] or 1.0)))
    spread = 1.4826 * median(abs(one - median(logs)) for one in logs)
    return median(logs), 1.25 * spread / math.sqrt(len(logs))


def _currents(program: RealProgram) -> tuple[int, int, int]:
    """Sizes in use: small, in the middle of the range in factors, and the whole message."""
    sizes = program.sizes()
    return sizes[2], sizes[len(sizes) // 2], program.message_bytes


def _run(effort: Effort) -> CaseResult:
    repeats = effort.pick(4, quick=2)
    programs = effort.pick(PROGRAMS, quick=PROGRAMS[5:6])
    begun_load = os.getloadavg()[0]
    full, found = list[tuple[Cell, ...]](), list[Swept]()
    with _folder() as folder:
        for program in programs:
            truth = full_sweep(program, folder, repeats)
            full.append(_full_row(program, truth))
            print(f"   {program.name}: {truth.seconds:.0f} s, noise {truth.noise:.1%}", flush=True)
            for seed, current in enumerate(_currents(program)):
                one = swept(program, folder, truth, current, seed)
                print("     ", *one.row(), flush=True)
                found.append(one)
    return CaseResult(
        (
            Table("full sweeps, in turns", _FULL_COLUMNS, tuple(full)),
            Table(f"{len(found)} sweeps", _COLUMNS, tuple(one.row() for one in found)),
        ),
        _checks(found),
        (
            f"{os.cpu_count()} processors, shared: the load was {begun_load:.1f} before and "
            f"{os.getloadavg()[0]:.1f} after.",
        ),
    )


_FULL_COLUMNS = ("program", "noise", "best, KiB", "message, KiB", "worst over best", "runs", "s")
_COLUMNS = (
    *("program and size in use", "that size over the best", "verdict", "size left with, KiB"),
    *("regret, fresh pairs", "its error", "set: over the one in use", "runs", "s"),
)


def _full_row(program: RealProgram, truth: FullSweep) -> tuple[Cell, ...]:
    return (
        program.name,
        truth.noise,
        truth.best // KIB,
        program.message_bytes // KIB,
        max(map(truth.regret, truth.medians_us)),
        truth.runs,
        truth.seconds,
    )


def _checks(found: Sequence[Swept]) -> tuple[Check, ...]:
    decided = [one for one in found if one.verdict != "not_decided"]
    quiet = [one.sure_regret for one in decided if one.noise <= _QUIET]
    return (
        Check(
            "certain regret of what is decided at noise up to 7 %, worst",
            max(quiet, default=0.0),
            _NEAR,
            "over the best",
        ),
        Check("set and slower in fresh pairs", sum(one.is_slower for one in found), 0, "sweeps"),
        Check("runs, median", float(median(one.runs for one in found)), 27.0, "runs"),
    )


def _workload() -> AbstractContextManager[Callable[[], object]]:
    @contextmanager
    def prepared() -> Iterator[Callable[[], object]]:
        with _folder() as folder:
            own = PROGRAMS[0].own(folder)
            yield partial(own.run, PROGRAMS[0].message_bytes, limit_s=60.0)

    return prepared()


SPEC = BenchSpec(
    name="programs",
    title="Real programs under sluice sweep",
    about=(
        "Twelve programs that move a message in fragments of the size they are given. The truth "
        "is a full sweep of round sizes, four times in turns; then `sluice sweep` from a small, a "
        "middle and the whole size. The size that is left is then run again beside the best of "
        "the full sweep, and beside the size in use where one was set, in seven fresh pairs each; "
        "certain is what is beyond two standard errors of these."
    ),
    run=_run,
    workloads={"a run": _workload},
)
