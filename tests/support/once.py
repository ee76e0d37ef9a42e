"""Tests that passed where little was installed, and need not run again where more is.

A run with `--write-passed FILE` lists the tests that passed; one with `--not-again FILE` leaves
these out, but for those in folders whose tests are about what a machine has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

# They compile, start what is installed, or read what it writes: installing more changes them.
OF_THE_MACHINE = ("browser", "clients", "exports", "measuring", "tooling")


def passed_tests(stats: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the names of the tests that passed and had no error when they were taken down.

    `stats` are pytest's reports by outcome.
    """
    failed = {report.nodeid for name in ("failed", "error") for report in stats.get(name, ())}
    return sorted({report.nodeid for report in stats.get("passed", ())} - failed)


def is_run_again(test: str, passed: Collection[str]) -> bool:
    """Return whether a test runs though these have passed."""
    return test not in passed or test.startswith(tuple(f"tests/{name}/" for name in OF_THE_MACHINE))


def read_passed(path: Path) -> frozenset[str]:
    """Return the names that a run has written."""
    return frozenset(path.read_text(encoding="utf-8").splitlines())


def write_passed(path: Path, stats: Mapping[str, Sequence[Any]]) -> None:
    """Write a name a line."""
    path.write_text("\n".join(passed_tests(stats)) + "\n", encoding="utf-8")
