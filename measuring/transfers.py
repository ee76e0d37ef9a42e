"""Transfers through several stages at once, repeated at several cuts in interleaved random order.

The rules of `measuring.sweep` hold, but for one: runs during which a thread was preempted are kept
and marked, as a transfer of milliseconds is never without.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from contract.limits import MAX_MESSAGE_BYTES, MAX_NAME_LENGTH, MAX_STAGES
from domain.errors import InvalidInput, UnreadableTrace
from domain.problem import DEFAULT_FRAGMENT_CAP
from measuring.sweep import Ask, check_plan
from measuring.verdict import MIN_RUNS, Run, median_interval

MAX_RUNS = 100
_COLUMNS = ("message_bytes", "fragment_bytes", "repetition", "latency_us", "preempted")
_OCCUPIED, _PROCESSOR = "_occupied_us", "_processor_us"
MAX_FILE_ROWS = 1_000_000
MAX_FILE_SIZES = 256
_MIN_LATENCY_US = 0.001  # the last digit that is written


@dataclass(frozen=True, slots=True)
class TransferPlan:
    """Which message, cut by which repeated sizes, through how many stages, and until when.

    Each size is run until the 95 % interval of its median is within `tolerance`. `seed` decides
    the order. Raises InvalidInput.
    """

    message_bytes: int
    sizes: tuple[int, ...]
    stages: tuple[str, ...]
    tolerance: float = 0.02
    time_limit_s: float = 30.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_plan(self.tolerance, self.time_limit_s)
        if not self.sizes or not all(1 <= size <= self.message_bytes for size in self.sizes):
            raise InvalidInput("expected fragments of 1 byte to the whole message", field="bytes")


@dataclass(slots=True)
class Transfers:
    """What was run so far, by size, in the order in which it was. `ended` says why it ended."""

    plan: TransferPlan
    runs: dict[int, list[Run]] = field(default_factory=dict)
    ended: str = "interrupted"

    def run(
        self, ask: Ask, on_block: Callable[[int, int], None] = lambda wanted, taken: None
    ) -> None:
        """Ask for runs until all sizes are known or time ends; then each has MIN_RUNS or none.

        `ask` takes "message fragment" and answers as measuring/probe/transfer.c says. `on_block` is
        given how many sizes are wanted still, and how many runs there are. What was measured stays
        after an exception.
        """
        self.runs = {size: [] for size in self.plan.sizes}
        order = Random(self.plan.seed)
        end_s = time.monotonic() + self.plan.time_limit_s
        self.take(ask, max(self.plan.sizes), keep=False)
        wanted = list(self.plan.sizes)
        while wanted:
            order.shuffle(wanted)
            for size in wanted:
                if time.monotonic() > end_s:
                    self.ended = "time"
                    return
                self.take(ask, size)
            wanted = [size for size in wanted if not self._is_known(size)]
            on_block(len(wanted), sum(map(len, self.runs.values())))
        self.ended = "known"

    def take(self, ask: Ask, size: int, *, keep: bool = True) -> float:
        """Ask for one transfer in fragments of a size, and return its latency in µs."""
        _, _, ns, preempted, *stages = ask(f"{self.plan.message_bytes} {size}").split()
        pairs = [tuple(int(part) / 1000.0 for part in pair.split(":")) for pair in stages]
        latency_us = max(_MIN_LATENCY_US, int(ns) / 1000.0)
        if keep:
            occupied, processor = zip(*pairs, strict=True)
            run = Run(latency_us, occupied, processor, bool(int(preempted)))
            self.runs.setdefault(size, []).append(run)
        return latency_us

    def _is_known(self, size: int) -> bool:
        times = [run.latency_us for run in self.runs[size]]
        if len(times) < MIN_RUNS:
            return False
        low, high = median_interval(times) or (0.0, 0.0)
        return len(times) >= MAX_RUNS or high - low <= self.plan.tolerance * (high + low)

    def to_csv(self, facts: Mapping[str, str]) -> str:
        """Return every run as CSV, with what was transferred in the first lines."""
        facts = {**facts, "stages": ", ".join(self.plan.stages), "ended": self.ended}
        head = "".join(f"# {name}: {value}\n" for name, value in facts.items())
        places = range(1, len(self.plan.stages) + 1)
        names = [f"{place}{part}" for place in places for part in (_OCCUPIED, _PROCESSOR)]
        rows = "".join(
            ",".join(map(str, (self.plan.message_bytes, size, at, *_cells(run)))) + "\n"
            for size, taken in sorted(self.runs.items())
            for at, run in enumerate(taken)
        )
        return f"{head}{','.join((*_COLUMNS, *names))}\n{rows}"


def _cells(run: Run) -> list[str]:
    pairs = zip(run.occupied_us, run.processor_us, strict=True)
    times = [f"{time_us:.3f}" for pair in pairs for time_us in pair]
    return [f"{run.latency_us:.3f}", str(int(run.is_preempted)), *times]


@dataclass(frozen=True, slots=True)
class RecordedTransfers:
    """Runs that were read back from a file, and what its first lines say."""

    message_bytes: int
    runs: Mapping[int, tuple[Run, ...]]
    facts: Mapping[str, str]

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of the stages that ran; none where the file is of whole transfers alone."""
        names = self.facts.get("stages")
        return tuple(names.split(", ")) if names else ()

    @property
    def load(self) -> tuple[float, int] | None:
        """How many programs wanted a processor before, and how many there are; None: not known."""
        found = re.fullmatch(
            r"([0-9]{1,6}\.[0-9]{1,3}) on ([0-9]{1,6})", self.facts.get("load", "")
        )
        return None if found is None else (float(found.group(1)), int(found.group(2)))


