"""A program of the user's own that moves the whole message once, cut by the size it is given.

from measuring.own_program import OwnProgram
program = OwnProgram(("./upload", "--part", "{bytes}"), message_bytes=64 << 20)
run = program.run(4 << 20, limit_s=60.0)

No shell reads its words. `{bytes}` in them, or in a variable of its environment, is the size. Its
output is kept to its last MiB. It gets SIGTERM when it takes too long, and all that it started is
killed END_S later, as when it ends, and when the caller is killed.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO

from domain.errors import CannotRun, InvalidInput, NotMeasurable
from measuring.printed_times import TimeReader
from measuring.running import ask_to_end, ended_by, killed

SIZE = "{bytes}"
END_S = 2.0  # from SIGTERM until it is killed
_TAIL_BYTES, _ERROR_BYTES = 1 << 20, 1 << 14
_PIECE = 1 << 16
_LOOK_S = 0.005  # where the kernel does not tell of an end
_MAX_REASON = 200  # characters
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """What came of one run: its time in µs, or None and why; `took_s` is all that it took, with
    what was run before it.
    """

    latency_us: float | None
    took_s: float
    is_too_long: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OwnProgram:
    """How to run the program: its words, variables of its environment, what to run before, untimed.

    Raises InvalidInput where the size goes nowhere, and for words that are none.
    """

    words: tuple[str, ...]
    message_bytes: int
    environment: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    reader: TimeReader = field(default_factory=TimeReader.of)

    def __post_init__(self) -> None:
        if not self.words or not self.words[0]:
            raise InvalidInput("expected a program behind --", field="program")
        if any("\0" in text for text in (*self.words, *self.environment.values())):
            raise InvalidInput("expected words without a byte of 0", field="program")
        if not any(SIZE in text for text in (*self.words, *self.environment.values())):
            raise InvalidInput(
                f"expected {SIZE} among its words, or --env NAME={SIZE}", field="program"
            )

    def check(self) -> None:
        """Raise CannotRun where the program, or what is run before it, is not here."""
        for words in (self.words, self.before):
            if words and SIZE not in words[0] and shutil.which(words[0]) is None:
                raise CannotRun(f"{words[0]}: there is no program of that name that may be run")

    def line(self) -> str:
        """Return it as a shell would have it typed."""
        given = [f"{name}={value}" for name, value in self.environment.items()]
        return " ".join([*given, shlex.join(self.words)])

    def run(self, size: int, *, limit_s: float) -> ProgramRun:
        """Run it once. It may take `limit_s` with what is run before it, and END_S more.

        Raises InvalidInput where no unit is known of the time that it prints, or its pattern takes
        too long, and CannotRun where it cannot be started.
        """
        begun_s = time.monotonic()
        if self.before:
            found = _run(_of_size(self.before, size), {}, limit_s, is_read=False)
            if found.reason:
                took_s = time.monotonic() - begun_s
                return ProgramRun(None, took_s, found.is_too_long, f"before: {found.reason}")
        left_s = limit_s - (time.monotonic() - begun_s)
        given = {name: value.replace(SIZE, str(size)) for name, value in self.environment.items()}
        found = _run(_of_size(self.words, size), given, left_s, is_read=not self.reader.is_wall)
        took_s = time.monotonic() - begun_s
        if found.reason:
            return ProgramRun(None, took_s, found.is_too_long, found.reason)
        try:
            time_ns = self.reader.time_ns(
                found.printed,
                found.errors,
                wall_ns=found.wall_s * 1e9,
                size=self.message_bytes,
                limit_s=limit_s - took_s,
            )
        except NotMeasurable as refusal:
            took_s = time.monotonic() - begun_s
            return ProgramRun(None, took_s, took_s >= limit_s, reason=refusal.detail)
        took_s = time.monotonic() - begun_s
        if time_ns <= 0.0:
            return ProgramRun(None, took_s, reason="it printed a time of 0")
        return ProgramRun(time_ns / 1e3, took_s)


def read_variable(text: str) -> tuple[str, str]:
    """Return name and value of NAME=VALUE. Raises InvalidInput."""
    name, equals, value = text.partition("=")
    if not equals or not _VARIABLE.fullmatch(name):
        raise InvalidInput(f"expected NAME=VALUE, as PART={SIZE}", field="env")
    return name, value


def read_words(text: str, *, field: str) -> tuple[str, ...]:
    """Return the words of a command in one text. Raises InvalidInput."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as refusal:
        raise InvalidInput(f"expected a command: {refusal}", field=field) from None
    if not words or any("\0" in word for word in words):
        raise InvalidInput("expected a command", field=field)
    return words


