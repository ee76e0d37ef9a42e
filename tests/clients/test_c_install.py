"""The outside user's path: installing, finding, compiling and running, as the documents say it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.architecture.documents import document
from tests.clients.c_support import CLIENT, GUARD_S, ROOT, TABLES, require, run

pytestmark = pytest.mark.usefixtures("native_kernels")

EXAMPLE = TABLES / "v1" / "worked-example.slt"
INSTALLED = {
    "include/sluice.h",
    "include/sluice_trace.h",
    "lib/libsluice.a",
    "lib/libsluice.so",
    "lib/libsluice.so.0",
    "lib/libsluice.so.0.1.0",
    "lib/pkgconfig/sluice.pc",
    "lib/cmake/sluice/sluice-config.cmake",
    "lib/cmake/sluice/sluice-config-version.cmake",
    "share/doc/sluice/LICENSE",
}
PROJECT = """cmake_minimum_required(VERSION 3.13)
project(other C)
{find}
add_executable(one {source})
target_link_libraries(one PRIVATE sluice::sluice)
add_executable(two {source})
target_link_libraries(two PRIVATE sluice::sluice_static)
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the library's part of a checkout has, to be built in."""
    folder = tmp_path_factory.mktemp("checkout")
    left_out = shutil.ignore_patterns("build", "__pycache__")
    shutil.copytree(CLIENT, folder / "clients" / "c", ignore=left_out)
    shutil.copytree(TABLES, folder / "tests" / "data" / "tables")
    return folder


def commands_of_the_page() -> list[tuple[str, str]]:
    """The blocks of commands of both libraries' pages, each with what it prints."""
    pages = ("docs/c-library.md", "docs/mover.md")
    blocks = [pair for page in pages for pair in document(page).blocks()]
    return [(block.text, below.text if below else "") for block, below in blocks if block.is_shell]


