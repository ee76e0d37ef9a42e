"""Files as tables are printed, whose last sizes lie elsewhere, judged by their own times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from bench.users.machines import Row, repeated
from bench.users.questions import Stated, ask, ask_text
from bench.users.verdicts import STRATEGIES
from domain.solution import Strategy
from domain.uncertain_answer import DecisionCode


@dataclass(frozen=True, slots=True)
class SwitchedFile:
    """A file as tables are printed, few times a size, whose last one or two sizes lie elsewhere."""

    rows: tuple[Row, ...]
    message_bytes: int
    current_bytes: int

    @property
    def stages(self) -> int:
        """How many columns of times it has."""
        return len(self.rows[0][2])

    def asked(self, strategy: Strategy) -> Stated:
        """What is answered; one column of times is said to be a stage."""
        if self.stages > 1:
            return ask(self.rows, self.message_bytes, self.current_bytes, strategy)
        lines = [f"{size},{times[0]:.3f}" for size, _, times in self.rows]
        text = "\n".join(["message_bytes,latency_us", *lines]) + "\n"
        return ask_text(text, self.message_bytes, self.current_bytes, strategy, as_stage="link")

    def own_us(self, cut: Sequence[int]) -> float:
        """The latency of a cut by the medians of this file, in a straight line between sizes."""
        sizes = sorted({size for size, _, _ in self.rows})
        medians = [
            [median(times[stage] for one, _, times in self.rows if one == size) for size in sizes]
            for stage in range(self.stages)
        ]
        known = {
            size: [float(np.interp(size, sizes, column)) for column in medians] for size in set(cut)
        }
        ends = [0.0] * self.stages
        for size in cut:
            before = 0.0
            for stage, time in enumerate(known[size]):
                before = ends[stage] = max(ends[stage], before) + time
        return ends[-1]

    def gain(self, cut: Sequence[int]) -> float:
        """By which share a cut is faster than the setting in use, by the file's own times."""
        return 1.0 - self.own_us(cut) / self.own_us(
            repeated(self.message_bytes, self.current_bytes)
        )

    @property
    def best_gain(self) -> float:
        """The most that a size of this file gains."""
        sizes = {size for size, _, _ in self.rows if size <= self.message_bytes}
        return max(self.gain(repeated(self.message_bytes, size)) for size in sizes)


def switched_file(number: int, seed: int) -> SwitchedFile:
    """File `number` of this seed."""
    rng = np.random.default_rng([seed, number])
    stages = int(rng.choice([1, 1, 2, 3]))
    octave, count = int(rng.integers(8, 13)), int(rng.integers(5, 12))
    sizes = [2 ** (octave + at) for at in range(count)]
    last = int(rng.integers(1, 3))
    repetitions = int(rng.choice([1, 1, 2, 3, 10]))
    deviation = float(rng.choice([0.0, 0.005, 0.02]))
    switched = int(rng.integers(stages))
    columns = []
    for stage in range(stages):
        overhead_us, ns_per_byte = np.exp(rng.uniform(np.log([0.5, 0.1]), np.log([30.0, 4.0])))
        times = np.array([overhead_us + ns_per_byte * size / 1e3 for size in sizes])
        if stage == switched:
            if rng.random() < 0.5:  # another protocol: dearer to begin, cheaper a byte
                begin_us = overhead_us * rng.uniform(1.0, 10.0)
                slope = ns_per_byte * float(np.exp(rng.uniform(np.log(0.01), np.log(0.6))))
                times[-last:] = [begin_us + slope * size / 1e3 for size in sizes[-last:]]
            else:
                times[-last:] *= rng.uniform(1.2, 4.0)
        columns.append(times)
    rows = []
    for block in range(repetitions):
        for at, size in enumerate(sizes):
            noisy = [float(times[at] * np.exp(rng.normal(0.0, deviation))) for times in columns]
            rows.append((size, block, tuple(round(time, 3) for time in noisy)))
    total = int(sizes[-1] * rng.choice([0.5, 1.0, 1.0, 2.0, 4.0]))
    current = int(rng.choice([size for size in sizes if size <= total]))
    return SwitchedFile(tuple(rows), total, current)


@dataclass(frozen=True, slots=True)
class FileVerdict:
    """What was answered of a file; `gain` is that of what is to be set, 0 where nothing is."""

    number: int
    file: SwitchedFile
    stated: Stated
    gain: float

    @property
    def is_slowed(self) -> bool:
        """Whether what is to be set is slower than what is in use, by the file's own times."""
        return self.gain < -1e-9


def judged_files(count: int, seed: int) -> list[FileVerdict]:
    """The verdicts on so many files."""
    found = []
    for number in range(count):
        file = switched_file(number, seed)
        stated = file.asked(STRATEGIES[number % len(STRATEGIES)])
        is_set = stated.decision == DecisionCode.SET_IT
        gain = min(map(file.gain, stated.advised)) if is_set else 0.0
        found.append(FileVerdict(number, file, stated, gain))
    return found
