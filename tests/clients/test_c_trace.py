"""sluice_trace.h: what a mover logs is what `sluice fit` reads; threads, rings, compilers."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from domain.measurement import DirectTrace
from domain.traced_events import TracedEvents
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
    SLUICE_TRACE_END_OF(nothing, 1, 2, 3);
    return 0;
}
"""

NUMBERED = r"""
#define SLUICE_TRACE_IMPLEMENTATION
#include <sluice_trace.h>
#include <pthread.h>

#define FRAGMENTS 20000u

static void *second(void *unused)
{
    for (uint64_t i = 0; i < FRAGMENTS; i++) {
        SLUICE_TRACE_BEGIN(second);
        SLUICE_TRACE_END_OF(second, 64u << (i % 3), i / 100, i % 100);
    }
    return unused;
}

int main(int count, char **words)
{
    pthread_t thread;
    (void)count;
    if (pthread_create(&thread, NULL, second, NULL) != 0)
        return 2;
    for (uint64_t i = FRAGMENTS; i-- > 0;) {
        SLUICE_TRACE_BEGIN(first);
        SLUICE_TRACE_END_OF(first, 64u << (i % 3), i / 100, i % 100);
    }
    pthread_join(thread, NULL);
    return sluice_trace_write(words[1]);
}
"""
WORKED = r"""
#define SLUICE_TRACE_IMPLEMENTATION
#include <sluice_trace.h>

int main(int count, char **words)
{
    const struct timespec nap = {0, 1000};
    (void)count;
    for (uint64_t i = 0; i < 8; i++) {
        SLUICE_TRACE_BEGIN(napping);
        nanosleep(&nap, NULL);
        SLUICE_TRACE_END_OF(napping, 64, i / 4, i % 4);
    }
    return sluice_trace_write(words[1]);
}
"""
REPEATED = r"""
#define SLUICE_TRACE_IMPLEMENTATION
#include <sluice_trace.h>

int main(int count, char **words)
{
    (void)count;
    for (uint64_t i = 0; i < 4; i++) {
        SLUICE_TRACE_BEGIN(one);
        SLUICE_TRACE_END_OF(one, 64, 7, i / 2);
        if (i == 3)
            continue;
        SLUICE_TRACE_BEGIN(two);
        SLUICE_TRACE_END_OF(two, 32, 7, i);
    }
    if (sluice_trace_write(words[1]) != 0)
        return 1;
    SLUICE_TRACE_BEGIN(one);
    SLUICE_TRACE_END_OF(one, 64, 7, 0);
    SLUICE_TRACE_BEGIN(two);
    SLUICE_TRACE_END(two, 64);
    return sluice_trace_write(words[2]);
}
"""
NEVER = "-DSLUICE_TRACE_LONG_NS=1000000000000000000u"


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


def events_of(file: Path) -> TracedEvents:
    trace = read(file.read_bytes()).trace
    assert isinstance(trace, DirectTrace)
    assert trace.events is not None
    return trace.events


