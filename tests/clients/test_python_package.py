"""The Python client as a distribution of its own: built, installed, used outside the checkout."""

from __future__ import annotations

import ast
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import sluice_client

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "clients" / "python"
TABLE = ROOT / "tests" / "data" / "tables" / "v1" / "worked-example.slt"
USER = """
from sluice_client import AsyncClient, Client, Table

def cut(path: str) -> list[int]:
    return Table.open(path).schedule(333)

def ask(client: Client) -> float:
    return client.optimize(message_bytes=4096, profile="gms").latency_us

async def wait(client: AsyncClient) -> tuple[int, ...]:
    answer = await client.schedule("gms", 4096)
    return answer.fragment_bytes
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by what the lock file holds, without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
    run(*command, "--no-index", "--wheel-dir", str(folder), str(SOURCES), cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def outside(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("outside")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps"]
    run(*command, "--no-index", str(wheel), cwd=folder)
    return python


def run(*command: str, cwd: Path) -> str:
    """What a command prints; it ends with 0."""
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_wheel_holds_the_package_and_no_more(wheel: Path) -> None:
    """With the mark that it is typed, its licence, and a dependency of the clients alone."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        reported = message_from_bytes(archive.read(metadata))
    inside = {str(path.relative_to(SOURCES / "src")) for path in SOURCES.rglob("*.py")}
    inside |= {f"sluice_client/contract/{path.name}" for path in (ROOT / "contract").glob("*.py")}
    assert {name for name in names if ".dist-info/" not in name} == {
        *inside,
        "sluice_client/py.typed",
    }
    assert any(name.endswith("/LICENSE") for name in names)
    assert (reported["Name"], reported["Version"]) == ("sluice-client", sluice_client.__version__)
    assert reported.get_all("Requires-Dist") == ["httpx<1,>=0.28; extra == 'client'"]
    assert (reported["Requires-Python"], reported.get_all("Provides-Extra")) == (
        ">=3.9",
        ["client"],
    )
    assert reported["License-Expression"] == "Apache-2.0"
    assert "Typing :: Typed" in reported.get_all("Classifier", [])
    assert "Table.open" in str(reported.get_payload())


def test_the_reader_works_where_there_is_nothing_else(outside: Path, tmp_path: Path) -> None:
    """Not even httpx, which only the clients ask for."""
    reading = f"from sluice_client import Table; print(Table.open({str(TABLE)!r}).schedule(333))"
    assert run(str(outside), "-I", "-c", reading, cwd=tmp_path) == "[146, 187]\n"
    asking = (
        "import sluice_client\n"
        "try: sluice_client.Client\n"
        "except ModuleNotFoundError as error: print(error.name, error)"
    )
    assert run(str(outside), "-I", "-c", asking, cwd=tmp_path) == (
        "httpx sluice_client.Client needs httpx: pip install 'sluice-client[client]'\n"
    )


def reader_files(outside: Path, folder: Path) -> set[str]:
    """The modules that a program loads which only reads tables."""
    listing = (
        f"import sys; from sluice_client import Table; Table.open({str(TABLE)!r}); "
        "print(*(one.__file__ for name, one in sys.modules.items() if name[:7] == 'sluice_'))"
    )
    return {Path(one).name for one in run(str(outside), "-I", "-c", listing, cwd=folder).split()}


def test_the_reader_is_written_for_older_pythons(outside: Path, tmp_path: Path) -> None:
    """Its modules and the tracer are linted for 3.9, and have nothing that came after it."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        linted = tomllib.load(file)["tool"]["ruff"]["per-file-target-version"]
    assert set(linted.values()) == {"py39"}
    assert {Path(name).name for name in linted} == {*reader_files(outside, tmp_path), "trace.py"}
    for name in linted:
        text = (ROOT / name).read_text()
        module = ast.parse(text, feature_version=(3, 9))
        assert "from __future__ import annotations" in text or not imports_anything(module)
        keywords = {node.arg for node in ast.walk(module) if isinstance(node, ast.keyword)}
        assert not keywords & {"slots", "kw_only", "strict"}
        assert not {"pairwise", "UTC", "Self", "StrEnum", "TypeAlias"} & names_in(module)


def imports_anything(module: ast.Module) -> bool:
    """Whether a module needs another one."""
    return any(isinstance(node, ast.Import | ast.ImportFrom) for node in module.body)


def names_in(module: ast.Module) -> set[str]:
    """Imported names, and those that are used."""
    used = {node.id for node in ast.walk(module) if isinstance(node, ast.Name)}
    return used | {node.name for node in ast.walk(module) if isinstance(node, ast.alias)}


@pytest.mark.parametrize("version", [(3, 9), (3, 10)])
def test_an_older_python_reads_tables_and_is_told_what_clients_need(
    version: tuple[int, int], outside: Path, tmp_path: Path
) -> None:
    """As if the interpreter were of that version; it says so itself."""
    asking = (
        f"import sys; sys.version_info = {(*version, 0)}\n"
        f"import sluice_client as one; print(one.Table.open({str(TABLE)!r}).schedule(333))\n"
        "try: one.Client\n"
        "except ImportError as error: print(error)"
    )
    assert run(str(outside), "-I", "-c", asking, cwd=tmp_path) == (
        "[146, 187]\nsluice_client.Client needs Python 3.11 or later; Table does not\n"
    )


def test_every_name_that_is_offered_is_there(outside: Path, tmp_path: Path) -> None:
    """Beside httpx, which stands in from the environment of the tests."""
    home = sysconfig.get_paths()["purelib"]
    program = (
        f"import sys; sys.path.append({home!r}); import sluice_client as one; "
        "print(all(hasattr(one, name) for name in one.__all__), one.__file__)"
    )
    found, place = run(str(outside), "-I", "-c", program, cwd=tmp_path).split()
    assert found == "True"
    assert Path(place).is_relative_to(outside.parents[1])


def test_the_installed_package_is_typed(outside: Path, tmp_path: Path) -> None:
    """A strict checker of the user's takes its types; what is wrong is found."""
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "wrong.py").write_text(USER.replace("-> float", "-> str"))
    (tmp_path / "unknown.py").write_text(USER.replace("message_bytes=", "message_byte="))
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-incremental"]
    command += ["--python-executable", str(outside), "--follow-imports=silent"]
    run(*command, "user.py", cwd=tmp_path)
    for name, said in (
        ("wrong.py", 'got "float", expected "str"'),
        ("unknown.py", 'Unexpected keyword argument "message_byte"'),
    ):
        ended = subprocess.run(
            [*command, name], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 1
        assert said in ended.stdout
