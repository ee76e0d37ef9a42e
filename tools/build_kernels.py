"""Compile the native kernels into one shared object, where a C compiler is found.

    python3 tools/build_kernels.py

Without a compiler the service runs on NumPy: one line says so, and the exit status is 0. The object
is named after its sources, so that a build of other sources is never loaded; it is written beside
its place and moved there in one step, so that builds may run side by side.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
COMPILERS = ("cc", "gcc", "clang")


def say(text: str) -> None:
    print(f"sluice: {text}", flush=True)


def loader() -> ModuleType:
    """The loader's module, for its names and flags; it imports nothing heavy."""
    sys.path.insert(0, str(ROOT))  # it imports the domain's errors
    path = ROOT / "solvers" / "kernels" / "native" / "__init__.py"
    spec = importlib.util.spec_from_file_location("sluice_native", path)
    if spec is None or spec.loader is None:
        raise SystemExit("sluice: solvers/kernels/native is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiler() -> list[str] | None:
    """The compiler's command: $CC, or the first of the usual names."""
    asked = os.environ.get("CC", "").split()
    if asked and shutil.which(asked[0]):
        return asked
    found = next((name for name in COMPILERS if shutil.which(name)), None)
    return [found] if found else None


def main() -> int:
    native = loader()
    target: Path = native.object_path()
    if target.exists():
        return 0
    command = compiler()
    if command is None:
        say("no C compiler found: the solver runs on NumPy, which is slower")
        return 0
    try:
        target.parent.mkdir(exist_ok=True)
        return build(command, native, target)
    except OSError as reason:
        say(f"native kernels not built ({reason}): the solver runs on NumPy")
        return 0


def build(command: list[str], native: ModuleType, target: Path) -> int:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        names = [str(path) for path in native.sources()]
        line = [*command, *native.FLAGS, "-o", str(made), *names, "-lm"]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[0]
            say(f"native kernels not built ({reason}): the solver runs on NumPy")
            return 0
        os.replace(made, target)
    for old in target.parent.glob("kernels-*"):
        if old != target:
            old.unlink(missing_ok=True)
    say("native kernels compiled")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
