"""The C library in one file: of all sources, by every compiler, kept by other projects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.clients.c_support import CLIENT, TABLES, WARNINGS, require, require_compiler, run

CXX = ("-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic", "-x", "c++", "-std=c++17")
C = (*WARNINGS, "-std=c11")
# The compiler of the library, how it is compiled, and the compiler of what calls it.
BUILDS = {
    "gcc": ("gcc", C, ("gcc",)),
    "clang": ("clang", C, ("clang",)),
    "musl": ("musl-gcc", C, ("musl-gcc", "-static")),
    "32 bits": ("gcc", ("-m32", *C), ("gcc", "-m32")),
    "C++17 by g++": ("g++", CXX, ("gcc",)),
    "C++17 by clang++": ("clang++", CXX, ("clang",)),
    "checked": ("gcc", (*C, "-DSLUICE_CHECKED"), ("gcc",)),
}
# All in one: a program of others, of which the library is a part and shows nothing.
UNITY = """
#include <stdio.h>
#include <stdlib.h>
#define SLUICE_API static
#include "sluice.c"

/* What another project might call its own. */
static int take, table, magic, smaller, distance, PLACES, CHUNK, BIT;

int main(int argc, char **argv)
{
    sluice_table read;
    uint64_t size = 0;
    if (argc != 2 || sluice_table_open(&read, argv[1]) != SLUICE_OK)
        return 1;
    sluice_repeat(&read, 333, &size);
    sluice_table_close(&read);
    printf("%u\\n", (unsigned)size);
    return take + table + magic + smaller + distance + PLACES + CHUNK + BIT;
}
"""


@pytest.fixture(scope="module")
def amalgamation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of sluice.c and sluice.h, by the Makefile's target."""
    folder = tmp_path_factory.mktemp("amalgamation")
    run([require("make"), "-s", "-C", CLIENT, f"BUILD={folder}", "amalgamation"])
    assert {path.name for path in folder.iterdir()} == {"sluice.c", "sluice.h"}
    return folder


@pytest.mark.parametrize("build", BUILDS)
def test_it_does_all_that_the_library_does(build: str, amalgamation: Path, tmp_path: Path) -> None:
    """Without a warning, and right in each function and error, by every compiler."""
    compiler, options, caller = BUILDS[build]
    made, unit = tmp_path / "sluice.o", tmp_path / "unit"
    compiles, calls = require_compiler(compiler, options), require_compiler(caller[0], caller[1:])
    run([compiles, *options, "-O2", "-c", amalgamation / "sluice.c", "-o", made])
    line = [calls, *caller[1:], "-std=c11", "-O1", "-I", amalgamation]
    run([*line, CLIENT / "tests" / "unit.c", made, "-pthread", "-o", unit])
    (tmp_path / "scratch").mkdir()
    assert "as documented" in run([unit, TABLES / "v1", tmp_path / "scratch"])


def test_it_shows_no_name_but_the_functions(amalgamation: Path, tmp_path: Path) -> None:
    """Whatever is compiled with it: functions and variables, visible or not, and macros."""
    made = tmp_path / "sluice.o"
    run([require("gcc"), "-std=c11", "-O0", "-c", amalgamation / "sluice.c", "-o", made])
    listed = run([require("nm"), "--defined-only", "--format=posix", made]).splitlines()
    kinds = {line.split()[0]: line.split()[1] for line in listed}
    assert {name for name, kind in kinds.items() if kind == "T"} == public_names(amalgamation)
    own = {re.sub(r"\.\d+$", "", name) for name, kind in kinds.items() if kind != "T"}
    assert {name for name in own if not name.startswith("slt_")} == set()
    text = (amalgamation / "sluice.c").read_text()
    macros = set(re.findall(r"^#\s*define (\w+)", text, re.MULTILINE))
    asked = {"_DEFAULT_SOURCE", "_POSIX_C_SOURCE", "_FILE_OFFSET_BITS"}
    assert {name for name in macros - asked if not name.startswith("SLT_")} == set()


def public_names(folder: Path) -> set[str]:
    """The functions that the header declares."""
    declared = re.findall(r"SLUICE_API [^;(]*?\b(sluice_\w+)\(", (folder / "sluice.h").read_text())
    return set(declared)


@pytest.mark.parametrize("compiler", ["gcc", "clang", "g++", "clang++"])
def test_a_program_may_include_it(compiler: str, amalgamation: Path, tmp_path: Path) -> None:
    """Behind other headers, as a part of one source, with functions that nobody else sees."""
    source = tmp_path / ("all.cpp" if compiler.endswith("++") else "all.c")
    source.write_text(UNITY)
    program = tmp_path / "all"
    run([require(compiler), "-O1", "-I", amalgamation, source, "-o", program])
    assert run([program, TABLES / "v1" / "worked-example.slt"]) == "167\n"
    assert "sluice" not in run([require("nm"), "--extern-only", "--defined-only", program])


def test_cmake_may_compile_the_sources_as_one(tmp_path: Path) -> None:
    """A unity build of the sources themselves, in strict C."""
    options = ["-D", "CMAKE_UNITY_BUILD=ON", "-D", "CMAKE_UNITY_BUILD_BATCH_SIZE=0"]
    run([require("cmake"), "-S", CLIENT, "-B", tmp_path, *options])
    run([require("cmake"), "--build", tmp_path])
    shown = run([require("nm"), "-D", "--defined-only", tmp_path / "libsluice.so"])
    assert "sluice_repeat@@SLUICE_0.1" in shown


def test_it_is_made_of_all_sources(amalgamation: Path) -> None:
    """Each once, in their order, with the licence in the first line."""
    text = (amalgamation / "sluice.c").read_text()
    assert text.startswith("/* SPDX-License-Identifier: Apache-2.0 */\n")
    parts = re.findall(r"^/\* --- (\S+) --- \*/$", text, re.MULTILINE)
    assert sorted(parts) == sorted(path.name for path in (CLIENT / "src").glob("*.[ch]"))
    assert re.findall(r'^#include "(.*)"', text, re.MULTILINE) == ["sluice.h"]
    assert (amalgamation / "sluice.h").read_bytes() == (
        CLIENT / "include" / "sluice.h"
    ).read_bytes()
