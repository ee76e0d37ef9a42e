"""The build of the native kernels: one line whatever happens, and a service that works without."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from domain.pipeline import pipeline_of_lines
from domain.problem import Problem
from solvers import solve
from tests.support.compiler import compiler

ROOT = Path(__file__).resolve().parents[2]
GUARD_S = 300

TABLES = Path("exports") / "native"
SMALL = "int sluice_answer(void) { return 42; }\n"
SOLVE = """
from domain.pipeline import pipeline_of_lines
from domain.problem import Problem
from solvers import solve
from solvers.kernels import active
solution = solve(Problem(pipeline_of_lines([("a", 1.0, 2.0), ("b", 2.0, 3.0)]), 5000), "exact")
print(active.NATIVE, solution.status.value, solution.latency_us, solution.lower_bound_us)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of what the build and a solve need, never built, in a folder with a space."""
    root = tmp_path / "my checkout"
    for room in ("contract", "domain", "solvers"):
        shutil.copytree(
            ROOT / room, root / room, ignore=shutil.ignore_patterns("build", "__pycache__")
        )
    (root / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "build_kernels.py", root / "tools")
    return root


@pytest.fixture
def small(checkout: Path) -> Path:
    """The same with one small source, which compiles at once."""
    for source in native(checkout).glob("*.[ch]"):
        source.unlink()
    (native(checkout) / "small.c").write_text(SMALL)
    return checkout


def native(checkout: Path) -> Path:
    return checkout / "solvers" / "kernels" / "native"


def start(checkout: Path, **environment: str) -> subprocess.Popen[str]:
    """The build under way, as make would run it."""
    kept = {name: text for name, text in os.environ.items() if name != "CC"}
    return subprocess.Popen(
        [sys.executable, "tools/build_kernels.py"],
        cwd=checkout,
        env={**kept, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def built(checkout: Path, **environment: str) -> str:
    """What the build says; it never fails."""
    running = start(checkout, **environment)
    stated, _ = running.communicate(timeout=GUARD_S)
    assert running.returncode == 0, stated
    return stated


def objects(checkout: Path) -> set[str]:
    """All that is in the build folder."""
    return {path.name for path in (native(checkout) / "build").glob("*")}


def script(folder: Path, name: str, text: str) -> Path:
    """An executable that stands for a compiler."""
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def test_without_a_compiler_solving_works_on_numpy(checkout: Path) -> None:
    """One line says so, nothing is left behind, and the answer is the same."""
    assert built(checkout, PATH="") == (
        "sluice: no C compiler found: the solver runs on NumPy, which is slower\n"
    )
    assert objects(checkout) == set()
    reported = subprocess.run(
        [sys.executable, "-c", SOLVE],
        cwd=checkout,
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=GUARD_S,
    ).stdout.split()
    problem = Problem(pipeline_of_lines([("a", 1.0, 2.0), ("b", 2.0, 3.0)]), 5000)
    expected = solve(problem, "exact")
    assert reported[:2] == ["None", expected.status.value]
    assert float(reported[2]) == pytest.approx(expected.latency_us, rel=1e-6)
    assert float(reported[3]) == pytest.approx(expected.lower_bound_us, rel=1e-6)


def test_a_build_that_is_there_is_not_made_again(small: Path) -> None:
    """Silent where nothing has changed: it runs before every make."""
    compiler()
    assert built(small) == "sluice: native kernels compiled\n"
    made = objects(small)
    assert len(made) == 1
    assert built(small, PATH="") == ""
    assert objects(small) == made


@pytest.mark.parametrize("changed", ["small.c", "new.c", "new.h"])
def test_other_sources_make_another_object(small: Path, changed: str) -> None:
    """A source, a further source or a header; the old object goes."""
    compiler()
    built(small)
    before = objects(small)
    (native(small) / changed).write_text("/* other */\n" + SMALL.replace("answer", "question"))
    assert built(small) == "sluice: native kernels compiled\n"
    assert len(objects(small)) == 1
    assert objects(small) != before


def test_builds_side_by_side(small: Path) -> None:
    """Each makes its own and moves it into place: whoever is last, the object is whole."""
    compiler()
    running = [start(small) for _ in range(4)]
    stated = {process.communicate(timeout=GUARD_S)[0] for process in running}
    assert stated <= {"sluice: native kernels compiled\n", ""}
    assert len(objects(small)) == 1


def test_a_source_that_does_not_compile(small: Path) -> None:
    """The compiler's reason in one line."""
    compiler()
    (native(small) / "small.c").write_text("int broken(void) { return no_such_name; }\n")
    stated = built(small)
    assert stated.count("\n") == 1
    assert stated.startswith("sluice: native kernels not built (")
    assert "no_such_name" in stated
    assert stated.endswith("): the solver runs on NumPy, which is slower\n")
    assert objects(small) == set()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("exit 1\n", "no reason given"),
        ("echo 'first line' >&2\necho 'cc: internal error' >&2\nexit 4\n", "cc: internal error"),
    ],
)
def test_a_compiler_that_fails(small: Path, tmp_path: Path, text: str, reason: str) -> None:
    """$CC is taken before the usual names, with its own words; it may fail as it likes."""
    failing = script(tmp_path, "failing", text)
    assert built(small, CC=f"{failing} -m64") == (
        f"sluice: native kernels not built ({reason}): the solver runs on NumPy, which is slower\n"
    )


