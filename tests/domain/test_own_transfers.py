"""A user's own transfers: what no transfer has is refused, and a decision is one sentence."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest

from domain.errors import InvalidInput
from domain.own_transfers import (
    MAX_SIZES,
    MAX_TRANSFERS,
    GainInterval,
    OwnTransfer,
    OwnTransfers,
    SizeDecision,
    SizeVerdict,
    TransferredSize,
    TransferStatus,
)

MIB = 1 << 20
FAILED, TOO_LONG = TransferStatus.REFUSED, TransferStatus.ENDED


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"fragment_bytes": 0}, "fragment_bytes"),
        ({"latency_us": None}, "latency_us"),
        ({"latency_us": 0.0}, "latency_us"),
        ({"latency_us": -1.0}, "latency_us"),
        ({"latency_us": nan}, "latency_us"),
        ({"latency_us": inf}, "latency_us"),
        ({"status": FAILED}, "latency_us"),
        ({"began_s": nan}, "began_s"),
        ({"challenge": 0}, "challenge"),
    ],
)
def test_what_no_transfer_has_is_refused(values: dict[str, Any], field: str) -> None:
    """By the name of the field."""
    with pytest.raises(InvalidInput) as refusal:
        OwnTransfer(**{"fragment_bytes": MIB, "latency_us": 1.0} | values)
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("message_bytes", "rows", "field"),
    [
        (0, (), "message_bytes"),
        (MIB - 1, (OwnTransfer(MIB, 1.0),), "fragment_bytes"),
        (MIB, (OwnTransfer(1, 1.0),) * (MAX_TRANSFERS + 1), "rows"),
        (MIB, tuple(OwnTransfer(n + 1, 1.0) for n in range(MAX_SIZES + 1)), "fragment_bytes"),
    ],
)
def test_transfers_are_of_one_message_and_not_too_many(
    message_bytes: int, rows: tuple[OwnTransfer, ...], field: str
) -> None:
    """No fragment is larger than the message."""
    with pytest.raises(InvalidInput) as refusal:
        OwnTransfers(message_bytes, rows)
    assert refusal.value.field == field


def test_a_size_is_refused_that_fails_twice_never_works_or_takes_too_long() -> None:
    """One that failed once among times that it worked is used."""
    rows = (
        OwnTransfer(1, 5.0),
        OwnTransfer(1, None, status=FAILED, reason="broken pipe"),
        OwnTransfer(2, None, status=FAILED, reason="too small"),
        OwnTransfer(3, 5.0),
        OwnTransfer(3, None, status=FAILED, reason="first"),
        OwnTransfer(3, None, status=FAILED, reason="last"),
        OwnTransfer(4, 5.0),
        OwnTransfer(4, None, status=TOO_LONG),
        OwnTransfer(5, 9.0, status=TransferStatus.WARM_UP),
        OwnTransfer(5, 4.0),
    )
    transfers = OwnTransfers(8, rows)
    assert transfers.refused == {2: "too small", 3: "last", 4: ""}
    assert [(row.fragment_bytes, row.latency_us) for row in transfers.usable] == [
        (1, 5.0),
        (5, 4.0),
    ]


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.671, 0.694, "67 to 69 % faster"),
        (-0.02, 0.09, "−2 to 9 % faster"),
        (0.05, 0.054, "5 % faster"),
        (-0.004, 0.004, "0 % faster"),
        (-0.5, -0.1, "10 to 50 % slower"),
        (-35.18, 0.97, "36 times as slow to 97 % faster"),
        (-3.0, -1.5, "2.5 to 4 times as slow"),
        (-5e6, 0.1, "5,000,001 times as slow to 10 % faster"),
        (-999.0, -199.0, "200 to 1,000 times as slow"),
    ],
)
def test_a_gain_is_said_in_whole_percent(low: float, high: float, words: str) -> None:
    """The larger end comes last, slower or faster."""
    assert GainInterval(low, high).words() == words


DECISION = SizeDecision(
    verdict=SizeVerdict.SET,
    message_bytes=32 * MIB,
    current_bytes=32 * MIB,
    is_current_known=True,
    size_bytes=8 * MIB,
    leader_bytes=8 * MIB,
    gain=GainInterval(0.67, 0.69),
    noise=0.01,
    runs=12,
    seconds=16.2,
    sizes=(
        TransferredSize(4 * MIB, 2, 2.0e6, 0.01, 0.4),
        TransferredSize(8 * MIB, 4, 1.0e6, 0.01, 0.01),
        TransferredSize(32 * MIB, 4, 3.0e6, 0.01, 2.0),
    ),
)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            "Set 8 MiB: 67 to 69 % faster than your 32 MiB (12 runs, 16 s). Within 2 % of the best "
            "round size, with 90 %.",
        ),
        (
            {"sizes": DECISION.sizes[2:], "is_current_known": False, "condition": "if it is so"},
            "Set 8 MiB: 67 to 69 % faster than 32 MiB, if it is so (12 runs, 16 s).",
        ),
        (
            {"verdict": SizeVerdict.KEEP, "size_bytes": 32 * MIB},
            "Keep your 32 MiB: no round size from 4 MiB to 32 MiB is more than 2 % faster, with "
            "90 % (12 runs, 16 s).",
        ),
        (
            {"verdict": SizeVerdict.TRY, "size_bytes": 6 * MIB, "runs": 1, "seconds": 0.123},
            "Try 6 MiB beside your 32 MiB, in turns (1 run, 0.12 s).",
        ),
        (
            {"verdict": SizeVerdict.NOT_DECIDED, "more_runs": 20, "seconds": 123.4},
            "Not decided in 12 runs, 123 s: 8 MiB is 67 to 69 % faster. Keep your 32 MiB; about 20 "
            "runs more.",
        ),
        (
            {"verdict": SizeVerdict.NOT_DECIDED, "refused": ((32 * MIB, "no such part"),)},
            "Not decided: the program fails at your 32 MiB: no such part.",
        ),
    ],
)
def test_a_decision_is_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    """With the interval, the runs and the seconds that it took."""
    assert replace(DECISION, **changes).sentence() == sentence


def test_a_decision_names_what_is_near_the_best() -> None:
    """And whether the size matters at all."""
    assert DECISION.near_best_bytes == (8 * MIB,)
    assert not DECISION.hardly_depends
    level = tuple(replace(size, centre_us=1.0e6 + size.runs) for size in DECISION.sizes)
    assert replace(DECISION, sizes=level).hardly_depends
