"""Fixtures of every test: databases; and what the run says at its end."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import certifi
import pytest

from analysis import explain
from models.session import Store, create_store
from tests.support import compiler, once, system
from tests.support.counts import keep_known_characters, register_hypothesis_profiles
from tests.support.postgres import PostgresServer, RunFolder

DIALECTS = ("sqlite", "postgresql")

register_hypothesis_profiles()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run write which tests passed, and another one leave these out."""
    parser.addoption("--write-passed", type=Path, help="list the tests that passed in this file")
    parser.addoption("--not-again", type=Path, help="leave out tests that passed, by such a file")


def pytest_configure(config: pytest.Config) -> None:
    """Open the folder that the processes of this run share."""
    # They are of this run, test processes included, and not of what the tests start.
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        os.environ.pop("PYTEST_ADDOPTS", None)
    config.stash[_RUN] = RunFolder.open()
    os.environ["SSL_CERT_FILE"] = str(_one_certificate(config.stash[_RUN].path))
    # A shell without job control has what it puts in the background ignore Ctrl-C, and so has
    # whatever that starts: commands that the tests end with it would go on.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _one_certificate(folder: Path) -> Path:
    """A file of one certificate: all 140 take a tenth of a second for each client of httpx.

    Nothing here speaks TLS.
    """
    end = "-----END CERTIFICATE-----\n"
    first, _, _ = Path(certifi.where()).read_text(encoding="ascii").partition(end)
    file = folder / "certificate.pem"
    file.write_text(first[first.index("-----BEGIN") :] + end, encoding="ascii")
    return file


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop and remove what this run has started, whatever its result."""
    config.stash[_RUN].close()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while modules are loaded, which all stay: a tenth of the time."""
    keep_known_characters()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes long: at the end the other processes would wait for it."""
    if (file := config.getoption("--not-again")) is not None:
        passed = once.read_passed(file)
        left_out = [item for item in items if not once.is_run_again(item.nodeid, passed)]
        items[:] = [item for item in items if once.is_run_again(item.nodeid, passed)]
        config.hook.pytest_deselected(items=left_out)
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """Leave the tests themselves out of every garbage collection to come: they stay to the end."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With CI=true a run that skipped anything has failed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and (file := session.config.getoption("--write-passed")) is not None:
        once.write_passed(file, reporter.stats)
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if skipped and system.in_ci() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List what was skipped and the commands that install what it needs."""
    lines = system.summary_lines(terminalreporter.stats.get("skipped", []))
    if lines:
        terminalreporter.section("not tested here")
        for line in lines:
            terminalreporter.line(line)
        if system.in_ci():
            terminalreporter.line("CI=true: a skip is a failure", red=True)


@pytest.fixture(scope="session")
def postgres(pytestconfig: pytest.Config) -> Iterator[PostgresServer]:
    """The PostgreSQL server of this run; it starts with the first database."""
    server = PostgresServer(pytestconfig.stash[_RUN].path)
    yield server
    server.drop_left()


@pytest.fixture(params=DIALECTS)
def empty_database_url(
    request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer
) -> Iterator[str]:
    """The URL of a database without a schema, on each database in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'sluice.db'}"
    else:
        with postgres.empty_database() as url:
            yield url


@pytest.fixture(scope="session")
def new_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], str]:
    """Makes an SQLite database with the schema in a folder, and gives its URL.

    A copy of one on which the migrations ran: running them takes far longer than most tests.
    """
    migrated = tmp_path_factory.mktemp("schema") / "sluice.db"
    store = create_store(f"sqlite:///{migrated}")
    store.upgrade()
    store.dispose()

    def made(folder: Path) -> str:
        path = folder / "sluice.db"
        shutil.copyfile(migrated, path)
        return f"sqlite:///{path}"

    return made


@pytest.fixture(params=DIALECTS)
def database_url(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    postgres: PostgresServer,
    new_sqlite: Callable[[Path], str],
) -> Iterator[str]:
    """The URL of a database with the schema and nothing in it, on each database in turn."""
    if request.param == "sqlite":
        yield new_sqlite(tmp_path)
    else:
        with postgres.database() as url:
            yield url


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """An empty store with its schema, on each database in turn."""
    opened = create_store(database_url)
    yield opened
    opened.dispose()


@pytest.fixture
def sqlite_store(tmp_path: Path, new_sqlite: Callable[[Path], str]) -> Iterator[Store]:
    """An empty store with its schema on SQLite."""
    opened = create_store(new_sqlite(tmp_path))
    yield opened
    opened.dispose()


_RUN = pytest.StashKey[RunFolder]()


@pytest.fixture
def explained_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine, every cheaper pipeline is solved to its end."""
    for name in ("SOLVES_LIMIT_S", "ONE_SOLVE_LIMIT_S"):
        monkeypatch.setattr(explain, name, 300.0)


@pytest.fixture(scope="session")
def native_kernels() -> None:
    """What a C compiler makes: the solvers' kernels, and with them the probe."""
    compiler.require_native_kernels()
