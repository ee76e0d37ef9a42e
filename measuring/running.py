"""The probe as a process: asked line by line, and killed with all that it started.

from measuring.running import Probe
with Probe(["stage", "pipe", "--max-bytes", "65536"]) as probe:
    found = probe.ask("4096")

A program of the user's own is a `Command`, which is run once a sample and prints the time.

Notation  -o names what a compiler writes.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import nan
from pathlib import Path
from types import TracebackType

from domain.errors import InvalidInput, NotMeasurable
from measuring.mpi import Mpi, end_session
from measuring.printed_times import LAST, TimeReader
from measuring.probe import FLAGS, LIBRARIES, object_path, sources
from measuring.ucx import Ucx

START_S = 30.0  # memory and files are filled before the first answer
ANSWER_S = 30.0
_READY = ": the memory and the files of the largest message are made before it"
TOKEN = "SLUICE_MEASURE_TOKEN"  # what a listener and its peer know of each other
_WRONG, _NOT_HERE = 2, 3  # exit statuses of the probe
_PIECE = 65536
_LEFT_S = 600.0  # since a folder was last changed, before it can be nobody's
_END_S = 5.0  # until all that a program started is killed
_SIZE = "{bytes}"
_ALONE = re.compile(r"ranks 1 of ([^\n]+)")
_READER = TimeReader.of(LAST, unit="us")  # of a stage that is a program


class Probe:
    """One running probe. Raises NotMeasurable where what is to be timed is not here, fails or does
    not answer in time, and InvalidInput for a question that it refuses.
    """

    def __init__(
        self,
        program: Path,
        arguments: Sequence[str],
        *,
        launch: Sequence[str] = (),
        is_library: bool = False,
        start_s: float = START_S,
        token: str | None = None,
    ) -> None:
        # A session of its own: Ctrl-C is for the asking process, which then ends this one.
        try:
            self._process = subprocess.Popen(
                [*launch, str(program), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                # Not among its words, which every user of the machine can see.
                env=os.environ if token is None else {**os.environ, TOKEN: token},
            )
        except OSError as refusal:
            raise NotMeasurable(
                f"{[*launch, program.name][0]} cannot be run: {refusal.strerror}"
            ) from None
        self._name, self._read = arguments[1], b""
        self._is_launched, self._is_library = bool(launch), is_library
        self.facts: dict[str, str] = {}
        try:
            while "ready" not in self.facts:
                line = self._line(start_s, until=_READY)
                name, _, value = line.removeprefix("# ").partition(": ")
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
        answer = self._line(ANSWER_S)
        # A library and a launcher write between the answers, above all when a rank has died.
        while self._is_library and answer.split()[:1] != line.split()[:1]:
            answer = self._line(ANSWER_S)
        return answer

    def lines(self) -> Iterator[str]:
        """Return what a listener says of its peers, line by line, until it ends or is closed."""
        while True:
            yield self._line(None)

    def close(self) -> None:
        """End it and all that it started."""
        if self._is_launched:
            end_session(self._process)
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

    def _line(self, limit_s: float | None, *, until: str = "") -> str:
        assert self._process.stdout is not None
        end_s = None if limit_s is None else time.monotonic() + limit_s
        while b"\n" not in self._read:
            left_s = None if end_s is None else max(0.0, end_s - time.monotonic())
            if not select.select([self._process.stdout], [], [], left_s)[0]:
                raise NotMeasurable(f"{self._name}: no answer in {limit_s:g} s{until}")
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
        detail = f"{self._name}: {said or f'the probe {ended_by(status)}'}"
        return InvalidInput(detail, field="measure") if status == _WRONG else NotMeasurable(detail)


@contextmanager
def own_folder(prefix: str) -> Iterator[Path]:
    """Make a temporary folder that goes at the end, and remove those that killed processes left.

    Who has one holds a lock on it, which ends with the process, so that a folder of this prefix and
    user that is not locked is nobody's; the first minutes of each are passed over, in which it may
    be about to be locked.
    """
    _remove_left(prefix)
    with tempfile.TemporaryDirectory(prefix=prefix) as folder:
        held = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield Path(folder)
        finally:
            os.close(held)


def _remove_left(prefix: str) -> None:
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if not entry.name.startswith(prefix) or not entry.is_dir(follow_symlinks=False):
                continue
            with suppress(OSError):  # another one removes it, or it is not ours
                about = entry.stat(follow_symlinks=False)
                if about.st_uid != os.geteuid() or time.time() - about.st_mtime < _LEFT_S:
                    continue
                held = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(entry.path)
                finally:
                    os.close(held)


@contextmanager
def compiled(words: Sequence[str], what: str, *, name: str, field: str) -> Iterator[Path]:
    """Compile a program by these words, and yield it, in a folder that goes with it.

    Raises InvalidInput for this field where the compiler, of this name, does not run or refuses.
    """
    with own_folder("sluice-program-") as folder:
        program = folder / "a.out"
        try:
            done = subprocess.run(
                [*words, "-o", str(program)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
            )
        except OSError as refusal:
            raise InvalidInput(f"{name} cannot be run: {refusal.strerror}", field=field) from None
        if done.returncode:
            lines = (done.stderr + done.stdout).splitlines()
            reason = next((one for one in lines if "error" in one), "no reason given")
            raise InvalidInput(f"{name} does not compile {what}: {reason[:200]}", field=field)
        yield program


@contextmanager
def probe_of(library: Mpi | Ucx) -> Iterator[Callable[[Sequence[str]], Probe]]:
    """Compile the probe for a library, and yield how to start it with arguments.

    Raises InvalidInput for a wrapper or a launcher that is not here, or that belong to different
    MPIs, and where the probe does not compile; NotMeasurable as a Probe does, and without a UCX.
    """
    words, libraries = library.compiling()
    launch = library.launch()
    line = [words[0], *FLAGS, *words[1:], *map(str, sources()), *libraries, *LIBRARIES]
    name, field = (library.mpicc, "mpicc") if isinstance(library, Mpi) else (words[0], "name")
    with compiled(line, "the probe", name=name, field=field) as program:

        def start(arguments: Sequence[str]) -> Probe:
            try:
                return Probe(program, arguments, launch=launch, is_library=True)
            except NotMeasurable as refusal:
                alone = _ALONE.search(str(refusal))
                if alone is None or not isinstance(library, Mpi):
                    raise
                raise library.alone(alone[1]) from None

        yield start


class Command:
    """A user's program as a stage: it is run once a sample, and the last number that it prints is
    the time: a number of µs, or one with its unit, as 0.0012 s or 1.2 ms.

    `{bytes}` in its words is the size. No shell reads them. Raises InvalidInput for words that are
    none, or have no {bytes}.
    """

    def __init__(self, name: str, line: str, *, limit_s: float = ANSWER_S) -> None:
        try:
            self._words = shlex.split(line)
        except ValueError as refusal:
            raise InvalidInput(f"{name}: {refusal}", field="stage") from None
        if not any(_SIZE in word for word in self._words):
            raise InvalidInput(f"{name}: expected {_SIZE} among its words", field="stage")
        self._name, self._limit_s = name, limit_s

    def ask(self, line: str) -> str:
        """Run it on so many bytes; return "bytes ns preempted" as a probe answers.

        Raises NotMeasurable where it cannot be run, fails, prints no time or too much, or takes too
        long.
        """
        words = [word.replace(_SIZE, line) for word in self._words]
        found = output_of(words, name=self._name, limit_s=self._limit_s)
        if found.status not in (0, -signal.SIGKILL):
            raise NotMeasurable(f"{self._name}: it {ended_by(found.status)} on {line} bytes")
        try:
            time_ns = _READER.time_ns(found.printed, b"", wall_ns=nan, size=int(line))
        except NotMeasurable as refusal:
            raise NotMeasurable(f"{self._name}: {refusal.detail}") from None
        return f"{line} {time_ns:.0f} 0"


def ended_by(status: int) -> str:
    """Return an exit status in words, or the signal by its name."""
    if status >= 0:
        return f"ended with {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:  # a signal of real time
        return f"was ended by signal {-status}"


@dataclass(frozen=True, slots=True)
class Ended:
    """What a program printed, and how it ended."""

    printed: bytes
    status: int

    def checked(self, name: str) -> bytes:
        """Return what it printed. Raises NotMeasurable where it failed."""
        if self.status == 0:
            return self.printed
        lines = self.printed.decode(errors="replace").strip().splitlines()
        said = f": {lines[-1][:200]}" if lines else ""
        raise NotMeasurable(f"{name}: it {ended_by(self.status)}{said}")


def output_of(
    words: Sequence[str],
    *,
    name: str,
    limit_s: float,
    most: int = _PIECE,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program without a shell; it and all that it started is killed when it is done.

    Its environment is this process's, and what is given over that. Its errors are not read. Raises
    NotMeasurable where it cannot be run, prints more than `most` bytes, or takes longer than
    `limit_s`.
    """
    with killed(words, name, stdout=subprocess.PIPE, environment=environment) as process:
        assert process.stdout is not None
        printed = _read_all(process, name, limit_s, most)
    return Ended(printed, process.returncode)


