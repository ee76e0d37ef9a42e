"""The C library of clients/c, compiled for lookups of the service itself.

tools/build_kernels.py compiles it together with answer.c of this folder. `library()` is None
without a compiler or before the first build; table files are then read in Python, which gives the
same integers, later. SLUICE_KERNELS means what it means to the solvers' kernels: "numpy" asks for
Python, "native" makes the absence of a build an error.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import sys
import sysconfig
from functools import cache
from pathlib import Path

from domain.errors import InvalidInput

FOLDER = Path(__file__).resolve().parent
BUILD = FOLDER / "build"
CLIENT = FOLDER.parent.parent / "clients" / "c"
FLAGS = (
    "-std=c11",
    "-O2",
    "-fPIC",
    "-shared",
    f"-I{CLIENT / 'include'}",
)


def sources() -> list[Path]:
    """The C sources, in the order in which they are compiled."""
    library_sources = sorted((CLIENT / "src").glob("*.c"))
    return [*library_sources, *sorted(FOLDER.glob("*.c"))] if library_sources else []


def object_path() -> Path:
    """Where the shared object for these sources, flags and this platform is, once it is built."""
    digest = hashlib.sha256(" ".join(FLAGS[:-1]).encode())
    for path in _named():
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    tag = f"{sys.platform}-{platform.machine()}"
    suffix = sysconfig.get_config_var("SHLIB_SUFFIX") or ".so"
    return BUILD / f"tables-{tag}-{digest.hexdigest()[:16]}{suffix}"


def _named() -> list[Path]:
    """All that the object is made of."""
    folders = CLIENT / "src", CLIENT / "include", FOLDER
    return [path for folder in folders for path in sorted(folder.glob("*.[ch]"))]


@cache
def library() -> ctypes.PyDLL | None:
    """The loaded library, or None where files are to be read in Python. Raises InvalidInput.

    Its calls keep the interpreter's lock: they end sooner than the lock could be handed over.
    """
    asked = os.environ.get("SLUICE_KERNELS") or "auto"
    if asked == "numpy":
        return None
    try:
        return ctypes.PyDLL(str(object_path()))
    except OSError:
        if asked != "native":
            return None
    raise InvalidInput(
        "there is no native build here; run tools/build_kernels.py", field="SLUICE_KERNELS"
    )
