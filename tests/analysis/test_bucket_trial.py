"""Trials of buckets on a training that is simulated, of one process and of two."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from queue import Queue
from random import Random
from typing import Any

import pytest

from analysis.bucket_trial import (
    RUNS_OF_A_SIZE,
    STEPS_ALONE,
    WARM_UP,
    Trainer,
    find_buckets,
    sequence_of,
)
from analysis.buckets import VerifiedBuckets
from domain.bucket_setting import BucketSetting
from domain.errors import InvalidInput
from domain.items import ItemSequence
from fitting.queued import queued_line

SIZES = tuple(60_000 if place % 2 else 4_000 for place in range(40))


@dataclass
class Simulated:
    """A process whose gradients come one every `every_us`, and whose messages take their time.

    Beside a calculation messages take `slowed` times as long, and it takes `held` times as long
    beside these. Noise is that of a seed.
    """

    every_us: float = 2000.0
    overhead_us: float = 5000.0
    ns_per_byte: float = 40.0
    slowed: float = 1.0
    held: float = 1.0
    noise: float = 0.0
    names: Sequence[str] = tuple(f"layer.{place}" for place in range(len(SIZES)))
    random: Random = field(default_factory=lambda: Random(7))
    steps: int = 0
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    calculating: set[int] = field(default_factory=set)

    def _noisy(self, time_us: float) -> float:
        return time_us * exp(self.random.gauss(0.0, self.noise))

    def gradients(self) -> Mapping[str, tuple[int, float]]:
        """Have each a little later than the one before; beside messages, slowly."""
        every_us = self.every_us
        if threading.current_thread() is not threading.main_thread():
            self.calculating.add(threading.get_ident())
            time.sleep(0.001)
            every_us *= self.held
        else:
            self.steps += 1
        return {
            name: (size, self._noisy(every_us * (place + 1)))
            for place, (name, size) in enumerate(zip(self.names, SIZES, strict=True))
        }

    def all_reduces_us(self, message_bytes: int, count: int) -> float:
        """Take the same time for each; while a thread calculates, more."""
        self.calls.append(("all_reduces", message_bytes, count))
        beside = any(thread.name == "calculation" for thread in threading.enumerate())
        each = self.overhead_us + self.ns_per_byte * message_bytes / 1000.0
        return self._noisy(count * each * (self.slowed if beside else 1.0))

    def steps_us(self, setting: BucketSetting, steps: int) -> Sequence[float]:
        """Send bucket by bucket; the first two steps are slow."""
        self.calls.append(("steps", str(setting), steps))
        sequence = ItemSequence.of(SIZES)
        at, last = 0.0, 0
        for end, size in zip(
            setting.cut(sequence), sequence.fragment_bytes(setting.cut(sequence)), strict=True
        ):
            last = end
            at = max(at, self.every_us * last) + self.overhead_us + self.ns_per_byte * size / 1e3
        return [self._noisy(at * (10.0 if step < WARM_UP else 1.0)) for step in range(steps)]


def trainer_of(
    process: Simulated,
    broadcast: Callable[[list[Any]], object] = lambda box: None,
    *,
    is_first: bool = True,
    takes_list: bool = True,
) -> Trainer:
    """The trainer of a process."""
    calls = (process.gradients, process.all_reduces_us, process.steps_us)
    return Trainer(*calls, broadcast, is_first=is_first, takes_list=takes_list)


def test_what_is_predicted_is_what_is_simulated() -> None:
    process = Simulated()
    found = find_buckets(trainer_of(process), queued_line)
    assert [one.buckets.setting.name for one in found.timed] == [
        "default",
        "bucket_cap_mb",
        "bucket_cap_mb_list",
    ]
    for one in found.timed:
        assert one.measured_us == pytest.approx(one.buckets.predicted_us, rel=1e-6)
    assert found.kept.name in ("bucket_cap_mb", "bucket_cap_mb_list")
    assert found.advice.shared == pytest.approx(0.0, abs=1e-9)
    assert found.rounds == 8


def test_how_often_it_asks() -> None:
    process = Simulated()
    find_buckets(trainer_of(process), queued_line, rounds=6, steps=4)
    assert process.steps == 1 + STEPS_ALONE
    reduces = [call for call in process.calls if call[0] == "all_reduces"]
    assert len(reduces) == 2 * 6 * (1 + RUNS_OF_A_SIZE)
    steps = [call for call in process.calls if call[0] == "steps"]
    assert len(steps) == 3 * 6
    assert {call[2] for call in steps} == {WARM_UP + 4}
    orders = {tuple(call[1] for call in steps[start : start + 3]) for start in range(0, 18, 3)}
    assert len(orders) > 1  # settings are timed in another order in each round
    assert not [thread for thread in threading.enumerate() if thread.name == "calculation"]


def test_a_shared_engine_is_found_beside_the_calculation() -> None:
    process = Simulated(slowed=1.5)
    found = find_buckets(trainer_of(process), queued_line)
    assert process.calculating
    assert found.advice.is_shared_engine
    assert found.advice.shared == pytest.approx(0.5, rel=1e-6)
    assert "shared_engine" in str(found.advice)
    assert "predicted" not in str(found)


def test_a_calculation_that_is_slower_beside_messages_is_found() -> None:
    found = find_buckets(trainer_of(Simulated(held=1.4)), queued_line)
    assert found.advice.slowed == pytest.approx(0.4, rel=1e-6)
    assert found.advice.shared == pytest.approx(0.0, abs=1e-9)
    assert found.advice.is_shared_engine


def test_noise_leaves_a_gain() -> None:
    found = find_buckets(trainer_of(Simulated(noise=0.03)), queued_line)
    assert found.kept != BucketSetting()


def test_without_the_list() -> None:
    found = find_buckets(trainer_of(Simulated(), takes_list=False), queued_line)
    assert [one.buckets.setting.name for one in found.timed] == ["default", "bucket_cap_mb"]


def test_a_failure_of_the_calculation_is_raised() -> None:
    process = Simulated()
    usual = process.gradients

    def gradients() -> Mapping[str, tuple[int, float]]:
        if process.steps > STEPS_ALONE:
            raise RuntimeError("out of memory")
        return usual()

    calls = (gradients, process.all_reduces_us, process.steps_us, lambda box: None)
    with pytest.raises(RuntimeError, match="out of memory"):
        find_buckets(Trainer(*calls, is_first=True, takes_list=True), queued_line)


def test_ready_times_are_medians_in_the_last_order() -> None:
    runs = [{"a": (4, 1.0), "b": (8, 2.0)}, {"b": (8, 4.0), "a": (4, 5.0)}]
    found = sequence_of([*runs, {"b": (8, 3.0), "a": (4, 9.0)}])
    assert found == ItemSequence.of([8, 4], [3.0, 5.0], names=["b", "a"])


def test_of_a_long_name_the_end_stays() -> None:
    long = "model." + "layers." * 100 + "weight"
    found = sequence_of([{long: (4, 1.0)}])
    assert found.names is not None
    assert long.endswith(found.names[0])
    assert found.names[0].endswith("layers.weight")


def test_gradients_that_are_not_always_there_are_refused() -> None:
    with pytest.raises(InvalidInput, match="same gradients in every step"):
        sequence_of([{"a": (4, 1.0)}, {"a": (4, 1.0), "b": (8, 2.0)}])


def test_only_the_first_process_decides() -> None:
    """The second sees a slower calculation, and messages that cost nothing: alone it would keep the
    default."""
    boxes: Queue[Any] = Queue()
    second = Simulated(every_us=3000.0, overhead_us=1.0, ns_per_byte=0.001)

    def give(box: list[Any]) -> None:
        boxes.put(box[0])

    def get(box: list[Any]) -> None:
        box[0] = boxes.get(timeout=30.0)

    found = dict[str, VerifiedBuckets]()
    trainers = {
        "first": trainer_of(Simulated(), give),
        "second": trainer_of(second, get, is_first=False),
    }

    def run(name: str) -> None:
        found[name] = find_buckets(trainers[name], queued_line)

    threads = [threading.Thread(target=run, args=(name,)) for name in trainers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60.0)
    assert found["first"] == found["second"]
    assert found["first"].kept != BucketSetting()
    alone = find_buckets(trainer_of(second), queued_line)
    assert alone.advice.tried[-1].setting != found["first"].advice.tried[-1].setting
