"""The C compiler and the build of the kernels, for tests that need them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from solvers.kernels.native import object_path
from tests.support.system import require_system

ROOT = Path(__file__).resolve().parents[2]


def compiler() -> str:
    """The C compiler; without one the test is skipped, and in CI it fails."""
    found = [path for path in map(shutil.which, ("cc", "gcc", "clang")) if path]
    require_system(found, "a C compiler", "apt-get install gcc libc6-dev")
    return found[0]


@cache
def require_native_kernels() -> None:
    """Kernels built from the sources as they are: those that `library` would load.

    Asked for by many tests, looked at once: the sources do not change while the tests run.
    """
    compiler()
    reported = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "build_kernels.py")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert object_path().exists(), reported.stdout


def build_gpu_driver(folder: Path) -> None:
    """Make a libcuda.so.1 in a folder whose GPU is memory of the host; LD_LIBRARY_PATH finds it."""
    words = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", folder / "libcuda.so.1"]
    subprocess.run([compiler(), *words, Path(__file__).with_name("like_cuda.c")], check=True)


def build_shifted_clock(folder: Path) -> Path:
    """Make a library that moves the time of day of who loads it by SLUICE_TEST_CLOCK_S seconds."""
    library = folder / "shifted_clock.so"
    words = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", library]
    source = Path(__file__).with_name("shifted_clock.c")
    subprocess.run([compiler(), *words, source, "-ldl"], check=True)
    return library
