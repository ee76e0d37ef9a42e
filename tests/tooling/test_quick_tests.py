"""Which tests `make quick` chooses: on planted checkouts, and within its time on this one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

import pytest

from tests.architecture.documents import PACKAGES
from tools import quick_tests
from tools.quick_tests import (
    BUDGET_S,
    CHECKOUT,
    SECONDS,
    Candidate,
    Changed,
    Choice,
    Why,
    candidates,
    changed_paths,
    choose,
    main,
    report,
)
from tools.time_tests import Measuring, Writing

PLANTED = {
    "domain/units.py": "",
    "app/text/numbers.py": "",
    "app/web/answers/view.py": "",
    "app/ui/assets/bars.js": "",
    "tests/domain/test_units.py": "",
    "tests/domain/test_pipeline.py": "from domain import units\n",
    "tests/domain/test_plan.py": "import domain.plan\n",
    "tests/solvers/test_solve.py": "def test_it():\n    from domain.units import MIB\n",
    "tests/solvers/test_other.py": "from domain.unitsofold import MIB\n",
    "tests/app/serving.py": "",
    "tests/app/test_bodies.py": "from tests.app.serving import settings_for\n",
    "tests/app/text/test_words.py": "",
    "tests/web/test_answer_advice.py": "",
    "tests/web/test_charts.py": 'SCRIPT = "bars.js"\n',
    "tests/contracts/test_strategies.py": "from domain.units import MIB\n",
    "tests/golden/test_golden.py": "",
    "tests/architecture/test_documents.py": "",
    "tests/architecture/test_sources.py": "",
    "tests/architecture/test_examples.py": "",
    "tests/browser/test_walk.py": "from domain.units import MIB\n",
    "tests/clients/test_c_library.py": "from domain.units import MIB\n",
    "tests/clients/test_python_table.py": "import sluice_client.table\n",
    "tests/models/test_migrations.py": "",
    "tests/tooling/test_makefile.py": "",
}


def planted(folder: Path, seconds: Mapping[str, float] | None = None) -> list[Candidate]:
    """The tests of a checkout with the planted files, and with times where some are given."""
    for name, text in PLANTED.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    if seconds is not None:
        (folder / SECONDS).parent.mkdir()
        (folder / SECONDS).write_text(json.dumps(seconds))
    return candidates(folder)


@pytest.fixture(scope="module")
def tests(tmp_path_factory: pytest.TempPathFactory) -> list[Candidate]:
    """Those of the planted files, each taking half a second."""
    return planted(tmp_path_factory.mktemp("checkout"), dict.fromkeys(PLANTED, 0.5))


def why(choice: Choice) -> dict[str, Why]:
    """The reason of each file that is run, by its path below tests."""
    return {
        test.path.removeprefix("tests/").removesuffix(".py"): reason
        for reason, tests in choice.chosen.items()
        for test in tests
    }


HOLD = dict.fromkeys(
    ("architecture/test_sources", "contracts/test_strategies", "golden/test_golden"),
    Why.EVERYWHERE,
)


def test_a_changed_module_brings_its_readers_then_its_package(
    tests: list[Candidate],
) -> None:
    """Wherever the import stands; a name that only begins alike is none."""
    assert why(choose(["domain/units.py"], tests)) == {
        **HOLD,
        "domain/test_units": Why.NEAR,
        "domain/test_pipeline": Why.NEAR,
        "solvers/test_solve": Why.ELSEWHERE,
        "domain/test_plan": Why.PACKAGE,
    }


@pytest.mark.parametrize(
    ("changed", "near"),
    [
        ("app/web/answers/view.py", {"web/test_answer_advice"}),  # named after the folder
        ("app/ui/assets/bars.js", {"web/test_charts"}),  # names the file
        ("tests/app/serving.py", {"app/test_bodies"}),
        ("clients/python/src/sluice_client/table.py", {"clients/test_python_table"}),
        ("clients/c/src/lookup.c", {"clients/test_c_library"}),
        ("migrations/versions/0001_first.py", set()),
        ("Makefile", {"tooling/test_makefile"}),
        ("docs/units.md", set()),
    ],
)
def test_what_is_near_is_read_named_or_named_after(
    changed: str, near: set[str], tests: list[Candidate]
) -> None:
    """In the folders of tests that belong to the package."""
    reasons = why(choose([changed], tests))
    assert {path for path, reason in reasons.items() if reason is Why.NEAR} == near


@pytest.mark.parametrize(
    ("changed", "folders"),
    [
        ("app/text/numbers.py", {"app"}),
        ("app/web/answers/view.py", {"app", "web"}),
        ("migrations/versions/0001_first.py", {"models"}),
        ("tools/quick_tests.py", {"tooling"}),
        (".ci/run", {"tooling"}),
        ("docs/cli.md", {"architecture"}),
        ("README.md", {"architecture"}),
        ("clients/python/README", {"clients"}),
        ("tests/app/test_bodies.py", set()),
        ("tests/web/conftest.py", {"web"}),
    ],
)
def test_a_file_has_the_tests_that_mirror_its_package(
    changed: str, folders: set[str], tests: list[Candidate]
) -> None:
    """Those of app have two places; what is in no package goes with the tools."""
    found = Changed(PurePosixPath(changed)).folders({Path(test.path).parts[1] for test in tests})
    assert found == {f"tests/{name}" for name in folders}


def test_a_changed_test_comes_first_and_brings_no_neighbours(tests: list[Candidate]) -> None:
    """A test that is new or mended is run in any case that there is time for."""
    reasons = why(choose(["tests/app/test_bodies.py"], tests))
    assert reasons == {"app/test_bodies": Why.CHANGED, **HOLD}


def test_nothing_is_run_where_nothing_has_changed(tests: list[Candidate]) -> None:
    """Also none of those that hold for every package."""
    assert choose([], tests).paths == []


def test_no_browser_no_documents_and_no_compiler_for_nothing(tests: list[Candidate]) -> None:
    """They are said to be left out; a test of the C library that has changed itself is run."""
    left = [test.path for test in choose(["domain/units.py", "docs/cli.md"], tests).never]
    assert left == [
        "tests/architecture/test_examples.py",
        "tests/browser/test_walk.py",
        "tests/clients/test_c_library.py",
    ]
    reasons = why(choose(["tests/clients/test_c_library.py"], tests))
    assert reasons["clients/test_c_library"] is Why.CHANGED
    browser = choose(["tests/browser/test_walk.py"], tests)
    assert "tests/browser/test_walk.py" not in browser.paths


def test_the_time_goes_to_the_nearest_first_and_then_to_the_shortest(tmp_path: Path) -> None:
    """What does not fit is left out, and what comes after it and fits is not."""
    seconds = {
        **dict.fromkeys(PLANTED, 0.5),
        "tests/domain/test_units.py": 6.0,
        "tests/domain/test_pipeline.py": 1.0,
        "tests/contracts/test_strategies.py": 4.0,
        "tests/golden/test_golden.py": 2.0,
    }
    choice = choose(["domain/units.py"], planted(tmp_path, seconds), budget_s=11.0)
    assert choice.paths == [
        *("tests/architecture/test_sources.py", "tests/golden/test_golden.py"),
        *("tests/contracts/test_strategies.py", "tests/domain/test_pipeline.py"),
        *("tests/solvers/test_solve.py", "tests/domain/test_plan.py"),
    ]
    assert [test.path for test in choice.too_long] == ["tests/domain/test_units.py"]
    assert choice.seconds == 8.5


def test_a_module_that_is_gone_brings_those_that_still_import_it(tests: list[Candidate]) -> None:
    """They would fail."""
    assert why(choose(["domain/plan.py"], tests))["domain/test_plan"] is Why.NEAR


def test_the_report_says_what_why_and_what_is_left(tmp_path: Path) -> None:
    """By reason and folder, in lines that can be read; a long list of changes is cut."""
    choice = choose(
        ["domain/units.py"],
        planted(tmp_path, {**dict.fromkeys(PLANTED, 0.5), "tests/domain/test_plan.py": 500.0}),
    )
    lines = report("since it left main", [f"domain/{i}.py" for i in range(12)], choice).splitlines()
    assert lines[0] == "changed since it left main: 12 files"
    assert lines[10:12] == ["  domain/9.py", "  and 2 more"]
    assert f"{Why.NEAR} (1 s)" in lines
    assert lines[lines.index(f"{Why.NEAR} (1 s)") + 1] == "  tests/domain: pipeline units"
    assert lines[-2:] == [
        "past 100 s, left to `make test`: 1 files",
        "browser, documents' commands, C library: left to `make test`: 2 files",
    ]
    assert max(map(len, lines)) <= 100


# --- what has changed -----------------------------------------------------------------------------


class Repository:
    """A git repository with one commit on main."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main")
        self.commit("first.py")

    def git(self, *arguments: str) -> None:
        """Run git, as nobody in particular."""
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *arguments], cwd=self.folder, check=True, capture_output=True)

    def write(self, *names: str) -> None:
        """Put a line into each of these files."""
        for name in names:
            with (self.folder / name).open("a") as file:
                file.write("line\n")

    def commit(self, *names: str) -> None:
        """Write these files and commit everything."""
        self.write(*names)
        self.git("add", "--all")
        self.git("commit", "-q", "-m", "commit")

    def changed(self) -> tuple[str, Sequence[str]]:
        """What the tool finds."""
        return changed_paths(self.folder)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A fresh one."""
    return Repository(tmp_path)


def test_a_branch_is_compared_with_where_it_left_main(repository: Repository) -> None:
    """Its commits, and what is uncommitted or untracked; not what main has got since then."""
    repository.git("checkout", "-q", "-b", "branch")
    repository.commit("second.py")
    repository.git("checkout", "-q", "main")
    repository.commit("other.py")
    repository.git("checkout", "-q", "branch")
    repository.write("first.py", "new file.py")
    repository.git("mv", "second.py", "third.py")
    names = ["first.py", "new file.py", "third.py"]
    assert repository.changed() == ("since it left main", names)


def test_on_main_it_is_what_is_uncommitted_else_the_last_commit(repository: Repository) -> None:
    """Where there is no other main to compare with; the very first commit has nothing before it."""
    assert repository.changed() == ("since it left main", [])
    repository.commit("second.py")
    assert repository.changed() == ("in the last commit", ["second.py"])
    repository.write("first.py")
    assert repository.changed() == ("since it left main", ["first.py"])


def test_on_main_it_is_what_the_others_main_has_not(repository: Repository) -> None:
    """That of the project before that of a fork; what is pushed already counts as the last."""
    for remote in ("upstream", "origin"):
        repository.git("update-ref", f"refs/remotes/{remote}/main", "HEAD")
        repository.commit(f"{remote}.py")
    found = ("since it left upstream/main", ["origin.py", "upstream.py"])
    assert repository.changed() == found
    repository.git("update-ref", "refs/remotes/upstream/main", "HEAD")
    assert repository.changed() == ("in the last commit", ["origin.py"])


def test_what_is_ignored_has_not_changed(repository: Repository) -> None:
    """What tools have made."""
    (repository.folder / ".gitignore").write_text("*.log\n")
    repository.write("a.log")
    assert repository.changed()[1] == [".gitignore"]


def test_without_git_the_command_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An archive's checkout has neither."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="make quick needs git"):
        changed_paths(tmp_path)


# --- the times ----------------------------------------------------------------------------------


def reported(
    file: str, seconds: float, outcome: Literal["passed", "skipped"] = "passed"
) -> pytest.TestReport:
    """The report of a phase of a test that took this much processor time."""
    name = f"{file}::test_it"
    properties = [("processor_s", seconds)]
    return pytest.TestReport(
        name, (file, 1, ""), {}, outcome, None, "call", user_properties=properties
    )


def test_the_times_of_a_run_replace_those_before_it(tmp_path: Path) -> None:
    """Phases add up; what the run has not met stays while it is there; a skip shortens nothing."""
    before = {"tests/domain/test_units.py": 9.0, "tests/domain/test_plan.py": 3.0, "gone.py": 4.0}
    skipped = "tests/solvers/test_solve.py"
    planted(tmp_path, {**before, "tests/golden/test_golden.py": 8.0, skipped: 7.0})
    writing = Writing(tmp_path)
    for seconds in (0.5, 1.54):
        writing.pytest_runtest_logreport(reported("tests/domain/test_units.py", seconds))
    writing.pytest_runtest_logreport(reported("tests/golden/test_golden.py", 0.1))
    writing.pytest_runtest_logreport(reported(skipped, 2.0))
    writing.pytest_runtest_logreport(reported(skipped, 0.0, "skipped"))
    writing.pytest_sessionfinish()
    assert json.loads((tmp_path / SECONDS).read_text()) == {
        "tests/domain/test_plan.py": 3.0,
        "tests/domain/test_units.py": 2.0,
        "tests/golden/test_golden.py": 0.1,
        skipped: 7.0,
    }


def test_a_phase_has_the_time_of_the_process_and_of_its_children() -> None:
    """The report says what was used since the one before."""
    measuring = Measuring()
    measuring.pytest_runtest_logstart()
    for work in ("sum(range(10**6))", ""):
        subprocess.run([sys.executable, "-c", work], check=True)
        phase = measuring.pytest_runtest_makereport()
        next(phase)
        with pytest.raises(StopIteration) as ended:
            phase.send(reported("test_it.py", 0.0))
        ((name, used_s),) = ended.value.value.user_properties
        assert name == "processor_s"
        assert used_s > 0.0


# --- this checkout --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def all_tests() -> list[Candidate]:
    """Those of this checkout."""
    return candidates(CHECKOUT)


@pytest.mark.parametrize(
    ("changed", "at_least"),
    [
        ("domain/pipeline.py", 60),
        ("domain/errors.py", 60),
        ("app/errors.py", 20),
        ("app/text/numbers.py", 25),
        ("solvers/__init__.py", 25),
        ("tests/conftest.py", 60),
    ],
)
def test_changes_at_the_bottom_stay_within_the_time(
    changed: str, at_least: int, all_tests: list[Candidate]
) -> None:
    """Many files are run, those that hold for every package among them."""
    choice = choose([changed], all_tests)
    assert choice.seconds <= BUDGET_S
    assert len(choice.paths) >= at_least
    assert any(path.startswith("tests/golden/") for path in choice.paths)


def test_every_package_has_a_folder_of_tests(all_tests: list[Candidate]) -> None:
    """No change of the product is tested with the tools alone."""
    folders = {Path(test.path).parts[1] for test in all_tests}
    for package in PACKAGES:
        found = Changed(PurePosixPath(package, "__init__.py")).folders(folders)
        assert f"tests/{package}" in found


def test_the_list_runs_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tests: list[Candidate]
) -> None:
    """`--list` prints; without it pytest gets its options and the files, and gives the status."""
    monkeypatch.setattr(quick_tests, "changed_paths", lambda _: ("since", ["domain/units.py"]))
    monkeypatch.setattr(quick_tests, "candidates", lambda _: tests)
    asked: list[list[str]] = []

    def ran(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(quick_tests.subprocess, "run", ran)
    assert main(["--list"]) == 0
    assert asked == []
    assert "tests/domain: " in capsys.readouterr().out
    assert main(["-n", "3"]) == 1
    (command,) = asked
    assert command[1:5] == ["-m", "pytest", "-n", "3"]
    assert "tests/domain/test_units.py" in command
