"""sluice_trace.h: what a mover logs is what `sluice fit` reads; threads, rings, compilers."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from fitting import fit, read
from tests.clients.c_support import (
    ADDRESSES,
    CLIENT,
    COMPILERS,
    THREADS,
    WARNINGS,
    require,
    require_compiler,
    run,
)

INCLUDE = f"-I{CLIENT / 'include'}"
POSIX = "-D_POSIX_C_SOURCE=200809L"
THREADED = r"""
#define SLUICE_TRACE_IMPLEMENTATION
#include <sluice_trace.h>
#include <pthread.h>

#define EVENTS 62500

static void *move(void *unused)
{
    for (uint64_t i = 0; i < EVENTS; i++) {
        SLUICE_TRACE_BEGIN(first);
        SLUICE_TRACE_END(first, 64 << (i % 3));
        SLUICE_TRACE_BEGIN(second);
        SLUICE_TRACE_END(second, 64 << (i % 3));
    }
    return unused;
}

int main(int count, char **words)
{
    pthread_t threads[8];
    (void)count;
    for (int i = 0; i < 8; i++)
        if (pthread_create(&threads[i], NULL, move, NULL) != 0)
            return 2;
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    return sluice_trace_write(words[1]);
}
"""
LITTLE = r"""
#define SLUICE_TRACE_EVENTS 4u
#define SLUICE_TRACE_IMPLEMENTATION
#include <sluice_trace.h>

int main(int count, char **words)
{
    (void)count;
    for (int i = 1; i <= 7; i++) {
        SLUICE_TRACE_BEGIN(only);
        SLUICE_TRACE_END(only, i);
    }
    if (sluice_trace_write(words[1]) != 0)
        return 1;
    return sluice_trace_write("/no/such/folder/x") == ENOENT ? 0 : 2;
}
"""
OFF = r"""
#define SLUICE_TRACE_OFF
#include <sluice_trace.h>

int main(void)
{
    SLUICE_TRACE_BEGIN(nothing);
    SLUICE_TRACE_END(nothing, 1);
    return 0;
}
"""


def built(folder: Path, source: str, *options: str, compiler: str = "gcc") -> Path:
    """A program of this text."""
    (folder / "program.c").write_text(source)
    program = folder / "program"
    compiles = require_compiler(compiler, options)
    command = [compiles, "-std=c11", *WARNINGS, POSIX, INCLUDE, *options]
    run([*command, folder / "program.c", "-pthread", "-o", program])
    return program


def rows_of(file: Path) -> tuple[list[str], list[list[str]]]:
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    header, *rows = csv.reader(lines)
    return header, rows


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("language", [("-std=c11",), ("-x", "c++", "-std=c++17")])
def test_the_example_is_fitted(tmp_path: Path, compiler: str, language: tuple[str, ...]) -> None:
    """Its stages in the order in which they begin, every size as often as it was sent."""
    source = CLIENT / "examples" / "traced.c"
    command = [require_compiler(compiler, language), *language, "-O2", *WARNINGS, INCLUDE, source]
    link = ["-lstdc++"] if "c++" in language else []
    run([*command, *link, "-o", tmp_path / "traced"])
    run([tmp_path / "traced", tmp_path / "stages.csv"])
    header, rows = rows_of(tmp_path / "stages.csv")
    assert header == ["message_bytes", "repetition", "copy_us", "checksum_us"]
    sizes = [4**power for power in range(3, 10)]
    assert [int(row[0]) for row in rows] == [size for size in sizes for _ in range(30)]
    assert [int(row[1]) for row in rows] == [*range(30)] * len(sizes)
    assert all(float(cell) >= 0.0 for row in rows for cell in row[2:])
    found = fit([read((tmp_path / "stages.csv").read_bytes())])
    assert [stage.name for stage in found.stages] == ["copy", "checksum"]


def test_eight_threads_without_a_race(tmp_path: Path) -> None:
    """A million events under ThreadSanitizer: every pair of both stages is a row."""
    program = built(tmp_path, THREADED, "-DSLUICE_TRACE_EVENTS=131072u", *THREADS, compiler="clang")
    run([program, tmp_path / "stages.csv"])
    header, rows = rows_of(tmp_path / "stages.csv")
    assert header[2:] == ["first_us", "second_us"]
    assert len(rows) == 8 * 62_500
    assert {row[0] for row in rows} == {"64", "128", "256"}


def test_a_full_ring_keeps_the_newest_and_says_so(tmp_path: Path) -> None:
    """A file that cannot be made is an errno."""
    program = built(tmp_path, LITTLE, *ADDRESSES)
    run([program, tmp_path / "stages.csv"])
    _, rows = rows_of(tmp_path / "stages.csv")
    assert [row[0] for row in rows] == ["4", "5", "6", "7"]
    assert "# 3 older events were lost: a ring holds 4" in (tmp_path / "stages.csv").read_text()


def test_switched_off_it_is_nothing(tmp_path: Path) -> None:
    run([built(tmp_path, OFF, "-O2")])


def test_the_bench_says_what_an_event_costs(tmp_path: Path) -> None:
    source = CLIENT / "bench" / "trace_bench.c"
    run([require("gcc"), "-std=c11", "-O2", *WARNINGS, INCLUDE, source, "-o", tmp_path / "bench"])
    printed = run([tmp_path / "bench"])
    assert printed.startswith("two readings ")
    assert "beyond " in printed
