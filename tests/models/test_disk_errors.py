"""A disk that refuses the n-th write, whichever it is: what was confirmed is there, and sound."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from models.session import create_store
from tests.support.compiler import compiler
from tests.support.counts import is_campaign

ROOT = Path(__file__).parents[2]
# Counts the writes and syncs of the process from when it is told to, and refuses one of them.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
static long left = -1;
void refuse_write(long number) { left = number; }
static int refused(void) {
    if (left <= 0 || --left != 0) return 0;
    errno = EIO;
    return 1;
}
#define WRAP(name, type, parameters, arguments)                                   \
    type name parameters {                                                        \
        static type(*real) parameters;                                            \
        if (!real) real = (type(*) parameters)dlsym(RTLD_NEXT, #name);            \
        return refused() ? -1 : real arguments;                                   \
    }
WRAP(pwrite64, ssize_t, (int f, const void *b, size_t n, off_t o), (f, b, n, o))
WRAP(pwrite, ssize_t, (int f, const void *b, size_t n, off_t o), (f, b, n, o))
WRAP(fdatasync, int, (int f), (f))
WRAP(fsync, int, (int f), (f))
WRAP(ftruncate64, int, (int f, off_t n), (f, n))
"""
# For each number: six answers are written, one of the writes is refused, the rest goes on.
WRITER = """
import ctypes, sys
from domain.errors import StoreUnavailable
from models.session import create_store
from tests.support.records import an_answer
refuse = ctypes.CDLL(None).refuse_write
refuse.argtypes = [ctypes.c_long]
store = create_store(sys.argv[1])
store.upgrade()
for number in map(int, sys.argv[2].split(",")):
    refuse(number)
    for place in range(6):
        answer = an_answer(question_digest=f"{number} {place}")
        try:
            with store.unit_of_work() as unit:
                unit.answers.add(answer)
        except StoreUnavailable:
            print("refused", number, flush=True)
        else:
            print("stored", answer.id, flush=True)
    refuse(0)
    with store.unit_of_work() as unit:  # and it recovers
        unit.answers.add(an_answer(question_digest="after"))
store.dispose()
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that is loaded before all others."""
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    built = folder / "shim.so"
    asked = [compiler(), "-shared", "-fPIC", "-O1", "-o", built, folder / "shim.c", "-ldl"]
    subprocess.run(asked, check=True)
    return built


def test_the_write_that_fails_is_not_confirmed(shim: Path, tmp_path: Path) -> None:
    """What was is there; the file is sound; the next write is taken."""
    numbers = range(1, 201) if is_campaign() else range(1, 13)
    file = tmp_path / "sluice.db"
    url = f"sqlite:///{file}"
    ran = subprocess.run(
        [sys.executable, "-c", WRITER, url, ",".join(map(str, numbers))],
        cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": str(shim)},
        capture_output=True,
        text=True,
        check=True,
    )
    said = [line.split() for line in ran.stdout.splitlines()]
    stored = {value for word, value in said if word == "stored"}
    refused = [value for word, value in said if word == "refused"]
    print(len(stored), "stored", len(refused), "refused")
    assert len(stored) + len(refused) == 6 * len(numbers)
    assert 5 <= len(refused) <= len(numbers)  # later numbers are beyond the last write
    with closing(sqlite3.connect(file)) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert opened.execute("PRAGMA foreign_key_check").fetchall() == []
    store = create_store(url)
    with store.reading() as unit:
        found = {one.id for one in unit.answers.list(limit=10_000)}
    store.dispose()
    assert stored <= found
    assert len(found) == len(stored) + len(numbers)  # nothing that was refused is there
