"""The reference mover beside blocking sockets: processor time, so that a busy machine tells it."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.machine import CHECKOUT
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.workloads import KIB, MIB

_CLIENT = CHECKOUT / "clients" / "c"
_COMPILERS = ("gcc", "clang")
_MAX_RATIO = 1.3  # of the processor time per byte
_CHECKED_BYTES = 64 * KIB
_SIZES = ((8, 8), (1000, MIB), (4 * KIB, MIB), (_CHECKED_BYTES, 4 * MIB), (MIB, 8 * MIB))


@dataclass(frozen=True, slots=True)
class _Found:
    """Processor time of both ends, ns a round: the mover's and that of blocking calls."""

    fragment_bytes: int
    message_bytes: int
    messages: int
    rounds: list[tuple[int, int]]

    @property
    def ratio(self) -> float:
        return median(mover / blocking for mover, blocking in self.rounds)

    @property
    def bytes_moved(self) -> int:
        return self.message_bytes * self.messages

    @property
    def fragments(self) -> int:
        return -(-self.message_bytes // self.fragment_bytes) * self.messages


def _run(effort: Effort) -> CaseResult:
    rounds = effort.pick(101, quick=7)
    rows: list[tuple[Cell, ...]] = []
    checks: list[Check] = []
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        for compiler in filter(shutil.which, _COMPILERS):
            program = _compiled(compiler, Path(folder))
            for fragment_bytes, message_bytes in _SIZES:
                found = _measured(program, fragment_bytes, message_bytes, rounds)
                rows.append(_row(compiler, found))
                if fragment_bytes == _CHECKED_BYTES:
                    what = f"the mover's processor time a byte, fragments of 64 KiB, {compiler}"
                    checks.append(Check(what, found.ratio, _MAX_RATIO, "of blocking sockets'"))
    columns = (
        "fragments, compiler",
        "mover / blocking",
        "ns a byte",
        "blocking ns a byte",
        "ns a fragment",
        "blocking ns a fragment",
    )
    title = f"Processor time of both ends, TCP by loopback, medians over {rounds} rounds in turns"
    return CaseResult((Table(title, columns, tuple(rows)),), tuple(checks))


def _compiled(compiler: str, folder: Path) -> Path:
    made = folder / f"mover-{compiler}"
    includes = [f"-I{_CLIENT / 'include'}", f"-I{_CLIENT / 'mover' / 'include'}"]
    parts = [*(_CLIENT / "src").glob("*.c"), *(_CLIENT / "mover" / "src").glob("*.c")]
    main = _CLIENT / "mover" / "bench" / "mover_bench.c"
    line = [compiler, "-std=c11", "-O3", "-pthread", *includes, "-o", str(made)]
    subprocess.run([*line, *map(str, sorted(parts)), str(main)], check=True)
    return made


def _measured(program: Path, fragment_bytes: int, message_bytes: int, rounds: int) -> _Found:
    line = [str(program), str(fragment_bytes), str(message_bytes), str(rounds)]
    reported = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)
    pairs = [(mover, blocking) for mover, blocking in reported["rounds"]]
    return _Found(fragment_bytes, message_bytes, reported["messages"], pairs)


def _row(compiler: str, found: _Found) -> tuple[Cell, ...]:
    mover, blocking = (median(row[at] for row in found.rounds) for at in (0, 1))
    return (
        f"{found.fragment_bytes} bytes, {compiler}",
        found.ratio,
        mover / found.bytes_moved,
        blocking / found.bytes_moved,
        mover / found.fragments,
        blocking / found.fragments,
    )


SPEC = BenchSpec(
    name="mover",
    title="The reference mover",
    about=(
        "Eight messages from one process to another, receives first, by the mover and by blocking "
        "calls of one fragment each, in turns; those of 8 bytes have one fragment each. Both "
        "processes count their own processor time, of all threads, which a busy machine changes "
        "little."
    ),
    run=_run,
    workloads={},
)
