"""The C library: clean with both compilers, right on every table, and nothing behind its back."""

from __future__ import annotations

import ctypes
import random
import re
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from domain.errors import InvalidTable
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits
from exports.table.slt import decode, encode
from tests.clients.c_support import (
    CLIENT,
    COMPILERS,
    ERRORS,
    TABLES,
    WARNINGS,
    CTable,
    Fault,
    archive,
    loaded,
    program,
    require,
    run,
    shared_library,
)
from tests.support.counts import count
from tests.support.malformed_tables import MALFORMED, good, sealed
from tests.support.plan_tables import GOLDEN, a_plan_table, a_ranged_pipeline

HEADER = (CLIENT / "include" / "sluice.h").read_text()
LIMITS = (
    FragmentLimits(),
    FragmentLimits(alignment_bytes=8),
    FragmentLimits(alignment_bytes=512),
    FragmentLimits(min_fragment_bytes=1, max_fragments=70),
)
# What the library may ask of the system: files, pages, waiting, variables. Nothing that allocates.
MAY_CALL = {
    "__errno_location", "clock_gettime", "close", "fstat", "fstat64", "getauxval", "getenv",
    "memcmp", "memcpy", "memset", "mmap", "mmap64", "mprotect", "munmap", "nanosleep", "open",
    "open64", "pread", "pread64", "read", "sched_yield", "stat", "stat64", "strlen",
    "__fxstat", "__fxstat64", "__xstat", "__xstat64", "__stack_chk_fail",
}  # fmt: skip
REFUSALS = {
    "empty": "SLUICE_E_FORMAT",
    "as-text": "SLUICE_E_FORMAT",
    "json": "SLUICE_E_FORMAT",
    "newer-version": "SLUICE_E_VERSION",
    "truncated": "SLUICE_E_TRUNCATED",
    "trailing-byte": "SLUICE_E_TRUNCATED",
    "damaged": "SLUICE_E_CHECKSUM",
}


LIBRARIES = {
    "gcc": ("gcc",),
    "clang": ("clang",),
    "byte by byte": ("gcc", "-DSLUICE_BYTE_BY_BYTE"),
    "coarse index": ("gcc", "-DSLT_MAX_BEFORE=1"),  # as that of a table of very many records
}


