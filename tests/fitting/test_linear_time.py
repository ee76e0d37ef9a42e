"""No line of a file holds a reader: the time of a pattern and of a reader grows with its length."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

import domain.units
import fitting
from domain.conditions import RowChoice
from domain.measurement import Reading
from fitting.contract import ReaderSpec
from fitting.detect import READERS, header_hint, nearest_formats, read_recognised
from fitting.plain_text import KINDS
from tests.fitting.crafted_lines import SHAPES, Crafted, crafted_for, grows_too_fast

_METHODS = {one: one for one in ("search", "match", "fullmatch", "sub", "split", "findall")}
_HEADS = (
    *("", "8,", "message_bytes,a_us\n8,", "message_bytes,latency_us\n8,"),
    *("message,fragment,a_begin_ns,a_us\n8,", "# Size  Latency (us)\n8 "),
)
_WRAPPED = (
    *("0: x\n", "[0] x\n", "node7: x\n", "09:15:22 x\n", "[1,0]<stdout>:", "a: 1\n", "b:", "1:\n"),
    *("2026-05-04T10:11:12Z x\n", "(pid=1) x\n", "w | x\n", "May  4 10:11:12 h p[1]: x\n"),
    *("\x1b[0m", "\x1b]", "\x1b", "a\r", "<td>", "<br>", "<br>1", "&gt;", "> ", "&#1;", "[32m"),
    *("size,duration\n", "MPI_Send,", "1 1.0 0.1\n", "bytes,a_us\n", "\n# OSU a", "[", "(", "  "),
)
_BEGINNINGS = (
    *("BlkSize (B)   Batch   BW (GB/s)   ", "Test completed: duration 10.0", "Worker 1"),
    *("./transfer_engine_bench --block_size=", "transfer_engine_bench \\\n", "threads=1 "),
    *(
        "collective, gpus, size, ",
        '{"inPlace":0, "redop":"sum", "busBw":1, ',
        "run(), common.cu:1, ",
    ),
    *("# size count type time hipevt ", "# size n PRTT(1,0,s) PRTT(n,0,s) ", "1 1000 "),
)
_MEGABYTE = 2**20
_LINES = [Crafted(head, shape, "x\n") for head in _HEADS for shape in SHAPES]


def _modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(fitting.__path__, "fitting.")
    return [domain.units, *(importlib.import_module(one.name) for one in found)]


def _patterns() -> Iterator[tuple[re.Pattern[str], str, str]]:
    """Each compiled pattern of text, the module and the name that it has there."""
    for module in _modules():
        for name, value in vars(module).items():
            parts = value if isinstance(value, tuple) else (value,)
            flat = [one for part in parts for one in (part if isinstance(part, tuple) else (part,))]
            for one in flat:
                if isinstance(one, re.Pattern) and isinstance(one.pattern, str):
                    yield one, module.__name__, name


def _uses() -> dict[tuple[re.Pattern[str], str], str]:
    """Patterns and how they are tried, with where they stand."""
    found = dict[tuple[re.Pattern[str], str], str]()
    for pattern, module, name in _patterns():
        source = Path(str(importlib.import_module(module).__file__)).read_text()
        for method in sorted(set(re.findall(rf"\b{re.escape(name)}\.([a-z]+)\(", source))):
            if method in _METHODS:
                found[pattern, _METHODS[method]] = f"{module}.{name}"
    for reader in READERS:
        for mark in reader.marks:
            found[mark.pattern, "search"] = f"a mark of {reader.format}"
    return found


_USES = _uses()


@pytest.mark.parametrize(
    ("pattern", "method"), _USES, ids=[f"{where}-{of[1]}" for of, where in _USES.items()]
)
def test_a_pattern_takes_time_in_proportion_to_a_line(
    pattern: re.Pattern[str], method: str
) -> None:
    tried = partial(pattern.sub, "") if method == "sub" else getattr(pattern, method)
    slow = [line.of(3) for line in crafted_for(pattern) if grows_too_fast(tried, line, 300)]
    assert not slow, pattern.pattern


@pytest.mark.parametrize("reader", READERS, ids=[one.format for one in READERS])
def test_a_reader_takes_time_in_proportion_to_a_line(reader: ReaderSpec) -> None:
    def read(text: str) -> Reading:
        return reader.read(text.encode(), None)

    for line in _LINES:
        assert not grows_too_fast(reader.detects, line, 1000), line
        assert not grows_too_fast(read, line, 1000), line


def test_what_nothing_recognises_takes_time_in_proportion_to_a_line() -> None:
    def nearest(text: str) -> object:
        return nearest_formats(text, READERS)

    def recognised(text: str) -> Reading:
        return read_recognised(text.encode(), None)

    for line in _LINES:
        for work in (nearest, header_hint, recognised):
            assert not grows_too_fast(work, line, 1000), line


def _recognised(text: str) -> Reading:
    return read_recognised(text.encode(), None)


def _recognised_as_told(text: str) -> Reading:
    return read_recognised(text.encode(), None, RowChoice(test="osu_latency"))


@pytest.mark.parametrize("head", ["", "0: 1\n0: 2\n", "<br>\n", "\x1b[0m\n"])
def test_what_is_around_lines_takes_time_in_proportion_to_it(head: str) -> None:
    for piece in _WRAPPED:
        line = Crafted(head, piece, "x\n")
        assert not grows_too_fast(_recognised, line, 400), line


@pytest.mark.parametrize("piece", ["0: x\n", "[1,0]<stdout>:", "<br>1", "a\r", "\x1b]", "1 "])
def test_a_megabyte_takes_time_in_proportion(piece: str) -> None:
    line = Crafted("# OSU MPI Latency Test v7.2\n", piece, "\n")
    assert not grows_too_fast(_recognised, line, _MEGABYTE // 8 // len(piece))


@pytest.mark.parametrize("head", _BEGINNINGS)
def test_a_megabyte_behind_what_readers_look_for_takes_time_in_proportion(head: str) -> None:
    for piece in ("1 ", " ", "block_size=1 ", head):
        for work in (_recognised, _recognised_as_told):
            line = Crafted(head, piece, "\n")
            assert not grows_too_fast(work, line, _MEGABYTE // 8 // len(piece)), line


def test_many_runs_take_time_in_proportion_to_them() -> None:
    run = "# OSU MPI Latency Test v7.2\n# Size  Latency (us)\n1 2.0\n64 2.1\n4096 3.5\n"
    assert not grows_too_fast(_recognised, Crafted("", run, ""), 1000)


def test_prefixes_of_each_kind_take_time_in_proportion() -> None:
    for kind in KINDS:
        for pattern in (kind.pattern, kind.rest):
            if pattern is None:
                continue
            for line in crafted_for(pattern):
                assert not grows_too_fast(partial(pattern.sub, ""), line, 300), pattern.pattern


def test_a_slow_pattern_is_seen() -> None:
    slow = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
    assert any(grows_too_fast(slow.fullmatch, line, 300) for line in crafted_for(slow))
