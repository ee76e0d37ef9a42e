"""Files that a command writes: whole or not at all, in place of what they held."""

from __future__ import annotations

import os
from pathlib import Path

from domain.errors import InvalidInput


def check_target(name: str, *, field: str, noun: str, example: str) -> None:
    """Refuse what cannot become a file before any work is done. Raises InvalidInput."""
    path = Path(name)
    if name in ("", "-") or path.is_dir():
        raise InvalidInput(f"expected the name of a file for {noun}, as {example}", field=field)
    if not path.parent.is_dir():
        raise InvalidInput(f"the folder of {noun}'s file does not exist", field=field)


def write_whole(name: str, content: bytes, *, field: str, noun: str) -> None:
    """Write the file. Raises InvalidInput."""
    path = Path(name).resolve()
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)  # a pipe or a device
        else:
            _replace(path, content)
    except OSError as refusal:
        reason = refusal.strerror or "it cannot be written"
        raise InvalidInput(f"{noun}'s file: {reason}", field=field) from None


def _replace(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