def test_a_compiler_for_another_machine(small: Path, tmp_path: Path) -> None:
    """What cannot be loaded here is not kept."""
    other = script(
        tmp_path,
        "other",
        'while [ "$1" != -o ]; do shift; done\necho "not for here" > "$2"\n',
    )
    stated = built(small, CC=str(other))
    assert stated.startswith("sluice: native kernels not built (")
    assert stated.count("\n") == 1
    assert objects(small) == set()


@pytest.mark.usefixtures("native_kernels")
def test_a_folder_that_cannot_be_written(small: Path) -> None:
    """A file stands where the folder would be made."""
    (native(small) / "build").write_text("")
    stated = built(small, CC=str(script(small, "cc", "exit 0\n")))
    assert stated.startswith("sluice: native kernels not built (")
    assert stated.count("\n") == 1


# --- the library that reads table files -----------------------------------------------------------


@pytest.fixture
def with_client(small: Path) -> Path:
    """The same with the C library of clients/c, and what the service adds to it."""
    for folder in ("clients/c/src", "clients/c/include", "exports/native"):
        shutil.copytree(
            ROOT / folder, small / folder, ignore=shutil.ignore_patterns("build", "__pycache__")
        )
    return small


def test_the_reader_of_tables_is_built_beside_the_kernels(with_client: Path) -> None:
    """Silent the second time; another header makes another object, and the old one goes."""
    compiler()
    build = with_client / TABLES / "build"
    assert built(with_client) == "sluice: native kernels compiled\n"
    (before,) = build.iterdir()
    assert before.name.startswith("tables-")
    assert len(objects(with_client)) == 1
    assert built(with_client, PATH="") == ""
    header = with_client / "clients" / "c" / "include" / "sluice.h"
    header.write_text("/* another */\n" + header.read_text())
    assert built(with_client) == "sluice: native kernels compiled\n"
    (after,) = build.iterdir()
    assert after != before


def test_a_reader_that_does_not_compile_leaves_the_kernels(with_client: Path) -> None:
    """Tables are then read in Python."""
    compiler()
    (with_client / TABLES / "answer.c").write_text("int broken(void) { return no_such_name; }\n")
    stated = built(with_client)
    failed, done = stated.splitlines()
    assert failed.startswith("sluice: the C reader of tables not built (")
    assert "no_such_name" in failed
    assert failed.endswith("): tables are read in Python, which is slower")
    assert done == "sluice: native kernels compiled"
    assert len(objects(with_client)) == 1
    assert not list((with_client / TABLES / "build").iterdir())
