"""The mover at work: the stages of a way, exchanges in several orders, and the heat solver.

from measuring.moving import calibrate, exchange, solve_heat
way = Way(between="a/b/10.0.0.2")  # two network namespaces; without: this machine's loopback
found = calibrate(way, (65536, 262144), repetitions=20, message_bytes=262144, counts=(1, 4, 16))

Each runs the tool of clients/c/mover, which starts both ends on this machine: one clock.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from domain.errors import InvalidInput, NotMeasurable
from domain.hiding import Activity
from measuring.mover import program
from measuring.running import output_of

VARIANTS = ("ping_pong", "simultaneous", "boundary_first", "hiding")
HEAT_VARIANTS = ("serial", *VARIANTS, "streamed")
_OUTPUT_BYTES = 64 << 20
_PRIMITIVES_S = 600.0
_USAGE = 2  # its exit status for what it was asked wrongly
_REFUSED = "# refused: "


@dataclass(frozen=True, slots=True)
class Way:
    """Between what the mover moves: loopback, or two network namespaces (`near/far/address`); the
    socket buffers in bytes, 0 as they are; what packing and unpacking a fragment takes.

    With a CPU each the two processes and their agents stay there. A delay is of a process that
    keeps what goes over loopback for so long, and acknowledges it as late again: emulated.
    """

    between: str | None = None
    buffer_bytes: int = 0
    pack_ns_per_byte: float = 0.0
    unpack_ns_per_byte: float = 0.0
    pack_us: float = 0.0
    unpack_us: float = 0.0
    cpus: tuple[int, int] | None = None
    delay_us: float = 0.0

    def words(self) -> list[str]:
        """Return the tool's options."""
        words = ["--tcp"] if self.between is None else ["--between", self.between]
        numbers = {
            "--buffer": self.buffer_bytes,
            "--pack": self.pack_ns_per_byte,
            "--unpack": self.unpack_ns_per_byte,
            "--pack-each": self.pack_us,
            "--unpack-each": self.unpack_us,
            "--delay": self.delay_us,
        }
        words += [word for name, value in numbers.items() if value for word in (name, str(value))]
        if self.cpus is not None:
            near, far = self.cpus
            words += ["--cpu", str(near), "--far-cpu", str(far)]
        return words


@dataclass(frozen=True, slots=True)
class MessageTime:
    """The least one-way time of a message in so many equal fragments: measured, and as predicted.

    The prediction shares out the three stages of the whole message in one fragment: the first of k
    fragments passes all of them, and the others follow it at the pace of the longest stage.
    """

    fragments: int
    measured_us: float
    predicted_us: float

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.predicted_us / self.measured_us


@dataclass(frozen=True, slots=True)
class Calibration:
    """The stages as a direct CSV, and messages in fragments beside what they predict."""

    text: str
    messages: tuple[MessageTime, ...]


@dataclass(frozen=True, slots=True)
class HeatRun:
    """One variant of the solver: µs a step, and the hash of its grid."""

    variant: str
    processes: int
    min_step_us: float
    median_step_us: float
    grid: str


def calibrate(
    way: Way,
    sizes: Sequence[int],
    *,
    repetitions: int,
    message_bytes: int | None = None,
    counts: Sequence[int] = (),
    limit_s: float = 600.0,
) -> Calibration:
    """Measure the stages of single fragments of these sizes; with `counts` also the message.

    Raises InvalidInput for what the tool refuses, NotMeasurable where it fails or takes too long.
    """
    words = ["calibrate", *way.words(), "--repetitions", str(repetitions)]
    chosen = tuple(sizes)
    if counts:
        assert message_bytes is not None
        words += ["--bytes", str(message_bytes), "--fragments", ",".join(map(str, counts))]
        chosen = (*chosen, *(() if message_bytes in chosen else (message_bytes,)))
    printed = _run([*words, "--sizes", ",".join(map(str, chosen))], limit_s)
    text, _, rest = printed.partition("\n\n")
    if not counts:
        return Calibration(text if text.endswith("\n") else text + "\n", ())
    return Calibration(text + "\n", tuple(_predicted(_rows(text), _rows(rest), message_bytes or 0)))


def _predicted(
    stages: list[dict[str, str]], messages: list[dict[str, str]], message_bytes: int
) -> list[MessageTime]:
    whole = [row for row in stages if int(row["message_bytes"]) == message_bytes]
    # The smallest sum, and no sum of smallest parts: those of one sample belong together.
    best = min(whole, key=lambda row: float(row["total_us"]))
    parts = [float(best[f"{name}_us"]) for name in ("sender", "wire", "receiver")]
    first_us, longest_us = sum(parts), max(parts)
    fastest: dict[int, float] = {}
    for row in messages:
        count, time_us = int(row["fragments"]), float(row["total_us"])
        fastest[count] = min(time_us, fastest.get(count, time_us))
    return [
        MessageTime(count, time_us, first_us / count + longest_us * (1 - 1 / count))
        for count, time_us in fastest.items()
    ]


