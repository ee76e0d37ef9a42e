"""Compile the native kernels and the reader of table files, where a C compiler is found.

    python3 tools/build_kernels.py

Each becomes one shared object. Without a compiler the service runs on NumPy and reads tables in
Python: one line says so, and the exit status is 0. An object is named after its sources, so that a
build of other sources is never loaded; it is written beside its place and moved there in one step,
so that builds may run side by side.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
IS_STAGED = HERE.name != "tools"  # by tools/package_build.py, at the top of the package sluice
ROOT = HERE if IS_STAGED else HERE.parent
COMPILERS = ("cc", "gcc", "clang")


class Part(NamedTuple):
    """A folder with a loader, what is made of it, and what happens where that is not there."""

    folder: str
    name: str
    instead: str


PARTS = (
    Part("solvers/kernels/native", "native kernels", "the solver runs on NumPy, which is slower"),
    Part("measuring/probe", "the probe", "sluice measure has nothing to measure with"),
    Part("measuring/mover", "the mover", "sluice model mover has nothing to run"),
    Part("exports/native", "the C reader of tables", "tables are read in Python, which is slower"),
)


def say(text: str) -> None:
    print(f"sluice: {text}", flush=True)


def loader(folder: Path) -> ModuleType:
    """A loader's module, for its names and flags; it imports nothing heavy."""
    sys.path.insert(0, str(ROOT.parent if IS_STAGED else ROOT))  # it imports the domain's errors
    spec = importlib.util.spec_from_file_location("sluice_native", folder / "__init__.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"sluice: {folder.relative_to(ROOT)} is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiler() -> list[str] | None:
    """The compiler's command: $CC, or the first of the common names."""
    asked = os.environ.get("CC", "").split()
    if asked and shutil.which(asked[0]):
        return asked
    found = next((name for name in COMPILERS if shutil.which(name)), None)
    return [found] if found else None


class NotBuiltError(Exception):
    """Why there is no shared object, in one line."""


def main() -> int:
    missing = [part for part in PARTS if is_missing(part)]
    if not missing:
        return 0
    command = compiler()
    if command is None:
        say("no C compiler found: the solver runs on NumPy, which is slower")
        return 0
    done = [built(command, part) for part in missing]
    if any(done):
        say("native kernels compiled")
    return 0


def is_missing(part: Part) -> bool:
    """Whether there is something to compile, and no object of it."""
    if not (ROOT / part.folder).is_dir():
        return False
    native = loader(ROOT / part.folder)
    return bool(native.sources()) and not native.object_path().exists()


def built(command: list[str], part: Part) -> bool:
    """Compile one part, or say in one line why there is none."""
    native = loader(ROOT / part.folder)
    target: Path = native.object_path()
    try:
        build(command, native, target)
    except (NotBuiltError, OSError) as reason:
        say(f"{part.name} not built ({reason}): {part.instead}")
        return False
    remove_others(target)
    return True


def build(command: list[str], native: ModuleType, target: Path) -> None:
    """Compile beside the target, and move there what can be loaded."""
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        names = [str(path) for path in native.sources()]
        libraries = getattr(native, "LIBRARIES", ("-lm",))
        line = [*command, *native.FLAGS, "-o", str(made), *names, *libraries]
        done = subprocess.run(line, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            raise NotBuiltError(reason_in(done.stderr))
        # A compiler for another machine makes what this one cannot load or run.
        if getattr(native, "IS_PROGRAM", False):
            if subprocess.run([made, "list"], stdout=subprocess.DEVNULL, check=False).returncode:
                raise NotBuiltError("what was compiled does not run")
        else:
            ctypes.CDLL(str(made))
        os.replace(made, target)


def reason_in(text: str) -> str:
    """The first line that says "error", else the first, not at length."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no reason given"]
    return next((line for line in lines if "error" in line.lower()), lines[0])[:200]


def remove_others(target: Path) -> None:
    """Builds of other sources; one that cannot be removed does no harm."""
    kind, dash, _ = target.name.partition("-")
    for old in target.parent.glob(f"{kind}{dash}*"):
        with contextlib.suppress(OSError):
            if old != target:
                old.unlink()


if __name__ == "__main__":
    raise SystemExit(main())
