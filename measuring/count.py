"""Instructions of one send and one receive of an installed MPI, counted by callgrind.

Counts are deterministic where no call waits, so that they serve as a regression test of a library:
callgrind counts instructions of the user, and needs no counters of the hardware. Of a count, mem
are data reads and writes and reg all others; an instruction of x86 may do both, and then counts as
mem. What devices do is not seen from here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from domain.errors import InvalidInput, NotMeasurable, TimeLimitReached
from domain.messaging_layer import End, Service
from measuring.callgrind import Dump, read_dump
from measuring.mpi import Mpi, end_session, first_line
from measuring.services import service_of

REPETITIONS, WARM_UP = 8, 4
MAX_SIZES = 64
MAX_MESSAGE_BYTES = 2**26
DEFAULT_TIME_LIMIT_S = 120.0
MAX_SPREAD = 0.01  # of the middle of the repetitions over their least: beyond it a call waited
_SOURCE = Path(__file__).with_name("count_mpi.c")
_PROGRAM = "a.out"  # what a compiler calls it where nobody says otherwise

_CALLGRIND = (
    *("valgrind", "--tool=callgrind", "--collect-atstart=no", "--cache-sim=yes"),
    *("--compress-strings=no", "--compress-pos=no"),
    # The PMPI names: MPI_Send is an alias, at which nothing would be collected.
    *("--toggle-collect=PMPI_Send", "--toggle-collect=PMPI_Recv"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPlan:
    """What to count: the compiler wrapper and the launcher of one MPI, and message sizes in bytes.

    `mpicc`, `launcher` and `allow_run_as_root` are those of `Mpi`. Raises InvalidInput.
    """

    mpicc: str = "mpicc"
    launcher: str | None = None
    message_bytes: tuple[int, ...] = (8, 64, 256)
    repetitions: int = REPETITIONS
    allow_run_as_root: bool = False
    time_limit_s: float = DEFAULT_TIME_LIMIT_S

    def __post_init__(self) -> None:
        if not 1 <= len(self.message_bytes) <= MAX_SIZES:
            raise InvalidInput(f"expected 1 to {MAX_SIZES} sizes", field="bytes")
        if not all(1 <= size <= MAX_MESSAGE_BYTES for size in self.message_bytes):
            raise InvalidInput(f"expected sizes of 1 to {MAX_MESSAGE_BYTES} bytes", field="bytes")
        if not 1 <= self.repetitions <= 1000:
            raise InvalidInput("expected 1 to 1000 repetitions", field="repetitions")
        if not self.time_limit_s > 0.0:
            raise InvalidInput("expected time_limit_s > 0", field="time_limit_s")

    @property
    def mpi(self) -> Mpi:
        """The MPI that is counted."""
        return Mpi(self.mpicc, self.launcher, self.allow_run_as_root)


@dataclass(frozen=True, slots=True)
class CountedCall:
    """A send or a receive of one size: the least of its repetitions, and how many are the same.

    `middle` is the median; more than 1 % above the least, the call waited, and `is_countable` is
    false. `functions` are those of the least repetition: name, instructions, data.
    """

    end: End
    message_bytes: int
    instructions: int
    data: int
    identical: int
    repetitions: int
    middle: float
    functions: tuple[tuple[str, int, int], ...]

    @property
    def is_countable(self) -> bool:
        """Whether the call never waited, as far as its repetitions tell."""
        return self.middle <= (1.0 + MAX_SPREAD) * self.instructions

    def by_service(self) -> dict[Service, tuple[int, int]]:
        """Return instructions and data of each service, by the names of functions alone."""
        found: dict[Service, tuple[int, int]] = {}
        for name, instructions, data in self.functions:
            service = service_of(name)
            known = found.get(service, (0, 0))
            found[service] = known[0] + instructions, known[1] + data
        return found


@dataclass(frozen=True, slots=True)
class CountedLibrary:
    """Counts of one MPI, and what they are of.

    `rendezvous` are the sizes whose send waits for its receive: no count of them is free of
    waiting.
    """

    version: str
    compiler: str
    valgrind: str
    tunables: str
    calls: tuple[CountedCall, ...]
    rendezvous: tuple[int, ...] = ()


def count(plan: CountPlan) -> CountedLibrary:
    """Compile the probe, run it under callgrind, and return what it counted.

    Raises InvalidInput for a compiler or launcher that is not there, or that belong to different
    MPIs, NotMeasurable where callgrind counts nothing here, and TimeLimitReached.
    """
    compiler, launch = plan.mpi.compiler(), plan.mpi.launch()
    if shutil.which("valgrind") is None:
        raise NotMeasurable("there is no valgrind here: install the package valgrind")
    deadline_s = time.monotonic() + plan.time_limit_s
    with tempfile.TemporaryDirectory(prefix="sluice-count-") as name:
        folder = Path(name)
        _compile(compiler, folder, deadline_s)
        run = _run(plan, launch, folder, deadline_s)
    return CountedLibrary(
        version=run.version,
        compiler=first_line([compiler, "--version"]),
        valgrind=first_line(["valgrind", "--version"]),
        tunables=os.environ.get("GLIBC_TUNABLES", ""),
        calls=calls_of(run.dumps),
        rendezvous=run.rendezvous,
    )


def calls_of(dumps: Iterable[Dump]) -> tuple[CountedCall, ...]:
    """Return the calls by size, then end, of all their repetitions."""
    groups: dict[tuple[int, End], list[Dump]] = {}
    for dump in dumps:
        groups.setdefault((dump.message_bytes, dump.end), []).append(dump)
    order = sorted(groups, key=lambda key: (key[0], [*End].index(key[1])))
    return tuple(_call(sorted(groups[key], key=lambda one: one.repetition)) for key in order)


def _call(repeated: Sequence[Dump]) -> CountedCall:
    # Functions of the first one may hold work from before its call: they do not sum to it.
    smallest = min(repeated, key=lambda one: (one.instructions, one.unexplained))
    same = sum(one.instructions == smallest.instructions for one in repeated)
    return CountedCall(
        smallest.end,
        smallest.message_bytes,
        smallest.instructions,
        smallest.data,
        same,
        len(repeated),
        median(one.instructions for one in repeated),
        smallest.functions,
    )


def _compile(compiler: str, folder: Path, deadline_s: float) -> None:
    line = [compiler, "-std=gnu11", "-O2", str(_SOURCE)]
    status, text = _ended(line, folder, deadline_s)
    if status == 0:
        return
    if "callgrind.h" in text:
        raise NotMeasurable("valgrind's headers are missing: install the package valgrind")
    reason = next((one for one in text.splitlines() if "error" in one), "no reason given")
    raise InvalidInput(f"the compiler refuses the probe: {reason[:200]}", field="mpicc")


@dataclass(frozen=True, slots=True)
class _Run:
    version: str
    dumps: tuple[Dump, ...]
    rendezvous: tuple[int, ...]


def _run(plan: CountPlan, launch: Sequence[str], folder: Path, deadline_s: float) -> _Run:
    line = [*launch, *_CALLGRIND]
    line += [f"--callgrind-out-file={folder}/dump.%p", str(folder / _PROGRAM)]
    line += [str(WARM_UP), str(plan.repetitions), *map(str, sorted(set(plan.message_bytes)))]
    status, text = _ended(line, folder, deadline_s)
    version = re.search(r"^version (.+)$", text, re.MULTILINE)
    ranks = re.search(r"^ranks (\d+)$", text, re.MULTILINE)
    if ranks is not None and ranks[1] != "2":
        raise plan.mpi.alone(version[1] if version else "an MPI")
    if re.search(r"SIGILL|unrecogni[sz]ed instruction|[Ii]llegal instruction", text):
        raise NotMeasurable(
            "valgrind does not know an instruction of this library: one that was built for older "
            "processors can be counted"
        )
    dumps = tuple(_dumps(folder))
    rendezvous = tuple(map(int, re.findall(r"^rendezvous (\d+)$", text, re.MULTILINE)))
    eager = set(plan.message_bytes).difference(rendezvous)
    if status != 0 or version is None:
        reason = next((one for one in text.splitlines() if one.strip()), "no reason given")
        raise NotMeasurable(f"{plan.mpi.starts_with} ended with status {status}: {reason[:200]}")
    if len(dumps) != 2 * plan.repetitions * len(eager) or not all(
        dump.instructions for dump in dumps
    ):
        raise NotMeasurable("callgrind saw no instruction of PMPI_Send or PMPI_Recv")
    return _Run(" ".join(version[1].split()), dumps, rendezvous)


def _dumps(folder: Path) -> Iterator[Dump]:
    for path in sorted(folder.glob("dump.*")):
        found = read_dump(path.read_text(encoding="utf-8", errors="replace"))
        if found is not None:
            yield found


def _ended(line: Sequence[str], folder: Path, deadline_s: float) -> tuple[int, str]:
    """Run a command in a session of its own; its status and all that it printed.

    At the time limit, and where this process is interrupted, the whole session is ended: a launcher
    may leave ranks behind. Raises TimeLimitReached.
    """
    with open(folder / "printed", "w+", encoding="utf-8", errors="replace") as printed:
        child = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
        )
        try:
            status = child.wait(timeout=max(0.0, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TimeLimitReached("counting took longer than its time limit") from None
        finally:
            end_session(child)
        printed.seek(0)
        return status, printed.read()
