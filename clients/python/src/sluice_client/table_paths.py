"""Where a table lies, for programs that are not told: the convention of libsluice."""

from __future__ import annotations

import errno
import os
import re

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


def _folders() -> list[str]:
    own = os.environ.get("XDG_CONFIG_HOME")
    home = os.environ.get("HOME")
    if own:
        return [os.path.join(own, "sluice"), _SYSTEM]
    return [os.path.join(home, ".config", "sluice"), _SYSTEM] if home else [_SYSTEM]
