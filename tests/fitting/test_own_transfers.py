"""The file of a user's own transfers: read, written again, and refused by line, column and rule."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import UnreadableTrace
from domain.own_transfers import OwnTransfer, OwnTransfers, TransferStatus
from fitting.own_transfers import (
    MAX_FILE_ROWS,
    is_own_transfers,
    own_transfers_text,
    read_own_file,
    read_own_transfers,
)

KIB, MIB = 1 << 10, 1 << 20
THREE = "message_bytes,fragment_bytes,latency_us\n"


def refusal(text: str, **choice: object) -> str:
    with pytest.raises(UnreadableTrace) as refused:
        read_own_transfers(text, **choice)  # type: ignore[arg-type]
    assert refused.value.field in ("transfers", "measurements")
    return refused.value.detail


def test_three_columns_suffice() -> None:
    found = read_own_transfers(f"{THREE}64MiB,4MiB,912000\n67108864,8 MiB,6.4e5\n")
    assert found == OwnTransfers(
        64 * MIB, (OwnTransfer(4 * MIB, 912_000.0), OwnTransfer(8 * MIB, 640_000.0))
    )


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("latency_us", "64000"),
        ("total_ms", "64"),
        ("time (s)", "0.064"),
        ("seconds", "0.064"),
        ("rate_MB/s", "1000"),
        ("bandwidth (GB/s)", "1"),
        ("throughput_Gb/s", "8"),
        ("MB/s", "1000"),
        ("rate", "1 GB/s"),
        ("time", "64 ms"),
    ],
)
def test_a_time_or_a_rate_with_its_unit_tells_how_long(column: str, cell: str) -> None:
    found = read_own_transfers(f"message_bytes,fragment_bytes,{column}\n64MB,1MB,{cell}\n")
    assert found.rows[0].latency_us == pytest.approx(64_000.0, rel=1e-12)


def test_every_column_is_read() -> None:
    text = (
        "# command: ./upload\n"
        "message_bytes,fragment_bytes,latency_us,block,began_s,status,challenge,reason,connections\n"
        '1MiB,64KiB,900.5,0,0.5,warm_up,,,4\n1MiB,128KiB,,1,1.5,refused,,"bad, size",4\n'
        "1MiB,64KiB,800,2,2.5,ok,1,,4\n"
    )
    file = read_own_file(text)
    assert file.comments == ("command: ./upload",)
    assert file.transfers.conditions == (("connections", "4"),)
    assert file.transfers.rows == (
        OwnTransfer(64 * KIB, 900.5, 0, 0.5, TransferStatus.WARM_UP),
        OwnTransfer(128 * KIB, None, 1, 1.5, TransferStatus.REFUSED, reason="bad, size"),
        OwnTransfer(64 * KIB, 800.0, 2, 2.5, challenge=1),
    )
    again = own_transfers_text(file.transfers, file.comments)
    assert read_own_file(again) == file
    assert own_transfers_text(read_own_transfers(again), file.comments) == again


def test_fragments_larger_than_the_message_are_the_message() -> None:
    found = read_own_transfers(f"{THREE}1MiB,8MiB,900\n")
    assert found.rows[0].fragment_bytes == MIB


def test_the_file_that_verify_writes_is_one() -> None:
    text = (
        "# stages: a\nmessage_bytes,fragment_bytes,repetition,latency_us,preempted,"
        "1_occupied_us,1_processor_us\n1024,64,0,30.5,0,3.1,2.2\n1024,64,1,31.5,1,3.2,2.2\n"
    )
    file = read_own_file(text)
    assert [row.latency_us for row in file.transfers.rows] == [30.5, 31.5]
    assert file.unused == ("repetition", "preempted", "1_occupied_us", "1_processor_us")


def test_conditions_are_chosen_and_never_merged() -> None:
    text = (
        "message_bytes,fragment_bytes,latency_us,connections\n"
        "1MiB,64KiB,900,1\n1MiB,64KiB,300,16\n1MiB,128KiB,280,16\n"
    )
    assert "connections has 2 values, 1 and 16" in refusal(text)
    assert "connections=1" in refusal(text)
    found = read_own_transfers(text, where={"connections": "16"})
    assert [row.latency_us for row in found.rows] == [300.0, 280.0]
    assert found.conditions == (("connections", "16"),)
    assert "no transfer has connections=2" in refusal(text, where={"connections": "2"})
    assert "there is no condition queue" in refusal(text, where={"queue": "2"})


def test_one_of_several_messages_is_chosen() -> None:
    text = f"{THREE}1MiB,64KiB,900\n2MiB,64KiB,1800\n"
    assert "message_bytes has 2 values, 1 MiB and 2 MiB" in refusal(text)
    assert read_own_transfers(text, message_bytes=2 * MIB).rows[0].latency_us == 1800.0
    assert "say nothing of a message of 4 MiB" in refusal(text, message_bytes=4 * MIB)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "the file is empty"),
        (THREE, "at least one transfer"),
        ("message_bytes,latency_us\n1,1\n", "line 1 lacks fragment_bytes"),
        ("message_bytes,fragment_bytes,x\n1,1,1\n", "line 1 lacks a time or a rate"),
        ("message_bytes,fragment_bytes,rate_gbps\n1,1,1\n", "of bits and of bytes"),
        ("message_bytes,fragment_bytes,time_s,rate_MB/s\n1,1,1,1\n", "leave one of them"),
        ("message_bytes,fragment_bytes,latency_us,a,a\n1,1,1,1,1\n", "column 5: a is there twice"),
        (f"{THREE}1,1\n", "line 2: expected 3 fields, got 2"),
        (f"{THREE}4,x,1\n", "line 2, fragment_bytes: expected a size"),
        (f"{THREE}0,1,1\n", "line 2, message_bytes: expected 1 to"),
        (f"{THREE}4,1,0\n", "line 2, latency_us: expected a time above 0"),
        (f"{THREE}4,1,nan\n", "line 2, latency_us: expected a finite decimal number"),
        (f"{THREE}4,1,\n", "line 2, latency_us: expected a time, or the status"),
        ("message_bytes,fragment_bytes,rate_MB/s\n4,1,0\n", "line 2, latency_us: expected a b"),
        (
            "message_bytes,fragment_bytes,latency_us,status\n4,1,1,done\n",
            "line 2, status: expected",
        ),
        ("message_bytes,fragment_bytes,latency_us,block\n4,1,1,-1\n", "line 2, block: expected"),
        ("message_bytes,fragment_bytes,latency_us,began_s\n4,1,1,inf\n", "line 2, began_s"),
        ("message_bytes,fragment_bytes,latency_us,challenge\n4,1,1,0\n", "line 2, challenge"),
        (f'{THREE}4,1,"1\n', "line 2: a quoted field is not closed"),
        (f"{THREE}{'1' * 20_000},1,1\n", "line 2: longer than"),
        ("".join(f"c{at}," for at in range(99)), "at most 64 columns"),
    ],
)
def test_what_is_refused_names_line_and_rule(text: str, rule: str) -> None:
    assert rule in refusal(text)


def test_many_bad_rows_are_said_together() -> None:
    text = THREE + "".join(f"4,1,x{at}\n" for at in range(50))
    assert refusal(text).startswith("more than 10 rows cannot be read")


def test_a_million_rows_are_refused_in_words() -> None:
    row = "4096,64,1000\n"
    assert "at most 100000 transfers" in refusal(THREE + row * MAX_FILE_ROWS)
    many = THREE + row + "8192,64,1000\n" * MAX_FILE_ROWS
    assert f"at most {MAX_FILE_ROWS} rows" in refusal(many, message_bytes=4096)


def test_files_are_recognised_by_their_columns() -> None:
    assert is_own_transfers(f"\ufeff# made by hand\n\n{THREE}1,1,1\n")
    assert is_own_transfers("fragment_bytes,connections,message_bytes,rate_GB/s\n")
    assert not is_own_transfers("message_bytes,copy_us,send_us\n")
    assert not is_own_transfers("message_bytes,fragment_bytes,copies\n")
    assert not is_own_transfers("")
    assert not is_own_transfers("x" * 10**6)


_TIMED = st.sampled_from((TransferStatus.OK, TransferStatus.WARM_UP))
_NAMES = st.text("abcdefgh_ 0123456789", min_size=1, max_size=12).map(str.strip).filter(bool)


@st.composite
def rows(draw: st.DrawFn) -> OwnTransfer:
    is_timed = draw(st.booleans())
    return OwnTransfer(
        draw(st.integers(1, 1 << 20)),
        draw(st.floats(1e-3, 1e12)) if is_timed else None,
        block=draw(st.none() | st.integers(0, 1 << 40)),
        began_s=draw(st.none() | st.floats(-1e12, 1e12)),
        status=draw(_TIMED)
        if is_timed
        else draw(st.sampled_from((TransferStatus.REFUSED, TransferStatus.ENDED))),
        challenge=draw(st.none() | st.integers(1, 256)),
        reason="" if is_timed else draw(st.text(max_size=40)),
    )


@given(st.lists(rows(), min_size=1, max_size=20), st.lists(st.text(max_size=30), max_size=3))
def test_what_is_written_reads_back(some: list[OwnTransfer], comments: list[str]) -> None:
    transfers = OwnTransfers(1 << 20, tuple(some), (("connections", "4"), ("host", "a, b")))
    text = own_transfers_text(transfers, comments)
    file = read_own_file(text)
    plain = [row.reason for row in file.transfers.rows]
    assert all(reason == " ".join(reason.split()) for reason in plain)
    assert [
        (row.fragment_bytes, row.latency_us, row.block, row.began_s, row.status, row.challenge)
        for row in file.transfers.rows
    ] == [
        (row.fragment_bytes, row.latency_us, row.block, row.began_s, row.status, row.challenge)
        for row in some
    ]
    assert file.transfers.conditions == transfers.conditions
    assert own_transfers_text(file.transfers, file.comments) == text


@given(st.text('message_bytes,fragment_bytes,latency_us\n#"0123456789 KiB.e-;\t', max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    is_own_transfers(text)
    for whole in (text, THREE + text):
        with suppress(UnreadableTrace):
            assert read_own_transfers(whole).rows
