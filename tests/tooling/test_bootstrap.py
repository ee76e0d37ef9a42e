"""The set-up of `.venv`: refusals in one line, fresh starts, and a launcher for the checkout."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose locks are empty, in a folder with a space, as people have them."""
    root = tmp_path / "my checkout"
    (root / "tools").mkdir(parents=True)
    (root / "tools" / "bootstrap.py").write_text((ROOT / "tools" / "bootstrap.py").read_text())
    for lock in ("requirements.lock", "requirements-dev.lock"):
        (root / lock).write_text("")
    (root / "app").mkdir()
    (root / "app" / "cli.py").write_text(
        "import sys\ndef main():\n    print('called with', *sys.argv[1:])\n    return 3\n"
    )
    return root


@pytest.fixture
def bootstrap(checkout: Path) -> ModuleType:
    """The tool of that checkout, as a module."""
    spec = importlib.util.spec_from_file_location("bootstrap", checkout / "tools" / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def quick(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The same, with the pip that runs the tests and nothing compiled: both take seconds."""
    monkeypatch.setattr(bootstrap, "compile_all", lambda: None)
    monkeypatch.setattr(bootstrap, "from_ensurepip", lambda: None)
    monkeypatch.setattr(bootstrap, "WHEEL_FOLDERS", ())
    return bootstrap


def set_up(checkout: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(checkout / "tools" / "bootstrap.py"), "run"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def no_pip_anywhere(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = ("from_ensurepip", "from_wheel", "from_pip_at_hand", "from_virtualenv", "from_uv")
    for source in sources:
        monkeypatch.setattr(bootstrap, source, lambda: None)


def test_a_set_up_ends_in_a_launcher_and_is_then_left_alone(checkout: Path, tmp_path: Path) -> None:
    """`sluice` works from any folder and passes its status on; a second call has nothing to do."""
    first = set_up(checkout)
    assert first.returncode == 0, first.stderr
    assert "ready after" in first.stdout
    command = [str(checkout / ".venv" / "bin" / "sluice"), "fit", "a file"]
    called = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (called.returncode, called.stdout) == (3, "called with fit a file\n")
    second = set_up(checkout)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")


def test_an_interrupted_set_up_starts_afresh(quick: ModuleType, checkout: Path) -> None:
    """A package that was unpacked by half must not count as installed."""
    quick.prepare("run", system_packages=False)
    remains = checkout / ".venv" / "half-unpacked"
    remains.touch()
    (checkout / ".venv" / ".unfinished").touch()
    quick.prepare("run", system_packages=False)
    assert not remains.exists()
    assert not (checkout / ".venv" / ".unfinished").exists()


def test_a_changed_lock_makes_a_new_environment(quick: ModuleType, checkout: Path) -> None:
    """What the old lock had installed does not linger."""
    quick.prepare("run", system_packages=False)
    old = checkout / ".venv" / "old"
    old.touch()
    (checkout / "requirements.lock").write_text("# another\n")
    quick.prepare("run", system_packages=False)
    assert not old.exists()
    assert quick.stamp_holds("run")


def test_tests_are_added_to_what_the_service_needs(quick: ModuleType, checkout: Path) -> None:
    """`make test` after `make demo` installs the difference; the reverse installs nothing."""
    quick.prepare("run", system_packages=False)
    kept = checkout / ".venv" / "kept"
    kept.touch()
    quick.prepare("dev", system_packages=False)
    assert kept.exists()
    assert quick.covers("dev", "run")
    assert not quick.covers("run", "dev")


def test_a_failed_install_is_shown_and_leaves_no_stamp(
    quick: ModuleType, checkout: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """pip's own words come before our line."""
    (checkout / "requirements.lock").write_text("no-hash==1\n")
    with pytest.raises(quick.CannotContinueError, match="the install failed"):
        quick.prepare("run", system_packages=False)
    assert "hash" in capfd.readouterr().err.lower()
    assert not (checkout / ".venv" / ".ready-run").exists()


@pytest.mark.parametrize("version", [(3, 10), (3, 15), (4, 0)])
def test_a_python_out_of_range_is_refused_in_one_line(
    version: tuple[int, int],
    bootstrap: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The line says what is needed, what was found and how to name another."""
    monkeypatch.setattr(bootstrap.sys, "version_info", (*version, 1, "final", 0))
    monkeypatch.setattr(bootstrap.sys, "argv", ["bootstrap.py", "run"])
    assert bootstrap.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "Python 3.11 to 3.14 is needed" in line
    assert "{}.{}".format(*version) in line
    assert "make PYTHON=" in line


def test_without_pip_and_without_leave_the_command_is_given(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests install no system package, not even as root."""
    no_pip_anywhere(bootstrap, monkeypatch)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 0)
    monkeypatch.setattr(bootstrap.subprocess, "call", lambda *_, **__: pytest.fail("installs"))
    version = "{}.{}".format(*sys.version_info[:2])
    with pytest.raises(bootstrap.CannotContinueError, match=f"python{version}-venv$"):
        bootstrap.find_installer(system_packages=False)


def test_root_may_have_the_package_installed(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With leave, and only as root, the package that brings ensurepip is installed."""
    no_pip_anywhere(bootstrap, monkeypatch)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: f"/usr/bin/{name}")
    commands: list[list[str]] = []

    def call(command: list[str], **_: object) -> int:
        commands.append(command)
        monkeypatch.setattr(bootstrap, "from_ensurepip", lambda: ["pip", "install"])
        return 0

    monkeypatch.setattr(bootstrap.subprocess, "call", call)
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 1000)
    with pytest.raises(bootstrap.CannotContinueError):
        bootstrap.find_installer(system_packages=True)
    assert commands == []
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 0)
    assert bootstrap.find_installer(system_packages=True) == ["pip", "install"]
    assert [command[:2] for command in commands] == [["apt-get", "update"], ["apt-get", "install"]]


def test_settings_of_pip_that_lead_elsewhere_are_dropped(
    quick: ModuleType, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PIP_TARGET and the like would install beside `.venv` and look as if all was well."""
    given: list[dict[str, str]] = []
    popen = subprocess.Popen

    def watched(command: list[str], *, env: dict[str, str], **rest: Any) -> subprocess.Popen[str]:
        given.append(env)
        return popen(command, env=env, **rest)

    monkeypatch.setenv("PIP_USER", "1")
    monkeypatch.setenv("PIP_TARGET", str(checkout / "elsewhere"))
    monkeypatch.setattr(quick.subprocess, "Popen", watched)
    quick.install(["true"], "requirements.lock")
    (environment,) = given
    assert not {"PIP_USER", "PIP_TARGET"} & set(environment)
    assert environment["PATH"]
