"""Many clients in one C program (overload.c), so that they leave the processors to the service."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.machine import CHECKOUT


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request was answered: status (0: the connection ended), how long it took, when."""

    status: int
    took_ms: float
    came_ms: float


@dataclass(frozen=True, slots=True)
class Crowd:
    """Clients that post `body`, whose NNNNNNNN is another number each time, to `path`."""

    port: int
    path: str
    program: Path
    body: Path

    @classmethod
    @contextmanager
    def posting(cls, port: int, path: str, body: str) -> Iterator[Crowd]:
        """Compile the program and keep it while the block lasts."""
        with tempfile.TemporaryDirectory(prefix="sluice-crowd-") as folder:
            crowd = cls(port, path, Path(folder, "overload"), Path(folder, "body.json"))
            source = str(CHECKOUT / "bench" / "overload.c")
            subprocess.run(["cc", "-O2", "-o", str(crowd.program), source], check=True)
            crowd.body.write_text(body)
            yield crowd

    def asking(
        self,
        clients: int,
        seconds: float,
        *,
        meanwhile: Callable[[], object] = lambda: None,
        retry_s: float = 0.0,
        rest_s: float = 0.0,
    ) -> list[Answer]:
        """Return what all were answered in these seconds; `meanwhile` runs beside them.

        Clients rest for about `rest_s` after each answer; where it is 0 they ask at once, and who
        is refused asks again when Retry-After says so, or all of them after `retry_s`.
        """
        how = ["rest", str(rest_s)] if rest_s else ["again", str(retry_s)]
        words = [str(self.port), str(clients), str(seconds), self.path, str(self.body), *how]
        # Into a file: a pipe that nobody empties would stop the clients.
        with tempfile.TemporaryFile("w+") as output:
            with subprocess.Popen([str(self.program), *words], stdout=output):
                meanwhile()
            output.seek(0)
            return [_answer(line) for line in output]


def _answer(line: str) -> Answer:
    status, took_ms, came_ms = line.split()
    return Answer(int(status), float(took_ms), float(came_ms))