@pytest.mark.parametrize("options", [ADDRESSES, THREADS, ("-O2",)])
def test_begins_are_joined_by_number(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Two threads, one of which has the fragments backwards."""
    run([built(tmp_path, NUMBERED, *options, compiler="clang"), tmp_path / "stages.csv"])
    header, rows = rows_of(tmp_path / "stages.csv")
    assert header[:4] == ["message_bytes", "repetition", "message", "fragment"]
    assert sorted(header[4:]) == sorted(
        f"{stage}_{column}" for stage in ("first", "second") for column in ("us", *NEW)
    )
    numbers = [(int(row[2]), int(row[3])) for row in rows]
    assert numbers == [(message, part) for message in range(200) for part in range(100)]
    assert [int(row[0]) for row in rows] == [64 << (i % 3) for i in range(20_000)]
    repetitions = [[int(row[1]) for row in rows if row[0] == size] for size in ("64", "128", "256")]
    assert repetitions == [list(range(len(one))) for one in repetitions]
    events = events_of(tmp_path / "stages.csv")
    begins = dict(zip(events.stages, events.begin_ns, strict=True))
    assert list(begins["first"]) == sorted(begins["first"], reverse=True)
    assert list(begins["second"]) == sorted(begins["second"])
    assert min(map(min, begins.values())) == 0


NEW = ("begin_ns", "busy_ns")


def test_a_lost_event_leaves_its_fields_empty(tmp_path: Path) -> None:
    """Rings that are too small lose the one's last fragments and the other's first ones."""
    program = built(tmp_path, NUMBERED, "-O2", "-DSLUICE_TRACE_EVENTS=16384u")
    run([program, tmp_path / "stages.csv"])
    events = events_of(tmp_path / "stages.csv")
    assert len(events) == 20_000
    assert events.missing == 2 * (20_000 - 16_384)
    first, second = (events.begin_ns[events.stages.index(one)] for one in ("first", "second"))
    assert all(begin >= 0 for begin in first[:16_384])
    assert all(begin < 0 for begin in first[16_384:])
    assert [begin < 0 for begin in second] == [True] * 3_616 + [False] * 16_384


@pytest.mark.parametrize("compiler", COMPILERS)
def test_processor_time_is_read_of_long_stages(tmp_path: Path, compiler: str) -> None:
    """From a stage's second event on, which is the first of which a long one before is known."""
    options = ("-O2", "-DSLUICE_TRACE_LONG_NS=1000u")
    run([built(tmp_path, WORKED, *options, compiler=compiler), tmp_path / "stages.csv"])
    assert [busy >= 0 for busy in events_of(tmp_path / "stages.csv").busy_ns[0]] == [False] + (
        [True] * 7
    )
    run([built(tmp_path, WORKED, "-O2", NEVER, compiler=compiler), tmp_path / "stages.csv"])
    assert set(events_of(tmp_path / "stages.csv").busy_ns[0]) == {-1}


def test_of_short_stages_it_is_read_once_a_message(tmp_path: Path) -> None:
    """Where the last reading is long enough ago: here the first event of message 1 asks for it."""
    asked = "#define SLUICE_TRACE_LONG_NS (end_ns - begin_ns + 1u)\n"
    run([built(tmp_path, asked + WORKED, "-O2"), tmp_path / "stages.csv"])
    read_of = [busy >= 0 for busy in events_of(tmp_path / "stages.csv").busy_ns[0]]
    assert read_of == [False] * 5 + [True] + [False] * 2


def test_a_fragment_that_a_stage_has_twice(tmp_path: Path) -> None:
    """The first one counts; the file says so. Events without numbers have today's table."""
    program = built(tmp_path, REPEATED, *ADDRESSES)
    run([program, tmp_path / "stages.csv", tmp_path / "mixed.csv"])
    _, rows = rows_of(tmp_path / "stages.csv")
    assert [row[:4] for row in rows] == [
        ["64", "0", "7", "0"],
        ["64", "1", "7", "1"],
        ["32", "0", "7", "2"],
    ]
    said = (tmp_path / "stages.csv").read_text()
    assert "# 2 events are left out: their stage had the fragment before" in said
    header, rows = rows_of(tmp_path / "mixed.csv")
    assert header == ["message_bytes", "repetition", "one_us", "two_us"]
    assert len(rows) == 1
    assert "# no begins: 1 of 2 events have no number" in (tmp_path / "mixed.csv").read_text()


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("language", [("-std=c11",), ("-x", "c++", "-std=c++17")])
def test_the_example_with_begins(tmp_path: Path, compiler: str, language: tuple[str, ...]) -> None:
    """No event of its 48 messages is missing, and encoding begins when the sum has ended."""
    source = CLIENT / "examples" / "overlapped.c"
    command = [require_compiler(compiler, language), *language, "-O2", *WARNINGS, INCLUDE, source]
    link = ["-lstdc++"] if "c++" in language else []
    run([*command, *link, "-pthread", "-o", tmp_path / "overlapped"])
    run([tmp_path / "overlapped", tmp_path / "stages.csv"])
    found = fit([read((tmp_path / "stages.csv").read_bytes())])
    assert [stage.name for stage in found.stages] == ["checksum", "encode"]
    assert found.events is not None
    assert (len(found.events), found.events.missing) == (8 * (256 + 128 + 64 + 32 + 16 + 8), 0)
    ends = zip(found.events.end_ns[0], found.events.begin_ns[1], strict=True)
    assert all(end <= begin for end, begin in ends)


def test_switched_off_it_is_nothing(tmp_path: Path) -> None:
    run([built(tmp_path, OFF, "-O2")])


def test_the_bench_says_what_an_event_costs(tmp_path: Path) -> None:
    source = CLIENT / "bench" / "trace_bench.c"
    run([require("gcc"), "-std=c11", "-O2", *WARNINGS, INCLUDE, source, "-o", tmp_path / "bench"])
    printed = run([tmp_path / "bench"])
    assert printed.startswith("two readings ")
    assert "with numbers and begins " in printed
    assert printed.count("beyond ") == 2
