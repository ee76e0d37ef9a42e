"""What others do to a file while it is read; as a program it does that until it is killed.

python file_changes.py PATH OTHER...: PATH gets the bytes of the others, or parts of them.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time
from pathlib import Path


def change(path: Path, files: list[bytes], rng: random.Random) -> None:
    """Do to the file what others do: copy over it, shorten, remove or replace it."""
    data, kind = rng.choice(files), rng.randrange(5)
    with contextlib.suppress(FileNotFoundError):
        if kind == 0:
            path.write_bytes(data[: rng.randrange(len(data))])
        elif kind == 1:
            path.write_bytes(data)
        elif kind == 2:
            os.truncate(path, rng.randrange(len(data)))
        elif kind == 3:
            path.unlink()
        else:
            beside = path.with_suffix(f".{rng.randrange(1 << 30)}")
            beside.write_bytes(data)
            os.replace(beside, path)


def main() -> None:
    """Change the file until killed, or until nobody is there who would."""
    path, *others = map(Path, sys.argv[1:])
    files, rng, parent = [other.read_bytes() for other in others], random.Random(6), os.getppid()
    while os.getppid() == parent:
        change(path, files, rng)
        time.sleep(1e-4)


if __name__ == "__main__":
    main()
