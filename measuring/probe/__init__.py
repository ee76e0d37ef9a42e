"""The probe: a program in C11 that times stages and signatures, and where the built one is.

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
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-pthread")
LIBRARIES = ("-ldl",)
IS_PROGRAM = True


def sources() -> list[Path]:
    """Return the C sources, in the order in which they are compiled; none but on Linux."""
    return sorted(FOLDER.glob("*.c")) if sys.platform == "linux" else []


def object_path() -> Path:
    """Return where the program for these sources, flags and this platform is, once it is built."""
    digest = hashlib.sha256(" ".join((*FLAGS, *LIBRARIES)).encode())
    for path in sorted(FOLDER.glob("*.[ch]")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return BUILD / f"probe-{sys.platform}-{platform.machine()}-{digest.hexdigest()[:16]}"


def program() -> Path:
    """Return the built program. Raises NotMeasurable where there is none."""
    found = object_path()
    if found.exists():
        return found
    raise NotMeasurable(
        "the probe is not built here: it needs Linux and a C compiler (apt-get install gcc), and "
        "is compiled by make ready-run or python tools/build_kernels.py"
    )
