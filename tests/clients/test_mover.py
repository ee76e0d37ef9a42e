"""The mover: what its header says, under sanitizers; programs that all send first, and who dies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.clients.c_support import (
    ADDRESSES,
    COMPILERS,
    MOVER,
    TABLES,
    THREADS,
    WARNINGS,
    mover_archive,
    mover_library,
    mover_program,
    require,
    run,
)
from tests.support.counts import count, is_campaign

HEADER = (MOVER / "include" / "sluice_mover.h").read_text()
SANITIZERS = {
    "gcc": ("gcc", ("-O2",)),
    "gcc-addresses": ("gcc", ADDRESSES),
    "clang-threads": ("clang", THREADS),
}
SWAPS, KILLED, HOSTILE, HOSTILE_AT_ONCE = 10_000, 200, 1_000_000, 50_000
BYTES = 64 << 20 if is_campaign() else 1 << 20
MANY_TURNS = 20
LARGE = 2**32 + 1 if is_campaign() else 2**24 + 1
EXAMPLES = [TABLES / "v1" / f"{name}.slt" for name in ("worked-example", "aligned")]

each_build = pytest.mark.parametrize("build", SANITIZERS)


def built(name: str, build: str) -> Path:
    """A test program by this build."""
    compiler, options = SANITIZERS[build]
    return mover_program(f"tests/{name}", compiler=compiler, options=options)


def exchanged(how: str, build: str, *words: object) -> str:
    """How an exchange went: "ended ..." or "deadlock"."""
    return run([built("exchange", build), how, *words]).strip()


# --- the interface --------------------------------------------------------------------------------


def public_names() -> set[str]:
    """The functions that the header declares."""
    return set(re.findall(r"SLUICE_API [^;(]*?\b(sluice_mover_\w+)\(", HEADER))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_no_source_has_a_warning(compiler: str, tmp_path: Path) -> None:
    assert mover_archive(compiler, ("-O2",)).exists()
    others = [path for name in ("tests", "tool", "bench") for path in (MOVER / name).glob("*.c")]
    line = [require(compiler), "-std=c11", "-O2", *WARNINGS, f"-I{MOVER / 'include'}"]
    run([*line, f"-I{MOVER.parent / 'include'}", "-c", *others], cwd=tmp_path)
    assert len(others) >= 4


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_header_is_one_of_c_plus_plus_too(compiler: str, tmp_path: Path) -> None:
    """By itself, and read twice."""
    source = tmp_path / "reader.cpp"
    source.write_text(2 * "#include <sluice_mover.h>\n" + "int main() { return 0; }\n")
    line = [require(compiler), "-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    run(
        [
            *line,
            "-fsyntax-only",
            *(f"-I{path / 'include'}" for path in (MOVER, MOVER.parent)),
            source,
        ]
    )


def test_only_the_public_names_are_visible() -> None:
    """All of the header's, each with its version, and none of the library's own."""
    shown = run([require("nm"), "-D", "--defined-only", "--format=posix", mover_library()])
    names = {line.split()[0] for line in shown.splitlines()} - {"SLUICE_MOVER_0.1"}
    assert names == {f"{name}@@SLUICE_MOVER_0.1" for name in public_names()}
    listed, _ = (MOVER / "sluice_mover.map").read_text().split("local:")
    assert set(re.findall(r"^ +(sluice_\w+);", listed, re.MULTILINE)) == public_names()


def test_no_code_is_one_of_the_library() -> None:
    """A code says by itself whose it is."""
    own = dict(re.findall(r"(SLUICE_MOVER_(?:OK|E_\w+)) = (-?\d+)", HEADER))
    other = (MOVER.parent / "include" / "sluice.h").read_text()
    theirs = dict(re.findall(r"(SLUICE_E_\w+) = (-?\d+)", other))
    assert len(own) == 16
    assert not set(own.values()) & set(theirs.values())
    documented = (MOVER.parents[2] / "docs" / "mover.md").read_text()
    assert all(f"`{name}`" in documented for name in (*own, *public_names()))


# --- what must hold -------------------------------------------------------------------------------


@each_build
def test_every_function_does_what_it_says(build: str, tmp_path: Path) -> None:
    """Each function and each error; receives early, late and posted in every order."""
    assert "as documented" in run([built("unit", build), tmp_path, EXAMPLES[0]])


@pytest.mark.parametrize("processes", [2, 3, 5, 8])
@pytest.mark.parametrize("topology", ["ring", "all", "all+tcp"])
def test_all_may_send_before_any_receives(processes: int, topology: str) -> None:
    """Everybody waits for the sends first; nothing takes more memory than the budget and 1 MiB."""
    of_each = BYTES // (processes - 1)
    ended = exchanged("mover", "gcc", processes, topology, of_each, 16384, 4096)
    found = re.match(r"ended, (\d+) early bytes, (-?\d+) bytes beyond the budget", ended)
    assert found, ended
    assert int(found[2]) < 1 << 20


@each_build
def test_all_may_send_first_under_sanitizers(build: str) -> None:
    assert exchanged("mover", build, 3, "all", 200_000, 4608, 4096).startswith("ended")


@each_build
@pytest.mark.parametrize("processes", [2, 5])
def test_who_has_too_little_room_is_told(build: str, processes: int) -> None:
    """All are, none hangs, and once there are receives all arrives."""
    ended = exchanged("tight", build, processes, "all", 200_000, 8192, 4096)
    assert ended.startswith("ended")


def test_blocking_writes_do_deadlock() -> None:
    """The control experiment: without it the others would show nothing."""
    assert exchanged("blocking", "gcc", 2, "all", 400_000, 16384, 4096) == "deadlock"
    assert exchanged("blocking", "gcc", 3, "ring", 400_000, 16384, 4096) == "deadlock"
    assert exchanged("blocking", "gcc", 2, "all", 4000, 16384, 4096).startswith("ended")


@pytest.mark.parametrize("topology", ["all", "all+tcp"])
def test_the_discipline_stands_and_falls_with_its_fragments(topology: str) -> None:
    """Below what a channel holds it ends; at four times as much it hangs but for lucky turns."""
    usable = int(exchanged("usable", "gcc", 2, topology, 1, 16384, 4096))
    below = exchanged("discipline", "gcc", 2, topology, 400_000, 16384, usable // 8)
    assert below.startswith("ended")
    above = exchanged("discipline", "gcc", 2, topology, 4_000_000, 16384, 4 * usable, MANY_TURNS)
    assert above == "deadlock"


@each_build
def test_who_is_killed_fails_its_own_messages(build: str) -> None:
    """At a random time; the others are told, and nothing is lost or left behind."""
    times = count(KILLED, share=40 if build == "gcc" else 100)
    ended = exchanged("killed", build, 3, "all", 100_000, 4608, 4096, times, 3)
    noticed = re.match(r"ended, .*, noticed within ([0-9.]+) ms", ended)
    assert noticed, ended
    assert not is_campaign() or float(noticed[1]) <= 1000.0


def test_who_is_stopped_holds_nobody_up() -> None:
    assert exchanged("stopped", "gcc", 4, "all", 300_000, 4608, 4096).startswith("ended")


@pytest.mark.parametrize("build", [one for one in SANITIZERS if one != "gcc"])
def test_no_peer_can_hurt(build: str) -> None:
    """Frames that were changed, cut or drawn: every ticket ends, within the credit."""
    peers = count(HOSTILE, share=1000)
    for seed, done in enumerate(range(0, peers, HOSTILE_AT_ONCE), start=1):
        part = min(HOSTILE_AT_ONCE, peers - done)
        printed = run([built("hostile", build), str(part), str(seed)])
        assert printed.startswith(f"hostile: {part} peers; success: ")
        for word in ("gone", "broke the protocol", "longer than the buffer", "cancelled"):
            assert word in printed


@each_build
def test_a_message_keeps_the_cut_of_one_table(build: str) -> None:
    """While tables are swapped; both are seen."""
    swaps = count(SWAPS, share=20)
    printed = run([built("tables", build), *EXAMPLES, str(swaps)])
    found = re.match(rf"tables: {swaps} swaps during \d+ messages, (\d+) and (\d+) ", printed)
    assert found, printed
    assert int(found[1]) > 0
    assert int(found[2]) > 0


@each_build
def test_a_message_may_be_larger_than_its_fragments_can_count(build: str, tmp_path: Path) -> None:
    """2^32 + 1 bytes in a campaign."""
    printed = run([built("tables", build), "large", str(LARGE), tmp_path])
    assert printed.strip() == f"large: {LARGE} bytes in {-(-LARGE // (1 << 20))} fragments"


@pytest.mark.parametrize("build", [one for one in SANITIZERS if one != "gcc"])
def test_the_tool_is_clean(build: str) -> None:
    """Its five heat orders have the serial grid; exchanges, stages and a delayed way as well."""
    compiler, options = SANITIZERS[build]
    tool = mover_program("tool", compiler=compiler, options=options)
    sizes = ("--columns", "9", "--rows", "53", "--steps", "5", "--processes", "3")
    printed = run([tool, "heat", "all", *sizes, "--fragment", "24"])
    grids = [line.split(",")[-1] for line in printed.splitlines() if line[:1].islower()][1:]
    assert len(grids) == 6
    assert len(set(grids)) == 1
    once = ("--repetitions", "1")
    exchange = ("exchange", "all", "--bytes", "50000", "--calculation", "100", *once)
    for way in (("--tcp",), ("--delay", "500", "--buffer", "16384")):
        printed = run([tool, *exchange, *way])
        assert len(re.findall(r"^[a-z_]+,0,[0-9.]+$", printed, re.MULTILINE)) == 4
    words = ("--sizes", "100,5000", "--bytes", "5000", "--fragments", "1,3", "--pack", "1")
    assert "5000,3,0," in run([tool, "calibrate", *words, "--tcp", *once])
    for what, kinds in (("signals", 4), ("copies", 4), ("messages", 4)):
        rows = run([tool, "primitives", what, "--sizes", "8,100", "--tcp", *once]).splitlines()
        assert len(rows) == 1 + kinds


def test_valgrind_has_nothing_to_say() -> None:
    strict = ["--quiet", "--error-exitcode=9", "--leak-check=full"]
    hostile = mover_program("tests/hostile", compiler="gcc", options=("-O1", "-g"))
    assert "==" not in run([require("valgrind"), *strict, hostile, str(count(4000, share=20)), "5"])
