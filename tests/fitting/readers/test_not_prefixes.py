"""What looks like a prefix, a tag or a mark of a terminal and is none: never read as another."""

from __future__ import annotations

import pytest

from domain.errors import SluiceError
from domain.measurement import DirectTrace
from fitting import read

SIZES = (64, 256, 1024, 4096, 16384, 65536)
MESSAGES = "message_bytes,latency_us\n" + "".join(f"{size},{size / 10}\n" for size in SIZES)
OSU = "# OSU MPI Latency Test v7.2\n# Size     Latency (us)\n"
ROWS = [f"{size} {size / 10}" for size in SIZES]


def of_messages(*rows: str) -> str:
    return "message_bytes,latency_us\n" + "".join(f"{row}\n" for row in rows)


def each(before: str, between: str) -> list[str]:
    return [f"{before}{size}{between}{size / 10}" for size in SIZES]


REFUSED = {
    "rows that are marked as none": MESSAGES + "INVALID: 64,900\nINVALID: 256,900\n",
    "a warm-up before rows": MESSAGES.replace("_us\n", "_us\n[warmup] 64,101\n[warmup] 64,99\n"),
    "rows to be skipped": MESSAGES + "skip: 64,101\nskip: 256,102\n",
    "failed rows alone": OSU + "FAILED: 1 9.0\nFAILED: 2 9.0\n",
    "the warm-up of a run without times": OSU
    + "".join(f"[warmup] {row}\n[measured] {row.split()[0]} n/a\n" for row in ROWS),
    "a unit before sizes": of_messages(*each("[KiB] ", ",")),
    "another way to say it": of_messages(*each("KiB: ", ",")),
    "a unit of times": of_messages(*each("ms: ", ",")),
    "a unit in rows of a tool": OSU + "".join(f"{row}\n" for row in each("KiB: ", " ")),
    "bins": of_messages(*each("16:", ",")),
    "bins of a tool": OSU + "".join(f"{row}\n" for row in each("1:", " ")),
    "two bins among rows": MESSAGES + "1:128,9\n2:128,9\n",
    "powers of ten": of_messages(*(f"10<sup>{at}</sup>,{at}<br>" for at in range(2, 6))),
    "more than": of_messages(*each("", ","), "> 1048576,99"),
    "more than, in each row": of_messages(*each(">", ",")),
    "two runs, one quoted more often": of_messages(*each("> ", ","), *each(">> ", ",")),
    "a cursor that moves back": of_messages("64,1\x1b[2D5.0", "256,7", "1024,9"),
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=list(REFUSED))
def test_it_is_refused(text: str) -> None:
    with pytest.raises(SluiceError):
        read(text.encode())


def test_runs_of_a_rank_and_of_nobody_are_not_one() -> None:
    """The part behind a prefix, and rows of another run without one."""
    prefixed = "".join(f"[rank0] {line}\n" for line in (OSU + "\n".join(ROWS)).splitlines())
    other = "".join(f"{size} {size / 3}\n" for size in SIZES)
    with pytest.raises(SluiceError):
        read(("a\nb\nc\n" + prefixed + other).encode())


@pytest.mark.parametrize(
    "names", [("copy<a>", "send<b>"), ("x<a>", "x<b>"), ("copy<p>", "b"), ("A&amp;B", "x&lt;y")]
)
def test_tags_in_names_of_stages_stay(names: tuple[str, str]) -> None:
    header = ",".join(f"{name}_us" for name in names)
    rows = "".join(f"{size},{size / 10},{size / 20}\n" for size in SIZES)
    trace = read(f"message_bytes,{header}\n{rows}".encode()).trace
    assert isinstance(trace, DirectTrace)
    assert trace.stage_names == names


def test_rows_that_a_carriage_return_ends_are_rows() -> None:
    """A terminal that shows the last of them is not what wrote them."""
    ends = ["\r" if at % 2 else "\n" for at in range(len(SIZES))]
    rows = [f"{size},{size / 10},{size / 20}" for size in SIZES]
    text = "message_bytes,a_us,b_us\n" + "".join(map("".join, zip(rows, ends, strict=True)))
    plain = "message_bytes,a_us,b_us\n" + "\n".join(rows) + "\n"
    assert read(text.encode()).trace == read(plain.encode()).trace
