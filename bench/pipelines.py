"""The fixed set of 30 pipelines, and where it comes from.

    python -m bench.pipelines        # search the seeds again and write bench/data/pipelines.json

Six of each class, all cut into 500 fragments. Two get a message for which 500 is near the best
number of fragments; the others one with fragments of 64 bytes to 32 KiB in the mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from itertools import count

from bench.hardness import CLASSES, Hardness, Rows, class_of, optimum_of, pipeline_of
from bench.machine import CHECKOUT
from bench.workloads import lines_of
from domain.pipeline import Pipeline
from domain.problem import Problem
from solvers.contract import Deadline
from solvers.exact.count_search import CountSearch
from solvers.exact.relaxation import relaxation_of
from solvers.line_problem import LineProblem

STORED = CHECKOUT / "bench" / "data" / "pipelines.json"
COUNT = 500
NEAR = 10  # fragments: what is called near the best number
# Bytes of a fragment in the mean, for the six pipelines of a class; None: for COUNT to be best.
MEAN_BYTES = (None, None, 64, 512, 4096, 32768)
# Of each class, two that are in it at growing k with fragments of the same mean size too: the first
# and the last for which that was found (b: another stage is slowest for some; d: fragments wait).
GROWING = {"a": (1, 6), "b": (2, 6), "c": (1, 6), "d": (3, 6), "e": (1, 6)}
_MIN_BYTES = 2.0**16
_MAX_BYTES = 2.0**40
_STEP = 16.0
_BISECTIONS = 16
_SEARCH_GAP = 1e-7
_SEARCH_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class BenchPipeline:
    """One problem: its class, the seed of its stages, the message, k, and the k that is best."""

    letter: str
    number: int
    seed: int
    message_bytes: int
    k: int
    best_k: int
    stages: Rows

    @property
    def name(self) -> str:
        """As rows of tables call it."""
        return f"{self.letter}{self.number}"

    @property
    def hardness(self) -> Hardness:
        """Its class."""
        return class_of(self.letter)

    @property
    def is_near_best(self) -> bool:
        """Whether k is near the best number of fragments."""
        return abs(self.best_k - self.k) <= NEAR

    @property
    def pipeline(self) -> Pipeline:
        """Its stages."""
        return pipeline_of(self.stages)

    @property
    def lines(self) -> LineProblem:
        """What the exact engines solve."""
        return lines_of(self.pipeline, self.message_bytes)

    def lines_for(self, k: int) -> LineProblem:
        """The same with k fragments of the same mean size."""
        return lines_of(self.pipeline, self.message_bytes * k // self.k)


@cache
def stored() -> tuple[BenchPipeline, ...]:
    """The set as it is under version control."""
    return tuple(
        BenchPipeline(**(entry | {"stages": tuple(map(tuple, entry["stages"]))}))
        for entry in json.loads(STORED.read_text())["pipelines"]
    )


def named(name: str) -> BenchPipeline:
    """The one of this name. Raises LookupError."""
    found = [one for one in stored() if one.name == name]
    if not found:
        raise LookupError(f"no pipeline is named {name}")
    return found[0]


def growing() -> tuple[BenchPipeline, ...]:
    """Those that are measured at growing k, two of each class."""
    return tuple(one for one in stored() if one.number in GROWING[one.letter])


def generated(hardness: Hardness) -> Iterator[BenchPipeline]:
    """A class of the set from its seeds: the first ones that fit."""
    seeds = count(1)
    for number, mean_bytes in enumerate(MEAN_BYTES, start=1):
        yield next(
            found
            for seed in seeds
            if (found := _fitting(hardness, number, seed, mean_bytes)) is not None
        )


def best_fragments(pipeline: Pipeline, message_bytes: int) -> int:
    """The best number of fragments in real sizes."""
    problem = Problem(pipeline, message_bytes)
    search = CountSearch.start(problem, relaxation_of(problem))
    deadline = Deadline.after(_SEARCH_LIMIT_S)
    search.run(near=COUNT, relative_gap=_SEARCH_GAP, deadline=deadline)
    return search.best.k


def _fitting(
    hardness: Hardness, number: int, seed: int, mean_bytes: int | None
) -> BenchPipeline | None:
    """The pipeline of this seed with a message for it, or None where it does not belong."""
    rows = hardness.rows(seed)
    pipeline = pipeline_of(rows)
    message_bytes = _best_at(pipeline) if mean_bytes is None else COUNT * mean_bytes
    if message_bytes is None:
        return None
    lines = lines_of(pipeline, message_bytes)
    if not hardness.holds(lines, optimum_of(lines, COUNT)):
        return None
    best_k = best_fragments(pipeline, message_bytes)
    if mean_bytes is None and abs(best_k - COUNT) > NEAR:  # too flat there to tell
        return None
    return BenchPipeline(hardness.letter, number, seed, message_bytes, COUNT, best_k, rows)


def _best_at(pipeline: Pipeline) -> int | None:
    """A message size of three digits for which COUNT is near the best number of fragments."""
    low = high = _MIN_BYTES
    while _more_is_better(pipeline, high) > 0:
        low, high = high, high * _STEP
        if high > _MAX_BYTES:
            return None
    for _ in range(_BISECTIONS):
        message_bytes = int(float(f"{(low * high) ** 0.5:.3g}"))
        towards = _more_is_better(pipeline, message_bytes)
        if towards == 0:
            return message_bytes
        low, high = (low, message_bytes) if towards < 0 else (message_bytes, high)
    return None


def _more_is_better(pipeline: Pipeline, message_bytes: float) -> int:
    """-1 where more fragments than COUNT are better, 1 where fewer are, 0 near the best number.

    By convexity in k (results sec. 2) three solves tell.
    """
    lines = lines_of(pipeline, int(message_bytes))
    fewer, here, more = (optimum_of(lines, k).upper_us for k in (COUNT - NEAR, COUNT, COUNT + NEAR))
    return 0 if here <= min(fewer, more) else -1 if more < fewer else 1


def main() -> None:
    """Write the set."""
    entries = [asdict(found) for hardness in CLASSES for found in generated(hardness)]
    STORED.parent.mkdir(exist_ok=True)
    text = json.dumps({"made_by": "python -m bench.pipelines", "pipelines": entries}, indent=1)
    STORED.write_text(text + "\n")


if __name__ == "__main__":
    main()
