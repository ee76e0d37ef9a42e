"""An installed UCX: its headers and its library, for which the probe is compiled.

from measuring.ucx import Ucx
words, libraries = Ucx().compiling()  # cc ... and -lucp ...
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

from domain.errors import NotMeasurable

_HEADER = "#include <ucp/api/ucp.h>\n"
_PACKAGE = "ucx"  # of pkg-config
_LIBRARIES = ("-lucp", "-lucs")


@dataclass(frozen=True, slots=True)
class Ucx:
    """The UCX that the compiler $CC (cc) finds, or pkg-config where that knows of one."""

    @property
    def missing(self) -> str:
        """What is not here, and what would bring it; empty where nothing is missing."""
        compiler = _compiler()
        if shutil.which(compiler[0]) is None:
            return f"not here: there is no {compiler[0]} (apt-get install gcc)"
        line = [*compiler, *_flags("--cflags"), "-fsyntax-only", "-x", "c", "-"]
        try:
            done = subprocess.run(line, input=_HEADER, text=True, capture_output=True, check=False)
        except OSError as refusal:
            return f"not here: {compiler[0]} cannot be run: {refusal.strerror}"
        return "not here: there is no ucp/api/ucp.h (libucx-dev)" if done.returncode else ""

    def compiling(self) -> tuple[list[str], list[str]]:
        """Return the words before the sources, and behind them. Raises NotMeasurable."""
        if missing := self.missing:
            raise NotMeasurable(f"ucx: {missing}")
        words = [*_compiler(), "-DPROBE_UCX", *_flags("--cflags")]
        return words, _flags("--libs") or list(_LIBRARIES)

    def launch(self) -> list[str]:
        """Return the words that start the program: none, it makes its second process itself."""
        return []


def _compiler() -> list[str]:
    return os.environ.get("CC", "").split() or ["cc"]


def _flags(option: str) -> list[str]:
    """What pkg-config says of UCX; nothing without either."""
    if shutil.which("pkg-config") is None:
        return []
    line = ["pkg-config", option, _PACKAGE]
    done = subprocess.run(line, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout.split() if done.returncode == 0 else []
