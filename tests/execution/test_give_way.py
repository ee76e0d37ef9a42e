"""Operations in worker processes go last, also where sessions are scheduled against sessions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.execution import processes

CHECKOUT = Path(__file__).parents[2]
GUARD_S = 60
SCRIPT = """
import os
from pathlib import Path
from app.execution.processes import give_way
os.setsid()
give_way(10)
of_the_session = Path("/proc/self/autogroup")
print(os.nice(0), of_the_session.read_text().split()[-1] if of_the_session.exists() else 10)
"""


def test_a_process_and_its_session_give_way() -> None:
    """Both say 10; a kernel without autogroups has nothing else to say."""
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
        timeout=GUARD_S,
        start_new_session=False,
    )
    # The process may itself have been started at some niceness.
    assert ran.stdout.split() == [str(min(19, os.nice(0) + 10)), "10"]


@pytest.mark.parametrize("refusal", [PermissionError, FileNotFoundError])
def test_without_autogroups_niceness_is_all(
    monkeypatch: pytest.MonkeyPatch, refusal: type[OSError]
) -> None:
    """No error, and no second try."""
    tried = []

    def refuse(*_: Any) -> None:
        tried.append(1)
        raise refusal

    given: list[int] = []
    monkeypatch.setattr(os, "nice", given.append)
    monkeypatch.setattr("builtins.open", refuse)
    processes.give_way(7)
    assert (given, tried) == ([7], [1])


def test_who_has_to_wait_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes such changes of other users a few times a second."""
    tried: list[int] = []

    def refuse(*_: Any) -> None:
        tried.append(1)
        raise BlockingIOError

    monkeypatch.setattr(os, "nice", lambda _: 0)
    monkeypatch.setattr(processes, "_PAUSE_S", 0.0)
    monkeypatch.setattr("builtins.open", refuse)
    processes.give_way(7)
    assert 1 < len(tried) < 100
