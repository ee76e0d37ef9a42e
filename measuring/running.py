"""The probe as a process: asked line by line, and killed with all that it started.

from measuring.running import Probe
with Probe(["stage", "pipe", "--max-bytes", "65536"]) as probe:
    found = probe.ask("4096")
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from domain.errors import InvalidInput, NotMeasurable

START_S = 30.0  # memory and files are filled before the first answer
ANSWER_S = 30.0
_WRONG, _NOT_HERE = 2, 3  # exit statuses of the probe
_PIECE = 65536


class Probe:
    """One running probe. Raises NotMeasurable where what is to be timed is not here, fails or does
    not answer in time, and InvalidInput for a question that it refuses.
    """

    def __init__(
        self, program: Path, arguments: Sequence[str], *, start_s: float = START_S
    ) -> None:
        # A session of its own: Ctrl-C is for the asking process, which then ends this one.
        self._process = subprocess.Popen(
            [str(program), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._name, self._read = arguments[1], b""
        self.facts: dict[str, str] = {}
        try:
            while "ready" not in self.facts:
                name, _, value = self._line(start_s).removeprefix("# ").partition(": ")
                self.facts[name] = value
        except BaseException:
            self.close()
            raise

    def ask(self, line: str) -> str:
        """Return the answer to one line."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # why it ended is on its standard error
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        return self._line(ANSWER_S)

    def close(self) -> None:
        """End it and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def __enter__(self) -> Probe:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _line(self, limit_s: float) -> str:
        assert self._process.stdout is not None
        end_s = time.monotonic() + limit_s
        while b"\n" not in self._read:
            left_s = end_s - time.monotonic()
            if left_s <= 0 or not select.select([self._process.stdout], [], [], left_s)[0]:
                raise NotMeasurable(f"{self._name}: no answer in {limit_s:g} s")
            piece = os.read(self._process.stdout.fileno(), _PIECE)
            if not piece:
                raise self._ended()
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()

    def _ended(self) -> InvalidInput | NotMeasurable:
        assert self._process.stderr is not None
        said = self._process.stderr.read(_PIECE).decode(errors="replace").strip()
        status = self._process.wait()
        detail = f"{self._name}: {said or f'the probe ended with {status}'}"
        return InvalidInput(detail, field="measure") if status == _WRONG else NotMeasurable(detail)
