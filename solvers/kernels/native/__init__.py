"""The kernels in C11, and the loader of the shared object that is built of them.

tools/build_kernels.py builds it. There is none for these very sources without a compiler, or before
the first build. Then the same kernels in NumPy take over, which compute the same.
SLUICE_KERNELS=numpy asks for that; SLUICE_KERNELS=native makes the absence of a build an error.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import sys
import sysconfig
from pathlib import Path
from typing import Literal, get_args

from domain.errors import InvalidInput

FOLDER = Path(__file__).resolve().parent
BUILD = FOLDER / "build"
FLAGS = (
    "-std=c11",
    "-D_POSIX_C_SOURCE=200809L",
    "-O3",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",  # a result must not depend on the processor's instructions
    "-fno-math-errno",
    "-fno-trapping-math",
)
Choice = Literal["auto", "native", "numpy"]
CHOICES: tuple[Choice, ...] = get_args(Choice)


def sources() -> list[Path]:
    """Return the C sources, in the order in which they are compiled."""
    return sorted(FOLDER.glob("*.c"))


def object_path() -> Path:
    """Return where the shared object for these sources, flags and this platform is, once it is
    built.
    """
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for path in sorted(FOLDER.glob("*.[ch]")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    tag = f"{sys.platform}-{platform.machine()}"
    suffix = sysconfig.get_config_var("SHLIB_SUFFIX") or ".so"
    return BUILD / f"kernels-{tag}-{digest.hexdigest()[:16]}{suffix}"


def asked() -> Choice:
    """Return what SLUICE_KERNELS says, "auto" where it says nothing. Raises InvalidInput."""
    text = os.environ.get("SLUICE_KERNELS") or "auto"
    for choice in CHOICES:
        if text == choice:
            return choice
    raise InvalidInput(f"expected one of {', '.join(CHOICES)}", field="SLUICE_KERNELS")


def load_library(choice: Choice) -> ctypes.CDLL | None:
    """Return the loaded kernels, or None for NumPy, and for "auto" where there is no build.

    Raises InvalidInput where "native" is chosen and there is no build.
    """
    if choice == "numpy":
        return None
    try:
        return ctypes.CDLL(str(object_path()))
    except OSError:
        if choice == "auto":
            return None
    raise InvalidInput(
        "there is no native build here; run tools/build_kernels.py", field="SLUICE_KERNELS"
    )
