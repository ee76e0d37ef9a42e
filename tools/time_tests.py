"""A plugin of pytest that writes the processor time of files of tests to tools/test_seconds.json.

    .venv/bin/python -m pytest -p tools.time_tests [-n 3] [files]

A time is that of the process and of the children that it has waited for, in s. Files that the run
has not met keep their times, and so do files of which it skipped a test, where they are longer.
"""

from __future__ import annotations

import json
import resource
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

from tools.quick_tests import CHECKOUT, SECONDS

_KEY = "processor_s"


def pytest_configure(config: pytest.Config) -> None:
    """Measure in every process; add up and write in the one that is told of all tests."""
    config.pluginmanager.register(Measuring())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Writing(CHECKOUT))


class Measuring:
    """Gives the report of each phase of a test what was used since the one before."""

    def __init__(self) -> None:
        self._until_now_s = 0.0

    def pytest_runtest_logstart(self) -> None:
        """Leave out what was used between two tests."""
        self._until_now_s = _processor_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Set-up, call and end each have a report."""
        report = yield
        before_s, self._until_now_s = self._until_now_s, _processor_s()
        report.user_properties = [(_KEY, self._until_now_s - before_s)]
        return report


class Writing:
    """Adds up the reports of each file, and puts the sums into the table."""

    def __init__(self, checkout: Path) -> None:
        self._checkout = checkout
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._with_skips: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add what one phase has used to its file's sum."""
        file = report.nodeid.partition("::")[0]
        self._seconds[file] += _used_s(report)
        if report.skipped:
            self._with_skips.add(file)

    def pytest_sessionfinish(self) -> None:
        """Write the table, files by their names."""
        table = self._checkout / SECONDS
        before = json.loads(table.read_text(encoding="utf-8")) if table.exists() else {}
        there = {file: s for file, s in before.items() if (self._checkout / file).is_file()}
        measured = {file: self._longest_s(file, there) for file in self._seconds}
        text = json.dumps(there | measured, indent=1, sort_keys=True) + "\n"
        table.write_text(text, encoding="utf-8")

    def _longest_s(self, file: str, before: dict[str, float]) -> float:
        """Return what it took; where tests were skipped, what it took before if that was more."""
        seconds = round(self._seconds[file], 1)
        return max(seconds, before.get(file, 0.0)) if file in self._with_skips else seconds


def _processor_s() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _used_s(report: pytest.TestReport) -> float:
    return sum(float(str(s)) for name, s in report.user_properties if name == _KEY)