@pytest.fixture(scope="module", params=list(LIBRARIES))
def library(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ctypes.CDLL:
    """The library of each compiler, as it reads on machines of the other byte order, and large
    tables.
    """
    compiler, *options = LIBRARIES[request.param]
    folder = tmp_path_factory.mktemp("c")
    return loaded(shared_library(folder, compiler=compiler, options=["-O3", *options]))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_no_source_has_a_warning(compiler: str, tmp_path: Path) -> None:
    """Library, tests, examples and benchmark, with warnings as errors."""
    assert archive(compiler, ("-O2",)).exists()
    folders = ("tests", "examples", "bench")
    others = [path for name in folders for path in (CLIENT / name).glob("*.c")]
    line = [require(compiler), "-std=c11", "-O2", *WARNINGS, "-I", CLIENT / "include"]
    run([*line, "-c", *others], cwd=tmp_path)
    assert len(list(tmp_path.glob("*.o"))) == len(others) >= 6


@pytest.mark.parametrize("standard", ["c++11", "c++17", "c++20"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_header_is_one_of_c_plus_plus_too(compiler: str, standard: str, tmp_path: Path) -> None:
    """By itself, and read twice."""
    source = tmp_path / "reader.cpp"
    source.write_text(
        "#include <sluice.h>\n#include <sluice.h>\nint main() { return SLUICE_OK; }\n"
    )
    warnings = ("-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic", "-Wold-style-cast")
    line = [require(compiler), f"-std={standard}", *warnings, "-fsyntax-only"]
    run([*line, "-I", CLIENT / "include", source])


@pytest.mark.parametrize("options", [("-O2",), ("-O2", "-DSLUICE_BYTE_BY_BYTE")])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_function_does_what_it_says(
    compiler: str, options: Sequence[str], tmp_path: Path
) -> None:
    """The unit program, each of its functions and errors."""
    unit = program("tests/unit", tmp_path, compiler=compiler, options=options)
    (tmp_path / "scratch").mkdir()
    assert "as documented" in run([unit, TABLES / "v1", tmp_path / "scratch"])


# --- the names --------------------------------------------------------------------------------


def public_names() -> set[str]:
    """The functions that the header declares."""
    return set(re.findall(r"SLUICE_API [^;(]*?\b(sluice_\w+)\(", HEADER))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_only_the_public_names_are_visible(compiler: str, tmp_path: Path) -> None:
    """All of the header's, and none of the library's own."""
    made = shared_library(tmp_path, compiler=compiler)
    shown = run([require("nm"), "-D", "--defined-only", "--format=posix", made])
    assert {line.split()[0] for line in shown.splitlines()} == public_names()
    assert len(public_names()) == 27


def test_every_public_name_has_a_version() -> None:
    """The linker's map names the functions of the header and no other."""
    listed = (CLIENT / "sluice.map").read_text()
    shown, hidden = listed.split("local:")
    assert set(re.findall(r"^ +(sluice_\w+);", shown, re.MULTILINE)) == public_names()
    assert "*;" in hidden


@pytest.mark.parametrize("compiler", COMPILERS)
def test_nothing_is_allocated(compiler: str, tmp_path: Path) -> None:
    """Whatever a lookup did, it could not allocate: the library calls nothing that does."""
    made = shared_library(tmp_path, compiler=compiler)
    shown = run([require("nm"), "-D", "--undefined-only", "--format=posix", made])
    called = {line.split("@")[0].split()[0] for line in shown.splitlines() if " w" not in line}
    assert {"mmap64", "mmap"} & called
    assert called <= MAY_CALL


@pytest.mark.parametrize("compiler", COMPILERS)
def test_there_is_no_global_variable(compiler: str) -> None:
    """No object has writable data: neither initialised nor not, neither visible nor not."""
    reported = run([require("nm"), "--format=posix", archive(compiler, ("-O2",))])
    kinds = {line.split()[0]: line.split()[1] for line in reported.splitlines() if " " in line}
    assert kinds["sluice_schedule"] == "T"
    assert not {name for name, kind in kinds.items() if kind in "bBdDcCsSgG"}


def test_codes_and_version_are_the_headers() -> None:
    """As tests and documents have them."""
    codes = dict(re.findall(r"(SLUICE_(?:OK|E_\w+)) = (-?\d+)", HEADER))
    assert {name: int(value) for name, value in codes.items()} == ERRORS
    numbers = re.findall(r"#define SLUICE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", HEADER)
    assert ".".join(numbers) == (CLIENT / "VERSION").read_text().strip()
    documented = (CLIENT.parents[1] / "docs" / "c-library.md").read_text()
    assert all(f"`{name}`" in documented for name in (*ERRORS, *public_names()))


# --- what it reads ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_files_read_as_in_python(name: str, library: ctypes.CDLL) -> None:
    """At every entry, beside it, and anywhere."""
    check(library, (TABLES / "v1" / f"{name}.slt").read_bytes(), seed=1)


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files_are_refused(name: str, library: ctypes.CDLL, tmp_path: Path) -> None:
    """With the code of what is wrong, from memory and as a file; the table stays closed."""
    path = TABLES / "malformed" / f"{name}.slt"
    expected = ERRORS[REFUSALS.get(name, "SLUICE_E_INVALID")]
    opened = CTable.of(library, path.read_bytes())
    assert opened.code == expected
    assert not any(opened.table)
    table = (ctypes.c_uint64 * 256)()
    assert library.sluice_table_open(table, str(path).encode()) == expected
    assert not any(table)


# The first byte that breaks a rule, and the rule.
FAULTS = {
    "as-text": (0, "a table file begins with the eight bytes of magic"),
    "newer-version": (8, "version is 1"),
    "truncated": (16, "file_bytes is the length of the file"),
    "damaged": (24, "checksum is the CRC-32 of the bytes from 32 on"),
    "alignment-zero": (72, "alignment_bytes is 1 to 2^48"),
    "cuts-countless": (96, "a section fits into what those before it leave of the file"),
    "positions-elsewhere": (144, "each section begins where the one before it ends"),
    "cut-not-ascending": (256 + 40, "records ascend by their message, by less than 2^31 bytes"),
    "cut-reserved": (256 + 20, "reserved bytes are zero"),
    "latency-nan": (256 + 24, "a latency is finite and without a minus sign"),
    "position-zero": (0x220, "a cut's positions ascend inside its message"),
    "repeat-zero": (416 + 8, "where no size is repeated, latency and gap are zero"),
    "pipeline-ends-early": (648, "the pipeline's section holds what it announces"),
    "stage-name-not-text": (600, "a stage's name has 1 to 100 characters of UTF-8"),
    "stage-name-padding": (607, "the bytes behind a name are zero"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_wrong_is_said_with_its_place(name: str, library: ctypes.CDLL) -> None:
    """The code of opening, a rule, and a byte of the file or its end."""
    data = (TABLES / "malformed" / f"{name}.slt").read_bytes()
    fault = Fault.of(library, data)
    assert fault.code == ERRORS[REFUSALS.get(name, "SLUICE_E_INVALID")]
    assert fault.offset <= len(data)
    assert fault.rule
    assert FAULTS.get(name, (fault.offset, fault.rule.decode())) == (
        fault.offset,
        fault.rule.decode(),
    )


def test_the_places_are_those_of_files_that_are_there() -> None:
    """A name that is no file's would test nothing."""
    assert set(FAULTS) <= set(MALFORMED)


@pytest.mark.parametrize("is_sealed", [False, True])
def test_no_length_but_its_own_is_accepted(library: ctypes.CDLL, *, is_sealed: bool) -> None:
    """Cut anywhere, with and without length and checksum put right."""
    data = good()
    for length in range(len(data)):
        part = sealed(data[:length]) if is_sealed else data[:length]
        assert CTable.of(library, part).code in (-3, -5, -7)


def test_every_flipped_bit_is_noticed(library: ctypes.CDLL) -> None:
    """By the checksum or by what stands before it."""
    data = good()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert CTable.of(library, bytes(flipped)).code < 0


@pytest.mark.parametrize("limits", LIMITS)
def test_random_tables_read_as_in_python(limits: FragmentLimits, library: ctypes.CDLL) -> None:
    """Cuts of up to 150 fragments: more than one chunk of the library's loop, and its rests."""
    rng = random.Random(repr(limits))
    for seed in range(count(200)):
        check(library, a_file(limits, rng, seed=seed), seed=seed)


def a_file(limits: FragmentLimits, rng: random.Random, *, seed: int) -> bytes:
    """A table of two stretches of one count each."""
    unit, fragments = limits.alignment_bytes, rng.randint(1, min(150, limits.max_fragments or 150))
    minimum = unit * (fragments + 2) + rng.randrange(1000)
    middle = minimum + rng.choice([0, 1, 2, 3, 1000, 10**6])
    top = middle + 1 + rng.choice([0, 1, 5, 2**20, 2**31 - 1])
    blocks = [(minimum, middle, fragments), (middle + 1, top, rng.randint(1, fragments))]
    table = a_plan_table(blocks, limits=limits, pipeline=a_ranged_pipeline(), seed=seed)
    return encode(table, profile="any", revision=1)


def check(library: ctypes.CDLL, data: bytes, *, seed: int) -> None:
    """Every lookup against the plan table's own."""
    table, read, rng = decode(data).table, CTable.of(library, data), random.Random(seed)
    assert read.code == 0
    for message in sizes_of(table, rng):
        assert read.schedule(message) == table.cut_at(message)
        assert read.repeat(message) == table.repeated_size_at(message)
        proven = (table.relative_gap_at(message), table.repeat_gap_at(message))
        assert read.certificate(message) == proven


def sizes_of(table: PlanTable, rng: random.Random) -> list[int]:
    """Messages of the range: anywhere, and at and beside every entry."""
    sizes = [rng.randint(table.min_message_bytes, table.max_message_bytes) for _ in range(10)]
    for entries in (
        [cut.message_bytes for cut in table.cuts],
        [at.message_bytes for at in table.repeats],
    ):
        chosen = rng.sample(entries, min(20, len(entries)))
        sizes += [size + step for size in chosen for step in (-1, 0, 1)]
    return [size for size in sizes if table.min_message_bytes <= size <= table.max_message_bytes]


# --- what it refuses --------------------------------------------------------------------------

FIELDS = (0, 1, 2, 3, 7, 8, 47, 48, 64, 200, 2**31 - 1, 2**31, 2**32 - 1, 2**48, 2**63, 2**64 - 1)


def test_it_refuses_exactly_what_python_refuses(library: ctypes.CDLL) -> None:
    """Mutated files with length and checksum put right: the two implementations judge alike."""
    rng, verdicts = random.Random(5), {True: 0, False: 0}
    files = [(TABLES / "v1" / f"{name}.slt").read_bytes() for name in GOLDEN]
    files += [a_file(limits, rng, seed=7) for limits in LIMITS for _ in range(2)]
    files = [data for data in files if len(data) < 2000]
    for _ in range(count(40_000)):
        data = mutated(rng.choice(files), rng)
        is_valid = accepted(data)
        assert (CTable.of(library, data).code == 0) == is_valid, data.hex()
        verdicts[is_valid] += 1
        if is_valid:
            check(library, data, seed=1)
    assert min(verdicts.values()) > count(1000)


def accepted(data: bytes) -> bool:
    """Whether Python takes the file."""
    try:
        decode(data)
    except InvalidTable:
        return False
    return True


def mutated(data: bytes, rng: random.Random) -> bytes:
    """One to three changes, then sealed."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        width = rng.choice((1, 4, 8))
        end = 256 if rng.random() < 0.2 else len(changed)
        at = rng.randrange(end // width) * width
        kind, before = "<" + "BIQ"[(1, 4, 8).index(width)], changed[at : at + width]
        near = struct.unpack(kind, before)[0] + rng.randint(-3, 3)
        value = near if rng.random() < 0.7 else rng.choice(FIELDS)
        changed[at : at + width] = struct.pack(kind, value % 2 ** (8 * width))
    if rng.random() < 0.05:
        del changed[rng.randrange(len(changed)) :]
    return sealed(bytes(changed))