def recorded_of(
    message_bytes: int, times_us: Iterable[tuple[int, float]], facts: Mapping[str, str]
) -> RecordedTransfers:
    """Return whole transfers by fragment size, of which no stage is known. Raises UnreadableTrace
    for more fragments than a transfer may have.
    """
    runs = dict[int, list[Run]]()
    for size, latency_us in times_us:
        runs.setdefault(size, []).append(Run(latency_us, (), ()))
    _check_sizes(message_bytes, runs)
    return RecordedTransfers(message_bytes, {size: (*some,) for size, some in runs.items()}, facts)


def read_transfers(text: str) -> RecordedTransfers:
    """Read the file that `Transfers.to_csv` writes, with any number of runs of each size.

    Raises UnreadableTrace, also for what no transfer has: more sizes than a sweep, other stages
    than a pipeline, or longer messages.
    """
    lines = text.splitlines()
    if len(lines) > MAX_FILE_ROWS:
        raise UnreadableTrace(f"expected at most {MAX_FILE_ROWS} lines", field="source")
    facts, rows = dict[str, str](), list[str]()
    for line in lines:
        if line.startswith("# "):
            name, _, value = line.removeprefix("# ").partition(": ")
            facts[name] = value
        elif line.strip():
            rows.append(line)
    if not rows or not rows[0].startswith(",".join(_COLUMNS)) or not facts.get("stages"):
        raise UnreadableTrace("expected the transfers that sluice verify writes", field="source")
    runs, messages = dict[int, list[Run]](), set[int]()
    count = _count_stages(facts["stages"])
    for number, row in enumerate(rows[1:], start=1):
        try:
            message, fragment, _, latency, preempted, *times = row.split(",")
            run = _read_run(latency, preempted, times, count)
            messages.add(int(message))
            runs.setdefault(int(fragment), []).append(run)
            if not 1 <= int(fragment) <= int(message):
                raise ValueError
        except ValueError:
            raise UnreadableTrace(f"transfer {number} cannot be read", field="source") from None
    if len(messages) != 1 or max(messages) > MAX_MESSAGE_BYTES:
        raise UnreadableTrace(
            f"expected transfers of one message of at most {MAX_MESSAGE_BYTES} bytes",
            field="source",
        )
    _check_sizes(max(messages), runs)
    found = {size: tuple(taken) for size, taken in runs.items()}
    return RecordedTransfers(messages.pop(), found, facts)


def _check_sizes(message_bytes: int, runs: Mapping[int, Sequence[Run]]) -> None:
    if len(runs) > MAX_FILE_SIZES:
        raise UnreadableTrace(
            f"expected at most {MAX_FILE_SIZES} fragment sizes, got {len(runs)}", field="source"
        )
    if message_bytes > DEFAULT_FRAGMENT_CAP * min(runs, default=message_bytes):
        raise UnreadableTrace(
            f"expected at most {DEFAULT_FRAGMENT_CAP} fragments in a transfer", field="source"
        )


def _count_stages(names: str) -> int:
    """Return how many stages are named. Raises UnreadableTrace for more, or names of none."""
    found = names.split(", ")
    if len(found) > MAX_STAGES:
        raise UnreadableTrace(f"expected at most {MAX_STAGES} stages", field="source")
    if not all(0 < len(name) <= MAX_NAME_LENGTH and name.isprintable() for name in found):
        raise UnreadableTrace(
            f"expected printable names of stages, of at most {MAX_NAME_LENGTH} characters",
            field="source",
        )
    return len(found)


def _read_run(latency: str, preempted: str, times: list[str], stages: int) -> Run:
    values = list(map(float, (latency, *times)))
    if len(times) != 2 * stages or not all(0.0 <= value < 1e15 for value in values):
        raise ValueError  # not NaN either
    if values[0] < _MIN_LATENCY_US or preempted not in ("0", "1"):
        raise ValueError
    return Run(values[0], tuple(values[1::2]), tuple(values[2::2]), preempted == "1")
