"""The verbs: what each of them runs, and which settings it passes on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERBS = (
    "demo",
    "serve",
    "test",
    "quick",
    "check",
    "fmt",
    "report",
    "bench",
    "screenshots",
    "campaign",
    "lock",
    "clean",
    "help",
    "installed",
)


# What the `make` around these tests was given, and hands down.
HANDED_DOWN = {
    *("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "PYTHON", "UV", "JOBS", "ONCE", "PORT", "NAME"),
}


def make(*arguments: str) -> str:
    """What `make` prints, as for somebody who has set nothing."""
    clean = {name: text for name, text in os.environ.items() if name not in HANDED_DOWN}
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        env=clean,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def planned(*arguments: str) -> str:
    """The commands that `make` would run, not run."""
    return make("--dry-run", *arguments)


def test_help_lists_every_verb() -> None:
    """A verb without its line in `make help` is not found by anybody."""
    assert {line.split()[0] for line in make("help").splitlines()} == set(VERBS)


@pytest.mark.parametrize("verb", ["demo", "serve"])
def test_what_a_person_starts_installs_only_what_the_service_needs(verb: str) -> None:
    """The lock of the service, and leave to install the package that brings pip."""
    plan = planned(verb)
    assert "tools/bootstrap.py --search run --system-packages" in plan
    assert "bootstrap.py --search dev" not in plan


@pytest.mark.parametrize("verb", ["test", "quick", "check", "bench", "campaign"])
def test_tests_install_no_system_package(verb: str) -> None:
    """The lock of the tests, without that leave."""
    plan = planned(verb)
    assert "tools/bootstrap.py --search dev" in plan
    assert "--system-packages" not in plan


@pytest.mark.parametrize("verb", ["demo", "serve", "test", "quick", "check", "bench", "campaign"])
def test_the_kernels_are_built_before_anything_runs(verb: str) -> None:
    """Directly behind the set-up; it takes no time where nothing has changed."""
    lines = planned(verb).splitlines()
    at = next(i for i, line in enumerate(lines) if "tools/bootstrap.py" in line)
    assert lines[at + 1] == ".venv/bin/python tools/build_kernels.py"


def test_a_named_python_is_not_exchanged_for_another() -> None:
    """Only where nobody chose, a Python that is out of range may be replaced."""
    assert "python3.12 tools/bootstrap.py run" in planned("demo", "PYTHON=python3.12")


@pytest.mark.parametrize(("given", "options"), [("1", " --once"), ("0", ""), ("", "")])
def test_once_stops_the_demo_after_printing(given: str, options: str) -> None:
    """`make demo ONCE=1` passes --once; nothing and 0 keep serving."""
    assert planned("demo", f"ONCE={given}").rstrip().endswith(f"python -m app.demo{options}")


def test_the_environment_wins_over_the_port_of_the_makefile() -> None:
    """PORT becomes SLUICE_PORT unless that is set; without PORT the service chooses."""
    line = planned("serve", "PORT=9000").splitlines()[-1]
    assignment = line.split()[0]
    for environment, port in (({}, "9000"), ({"SLUICE_PORT": "7000"}, "7000")):
        shown = subprocess.run(
            ["sh", "-c", f"{assignment}; echo $SLUICE_PORT"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert shown.stdout.strip() == port
    assert planned("serve").splitlines()[-1].strip() == ".venv/bin/sluice serve"


def test_a_report_looks_for_the_name_that_it_is_given() -> None:
    """`make report NAME=min_gain`; none is looked for where the environment alone has one."""
    assert planned("report", "NAME=min_gain").rstrip().endswith("tools.report --name min_gain")
    assert planned("report").rstrip().endswith("python -m tools.report")


def test_a_campaign_asks_for_the_full_counts() -> None:
    """The tests read SLUICE_CAMPAIGN; `make test` does not set it."""
    assert "SLUICE_CAMPAIGN=1 .venv/bin/python -m pytest" in planned("campaign")
    assert "SLUICE_CAMPAIGN" not in planned("test")


@pytest.mark.parametrize(
    ("verb", "tests"), [("test", "pytest -n 3"), ("quick", "tools.quick_tests -n 3")]
)
def test_tests_follow_the_checks(verb: str, tests: str) -> None:
    """Style, types and walls come first; then pytest with a process more than there are cores."""
    plan = planned(verb)
    words = ["ruff check", "ruff format --check", "mypy", "lint-imports", tests]
    positions = [plan.index(word) for word in words]
    assert positions == sorted(positions)
