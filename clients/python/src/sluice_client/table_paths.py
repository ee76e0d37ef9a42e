"""Table files of a file system: where one lies, by the convention of libsluice, and what is one."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader

from sluice_client.errors import InvalidTable

VARIABLE = "SLUICE_TABLE"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_SYSTEM = "/etc/sluice"


def found_path(name: str) -> str:
    """Return the path of the table of this name. Raises FileNotFoundError, ValueError."""
    if _NAME.fullmatch(name) is None:
        raise ValueError("expected a name of a-z, 0-9, '.', '_' and '-', at most 64 characters")
    place = os.environ.get(VARIABLE)
    if place and not os.path.isdir(place):
        return place
    for folder in [place] if place else _folders():
        path = os.path.join(folder, f"{name}.slt")
        if os.path.exists(path):
            return path
    raise FileNotFoundError(errno.ENOENT, "there is no table of this name", f"{name}.slt")


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BufferedReader]:
    """Open a regular file for reading, and close it. Raises InvalidTable for a pipe or a device,
    which is not waited for, OSError.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise InvalidTable("a table is a regular file")
        yield file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))


def _folders() -> list[str]:
    own = os.environ.get("XDG_CONFIG_HOME")
    home = os.environ.get("HOME")
    if own:
        return [os.path.join(own, "sluice"), _SYSTEM]
    return [os.path.join(home, ".config", "sluice"), _SYSTEM] if home else [_SYSTEM]
