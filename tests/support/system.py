"""What a missing system package makes impossible: skipped, listed at the end, a failure in CI."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

_MARK = "[system] "
_INSTALL = " -- install: "
_APT = re.compile(r"apt-get install ([^,]+)")


def in_ci() -> bool:
    """Whether a skip is a failure."""
    return os.environ.get("CI", "").lower() in ("1", "true")


def require_system(condition: object, what: str, install_command: str) -> None:
    """Skip the test unless the condition holds; with CI=true fail it.

    `what` is missing ("a C compiler"), and `install_command` brings it ("apt-get install gcc").
    """
    if condition:
        return
    if in_ci():
        pytest.fail(f"{what} is missing, and CI allows no skip{_INSTALL}{install_command}")
    pytest.skip(f"{_MARK}{what}{_INSTALL}{install_command}")


def skip_reason(report: Any) -> str:
    """Why this test was skipped."""
    found = report.longrepr
    reason = str(found[2]) if isinstance(found, tuple) else str(found)
    return reason.removeprefix("Skipped: ")


def summary_lines(skipped: list[Any]) -> list[str]:
    """What was not tested and the command that would help, each once; [] without any skip.

    The last line installs all of it, where packages do.
    """
    reasons = [skip_reason(report) for report in skipped]
    lines = []
    for reason in dict.fromkeys(reasons):
        what, _, command = reason.removeprefix(_MARK).partition(_INSTALL)
        times = reasons.count(reason)
        lines.append(f"not tested ({times} skipped): {what}")
        if command:
            lines.append(f"    to test it: {command}")
    packages = sorted({name for reason in reasons for name in _packages(reason)})
    if packages:
        lines.append(f"to test all of it: apt-get install {' '.join(packages)}")
    return lines


def _packages(reason: str) -> list[str]:
    command = reason.partition(_INSTALL)[2]
    return [name for names in _APT.findall(command) for name in names.split()]
