"""The Python in the client's documents runs as it stands, and prints what they show."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sluice_client
from sluice_client import Client, SluiceClientError, Table, errors
from tests.app.serving import Live, serving, settings_for
from tests.architecture.documents import ROOT, Block, code_words, document
from tests.architecture.test_examples import ADDRESS, pattern, printed
from tests.support.compiler import require_native_kernels

GUIDE = document("docs/python-client.md")
README = document("clients/python/README.md")
GUARD_S = 120.0  # against examples that hang; nothing that works comes near
MARK = "--- the next block ---"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A service of this file's own."""
    folder = tmp_path_factory.mktemp("service")
    with serving(settings_for(f"sqlite:///{folder / 'sluice.db'}")) as live:
        yield live


def blocks(name: str) -> list[tuple[Block, Block | None]]:
    """Python, and what it prints."""
    return [pair for pair in document(name).blocks() if pair[0].language == "python"]


@pytest.mark.parametrize("name", [GUIDE.name, README.name])
def test_the_examples_do_what_is_shown(name: str, service: Live, tmp_path: Path) -> None:
    """One after the other, as a reader would type them, in a folder like the checkout."""
    require_native_kernels()  # NumPy's rounding cuts a byte elsewhere, as fast
    for shared in ("examples", "tests"):
        (tmp_path / shared).symlink_to(ROOT / shared)
    text = "".join(f"{block.text}\nprint({MARK!r}, flush=True)\n" for block, _ in blocks(name))
    ended = subprocess.run(
        [sys.executable, "-c", ADDRESS.sub(f"127.0.0.1:{service.port}", text)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "clients" / "python" / "src")},
        capture_output=True,
        text=True,
        timeout=GUARD_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    outputs = ended.stdout.split(MARK + "\n")
    for (block, shown), output in zip(blocks(name), outputs[:-1], strict=True):
        assert shown is not None
        assert pattern(shown.text.rstrip()).fullmatch(printed(output)), (
            f"{block.text}\nprinted\n{output}\nand not\n{shown.text}"
        )


def test_the_documents_have_examples() -> None:
    """Those that no test finds would not be run."""
    assert len(blocks(GUIDE.name)) >= 9
    assert len(blocks(README.name)) == 2


def test_every_method_is_documented() -> None:
    """The table names each, and no other."""
    documented = {word for row in GUIDE.rows("Methods") for word in code_words(row[0])}
    assert documented == {name for name in dir(Client) if not name.startswith("_")}


def test_every_error_is_documented() -> None:
    """Below the one that all are below."""
    documented = {word for row in GUIDE.rows("Errors") for word in code_words(row[0])}
    defined = {
        value.__name__
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, SluiceClientError)
    }
    assert documented | {"SluiceClientError"} == defined
    assert defined <= set(sluice_client.__all__)


def test_everything_of_a_table_is_documented() -> None:
    """Its lookups and what it says of itself."""
    words = {word for row in GUIDE.rows("Reading a table file") for word in code_words(row[0])}
    documented = {word.partition("(")[0].removeprefix("Table.") for word in words}
    assert documented == {name for name in vars(Table) if not name.startswith("_")}


def test_every_name_that_is_offered_is_documented() -> None:
    """Somewhere in the guide."""
    missing = {
        name
        for name in sluice_client.__all__
        if name not in GUIDE.text and name not in {"__version__"}
    }
    assert missing <= {"Certificate", "FieldProblem", "Problem", "TableDescription"}
