"""Copies to, from and within devices: nvbandwidth, and bandwidthTest of the CUDA samples.

    $ nvbandwidth -b 64 -t host_to_device_memcpy_ce
    Running host_to_device_memcpy_ce.
    memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
               0         1
     0     55.63     55.64

With --json the same matrices are in a document, as texts: `bandwidth_matrix` of its `testcases`.
nvbandwidth does not print the size of its buffer: it is that of the command in the log, in MiB
(-b), 512 where it names none. GB/s are 10^9 bytes. Each test is a stage, and each pair of devices a
sample. Tests of both directions or of all devices at once share what is measured, and are left out.

    Host to Device Bandwidth, 1 Device(s)
       Transfer Size (Bytes)        Bandwidth(GB/s)
       32000000                     12.3

bandwidthTest prints the size; GB/s are 10^9 bytes, MB/s of earlier versions 2^20. Either prints one
size a run: put the logs of several together, or pass several files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

from domain.measurement import Reading, Samples, TraceKind
from fitting.contract import ReaderSpec, mark
from fitting.readers.stage_rows import StageRows
from fitting.readers.text import (
    Line,
    check_kind,
    format_left_out,
    format_sizes,
    lines_of,
    number_of,
    refuse,
    size_of,
)
from fitting.readers.tool_json import documents_of, part, parts

NVBANDWIDTH_FORMAT, CUDA_FORMAT = "nvbandwidth", "CUDA bandwidthTest"
_COMMAND = re.compile(r"(?:^|[/\s])nvbandwidth(?:\s+(-.{0,300}))?$")
_BUFFER = re.compile(r"(?:^|\s)(?:-b|--bufferSize)[ =]?([0-9]{1,9})(?=\s|$)")
_RUNNING = re.compile(r"^Running ([a-z0-9_]{1,60})\.?$")
_NAME = re.compile(r"[a-z0-9_]{1,60}")
_KEY = b'"bandwidth_matrix"'
_MATRIX = re.compile(r"bandwidth \(GB/s\)$")
_SHARED = re.compile(r"bidir|all_to|_to_all|broadcast|multinode")
_DEFAULT_MIB = 512
_SECTION = re.compile(r"^(Host|Device) to (Host|Device) Bandwidth, ([0-9]{1,3}) Device")
_HEADER = re.compile(r"^Transfer Size \(Bytes\)\s+Bandwidth\s*\((GB|MB)/s\)$")
_BYTES = {"GB": 1e9, "MB": 2.0**20}
_US_PER_S = 1e6


@dataclass(slots=True)
class _Output:
    """What was read of a file so far."""

    rows: StageRows = field(default_factory=StageRows)
    left_out: dict[str, None] = field(default_factory=dict)
    units: dict[str, None] = field(default_factory=dict)
    without_size: int = 0
    _size: int | None = None
    _test: str = ""
    _in_matrix: bool = False
    _scale: float = 0.0
    _matrix: tuple[str, int] = ("", 0)  # of which the rows before were

    def take_matrix(self, line: Line) -> None:
        """Read one line of nvbandwidth."""
        if command := _COMMAND.search(line.text):
            named = _BUFFER.search(command.group(1) or "")
            self._size = (int(named.group(1)) if named else _DEFAULT_MIB) << 20
            self._test = ""
        elif running := _RUNNING.match(line.text):
            self._test, self._in_matrix = running.group(1), False
            self._matrix = "", 0
            if _SHARED.search(self._test):
                self.left_out[f"{self._test}: several copies at once"] = None
                self._test = ""
        elif _MATRIX.search(line.text):
            self._in_matrix = True
            if self._test and self._size is None:
                self.without_size += 1
        elif self._in_matrix and line.text[0].isdigit():
            self._matrix_row(line)
        elif self._in_matrix:
            self._test, self._in_matrix = "", False

    def _matrix_row(self, line: Line) -> None:
        # The first row counts the columns; whole numbers in order are no bandwidths.
        if line.fields == [str(at) for at in range(len(line.fields))] or not self._test:
            return
        if self._size is not None:
            words = line.fields[1:] if line.is_whole else line.fields[1:-1]
            self._take_bandwidths(self._test, self._size, words)

    def take_document(self, tests: list[dict[str, Any]]) -> None:
        """Read the tests of one document of nvbandwidth --json, after the command above it."""
        for test in tests:
            name, rows = test.get("name"), test.get("bandwidth_matrix")
            if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(rows, list):
                continue
            if not str(test.get("bandwidth_description", "")).endswith("bandwidth (GB/s)"):
                self.left_out[f"{name}: no bandwidth"] = None
            elif _SHARED.search(name):
                self.left_out[f"{name}: several copies at once"] = None
            elif self._size is None:
                self.without_size += 1
            else:
                self._matrix = "", 0
                cells = [cell for row in rows if isinstance(row, list) for cell in row]
                self._take_bandwidths(name, self._size, map(str, cells))

    def _take_bandwidths(self, test: str, size: int, words: Iterable[str]) -> None:
        part = self.rows.of(test)
        if (test, size) != self._matrix:
            part.begin_size(size)
        self._matrix = test, size
        for word in words:
            value = number_of(word)
            if value is None and word != "N/A":
                part.leave_out("cut off or not a number")
            elif value and isfinite(value):
                part.add(size, size / (value * 1e9) * _US_PER_S)

    def take_section(self, line: Line) -> None:
        """Read one line of bandwidthTest."""
        if section := _SECTION.match(line.text):
            source, target, devices = section.groups()
            self._test, self._scale = f"{source}_to_{target}".lower(), 0.0
            if devices != "1":
                self.left_out[f"{self._test} of {devices} devices: several copies at once"] = None
                self._test = ""
        elif header := _HEADER.match(line.text):
            self._scale = _BYTES[header.group(1)]
            self.units[f"{header.group(1)}/s of {self._scale:.0f} bytes"] = None
        elif self._test and self._scale and line.text[0].isdigit():
            words = line.fields
            size = size_of(words[0])
            value = number_of(words[1]) if len(words) == 2 and line.is_whole else None
            part = self.rows.of(self._test)
            if size is None or value is None:
                part.leave_out("cut off or not a number")
            elif not 0.0 < value < inf:
                part.leave_out("of a bandwidth that was printed as 0")
            else:
                part.begin_size(size)
                part.add(size, size / (value * self._scale) * _US_PER_S)


def _read_matrices(content: bytes, kind: TraceKind | None) -> Reading:
    output = _Output()
    is_json = _KEY in content
    document: list[str] = []
    for line in lines_of(content):
        if is_json and not _COMMAND.search(line.text):
            document.append(line.text)
            continue
        _take_documents(output, document)
        output.take_matrix(line)
    _take_documents(output, document)
    if output.without_size:
        refuse(
            f"{output.without_size} tests of nvbandwidth without the size of the buffer, which it "
            "does not print: keep the command above them, as in: nvbandwidth -b 64 -t "
            "host_to_device_memcpy_ce"
        )
    stated = [("unit", "GB/s of 10^9 bytes"), ("statistic", "each pair of devices")]
    return _reading(NVBANDWIDTH_FORMAT, output, kind, stated)


def _take_documents(output: _Output, lines: list[str]) -> None:
    for document in documents_of("\n".join(lines)) if lines else ():
        output.take_document(parts(part(document, "nvbandwidth"), "testcases"))
    lines.clear()


def _read_sections(content: bytes, kind: TraceKind | None) -> Reading:
    output = _Output()
    for line in lines_of(content):
        output.take_section(line)
    stated = [("unit", ", ".join(output.units)), ("statistic", "as printed: the mean of a run")]
    return _reading(CUDA_FORMAT, output, kind, stated)


def _reading(
    format_name: str, output: _Output, kind: TraceKind | None, stated: list[tuple[str, str]]
) -> Reading:
    left_out = ", ".join(output.left_out)[:300]
    trace = output.rows.trace()
    if trace is None:
        refuse(f"no bandwidth of one copy at a time; left out are {left_out or 'none'}")
    check_kind(trace, kind, format_name)
    if left_out:
        stated.append(("tests_left_out", left_out))
    counted = format_sizes(Samples(trace.message_bytes, trace.stage_us[0]))
    rows_left_out = format_left_out(*output.rows.stages.values())
    head = [("format", format_name), ("measured", "size / bandwidth of copies after each other")]
    understood = (*head, *stated, *counted, *rows_left_out)
    return Reading(format_name, trace, understood, conditions=(output.rows.spans(),))


def _detects_matrices(head: str) -> bool:
    return "nvbandwidth" in head and "bandwidth (GB/s)" in head


def _detects_sections(head: str) -> bool:
    return "Transfer Size (Bytes)" in head and "Bandwidth, " in head


NVBANDWIDTH_SPEC = ReaderSpec(
    format=NVBANDWIDTH_FORMAT,
    about="nvbandwidth: a stage of copies a test",
    layout='"Running TEST.", then a matrix below "... bandwidth (GB/s)"; or the same by --json',
    marks=(
        mark("the command, nvbandwidth -b SIZE", r"\bnvbandwidth\b"),
        mark("a line that ends with bandwidth (GB/s)", r"bandwidth \(GB/s\)$"),
    ),
    detects=_detects_matrices,
    read=_read_matrices,
)
CUDA_SPEC = ReaderSpec(
    format=CUDA_FORMAT,
    about="bandwidthTest of the CUDA samples: stages of copies",
    layout='"Host to Device Bandwidth, 1 Device(s)", then "Transfer Size (Bytes)  Bandwidth(GB/s)"',
    marks=(
        mark("a title Host to Device Bandwidth", r"\b(Host|Device) to (Host|Device) Bandwidth,"),
        mark("a column Transfer Size (Bytes)", r"Transfer Size \(Bytes\)"),
    ),
    detects=_detects_sections,
    read=_read_sections,
)