def _of_size(words: Sequence[str], size: int) -> list[str]:
    return [word.replace(SIZE, str(size)) for word in words]


@dataclass(frozen=True, slots=True)
class _Found:
    """What one process printed last, how long it ran, and why it failed, where it did."""

    printed: bytes
    errors: bytes
    wall_s: float
    is_too_long: bool = False
    reason: str = ""


def _run(
    words: Sequence[str], environment: Mapping[str, str], limit_s: float, *, is_read: bool
) -> _Found:
    stdout = subprocess.PIPE if is_read else subprocess.DEVNULL
    begun_s = time.perf_counter()
    try:
        with killed(
            words, "program", stdout=stdout, stderr=subprocess.PIPE, environment=environment
        ) as process:
            output = _Tails(process)
            is_ended = output.read_until_end(begun_s + limit_s)
            wall_s = time.perf_counter() - begun_s
            if not is_ended:
                ask_to_end(process)
                output.read_until_end(time.perf_counter() + END_S)
    except NotMeasurable as refusal:
        raise CannotRun(refusal.detail.removeprefix("program: ")) from None
    printed, errors = output.texts()
    if not is_ended:
        reason = f"it took longer than {limit_s:.3g} s"
        return _Found(printed, errors, wall_s, is_too_long=True, reason=reason)
    status = process.returncode
    reason = "" if status == 0 else f"it {ended_by(status)}{_last_line(errors)}"
    return _Found(printed, errors, wall_s, reason=reason)


def _last_line(errors: bytes) -> str:
    lines = [line.strip() for line in errors.decode(errors="replace").splitlines() if line.strip()]
    plain = "".join(one if one.isprintable() else " " for one in lines[-1]) if lines else ""
    return f": {plain[:_MAX_REASON]}" if plain else ""


class _Tails:
    """The last bytes of what a process writes to its two streams, as it writes them."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._kept: dict[IO[bytes], bytearray] = {}
        self._limits = {process.stdout: _TAIL_BYTES, process.stderr: _ERROR_BYTES}
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._kept[pipe] = bytearray()

    def texts(self) -> tuple[bytes, bytes]:
        """What was kept of standard output and of standard error."""
        both = (self._process.stdout, self._process.stderr)
        out, errors = (bytes(self._kept[one]) if one is not None else b"" for one in both)
        return out, errors

    def read_until_end(self, end_s: float) -> bool:
        """Read until the process ends; false where that is not before `end_s`."""
        open_pipes = list(self._kept)
        with _end_of(self._process.pid) as ended:
            while self._process.poll() is None:
                left_s = end_s - time.perf_counter()
                if left_s <= 0.0:
                    return False
                watched: list[IO[bytes] | int] = [*open_pipes]
                watched += [ended] if ended is not None else []
                wait_s = left_s if ended is not None else min(left_s, _LOOK_S)
                ready = select.select(watched, [], [], wait_s)[0]
                open_pipes = [pipe for pipe in open_pipes if pipe not in ready or self._take(pipe)]
        for pipe in open_pipes:  # what is there still; nobody is waited for
            while self._take(pipe):
                pass
        return True

    def _take(self, pipe: IO[bytes]) -> bool:
        """Keep the next piece; false where there is none."""
        try:
            piece = os.read(pipe.fileno(), _PIECE)
        except BlockingIOError:
            return False
        kept = self._kept[pipe]
        kept += piece
        del kept[: max(0, len(kept) - self._limits[pipe])]
        return bool(piece)


@contextmanager
def _end_of(process: int) -> Iterator[int | None]:
    """Yield a file that can be read once a process has ended; None where the kernel has none."""
    ended = None
    with suppress(OSError, AttributeError):
        ended = os.pidfd_open(process)
    try:
        yield ended
    finally:
        if ended is not None:
            os.close(ended)
