"""A plugin of pytest that writes the processor time of files of tests to tools/test_seconds.json.

    .venv/bin/python -m pytest -p tools.time_tests [-n 3] [files]

A time is that of the process and of the children that it has waited for, in s. Files that take less
than `UNKNOWN_S` are not listed; files that the run has not met keep their times.
"""

from __future__ import annotations

import json
import resource
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

from tools.quick_tests import CHECKOUT, SECONDS, UNKNOWN_S

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

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add what one phase has used to its file's sum."""
        self._seconds[report.nodeid.partition("::")[0]] += _used_s(report)

    def pytest_sessionfinish(self) -> None:
        """Write the table, files by their names."""
        table = self._checkout / SECONDS
        before = json.loads(table.read_text(encoding="utf-8")) if table.exists() else {}
        there = {file: s for file, s in before.items() if (self._checkout / file).is_file()}
        measured = {file: round(s, 1) for file, s in self._seconds.items()}
        listed = {file: s for file, s in (there | measured).items() if s > UNKNOWN_S}
        text = json.dumps(listed, indent=1, sort_keys=True) + "\n"
        table.write_text(text, encoding="utf-8")


def _processor_s() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _used_s(report: pytest.TestReport) -> float:
    return sum(float(str(s)) for name, s in report.user_properties if name == _KEY)
