"""The distribution: built, installed into an environment without the checkout, and used there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.architecture.documents import ROOT, document


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was made of the sdist alone.

    The compiler does not optimise: that takes ten times as long, and gives the same bits.
    """
    folder = tmp_path_factory.mktemp("dist")
    environment = dict(os.environ)
    if compiler := shutil.which("cc") or shutil.which("gcc") or shutil.which("clang"):
        plain = folder / "plain-cc"
        plain.write_text(f'#!/bin/sh\nexec {compiler} "$@" -O0\n')
        plain.chmod(0o755)
        environment["CC"] = str(plain)
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run([*build, "-t", "sdist"], cwd=ROOT, check=True, capture_output=True)
    (sdist,) = folder.glob("*.tar.gz")
    (folder / "source").mkdir()
    subprocess.run(["tar", "-xzf", str(sdist), "-C", str(folder / "source")], check=True)
    (source,) = (folder / "source").iterdir()
    wheel = [*build, "-t", "wheel"]
    subprocess.run(wheel, cwd=source, env=environment, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, the dependencies of this one, and nothing of the checkout."""
    home = tmp_path_factory.mktemp("environment")
    make = [sys.executable, "-m", "venv", "--without-pip", str(home)]
    subprocess.run(make, check=True, capture_output=True)
    python = home / "bin" / "python"
    places = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    )
    dependencies = Path(places.stdout.strip()) / "dependencies.pth"
    dependencies.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    (wheel,) = built.glob("*.whl")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps"]
    subprocess.run([*install, "--no-compile", str(wheel)], check=True, capture_output=True)
    return home


def run(home: Path, *words: str, folder: Path) -> str:
    """What a program of the environment prints, started in a folder that holds nothing."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["XDG_DATA_HOME"] = str(folder / "data")
    done = subprocess.run(
        [home / "bin" / words[0], *words[1:]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("native_kernels")
def test_it_installs_one_package(installed: Path) -> None:
    """Nothing called app or models, and the kernels where a compiler is."""
    (packages,) = (installed / "lib").glob("python*/site-packages")
    ours = {path.name for path in packages.iterdir()} - {"dependencies.pth"}
    assert {name for name in ours if not name.endswith(".dist-info")} == {"sluice"}
    assert list((packages / "sluice/solvers/kernels/native/build").glob("*"))


def test_the_library(installed: Path, tmp_path: Path) -> None:
    """The names of the package, as its documentation has them."""
    blocks = document("docs/python-client.md").blocks()
    ((example, shown),) = (pair for pair in blocks if pair[0].language == "py")
    program = (
        f"import sluice, sys\n{example.text}\n"
        "print([getattr(sluice, name).__name__ for name in sluice.__all__] != [])\n"
        "print([name for name in ('app', 'models', 'domain') if name in sys.modules])\n"
    )
    assert shown is not None
    assert run(installed, "python", "-c", program, folder=tmp_path).split("\n")[:3] == [
        shown.text,
        "True",
        "[]",
    ]


def test_the_command(installed: Path, tmp_path: Path) -> None:
    """A solve in this process, one in a worker, and a profile in the user's data folder."""
    small = run(installed, "sluice", "optimize", "myrinet-gam", "--bytes", "4KiB", folder=tmp_path)
    assert "184.357 µs" in small or "184.4 µs" in small
    table = ("table", "myrinet-gam", "--to", "8KiB", "--output", "small.slt")
    run(installed, "sluice", *table, folder=tmp_path)
    assert (tmp_path / "small.slt").read_bytes()[:3] == b"\x89SL"
    assert "myrinet-gam" in run(installed, "sluice", "profiles", "list", folder=tmp_path)
    assert (tmp_path / "data" / "sluice" / "sluice.db").is_file()
