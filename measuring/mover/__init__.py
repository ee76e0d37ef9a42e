"""The mover's tool: a program in C11 of clients/c/mover, and where the built one is.

tools/build_kernels.py builds it. There is none without a compiler, or before the first build.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from pathlib import Path

from domain.errors import NotMeasurable

FOLDER = Path(__file__).resolve().parent
BUILD = FOLDER / "build"
CLIENT = FOLDER.parent.parent / "clients" / "c"
# -ffp-contract=off: the solver's grids are the same whatever the machine can fuse.
FLAGS = (
    *("-std=c11", "-O2", "-ffp-contract=off", "-pthread"),
    *(f"-I{CLIENT / 'include'}", f"-I{CLIENT / 'mover' / 'include'}"),
)
LIBRARIES = ("-lm",)
IS_PROGRAM = True

_SOURCES = ("src", "mover/src", "mover/tool")
_HEADERS = (*_SOURCES, "include", "mover/include")


def sources() -> list[Path]:
    """Return the C sources, in the order in which they are compiled; none but on Linux."""
    if sys.platform != "linux":
        return []
    return [path for folder in _SOURCES for path in sorted((CLIENT / folder).glob("*.c"))]


def object_path() -> Path:
    """Return where the program for these sources, flags and this platform is, once it is built."""
    digest = hashlib.sha256(" ".join((*FLAGS[:-2], *LIBRARIES)).encode())
    for folder in _HEADERS:
        for path in sorted((CLIENT / folder).glob("*.[ch]")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return BUILD / f"mover-{sys.platform}-{platform.machine()}-{digest.hexdigest()[:16]}"


def program() -> Path:
    """Return the built program. Raises NotMeasurable where there is none."""
    found = object_path()
    if found.exists():
        return found
    raise NotMeasurable(
        "the mover is not built here: it needs Linux and a C compiler (apt-get install gcc), and "
        "is compiled by make ready-run or python tools/build_kernels.py"
    )
