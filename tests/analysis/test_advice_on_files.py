"""Small files of forms that people have: nothing is advised that they contradict."""

from __future__ import annotations

import pytest

from bench.users.questions import Stated, ask_text
from domain.solution import Strategy
from domain.uncertain_answer import DecisionCode
from tests.architecture.documents import ROOT

KIB, MIB = 2**10, 2**20
STRATEGIES = pytest.mark.parametrize("strategy", [Strategy.REPEAT, Strategy.AUTO])


def asked(
    name: str, message_bytes: int, current_bytes: int, strategy: Strategy, columns: str | None
) -> Stated:
    """What is stated of this file, as of one stage."""
    text = (ROOT / "tests" / "data" / "advice" / name).read_text()
    return ask_text(text, message_bytes, current_bytes, strategy, as_stage="stage", columns=columns)


def size_to_set(stated: Stated) -> int | None:
    """The size that is to be set; None where nothing is."""
    if stated.answer is None or stated.decision != DecisionCode.SET_IT:
        return None
    assert stated.answer.uncertainty is not None
    return stated.answer.uncertainty.advised_bytes


@STRATEGIES
def test_a_switch_in_the_last_two_sizes_is_used(strategy: Strategy) -> None:
    """256 KiB take 27.1 us in the file, and 256 times 1 KiB 742."""
    stated = asked("switch-in-the-last-two-sizes.csv", 256 * KIB, KIB, strategy, None)
    assert size_to_set(stated) == 256 * KIB


@STRATEGIES
def test_far_sizes_say_nothing_of_near_ones(strategy: Strategy) -> None:
    """Measured from 512 MiB on, asked for 32 MiB: what was not measured is to be, at one size."""
    stated = asked("far-sizes.csv", 32 * MIB, 256 * KIB, strategy, "size=size:B,rate=GBps:GB/s")
    assert stated.decision == DecisionCode.MEASURE_FIRST
    assert stated.answer is not None
    assert stated.answer.uncertainty is not None
    assert stated.answer.uncertainty.measure_next[0].fragment_bytes == 32 * MIB


@STRATEGIES
@pytest.mark.parametrize("current", [2 * KIB, 32 * KIB, 512 * KIB, 2 * MIB])
def test_of_two_blocks_nothing_is_set_that_either_contradicts(
    strategy: Strategy, current: int
) -> None:
    """Two tables below each other: by both larger fragments pass at a higher rate."""
    columns = "size=size:B,rate=MBps:MB/s"
    stated = asked("two-blocks.txt", 2 * MIB, current, strategy, columns)
    assert (size_to_set(stated) or current) >= current


@STRATEGIES
@pytest.mark.parametrize("current", [MIB, 4 * MIB])
def test_whole_times_by_chunk_size_are_no_stage(strategy: Strategy, current: int) -> None:
    """The whole time of one message of 32 MiB in chunks: 4 MiB are best, one piece is 62 % slower.

    As times of fragments they would say that one piece is faster by more than half.
    """
    columns = "size=chunk:B,time=total_ms:ms"
    stated = asked("one-message-in-chunks.csv", 32 * MIB, current, strategy, columns)
    assert size_to_set(stated) in (None, 4 * MIB)
