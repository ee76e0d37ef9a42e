"""A trial of bucket settings: times gradients and all-reduces, asks for advice, and verifies it.

found = find_buckets(trainer)    # in every process at once; see examples/torch_buckets.py
print(found)
DDP(model, **found.kept.keywords)

What is timed is the trainer's: nothing here has a clock or knows a framework.

Source    docs/tutorial-ddp.md.
Cost      6 steps without messages; 2 x 6 sizes x 8 runs of queued all-reduces; and `rounds` times
          the settings, each with 2 steps to warm up and `steps` that count.
Traps     every process makes the same calls in the same order, or they wait for each other for
          ever; so only the first one decides, also where others measure something else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Any, TypeVar

from analysis.buckets import (
    BucketAdvice,
    VerifiedBuckets,
    advise_buckets,
    queued_sizes,
    verified_buckets,
)
from contract.limits import MAX_NAME_LENGTH
from domain.bucket_setting import BucketSetting
from domain.errors import InvalidInput
from domain.items import ItemSequence
from domain.pipeline import Stage

T = TypeVar("T")

STEPS_ALONE = 5  # whose ready times count, after one that warms up
RUNS_OF_A_SIZE = 7  # that count, after one that warms up
ROUNDS, STEPS = 8, 3
WARM_UP = 2  # steps: buckets are made anew, in the order of arrival, after the first
Gradients = Mapping[str, tuple[int, float]]  # by name: bytes, and µs after the step began
Times = Mapping[int, float]  # by bytes: µs of one queued all-reduce
LineOf = Callable[[Times], tuple[Stage, float]]


@dataclass(frozen=True, slots=True)
class Trainer:
    """One process of a training, as a trial needs it. Sizes are bytes, times µs.

    `gradients()` does one step without messages, and returns what every gradient has and when it
    came, in the order in which they do. `all_reduces_us(size, count)` returns what so many queued
    all-reduces take together, `steps_us(setting, steps)` what each of so many steps with a setting
    does; both begin in all processes at once. `broadcast(box)` replaces what is in a list by what
    the first process has there, which alone `is_first`. `takes_list`: a cap for each bucket can be
    set.
    """

    gradients: Callable[[], Gradients]
    all_reduces_us: Callable[[int, int], float]
    steps_us: Callable[[BucketSetting, int], Sequence[float]]
    broadcast: Callable[[list[Any]], object]
    is_first: bool
    takes_list: bool

    def from_first(self, decide: Callable[[], T]) -> T:
        """Return, in every process, what `decide` returns in the first; others do not call it."""
        box: list[Any] = [decide() if self.is_first else None]
        self.broadcast(box)
        decided: T = box[0]
        return decided


def find_buckets(
    trainer: Trainer, line_of: LineOf, rounds: int = ROUNDS, steps: int = STEPS
) -> VerifiedBuckets:
    """Return what was predicted and measured, and the setting to keep, the same in every process.

    `line_of` fits the times of queued all-reduces, and says by what share the line misses one.
    Raises InvalidInput where steps have different gradients.
    """
    advice = timed_advice(trainer, line_of)
    times = step_times(trainer, [one.setting for one in advice.tried], rounds, steps)
    return trainer.from_first(lambda: verified_buckets(advice, times))


def timed_advice(trainer: Trainer, line_of: LineOf) -> BucketAdvice:
    """Return the settings to try, by times of gradients and of all-reduces, alone and beside the
    calculation; the same in every process. Raises InvalidInput where steps have different
    gradients.
    """
    runs = [trainer.gradients() for _ in range(1 + STEPS_ALONE)][1:]
    total = trainer.from_first(lambda: sum(size for size, _ in runs[0].values()))
    alone = _queued(trainer, queued_sizes(total))
    with _calculating(trainer) as runs_beside:
        beside = _queued(trainer, queued_sizes(total))

    def advice() -> BucketAdvice:
        (wire, misfit), (wire_beside, misfit_beside) = line_of(alone), line_of(beside)
        return advise_buckets(
            sequence_of(runs),
            wire,
            wire_beside,
            slowed=_end_us(runs_beside or runs) / _end_us(runs) - 1.0,
            takes_list=trainer.takes_list,
            misfit=max(misfit, misfit_beside),
        )

    return trainer.from_first(advice)


def step_times(
    trainer: Trainer, settings: Sequence[BucketSetting], rounds: int, steps: int
) -> dict[BucketSetting, list[float]]:
    """Return a time of each setting in each round (µs), the median of its steps; the settings are
    in another order in each round, which is the same in every process.
    """
    times = {setting: list[float]() for setting in settings}
    for number in range(rounds):
        for setting in Random(number).sample(settings, len(settings)):
            times[setting].append(median(trainer.steps_us(setting, WARM_UP + steps)[WARM_UP:]))
    return times


def sequence_of(runs: Sequence[Gradients]) -> ItemSequence:
    """Return the gradients in the last run's order, each ready at the median of its times; of
    a long name the end stays. Raises InvalidInput where not every run has the same.
    """
    last = runs[-1]
    if any(run.keys() != last.keys() for run in runs):
        raise InvalidInput(
            "expected the same gradients in every step: with parameters that are not always used "
            "DDP does not make its buckets in the order of arrival",
            field="gradients",
        )
    ready_us = [median(run[name][1] for run in runs) for name in last]
    names = [name[-MAX_NAME_LENGTH:] for name in last]
    return ItemSequence.of([size for size, _ in last.values()], ready_us, names=names)


def _end_us(runs: Sequence[Gradients]) -> float:
    """When the last gradient is ready, in the median run."""
    return median(max(ready_us for _, ready_us in run.values()) for run in runs)


def _queued(trainer: Trainer, sizes: Sequence[tuple[int, int]]) -> Times:
    return {
        size: median([trainer.all_reduces_us(size, count) for _ in range(1 + RUNS_OF_A_SIZE)][1:])
        / count
        for size, count in sizes
    }


@contextmanager
def _calculating(trainer: Trainer) -> Iterator[list[Gradients]]:
    """Have a thread do steps without messages, one after the other, until the block ends; yield
    the list to which each of them is added. Raises what such a step raises.
    """
    is_over, failures, runs = threading.Event(), list[BaseException](), list[Gradients]()

    def calculate() -> None:
        try:
            while not is_over.is_set():
                runs.append(trainer.gradients())
        except BaseException as failure:  # shown in the thread that waits for this one
            failures.append(failure)

    thread = threading.Thread(target=calculate, name="calculation")
    thread.start()
    try:
        yield runs
    finally:
        is_over.set()
        thread.join()
    if failures:
        raise failures[0]
