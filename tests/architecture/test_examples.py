"""The commands in the documents are run as they stand, and print what the documents show.

A block of commands runs in a folder that looks like the checkout and has a database of its own;
the service's address is exchanged for that of a service on the same database, and `sluice` is
forked from a process that has loaded it (tests/architecture/forked_commands.py). The block right
below it is what it prints: `...` stands for anything inside a line, and alone for any lines.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.architecture.documents import ROOT, Block, Document, document, documents
from tests.support.compiler import require_native_kernels
from tests.support.system import require_system

GUARD_S = 120.0  # against commands that hang; nothing that works comes near
# What sets up an environment, or needs more than this checkout. tests/tooling is about these.
NOT_RUN = ("make", "cp .env", "docker")
ADDRESS = re.compile(r"(?:localhost|127\.0\.0\.1):8080")
NOT_MIRRORED = {".git", "var", ".env", ".venv"}
STAND_IN = Path(__file__).with_name("stand_in_curl.py")
INSTALL = "apt-get install mpich libmpich-dev gcc"  # what the documents' blocks need
FORKED = Path(__file__).with_name("forked_commands.py")


@dataclass(frozen=True, slots=True)
class Stage:
    """A folder to run commands in, their environment, and the address of the service."""

    folder: Path
    environment: dict[str, str]
    address: str

    def run(self, commands: str) -> subprocess.CompletedProcess[str]:
        """Run the commands as they stand, but for the service's address."""
        return subprocess.run(
            ["sh", "-e", "-c", ADDRESS.sub(self.address, commands)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=GUARD_S,
            check=False,
        )


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A folder like the checkout, and a service on its database."""
    folder = tmp_path_factory.mktemp("checkout")
    for path in ROOT.iterdir():
        if path.name not in NOT_MIRRORED:
            (folder / path.name).symlink_to(path)
    environment = _environment(folder)
    command = [str(ROOT / ".venv" / "bin" / "sluice"), "serve", "--json", "--port", "0"]
    with (
        _forking_commands(folder, environment),
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as service,
    ):
        guard = threading.Timer(GUARD_S, service.kill)
        guard.start()
        try:
            assert service.stdout is not None
            address = json.loads(service.stdout.readline())["address"]
            here = Stage(folder, environment, address.removeprefix("http://"))
            ready = f"until curl -s {here.address}/readyz | grep -q '\"ready\"'; do sleep 0.1; done"
            assert here.run(ready).returncode == 0
            guard.cancel()
            yield here
        finally:
            guard.cancel()
            service.terminate()


@contextmanager
def _forking_commands(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Make the folder's `.venv`: that of the checkout, but for `sluice`, which is forked."""
    real, made = ROOT / ".venv", folder / ".venv"
    (made / "bin").mkdir(parents=True)
    for path in (*real.iterdir(), *(real / "bin").iterdir()):
        if path.name not in ("bin", "sluice"):
            (made / path.relative_to(real)).symlink_to(path)
    place = Path(tempfile.mkdtemp(prefix="sluice-")) / "socket"  # its path has to be short
    script = made / "bin" / "sluice"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {FORKED} {place} "$@"\n')
    script.chmod(0o755)
    line = [sys.executable, "-m", "tests.architecture.forked_commands", str(place)]
    with subprocess.Popen(line, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL) as forking:
        try:
            end_s = time.monotonic() + GUARD_S
            while not place.exists():
                assert forking.poll() is None, "no command can be forked"
                assert time.monotonic() < end_s, "waited in vain"
                time.sleep(0.02)
            yield
        finally:
            forking.kill()
            shutil.rmtree(place.parent, ignore_errors=True)


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("SLUICE_")}
    kept.pop("COLUMNS", None)
    if shutil.which("curl") is None:
        _write_curl(folder / "bin")
        kept["PATH"] = f"{folder / 'bin'}{os.pathsep}{kept['PATH']}"
    return {
        **kept,
        "SLUICE_DATABASE_URL": f"sqlite:///{folder / 'var' / 'sluice.db'}",
        "SLUICE_WORKERS": "1",
        "SLUICE_DRAIN_S": "0",
        "PYTHONUTF8": "1",
        "no_proxy": "*",
    }