@pytest.mark.parametrize(("commands", "shown"), commands_of_the_page())
def test_the_commands_of_the_page(
    commands: str, shown: str, checkout: Path, tmp_path: Path
) -> None:
    """Each block by itself, in a home of its own, prints what stands below it."""
    for name in ("make", "cc", "c++", "pkg-config", "cmake"):
        require(name)
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    ended = subprocess.run(
        ["sh", "-e", "-c", commands],
        cwd=checkout,
        env={**kept, "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=GUARD_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout.strip()) == (0, shown.strip())


def test_the_page_has_commands() -> None:
    """Pages without any would pass."""
    assert len(commands_of_the_page()) == 4
    assert all(
        re.search("lookup|mover", commands) and shown for commands, shown in commands_of_the_page()
    )


def test_every_source_names_its_licence() -> None:
    """In its first line, so that a copy has it; the text of the licence is the project's."""
    sources = [path for path in CLIENT.rglob("*.[ch]") if path.parent.name != "nccl"]
    assert len(sources) > 20
    first = "/* SPDX-License-Identifier: Apache-2.0 */"
    assert [path for path in sources if path.read_text().splitlines()[0] != first] == []
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def files_below(folder: Path) -> set[str]:
    """Relative paths of all files and links."""
    found = (path for path in folder.rglob("*") if not path.is_dir())
    return {str(path.relative_to(folder)) for path in found}


def test_what_make_installs(checkout: Path, tmp_path: Path) -> None:
    """All below DESTDIR, for the prefix; and uninstalling leaves nothing."""
    places = [f"DESTDIR={tmp_path}", "PREFIX=/opt/sluice"]
    make = [require("make"), "-s", "-C", checkout / "clients" / "c", "BUILD=build/staged", *places]
    run([*make, "install"])
    assert files_below(tmp_path / "opt" / "sluice") == INSTALLED
    reported = (tmp_path / "opt" / "sluice" / "lib" / "pkgconfig" / "sluice.pc").read_text()
    assert "prefix=/opt/sluice\n" in reported
    assert str(tmp_path) not in reported
    made = tmp_path / "opt" / "sluice" / "lib" / "libsluice.so"
    assert "soname: [libsluice.so.0]" in run([require("readelf"), "-d", made]).lower()
    named = run([require("nm"), "-D", "--defined-only", made])
    assert "sluice_repeat@@SLUICE_0.1" in named
    assert not re.search(r" [A-Z] (?!SLUICE_0\.1)(?!sluice_\w+@@SLUICE_0\.1$)", named, re.MULTILINE)
    run([*make, "uninstall"])
    assert files_below(tmp_path) == set()


def test_what_cmake_installs(checkout: Path, tmp_path: Path) -> None:
    """The same files as make, and a package that is found where it was put."""
    cmake, built, prefix = require("cmake"), tmp_path / "built", tmp_path / "prefix"
    source = checkout / "clients" / "c"
    run([cmake, "-S", source, "-B", built, "-D", "CMAKE_INSTALL_LIBDIR=lib"])
    run([cmake, "--build", built])
    run([cmake, "--install", built, "--prefix", prefix])
    assert files_below(prefix) == INSTALLED
    assert (prefix / "lib" / "pkgconfig" / "sluice.pc").read_text().splitlines()[:3] == [
        f"prefix={prefix}",
        f"libdir={prefix}/lib",
        f"includedir={prefix}/include",
    ]
    moved = prefix.rename(tmp_path / "moved")
    find = "find_package(sluice 0.1 REQUIRED)"
    assert "repeat 167" in built_by_cmake(find, tmp_path, "-D", f"CMAKE_PREFIX_PATH={moved}")


def test_a_project_may_contain_it(checkout: Path, tmp_path: Path) -> None:
    """By add_subdirectory, with the same names."""
    find = f'add_subdirectory("{checkout / "clients" / "c"}" sluice)'
    assert "repeat 167" in built_by_cmake(find, tmp_path)


@pytest.mark.parametrize("asked", ["0.2", "1.0"])
def test_another_version_is_not_found(asked: str, checkout: Path, tmp_path: Path) -> None:
    """A project that asks for more than there is does not get less."""
    make = [require("make"), "-s", "-C", checkout / "clients" / "c", "BUILD=build/staged"]
    run([*make, f"PREFIX={tmp_path / 'prefix'}", "install"])
    project = tmp_path / "project"
    project.mkdir()
    text = PROJECT.format(find=f"find_package(sluice {asked} REQUIRED)", source="x.c")
    (project / "CMakeLists.txt").write_text(text)
    line = [require("cmake"), "-S", str(project), "-B", str(tmp_path / "out")]
    line.append(f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}")
    ended = subprocess.run(line, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert f'compatible with requested version "{asked}"' in " ".join(ended.stderr.split())


def test_a_project_that_contains_it_installs_what_it_wants(checkout: Path, tmp_path: Path) -> None:
    """Nothing of the library's unless it asks for it, and the kind of its build stays its own."""
    cmake, project = require("cmake"), tmp_path / "project"
    project.mkdir()
    text = f"""cmake_minimum_required(VERSION 3.13)
project(other C)
add_subdirectory("{checkout / "clients" / "c"}" sluice)
install(FILES CMakeLists.txt DESTINATION share)
file(WRITE "${{CMAKE_BINARY_DIR}}/kind" "[${{CMAKE_BUILD_TYPE}}]")
"""
    (project / "CMakeLists.txt").write_text(text)
    for asked in ((), ("-D", "SLUICE_INSTALL=ON")):
        built, prefix = tmp_path / f"built{len(asked)}", tmp_path / f"prefix{len(asked)}"
        run([cmake, "-S", project, "-B", built, "-D", "CMAKE_INSTALL_LIBDIR=lib", *asked])
        run([cmake, "--build", built])
        run([cmake, "--install", built, "--prefix", prefix])
        own = {"share/CMakeLists.txt"}
        assert files_below(prefix) == (INSTALLED | own if asked else own)
        assert (built / "kind").read_text() == "[]"


def test_cmake_builds_the_mover_where_it_is_asked_for(checkout: Path, tmp_path: Path) -> None:
    """Its library and header beside the others, with the soname and the versions of its own."""
    cmake, built, prefix = require("cmake"), tmp_path / "built", tmp_path / "prefix"
    source = checkout / "clients" / "c"
    run(
        [
            cmake,
            "-S",
            source,
            "-B",
            built,
            "-D",
            "CMAKE_INSTALL_LIBDIR=lib",
            "-D",
            "SLUICE_MOVER=ON",
        ]
    )
    run([cmake, "--build", built])
    run([cmake, "--install", built, "--prefix", prefix])
    names = ("libsluice-mover.so", "libsluice-mover.so.0", "libsluice-mover.so.0.1.0")
    own = {"include/sluice_mover.h", *(f"lib/{name}" for name in names)}
    assert files_below(prefix) == INSTALLED | own
    named = run([require("nm"), "-D", "--defined-only", prefix / "lib" / names[0]])
    assert "sluice_mover_send@@SLUICE_MOVER_0.1" in named
    assert "slm_" not in named


def built_by_cmake(find: str, folder: Path, *options: str) -> str:
    """What the example prints, built in a project that gets the library like this."""
    cmake, project, built = require("cmake"), folder / "project", folder / "project-built"
    project.mkdir()
    source = CLIENT / "examples" / "lookup.c"
    (project / "CMakeLists.txt").write_text(PROJECT.format(find=find, source=source))
    run([cmake, "-S", project, "-B", built, *options])
    run([cmake, "--build", built])
    shared, static = (run([built / name, EXAMPLE, "333"]) for name in ("one", "two"))
    assert shared == static
    return shared


def test_make_check_runs_in_a_checkout(checkout: Path) -> None:
    """What a packager would run."""
    make = [require("make"), "-s", "-C", checkout / "clients" / "c", "BUILD=build/checked"]
    printed = run([*make, "WERROR=-Werror", "CFLAGS=-O1", "check"])
    assert "all as documented" in printed
    assert "20000 files" in printed


def test_nothing_of_the_checkout_is_needed_elsewhere() -> None:
    """The library's own files name no other part of the project but its documents and tables."""
    for path in sorted((CLIENT / "src").glob("*.[ch]")):
        text = path.read_text()
        quoted = [line.split('"')[1] for line in text.splitlines() if line.startswith('#include "')]
        assert all((path.parent / name).exists() or name == "sluice.h" for name in quoted)
    assert (ROOT / "clients" / "c" / "VERSION").read_text().count(".") == 2
