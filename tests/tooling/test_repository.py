"""What a checkout must not hold, and what its lock files must."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pip._internal.models.index import PyPI, TestPyPI

from tests.support.system import require_system

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-dask.lock", "requirements-dev.lock")
NOT_OURS = {".git", ".venv", "node_modules", "var", "__pycache__"}
REQUIREMENT = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9-]*)==(?P<version>[^\s;]+)(?: ; (?P<marker>.+))?"
)
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
# A folder that exists on one machine only: someone's home, a scratch folder, a work folder.
MACHINE_PATH = re.compile(r"(?<![\w.}-])/(?:root|work|tmp|home/\w+|Users/\w+)/\w")


def committed_files() -> list[Path]:
    """Files under version control or about to be; without git, what is not made by tools."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not NOT_OURS & set(path.parts)]
    return [path for path in paths if path.is_file()]


def texts() -> Iterator[tuple[str, str]]:
    """Name and content of every committed file that is text."""
    for path in committed_files():
        content = path.read_bytes()
        if b"\0" not in content:
            yield str(path.relative_to(ROOT)), content.decode("utf-8", errors="replace")


def registry_hosts() -> set[str]:
    """The hosts that packages come from: pip's own, and those that it is configured with here."""
    configured = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    addresses = re.findall(r"https?://[^\s'\"]+", configured)
    hosts = {urlsplit(address).hostname for address in addresses}
    hosts |= {index.netloc for index in (PyPI, TestPyPI)}
    hosts |= {index.file_storage_domain for index in (PyPI, TestPyPI)}
    return {host for host in hosts if host and host not in {"localhost", "127.0.0.1"}}


def locked(lock: str) -> list[tuple[re.Match[str], list[str]]]:
    """Each requirement of a lock with the hash options that follow it."""
    joined = (ROOT / lock).read_text().replace("\\\n", " ")
    entries = []
    for line in joined.splitlines():
        requirement, *options = re.split(r"\s+(?=--)", line)
        if line.strip() and not line.lstrip().startswith("#"):
            match = REQUIREMENT.fullmatch(requirement.strip())
            assert match, f"{lock}: {requirement}"
            entries.append((match, [option.strip() for option in options]))
    return entries


def pins(lock: str) -> set[str]:
    return {match[0] for match, _ in locked(lock)}


def test_no_file_names_a_package_registry() -> None:
    """A checkout works with whatever index pip is configured for, and names none."""
    hosts = registry_hosts()
    assert hosts
    found = [
        f"{name}: {host}"
        for name, text in texts()
        for host in sorted(hosts)
        if host in text.lower()
    ]
    assert found == []


def test_no_file_names_a_path_of_one_machine() -> None:
    """What is committed holds on every machine."""
    found = [
        f"{name}: {match[0]}"
        for name, text in texts()
        if (match := MACHINE_PATH.search(text)) is not None
    ]
    assert found == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_hashes_and_no_addresses(lock: str) -> None:
    """Every pinned package has a SHA-256, so that it does not matter where it comes from."""
    entries = locked(lock)
    assert len(entries) > 20
    for match, hashes in entries:
        assert hashes, match["name"]
        assert all(HASH.fullmatch(option) for option in hashes), match["name"]
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert not re.search(r"^\s*(-i|-f|--index|--extra|--find|--trusted)", text, flags=re.MULTILINE)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_package_locked_twice_is_told_apart_by_markers(lock: str) -> None:
    """Two versions of one package are for different Pythons."""
    markers: dict[str, list[str | None]] = {}
    for match, _ in locked(lock):
        markers.setdefault(match["name"], []).append(match["marker"])
    for name, given in markers.items():
        assert len(given) == len(set(given)), name
        assert len(given) == 1 or None not in given, name


def test_tests_run_on_the_versions_that_are_deployed() -> None:
    """The lock for tests holds all of the run-time lock, to the digit."""
    assert pins("requirements.lock") < pins("requirements-dev.lock")


def test_every_declared_dependency_is_locked() -> None:
    """`make lock` was run after the last change to the dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    declared = {
        "requirements.lock": project["project"]["dependencies"],
        "requirements-dev.lock": project["dependency-groups"]["dev"],
    }
    for lock, requirements in declared.items():
        names = {match["name"] for match, _ in locked(lock)}
        wanted = {re.split(r"[\[<>=,]", text)[0] for text in requirements}
        assert wanted - names == set()


def test_highspy_is_not_a_dependency() -> None:
    """It ships the HiGHS that OR-Tools ships too: one process cannot load both."""
    assert not any(pin.startswith("highspy=") for pin in pins("requirements-dev.lock"))


def test_what_is_installed_fits_together() -> None:
    """The lock is installed without resolving, so that it must be complete by itself."""
    check = subprocess.run(
        [sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False
    )
    assert check.returncode == 0, check.stdout


def test_no_room_is_installed() -> None:
    """The rooms run from the checkout; names like app and models are too generic to install."""
    import app
    import domain
    import solvers

    for room in (app, domain, solvers):
        assert Path(str(room.__file__)).is_relative_to(ROOT)
        assert "site-packages" not in str(room.__file__)


def test_the_licence_is_there_in_full() -> None:
    """LICENSE is the text that pyproject.toml names."""
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"


def test_ci_calls_the_command_that_a_person_calls() -> None:
    """`.ci/run` can be executed, runs bare first, then tries the wheel and ends in `make test`."""
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    lines = script.read_text().splitlines()
    assert lines[0].startswith("#!")
    assert "set -euo pipefail" in lines
    everything = lines.index("export CI=true")
    bare = [at for at, line in enumerate(lines) if line.startswith('"${bare[@]}"')]
    assert [lines[at].split()[-2:] for at in bare] == [["demo", "ONCE=1"], ["make", "test"]]
    assert max(bare) < everything
    assert "make installed" in lines[everything:]
    assert lines[-1].endswith(" make test")


def test_what_ci_calls_bare_has_python_git_make_and_a_compiler_alone(tmp_path: Path) -> None:
    """Whatever else this machine has is not found there."""
    require_system(shutil.which("dpkg-query"), "dpkg-query", "apt-get install dpkg")
    folder = tmp_path / "bin"
    subprocess.run([ROOT / ".ci" / "bare-path", folder, sys.executable], check=True)
    found = {path.name for path in folder.iterdir() if path.exists()}
    assert {"python3", "sh", "awk", "grep", "env"} <= found
    for name in ("git", "make", "gcc"):
        assert (name in found) == (shutil.which(name, path="/usr/bin") is not None), name
    others = (
        "clang g++ c++ mpicc mpirun valgrind cmake curl openssl chromium zsh fish ucx_info psql"
    )
    assert not found & set(others.split())
