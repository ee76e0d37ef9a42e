"""Transfers in interleaved random order, on an invented machine; their file, there and back."""

from __future__ import annotations

from collections import Counter

import pytest

from domain.errors import InvalidInput, UnreadableTrace
from measuring import transfers as module
from measuring.transfers import TransferPlan, Transfers, read_transfers
from measuring.verdict import MIN_RUNS

PLAN = TransferPlan(4096, (64, 512, 4096), ("memcpy", "tcp:a/b/10.0.0.2"))


class Machine:
    """Answers as the probe does; every third run of 512 bytes takes twice as long."""

    def __init__(self) -> None:
        self.asked = list[int]()

    def ask(self, line: str) -> str:
        message, fragment = map(int, line.split())
        self.asked.append(fragment)
        slow = fragment == 512 and len(self.asked) % 3 == 0
        ns = (message + 4096 * 1000 // fragment) * (2 if slow else 1)
        return f"{message} {fragment} {ns} {int(slow)} {ns // 2}:{ns // 4} {ns // 3}:7"


def done() -> tuple[Machine, Transfers]:
    machine, found = Machine(), Transfers(PLAN)
    found.run(machine.ask)
    return machine, found


class TestOrder:
    """Every block has each size once."""

    def test_blocks_are_whole_and_differ(self) -> None:
        machine, found = done()
        blocks = [tuple(machine.asked[at : at + 3]) for at in range(1, 3 * MIN_RUNS, 3)]
        assert all(sorted(block) == list(PLAN.sizes) for block in blocks)
        assert len(set(blocks)) > 1
        assert found.ended == "known"

    def test_sizes_that_are_known_are_left_out(self) -> None:
        _, found = done()
        assert len(found.runs[64]) == len(found.runs[4096]) == MIN_RUNS < len(found.runs[512])

    def test_time_ends_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = iter(range(1000))
        monkeypatch.setattr(module.time, "monotonic", lambda: float(next(clock)))
        found = Transfers(TransferPlan(4096, (64, 512), ("memcpy",), time_limit_s=7.5))
        found.run(lambda line: f"{line} 5000 0 1:1")
        assert found.ended == "time"
        assert sum(map(len, found.runs.values())) == 7

    def test_what_was_run_stays_after_an_interrupt(self) -> None:
        machine, found = Machine(), Transfers(PLAN)

        def ask(line: str) -> str:
            if len(machine.asked) == 8:
                raise KeyboardInterrupt
            return machine.ask(line)

        with pytest.raises(KeyboardInterrupt):
            found.run(ask)
        assert Counter({size: len(runs) for size, runs in found.runs.items()}).total() == 7
        assert found.ended == "interrupted"


class TestFile:
    """Every run, and back."""

    def test_it_is_read_back(self) -> None:
        _, found = done()
        text = found.to_csv({"machine": "x", "depth": "4"})
        read = read_transfers(text)
        assert read.message_bytes == 4096
        assert {size: list(runs) for size, runs in read.runs.items()} == found.runs
        assert read.stages == PLAN.stages
        assert read.facts["machine"] == "x"

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("# stages: ", "# others: "),
            ("message_bytes,", "bytes,"),
            ("4096,64,0,", "4096,0,0,"),
            ("4096,64,0,", "64,4096,0,"),
            ("4096,64,0,", "4096,64,0,nan,"),
            ("4096,64,0,", "4096,x,0,"),
            ("4096,512,0,", "4097,512,0,"),
        ],
    )
    def test_what_is_none_is_refused(self, old: str, new: str) -> None:
        _, found = done()
        text = found.to_csv({})
        assert old in text
        with pytest.raises(UnreadableTrace):
            read_transfers(text.replace(old, new, 1))

    @pytest.mark.parametrize("value", ["nan", "inf", "-1.0", "1e99", "0.0", ""])
    def test_times_that_are_none(self, value: str) -> None:
        with pytest.raises(UnreadableTrace):
            read_transfers(
                "# stages: memcpy\nmessage_bytes,fragment_bytes,repetition,latency_us,preempted,"
                f"1_occupied_us,1_processor_us\n64,64,0,{value},0,1.0,1.0\n"
            )

    @pytest.mark.parametrize("message", [10**14, 100_001])
    def test_more_fragments_than_any_answer_has(self, message: int) -> None:
        """Are refused before they are made."""
        with pytest.raises(UnreadableTrace, match="100000 fragments"):
            read_transfers(
                "# stages: memcpy\nmessage_bytes,fragment_bytes,repetition,latency_us,preempted,"
                f"1_occupied_us,1_processor_us\n{message},1,0,5.0,0,1.0,1.0\n"
            )


@pytest.mark.parametrize("sizes", [(), (0,), (4097,), (-5, 64)])
def test_sizes_are_of_the_message(sizes: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput):
        TransferPlan(4096, sizes, ("memcpy",))


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan"), float("inf")])
def test_time_is_bounded(limit: float) -> None:
    with pytest.raises(InvalidInput):
        TransferPlan(4096, (64,), ("memcpy",), time_limit_s=limit)
