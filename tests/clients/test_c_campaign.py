"""The C library under sanitizers: mutated files, threads that read while tables are swapped."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest

from domain.problem import FragmentLimits
from exports.table.slt import encode
from tests.clients.c_support import (
    ADDRESSES,
    COMPILERS,
    TABLES,
    THREADS,
    program,
    require,
    run,
)
from tests.support.counts import count
from tests.support.plan_tables import GOLDEN, a_plan_table

MUTATED = 1_000_000  # files in a campaign
FUZZED = 10_000_000
FUZZED_AT_ONCE = 2_000_000
FUZZER = ("-O1", "-g", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all")
SWAPS = 10_000
READERS = 8
INTERLEAVED = 100_000
INTERLEAVED_AT_ONCE = 10_000


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Table files to mutate: the golden ones, and some of more fragments, with limits."""
    folder = tmp_path_factory.mktemp("seeds")
    limits = (
        FragmentLimits(alignment_bytes=64),
        FragmentLimits(max_fragments=40),
        FragmentLimits(min_fragment_bytes=1, alignment_bytes=3),
    )
    for number, limit in enumerate(limits):
        minimum = 64 * 20 + random.Random(number).randrange(500)
        blocks = [(minimum, minimum + 3000, 12), (minimum + 3001, minimum + 3002, 18)]
        table = a_plan_table(blocks, limits=limit, seed=number)
        data = encode(table, profile=f"seed-{number}", revision=1)
        (folder / f"{number}.slt").write_bytes(data)
    return [*(TABLES / "v1" / f"{name}.slt" for name in GOLDEN), *sorted(folder.iterdir())]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_mutated_files_are_refused_or_right(
    compiler: str, seeds: list[Path], tmp_path: Path
) -> None:
    """No report of AddressSanitizer or UBSan; every accepted file keeps what it promises."""
    mutate = program("tests/mutate", tmp_path, compiler=compiler, options=ADDRESSES)
    files = count(MUTATED, share=60)
    printed = run([mutate, str(files), "1", *seeds])
    done = re.match(rf"mutate: {files} files, (\d+) accepted", printed)
    assert done, printed
    assert int(done[1]) > files // 20
    refused = set(re.findall(r"x (-\d)", printed))
    assert {"-3", "-5", "-6", "-7"} <= refused


def test_a_checked_library_answers_or_refuses(seeds: list[Path], tmp_path: Path) -> None:
    """Also of bytes that are overwritten while it reads them, as those of a mapped file can be."""
    checked = (*ADDRESSES, "-DSLUICE_CHECKED")
    mutate = program("tests/mutate", tmp_path, compiler="gcc", options=checked)
    files = count(MUTATED, share=100)
    assert f"mutate: {files} files" in run([mutate, str(files), "2", *seeds])


def test_libfuzzer_finds_nothing(seeds: list[Path], tmp_path: Path) -> None:
    """It follows the branches that its files take, and so finds its own way."""
    made = program("tests/libfuzzer", tmp_path, compiler="clang", options=FUZZER)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(seeds):
        shutil.copy(seed, corpus / str(number))
    left, seed = count(FUZZED, share=100), 1
    artifacts = f"-artifact_prefix={tmp_path}/"
    while left:
        runs = min(left, FUZZED_AT_ONCE)
        printed = run([made, f"-runs={runs}", f"-seed={seed}", "-max_len=2000", artifacts, corpus])
        assert "DONE" in printed
        assert f"Done {runs} runs" in printed
        left, seed = left - runs, seed + 1


def test_a_seed_means_the_same_files(seeds: list[Path], tmp_path: Path) -> None:
    """What is found on one machine is found on another, and once more on the same."""
    made = [program("tests/mutate", tmp_path, compiler=compiler) for compiler in COMPILERS]
    printed = [run([mutate, "2000", "7", *seeds]) for mutate in (*made, *made)]
    assert printed == 2 * len(COMPILERS) * printed[:1]


def swaps_of(program_path: Path, swaps: int) -> int:
    """Run the program; how often its readers looked."""
    tables = [TABLES / "v1" / f"{name}.slt" for name in ("worked-example", "aligned")]
    damaged = TABLES / "malformed" / "damaged.slt"
    printed = run([program_path, *tables, damaged, str(swaps), str(READERS)])
    visits = re.search(rf"(\d+) visits by {READERS} others", printed)
    assert visits, printed
    return int(visits[1])


@pytest.mark.parametrize("compiler", COMPILERS)
def test_readers_see_whole_tables_while_they_are_swapped(compiler: str, tmp_path: Path) -> None:
    """Eight threads, ten thousand swaps, every one with its files given back."""
    made = program("tests/swaps", tmp_path, compiler=compiler)
    assert swaps_of(made, SWAPS) >= SWAPS


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("options", [THREADS, ADDRESSES], ids=["threads", "addresses"])
def test_swaps_race_with_nothing(compiler: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """ThreadSanitizer has no report, nor has AddressSanitizer."""
    made = program("tests/swaps", tmp_path, compiler=compiler, options=options)
    assert swaps_of(made, count(SWAPS)) >= count(SWAPS)


@pytest.mark.parametrize(
    ("compiler", "options"),
    [("gcc", ADDRESSES), ("clang", ADDRESSES), ("clang", THREADS)],
    ids=["gcc-addresses", "clang-addresses", "clang-threads"],
)
def test_no_interleaving_hurts(compiler: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """Files overwritten, shortened, replaced, removed; readers lost, forked and killed inside."""
    made = program("tests/interleave", tmp_path, compiler=compiler, options=options)
    steps = count(INTERLEAVED, share=100)
    tables = [TABLES / "v1" / f"{name}.slt" for name in ("worked-example", "aligned")]
    for seed, done in enumerate(range(0, steps, INTERLEAVED_AT_ONCE), start=1):
        part = min(INTERLEAVED_AT_ONCE, steps - done)
        printed = run([made, str(part), str(seed), tmp_path, *tables])
        assert f"interleave: {part} steps" in printed
        assert "x 0" in printed
        assert "x -5" in printed


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_unit_program_under_sanitizers(compiler: str, tmp_path: Path) -> None:
    """With its forks, its lost readers and its changed files."""
    made = program("tests/unit", tmp_path, compiler=compiler, options=ADDRESSES)
    (tmp_path / "scratch").mkdir()
    assert "as documented" in run([made, TABLES / "v1", tmp_path / "scratch"])


@pytest.mark.parametrize("name", ["unit", "mutate"])
def test_valgrind_has_nothing_to_say(name: str, seeds: list[Path], tmp_path: Path) -> None:
    """No invalid access, no value that was never set, nothing lost."""
    made = program(f"tests/{name}", tmp_path, compiler="gcc", options=("-O1", "-g"))
    (tmp_path / "scratch").mkdir()
    arguments: dict[str, list[object]] = {
        "unit": [TABLES / "v1", tmp_path / "scratch"],
        "mutate": [str(count(10_000, share=30)), "3", *seeds],
    }
    strict = ["--quiet", "--error-exitcode=9", "--leak-check=full", "--track-fds=no"]
    printed = run([require("valgrind"), *strict, made, *arguments[name]])
    assert "==" not in printed
