"""Runs that did not end as they should: what the output of any tool says of it.

An abort, warnings, and rows that are cut off change no number that is read, but what it is worth:
sizes after an abort were not measured, and those before it may have been measured while something
was failing already. They are looked for in the whole text, whatever the format.

Cost    linear in the text: a search for each phrase.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from domain.measurement import Reading
from domain.solution import Notice
from fitting.readers.text import LEFT_OUT

# As launchers, schedulers, libraries and the tools themselves print them.
_ABORTS = (
    *("BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", "KILLED BY SIGNAL"),
    *("MPI_ABORT was invoked", "called MPI_Abort", "Fatal error in", "MPI_ERRORS_ARE_FATAL"),
    *("noticed that process rank", "exited on signal", "exited with non-zero status"),
    *("terminated normally, but", "Exited with exit code", "srun: error:", "slurmstepd: error:"),
    *("DUE TO TIME LIMIT", "oom-kill", "Segmentation fault", "Bus error", "core dumped"),
    *("Process received signal", "terminate called after", "Traceback (most recent call last)"),
    *("Test NCCL failure", "Test CUDA failure", "NCCL failure", "CUDA error"),
    *("Completion with error", "Failed to complete run", "iperf3: error", "fio: terminating"),
)
_WARNING = re.compile(r"(?<![\w=-])(?:WARN|WARNING|[Ww]arning)(?=[:\] \t][^\n]{0,2}[^\s])")
_CUT_OFF = re.compile(r"([0-9]{1,9}) [^;]{0,80}cut off")
_MAX_COUNTED = 50
_OWN_FORMATS = ("direct CSV", "message CSV", "signature CSV", "JSON")


def odd_run_notices(reading: Reading, text: str) -> Iterator[Notice]:
    """Yield what a user must see of the run that this text is of."""
    if reading.format in _OWN_FORMATS:
        return  # rows of these formats alone are read, and every other line is refused
    if (aborted := abort_in(text)) is not None:
        line, words = aborted
        yield Notice(
            "run_aborted",
            f'the run was aborted: line {line} says "{words}"; larger sizes may be missing, and '
            "what was measured before may have been disturbed already",
            values=(("line", float(line)),),
        )
    if warnings := [found.start() for found in _WARNING.finditer(text)]:
        lines = sorted({text.count("\n", 0, place) + 1 for place in warnings[:_MAX_COUNTED]})
        more = " or more" if len(warnings) > _MAX_COUNTED else ""
        are = "line is a warning" if len(lines) == 1 else "lines are warnings"
        yield Notice(
            "tool_warned",
            f"{len(lines)}{more} {are}, the first of them line {lines[0]}: times may be off by "
            "what it says",
            values=(("rows", float(len(lines))), ("line", float(lines[0]))),
        )
    if found := _CUT_OFF.findall(dict(reading.understood).get(LEFT_OUT, "")):
        count = sum(map(int, found))
        are = "row is" if count == 1 else "rows are"
        yield Notice(
            "rows_cut_off",
            f"{count} {are} cut off, or no row of numbers, and left out: see that the file is "
            "whole",
            values=(("rows", float(count)),),
        )


def abort_in(text: str) -> tuple[int, str] | None:
    """Return the first line that says that the run was aborted, and its phrase; None for none."""
    found = [(place, words) for words in _ABORTS if (place := text.find(words)) >= 0]
    if not found:
        return None
    place, words = min(found)
    return text.count("\n", 0, place) + 1, words