def _write_curl(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    script = folder / "curl"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    script.chmod(0o755)


def is_run(block: Block) -> bool:
    """Whether a block holds commands, and only such as run offline and in place."""
    lines = block.text.splitlines()
    return block.is_shell and not any(line.startswith(NOT_RUN) for line in lines)


def examples(of: Document) -> list[tuple[Block, Block | None]]:
    """The blocks that are run, with what each prints where the document shows it."""
    found = [(block, below) for block, below in of.blocks() if is_run(block)]
    return [(block, None if below and below.is_shell else below) for block, below in found]


def pattern(shown: str) -> re.Pattern[str]:
    """What a block of output stands for."""
    lines = [
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n"
        for line in shown.splitlines()
    ]
    return re.compile("".join(lines))


def printed(output: str) -> str:
    """What was printed, with plain ends of lines and one at the end."""
    lines = output.replace("\r\n", "\n").rstrip().splitlines()
    return "".join(line.rstrip() + "\n" for line in lines)


@pytest.mark.parametrize("name", [document.name for document in documents() if examples(document)])
def test_the_commands_of_a_document_do_what_it_shows(name: str, stage: Stage) -> None:
    """Each block ends with 0, and prints what stands below it.

    One that needs a program which is not here is left out, and the test is skipped at its end.
    They show figures of a machine with a C compiler.
    """
    require_native_kernels()
    missing = list[str]()
    for commands, shown in examples(document(name)):
        lacking = [program for program in commands.programs if shutil.which(program) is None]
        missing += lacking
        if lacking:
            continue
        ended = stage.run(commands.text)
        output = printed(ended.stdout)
        assert ended.returncode == 0, f"{commands.text}\n{output}"
        if shown is not None:
            assert pattern(shown.text.rstrip()).fullmatch(output), (
                f"{commands.text}\nprinted\n{output}\nand not\n{shown.text}"
            )
    require_system(not missing, f"{', '.join(dict.fromkeys(missing))} for {name}", INSTALL)


@pytest.mark.parametrize(
    ("name", "minimum"),
    [("README.md", 4), ("docs/service.md", 9), ("docs/cli.md", 4), ("docs/operations.md", 5)],
)
def test_the_documents_have_examples(name: str, minimum: int) -> None:
    """Commands that no test finds would not be run."""
    assert len(examples(document(name))) >= minimum


def test_the_example_of_the_readme_is_shown_in_full() -> None:
    """The first thing that a reader sees is what the command prints, nothing left out."""
    commands, shown = next(
        pair for pair in examples(document("README.md")) if "sluice optimize" in pair[0].text
    )
    assert "examples/kv-staging.json" in commands.text
    assert shown is not None
    assert "..." not in shown.text
    assert "best fixed size" in shown.text


@pytest.mark.parametrize(
    "arguments",
    [
        "-s {address}/healthz",
        "-si {address}/healthz",
        "-s '{address}/profiles?limit=1'",
        "-si {address}/simulate -H 'content-type: application/json' "
        '-d \'{{"profile": "gms", "fragment_bytes": [4096]}}\'',
        "-s {address}/fit -H 'content-type: text/csv' "
        "--data-binary @examples/local-path-direct.csv",
        "-si -X DELETE {address}/profiles/nothing",
        "-si {address}/healthz -d x",
    ],
)
def test_the_stand_in_for_curl_gets_what_a_client_gets(
    arguments: str, stage: Stage, tmp_path: Path
) -> None:
    """Where there is no curl the examples run on this, so it has to do what they ask of curl."""
    require_system(shutil.which("curl"), "curl", "apt-get install curl")
    _write_curl(tmp_path)
    line = arguments.format(address=stage.address)
    answers = [
        printed(stage.run(f"{program} {line}").stdout)
        for program in ("curl", str(tmp_path / "curl"))
    ]
    lasting = [re.sub(r"(?m)^(date|x-request-id): .*\n", "", answer) for answer in answers]
    assert lasting[0]
    assert lasting[0] == lasting[1]


def test_the_stand_in_for_curl_refuses_what_it_does_not_know(stage: Stage, tmp_path: Path) -> None:
    """An option of curl that it lacks fails the example instead of being passed over."""
    _write_curl(tmp_path)
    ended = stage.run(f"{tmp_path / 'curl'} -s --compressed {stage.address}/healthz")
    assert ended.returncode == 2
    assert "--compressed" in ended.stdout
