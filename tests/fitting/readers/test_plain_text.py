"""What terminals, mails and launchers put around lines changes no reading."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import replace

import pytest

from domain.errors import SluiceError
from domain.measurement import Reading, TraceKind
from domain.solution import Notice
from fitting import read
from fitting.plain_text import PASSED_OVER, PREFIX
from tests.fitting.readers.test_tools import TRACES, content_of

NAMES = sorted(path.name for path in TRACES.iterdir())
_PAINT = {0: "\x1b[1m", 1: "\x1b[38;5;120m", 2: "\x1b]0;a title\x07\x1b[32m"}
_ADDED = {PREFIX, PASSED_OVER, "colours", "html", "quoting_marks", "overwritten"}


def _before(prefix: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [prefix + line for line in lines]


def _clock(lines: list[str]) -> list[str]:
    return [f"09:{at // 60 % 60:02}:{at % 60:02}  {line}" for at, line in enumerate(lines)]


def _iso(lines: list[str]) -> list[str]:
    return [f"2026-05-04T10:11:{at % 60:02}.{at:09}Z {line}" for at, line in enumerate(lines)]


def _build_server(lines: list[str]) -> list[str]:
    return [f"[2026-05-04T10:{at % 60:02}:12.345Z] [0] {line}" for at, line in enumerate(lines)]


def _dated(lines: list[str]) -> list[str]:
    return [f"Mon May  4 10:11:{at % 60:02} 2026<stdout>:{line}" for at, line in enumerate(lines)]


def _dated_and_tagged(lines: list[str]) -> list[str]:
    return [
        f"Mon May  4 10:{at % 60:02}:12 2026[1,0]<stdout>:{one}" for at, one in enumerate(lines)
    ]


PREFIXES: dict[str, Callable[[list[str]], list[str]]] = {
    "prepended rank": _before("[0] "),
    "tagged output": _before("[1,0]<stdout>:"),
    "times of mpirun": _dated,
    "times and tags": _dated_and_tagged,
    "label of srun": _before("0: "),
    "clock": _clock,
    "iso time": _iso,
    "host": _before("node7: "),
    "build server": _build_server,
    "container": _before("worker-1  | "),
}


def _painted(lines: list[str]) -> list[str]:
    return [f"{_PAINT[at % 3]}{line}\x1b[0m\x1b[K" for at, line in enumerate(lines)]


def _as_html(lines: list[str]) -> list[str]:
    body = [html.escape(line).replace("  ", "&nbsp; ") + "<br>" for line in lines]
    return ["<p>Hello, here is what I measured:", "<pre>", *body, "</pre>"]


def _overwritten(lines: list[str]) -> list[str]:
    return [
        f"  10 %\r  55 %\r{line}" if line and at % 5 == 3 else line for at, line in enumerate(lines)
    ]


def _prologue(lines: list[str]) -> list[str]:
    said = "NCCL INFO Channel 00/32 : 0[0] -> 1[1] via P2P/CUMEM/read"
    return [*(f"n{at}:{4000 + at}:41 [{at % 8}] {said}" for at in range(3000)), *lines]


FORMS: dict[str, Callable[[list[str]], list[str]]] = {
    **PREFIXES,
    "html": _as_html,
    "colours": _painted,
    "quoted": _before("> > "),
    "overwritten": _overwritten,
    "long prologue": _prologue,
    "line ends of Windows": lambda lines: [f"{line}\r" for line in lines],
    "prologue with times": lambda lines: _clock(_prologue(lines)),
}


def outcome(content: bytes, kind: TraceKind | None) -> Reading | str:
    """The reading without what was removed, or why there is none. Of notices the codes are kept:
    lines further down have other numbers.
    """
    try:
        reading = read(content, kind=kind)
    except SluiceError as refusal:
        return str(refusal)
    kept = tuple(pair for pair in reading.understood if pair[0] not in _ADDED)
    codes = tuple(Notice(notice.code, "") for notice in reading.notices)
    return replace(reading, understood=kept, notices=codes)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_a_file_reads_the_same_in_every_form(name: str, form: str) -> None:
    """The same trace, the same words about it, and the same refusal."""
    if form == "html" and name.endswith(".html"):
        return
    lines = content_of(name).decode().split("\n")
    end = [lines.pop()] if not lines[-1] else []
    content = "\n".join([*FORMS[form](lines), *end]).encode()
    for kind in (None, TraceKind.INDIRECT):
        plain, formed = outcome(content_of(name), kind), outcome(content, kind)
        if isinstance(plain, Reading):
            assert formed == plain, kind
        else:
            assert isinstance(formed, str), kind


# Of lines `number` of a log, each with the text behind it.
LOGS: dict[str, Callable[[int, str], str]] = {
    "gitlab": lambda at, line: f"2026-05-04T10:11:12.{at:06}Z 01O {line}",
    "github": lambda at, line: f"bench\tRun it\t2026-05-04T10:11:12.{at:07}Z {line}",
    "teamcity": lambda at, line: f"[10:11:{at:02}] :\t [Step 1/1] {line}",
    "kubectl": lambda at, line: f"[pod/osu-launcher-x/osu] {line}",
    "container runtime": lambda at, line: f"2026-05-04T10:11:12.{at:09}+00:00 stdout F {line}",
    "torchrun": lambda at, line: f"[default0]:{line}",
    "ray": lambda at, line: f"(worker pid=123, ip=10.0.0.2) {line}",
    "prte": lambda at, line: f"[prterun-n1-77@1,0]<stdout>: {line}",
    "system log": lambda at, line: f"May  4 10:11:{at:02} n1 osu[123]: {line}",
    "months": lambda at, line: f"May 04 10:11:{at:02} {line}",
    "date": lambda at, line: f"Mon May  4 10:11:{at:02} UTC 2026 {line}",
    "kernel": lambda at, line: f"[   12.{at:06}] {line}",
    "level": lambda at, line: f"2026-05-04 10:11:12,{at:03} - INFO - {line}",
    "month first": lambda at, line: f"05/04/2026 10:11:{at:02} {line}",
    "day first": lambda at, line: f"[4.5.2026 10:11:{at:02}] {line}",
    "logger": lambda at, line: f"2026-05-04 10:11:12,{at:03} - bench.osu - INFO - {line}",
    "loguru": lambda at, line: f"2026-05-04 10:11:12.{at:03} | INFO     | a.b:<module>:7 - {line}",
    "glog": lambda at, line: f"I0504 10:11:12.{at:06}   47 run.cpp:513] {line}",
    "glog of a year": lambda at, line: f"I20260504 10:11:12.{at:06} 47 src/run.cc:513] {line}",
    "seconds": lambda at, line: f"1777889472.{at:06} {line}",
    "milliseconds": lambda at, line: f"1777889472{at:03} {line}",
    "twelve hours": lambda at, line: f"10:11:{at:02} AM {line}",
    "padded": lambda at, line: f" 0: {line}",
    "numbers of lines": lambda at, line: f"{at + 10}:{line}",
    "file and numbers": lambda at, line: f"run.log:{at + 10}:{line}",
    "address": lambda at, line: f"10.0.0.7: {line}",
    "every other": lambda at, line: line if at % 2 else f"[1,0]<stdout>:{line}",
    "escape lost": lambda at, line: f"[32m{line}[0m",
}
_SIZES = (1, 2, 7, 10, 12, 64, 99, 200, 1024, 1999, 2000, 2026, 2048, 4096, 65536, 1048576)


@pytest.mark.parametrize("log", LOGS)
def test_no_size_is_taken_for_a_part_of_a_prefix(log: str) -> None:
    """Whatever number stands behind it."""
    rows = [f"{size}    {2.0 + size / 1000:.2f}" for size in _SIZES]
    lines = ["# OSU MPI Latency Test v7.2", "# Size     Latency (us)", *rows]
    plain = read("".join(f"{line}\n" for line in lines).encode())
    logged = "".join(f"{LOGS[log](at, line)}\n" for at, line in enumerate(lines))
    reading = read(logged.encode())
    assert reading.trace == plain.trace
    assert len(reading.trace) == len(_SIZES)
    assert PREFIX in dict(reading.understood)


REFUSED = ("osu-bibw.txt", "perftest-bidirectional.txt", "perftest-cycles.txt")
_NOISE = "local address: LID 1\nremote address: LID 2\nDevice: mlx5_0\n[0] start\n0: start\n"


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_stays_refused_beside_other_lines(name: str) -> None:
    """No line that says why is lost with the prefixes of others."""
    plain = outcome(content_of(name), None)
    assert isinstance(plain, str)
    assert outcome(_NOISE.encode() * 3 + content_of(name), None) == plain.replace(
        "line 1:", "line 16:"
    ).replace("line 2:", "line 17:")