@contextmanager
def killed(
    words: Sequence[str],
    name: str,
    *,
    stdout: int = subprocess.DEVNULL,
    stderr: int = subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program in a session of its own, and kill it and all that it started at the end, or
    when this process is killed. Raises NotMeasurable.

    Without a built probe, which does that, what made itself a session of its own stays.
    """
    keeper = object_path()
    kept = [str(keeper), "keep", str(os.getpid())] if keeper.exists() else []
    try:
        if kept and shutil.which(words[0]) is None:
            raise FileNotFoundError("there is no program of that name that may be run")
        process = subprocess.Popen(
            [*kept, *words],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
    except (OSError, ValueError) as refusal:
        raise NotMeasurable(f"{name}: {words[0]} cannot be run: {refusal}") from None
    try:
        yield process
    finally:
        if kept:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
        if not kept or process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def ask_to_end(process: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM to a program that `killed` runs; it may end in its own way."""
    words = process.args if isinstance(process.args, list) else [process.args]
    is_kept = words[:2] == [str(object_path()), "keep"]
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGHUP if is_kept else signal.SIGTERM)


def _read_all(process: subprocess.Popen[bytes], name: str, limit_s: float, most: int) -> bytes:
    assert process.stdout is not None
    end_s, read = time.monotonic() + limit_s, bytearray()
    while True:
        left_s = end_s - time.monotonic()
        if left_s <= 0 or not select.select([process.stdout], [], [], left_s)[0]:
            raise NotMeasurable(_too_long(name, limit_s))
        piece = os.read(process.stdout.fileno(), _PIECE)
        read += piece
        if len(read) > most:
            raise NotMeasurable(f"{name}: it printed more than {most} bytes")
        if not piece:
            break
    with suppress(subprocess.TimeoutExpired):  # its output is closed; it ends when it ends
        process.wait(max(0.0, end_s - time.monotonic()))
        return bytes(read)
    raise NotMeasurable(_too_long(name, limit_s))


def _too_long(name: str, limit_s: float) -> str:
    load, processors = os.getloadavg()[0], len(os.sched_getaffinity(0))
    busy = f"; {load:.0f} programs want the {processors} processors" if load > processors else ""
    return f"{name}: it took longer than {limit_s:.3g} s{busy}"