def exchange(
    way: Way,
    message_bytes: int,
    *,
    calculation_us: float,
    variant: str = "all",
    repetitions: int = 20,
    fragment_bytes: int | None = None,
    table: Path | None = None,
    is_calculated_here: bool = False,
    timeline: Path | None = None,
    limit_s: float = 600.0,
) -> dict[str, list[float]]:
    """Return µs an iteration by variant: a calculation, and a message each way.

    The calculation sleeps, as for another device, or takes the processor (`is_calculated_here`).
    Raises as calibrate does.
    """
    words = ["exchange", variant, *way.words(), "--bytes", str(message_bytes)]
    words += ["--calculation", str(calculation_us), "--repetitions", str(repetitions)]
    words += ["--fragment", str(fragment_bytes)] if fragment_bytes else []
    words += ["--table", str(table)] if table else []
    words += ["--spin"] if is_calculated_here else []
    words += ["--output", str(timeline)] if timeline else []
    found: dict[str, list[float]] = {}
    for row in _rows(_run(words, limit_s)):
        found.setdefault(row["variant"], []).append(float(row["iteration_us"]))
    return found


def activities(timeline: str) -> list[Activity]:
    """Return who did what in each variant's shortest iteration but the first, from its beginning.

    `timeline` is what `exchange` wrote there; the first process says how long an iteration is.
    """
    rows = [
        (
            int(one["iteration"]),
            Activity(
                one["variant"],
                int(one["process"]),
                one["row"],
                int(one["begin_ns"]) / 1e3,
                int(one["end_ns"]) / 1e3,
            ),
        )
        for one in csv.DictReader(timeline.splitlines())
    ]
    found = []
    for variant in dict.fromkeys(one.variant for _, one in rows):
        own = [row for row in rows if row[1].variant == variant and row[0] > 0]
        whole = [row for row in own if row[1].process == 0 and row[1].row == "iteration"]
        number, best = min(whole, key=lambda row: row[1].end_us - row[1].begin_us)
        found += [
            replace(one, begin_us=one.begin_us - best.begin_us, end_us=one.end_us - best.begin_us)
            for iteration, one in own
            if iteration == number and one.row != "iteration"
        ]
    return found


def primitives(
    what: str, sizes: Sequence[int], *, repetitions: int, way: Way | None = None
) -> dict[tuple[str, int], float]:
    """Return the least µs of each kind and size in bytes of a message layer's parts.

    `what` is `signals` (pipe, semaphore and eventfd between two processes), `copies` (copy, and
    loop: numbers in the other order of bytes) or `messages` (direct: by blocking sockets, and by
    the mover). Signals and messages are one way, half of there and back. Raises as calibrate does.
    """
    words = ["primitives", what, *(() if way is None else way.words())]
    words += ["--sizes", ",".join(map(str, sizes)), "--repetitions", str(repetitions)]
    found: dict[tuple[str, int], float] = {}
    for row in _rows(_run(words, _PRIMITIVES_S)):
        key, time_us = (row["what"], int(row["bytes"])), float(row["us"])
        found[key] = min(time_us, found.get(key, time_us))
    return found


def solve_heat(
    *,
    variant: str = "all",
    columns: int,
    rows: int,
    steps: int,
    processes: int,
    fragment_bytes: int | None = None,
    between_sockets: str = "unix",
    output: Path | None = None,
    limit_s: float = 600.0,
) -> list[HeatRun]:
    """Solve the heat equation of Strumpen94 by each variant. Raises as calibrate does."""
    words = ["heat", variant, "--columns", str(columns), "--rows", str(rows)]
    words += ["--steps", str(steps), "--processes", str(processes)]
    words += ["--fragment", str(fragment_bytes)] if fragment_bytes else []
    words += ["--tcp"] if between_sockets == "tcp" else []
    words += ["--output", str(output)] if output else []
    return [
        HeatRun(
            row["variant"],
            int(row["processes"]),
            float(row["min_step_us"]),
            float(row["median_step_us"]),
            row["grid"],
        )
        for row in _rows(_run(words, limit_s))
    ]


def _rows(text: str) -> list[dict[str, str]]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return list(csv.DictReader(lines))


def _run(words: Sequence[str], limit_s: float) -> str:
    line = [str(program()), *words]
    ended = output_of(line, name="the mover", limit_s=limit_s, most=_OUTPUT_BYTES)
    text = ended.printed.decode(errors="replace")
    if ended.status == 0:
        return text
    # The first word of it is the cause: processes that lose their peer complain behind it.
    reasons = [one[len(_REFUSED) :] for one in text.splitlines() if one.startswith(_REFUSED)]
    why = reasons[0] if reasons else f"it ended with {ended.status}"
    if ended.status == _USAGE:
        raise InvalidInput(why, field="mover")
    raise NotMeasurable(f"the mover: {why}")
