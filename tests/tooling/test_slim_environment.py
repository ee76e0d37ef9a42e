"""The image leaves packages out: the product never loads them, and nothing else is deleted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.slim_environment import PACKAGES, PARTS, main

ROOT = Path(__file__).parents[2]
# What `uvicorn[standard]` brings besides; the extra `dask` has some of it for itself.
NOT_INSTALLED = ("yaml", "watchfiles", "websockets", "dotenv")

# Every module of the product, the server with its options, and a solve by a linear program.
PROGRAM = """
import importlib, pkgutil, sys

LEFT_OUT = set(sys.argv[1].split(","))
OF_CLUSTERS = ("app.execution.cluster", "app.execution.node")  # there with the extra alone

class Absent:
    def find_spec(self, name, path=None, target=None):
        parts = name.split(".")
        if LEFT_OUT & {".".join(parts[:length]) for length in range(1, len(parts) + 1)}:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Absent())
for package in ("contract", "domain", "fitting", "measuring", "solvers", "exports", "models",
                "analysis", "papers", "app"):
    found = importlib.import_module(package)
    for module in pkgutil.walk_packages(found.__path__, package + "."):
        if "yaml" in LEFT_OUT and module.name in OF_CLUSTERS:
            continue
        importlib.import_module(module.name)

from app.main import create_app
from app.serving import configured
from app.settings import Settings

configured(create_app(Settings()), log_level="info").load()

from app.cli import main

sys.exit(main(["optimize", "myrinet-gam", "--bytes", "64KiB", "--strategy", "exact"]))
"""


@pytest.mark.parametrize("kept", [(), ("yaml",)])
def test_the_product_runs_without_what_the_image_leaves_out(
    kept: tuple[str, ...], tmp_path: Path
) -> None:
    """Without the extra for Dask, which the modules of a cluster need, and with it."""
    packages = [name for name in (*PACKAGES, *NOT_INSTALLED) if name not in kept]
    absent = ",".join([*packages, *(part.replace("/", ".") for part in PARTS)])
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, absent],
        cwd=ROOT,
        env={**os.environ, "SLUICE_DATABASE_URL": f"sqlite:///{tmp_path / 'sluice.db'}"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr


def test_what_is_left_out_goes_and_nothing_else(tmp_path: Path) -> None:
    """Packages with what says that they are installed, tests and stubs of all others."""
    site = tmp_path / "lib" / "python3.13" / "site-packages"
    gone = (
        "pandas/core/frame.py",
        "pandas-3.0.0.dist-info/METADATA",
        "python_dateutil-2.9.dist-info/METADATA",
        "six.py",
        "scipy/special/tests/test_basic.py",
        "numpy/__init__.pyi",
        "ortools/sat/python/cp_model.py",
    )
    kept = (
        "numpy/testing/__init__.py",
        "scipy/special/basic.py",
        "ortools/linear_solver/python/model_builder_helper.so",
        "ortools/.libs/libortools.so",
        "pip_audit_like/__init__.py",
        "pandas_like/__init__.py",
    )
    for name in (*gone, *kept):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).touch()
    main(tmp_path)
    assert not any((site / name).exists() for name in gone)
    assert all((site / name).exists() for name in kept)
    main(tmp_path)
