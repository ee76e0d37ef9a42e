"""Existing tools, run as they are: their output is kept as it was printed, for the reader of each.

from measuring.tools import TOOLS, ToolRun
with ToolRun(TOOLS["iperf3"], (4096, 65536), Path("out"), limit_s=20.0) as run:
    files = run.finish()

A tool with two sides runs both on this machine, the far side first; both are killed with all that
they started when theirs is done, fails or takes too long. Nothing is computed here.
"""

from __future__ import annotations

import shlex
import shutil
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.errors import InvalidInput, NotMeasurable
from measuring.running import killed, output_of

SIZES = tuple(1 << power for power in range(8, 21, 2))
_LOOPBACK = "127.0.0.1"
_FAR_SIDE_S = 5.0  # until the far side takes connections
_AGAIN_S = 0.2
_MIN_S = 0.3  # of one run
_OUTPUT_BYTES = 64 << 20
_FILE_BYTES = 64 << 20  # of what fio writes and reads
_TIMED_BYTES, _FEWEST, _MOST = 64 << 20, 50, 2000  # so many messages of one size
_VERSION_S = 3.0
_MPI4PY_VERSION = "from mpi4py import __version__, bench; bench.pingpong; print(__version__)"

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One run: its words, those of its far side, and the file that keeps what it says.

    `{file}` in the words is that file, of a tool that writes one itself; else it is what was
    printed, behind the command where `with_command` says so.
    """

    file: str
    words: Words
    far_side: Words = ()
    with_command: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: the programs that it needs, how to ask for its version and for nothing else, its
    calls for sizes, a port, and seconds each, and the sizes that it takes. A `module` of Python is
    here where that tells its version.
    """

    name: str
    about: str
    programs: Words
    version: Words
    calls: Callable[[Sequence[int], int, float], list[Call]]
    min_bytes: int = 1
    max_bytes: int = 1 << 30
    module: str | None = None

    @property
    def missing(self) -> str | None:
        """Why it cannot be run here, None where it can."""
        absent = [one for one in self.programs if shutil.which(one) is None]
        if absent:
            return f"not here: {' and '.join(absent)} not on PATH"
        if self.module is not None:
            with suppress(NotMeasurable):
                if output_of(self.version, name=self.name, limit_s=_VERSION_S).status == 0:
                    return None
            return f"not here: the python3 on PATH has no {self.module}"
        return None

    def version_line(self) -> str:
        """Return the first line of what it says of its version; "unknown" where it says nothing."""
        with suppress(NotMeasurable):
            said = output_of(self.version, name=self.name, limit_s=_VERSION_S).printed
            lines = said.decode(errors="replace").split("\n")
            return next((line.strip()[:120] for line in lines if line.strip()), "unknown")
        return "unknown"


class ToolRun:
    """The calls of a tool, one after the other, into a folder that is new or empty.

    Raises NotMeasurable where it is not here, InvalidInput for sizes that it does not take.
    """

    def __init__(self, tool: Tool, sizes: Sequence[int], folder: Path, *, limit_s: float) -> None:
        if tool.missing is not None:
            raise NotMeasurable(f"{tool.name}: {tool.missing}")
        if not all(tool.min_bytes <= size <= tool.max_bytes for size in sizes):
            raise InvalidInput(
                f"expected {tool.min_bytes} to {tool.max_bytes} bytes for {tool.name}",
                field="bytes",
            )
        self._tool, self._sizes, self._folder, self._limit_s = tool, sizes, folder, limit_s
        self.files: list[Path] = []

    def run(self, progress: Callable[[int, int], None]) -> None:
        """Run all calls. `progress` is given how many are to come and how many are done."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if any(self._folder.iterdir()):
                raise InvalidInput(
                    f"expected an empty folder, {self._folder} is not", field="output"
                )
            self._keep("version.txt", self._tool.version_line().encode() + b"\n")
            each_s = max(_MIN_S, self._limit_s / len(self._sizes))
            calls = self._tool.calls(self._sizes, free_port(), each_s)
            for done, call in enumerate(calls):
                progress(len(calls) - done, done)
                self._call(call, each_s * (len(self._sizes) if len(calls) == 1 else 1))
        except OSError as refusal:
            raise NotMeasurable(f"{self._tool.name}: {refusal}") from None

    def _call(self, call: Call, seconds: float) -> None:
        kept = self._folder / call.file
        words = tuple(word.replace("{file}", str(kept)) for word in call.words)
        command = shlex.join(words)
        with (self._folder / "commands.txt").open("a", encoding="utf-8") as log:
            log.writelines(f"{shlex.join(one)}\n" for one in (call.far_side, words) if one)
        limit_s = 2.0 * seconds + _FAR_SIDE_S
        printed = self._printed(words, call.far_side, limit_s)
        if not kept.exists():
            self._keep(
                call.file, (f"$ {command}\n".encode() if call.with_command else b"") + printed
            )
        self.files.append(kept)

    def _printed(self, words: Words, far_side: Words, limit_s: float) -> bytes:
        return printed_by(words, far_side, name=self._tool.name, limit_s=limit_s)

    def _keep(self, name: str, content: bytes) -> None:
        (self._folder / name).write_bytes(content)


def printed_by(
    words: Words,
    far_side: Words,
    *,
    name: str,
    limit_s: float,
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """Return what a program prints; with a far side it is tried until that takes connections.

    Raises NotMeasurable.
    """
    more: dict[str, Any] = {"name": name, "limit_s": limit_s, "environment": environment}
    if not far_side:
        return output_of(words, most=_OUTPUT_BYTES, **more).checked(name)
    with killed(far_side, name, environment=environment) as server:
        end_s = time.monotonic() + _FAR_SIDE_S
        while True:
            time.sleep(_AGAIN_S)
            if server.poll() not in (None, 0):
                raise NotMeasurable(f"{name}: its far side ended with {server.returncode}")
            found = output_of(words, most=_OUTPUT_BYTES, **more)
            if found.status == 0 or time.monotonic() > end_s:
                return found.checked(name)


def free_port() -> int:
    """Return a port of this machine that nothing listens on now."""
    with socket.socket() as one:
        one.bind((_LOOPBACK, 0))
        port: int = one.getsockname()[1]
        return port


def times_of(size: int) -> int:
    """Return how many messages of a size are timed."""
    return max(_FEWEST, min(_MOST, _TIMED_BYTES // size))


def _ucx(sizes: Sequence[int], port: int, _: float) -> list[Call]:
    server = ("ucx_perftest", "-p", str(port))
    return [
        Call(
            f"ucx_perftest-{size}.txt",
            (
                *("ucx_perftest", _LOOPBACK, "-p", str(port), "-t", "tag_lat", "-s", str(size)),
                *("-n", str(times_of(size)), "-w", str(_FEWEST)),
            ),
            server,
            with_command=True,
        )
        for size in sizes
    ]


def _fio(sizes: Sequence[int], _: int, each_s: float) -> list[Call]:
    words = ["fio", "--filename={file}.data", f"--size={_FILE_BYTES}", "--ioengine=sync"]
    words += ["--iodepth=1", "--rw=write", "--time_based", f"--runtime={max(1, round(each_s))}"]
    words += ["--output-format=json", "--output={file}", "--unlink=1"]
    for size in sizes:
        words += [f"--name=write-{size}", f"--bs={size}", "--stonewall"]
    return [Call("fio.json", tuple(words))]


def _iperf3(sizes: Sequence[int], port: int, each_s: float) -> list[Call]:
    server = ("iperf3", "-s", "-1", "--bind", _LOOPBACK, "-p", str(port))
    seconds = str(max(1, round(each_s)))
    client = ("iperf3", "-c", _LOOPBACK, "-p", str(port), "-t", seconds, "-i", "0.1", "-J", "-l")
    return [Call(f"iperf3-{size}.json", (*client, str(size)), server) for size in sizes]


def _sockperf(sizes: Sequence[int], port: int, each_s: float) -> list[Call]:
    there = ("--tcp", "-i", _LOOPBACK, "-p", str(port))
    client = ("sockperf", "ping-pong", *there, "-t", str(max(1, round(each_s))))
    return [
        Call(
            f"sockperf-{size}.csv",
            (*client, "-m", str(size), "--full-log", "{file}"),
            ("sockperf", "server", *there),
        )
        for size in sizes
    ]


def _netpipe(sizes: Sequence[int], port: int, _: float) -> list[Call]:
    both = ("NPtcp", "-P", str(port), "-l", str(min(sizes)), "-u", str(max(sizes)))
    far_side = (*both, "-o/dev/null")
    return [Call("netpipe.out", (*both, "-h", _LOOPBACK, "-o{file}"), far_side)]


def _mpi(*words: str) -> Words:
    """Two processes of an MPI program. Open MPI asks a superuser for its consent."""
    consent = ("--allow-run-as-root", "--oversubscribe") if _is_open_mpi() else ()
    return ("mpirun", *consent, "-n", "2", *words)


def _is_open_mpi() -> bool:
    with suppress(NotMeasurable):
        return b"Open MPI" in output_of(("mpirun", "--version"), name="mpirun", limit_s=3.0).printed
    return False


def _osu_latency(sizes: Sequence[int], _: int, __: float) -> list[Call]:
    span = f"{min(sizes)}:{max(sizes)}"
    return [Call("osu_latency.txt", _mpi("osu_latency", "-m", span))]


def _osu_bw(sizes: Sequence[int], _: int, __: float) -> list[Call]:
    return [Call("osu_bw.txt", _mpi("osu_bw", "-m", f"{min(sizes)}:{max(sizes)}"))]


def _imb(sizes: Sequence[int], _: int, __: float) -> list[Call]:
    powers = f"{min(sizes).bit_length() - 1}:{(max(sizes) - 1).bit_length()}"
    return [Call("imb-pingpong.txt", _mpi("IMB-MPI1", "-msglog", powers, "PingPong"))]


def _mpi4py(sizes: Sequence[int], _: int, __: float) -> list[Call]:
    span = ("-m", str(min(sizes)), "-n", str(max(sizes)))
    program = ("python3", "-m", "mpi4py.bench", "pingpong", *span)
    return [Call("mpi4py-pingpong.txt", _mpi(*program))]


def _named(*tools: Tool) -> dict[str, Tool]:
    return {one.name: one for one in tools}


TOOLS = _named(
    Tool("fio", "writes of a file", ("fio",), ("fio", "--version"), _fio, 512),
    Tool("iperf3", "a TCP stream", ("iperf3",), ("iperf3", "--version"), _iperf3, 64, 1 << 20),
    Tool(
        "sockperf",
        "TCP ping-pong",
        ("sockperf",),
        ("sockperf", "--version"),
        _sockperf,
        14,
        65_000,
    ),
    Tool("netpipe", "TCP ping-pong", ("NPtcp",), ("true",), _netpipe),
    Tool("ucx_perftest", "UCX tag ping-pong", ("ucx_perftest",), ("ucx_info", "-v"), _ucx),
    Tool(
        "osu_latency",
        "MPI ping-pong",
        ("mpirun", "osu_latency"),
        ("mpirun", "--version"),
        _osu_latency,
    ),
    Tool("osu_bw", "an MPI stream", ("mpirun", "osu_bw"), ("mpirun", "--version"), _osu_bw),
    Tool("imb", "MPI ping-pong", ("mpirun", "IMB-MPI1"), ("mpirun", "--version"), _imb),
    Tool(
        "mpi4py",
        "MPI ping-pong from Python",
        ("mpirun", "python3"),
        ("python3", "-c", _MPI4PY_VERSION),
        _mpi4py,
        module="mpi4py of version 4 and later",
    ),
)
# What needs hardware or a second machine is named, with what to run, and not run here.
ELSEWHERE = {
    "perftest": ("ib_write_lat", "RDMA ping-pong between two machines: ib_write_lat -a HOST"),
    "nvbandwidth": ("nvbandwidth", "copies of a GPU: nvbandwidth -t host_to_device_memcpy_ce"),
    "nccl-tests": ("sendrecv_perf", "messages between GPUs: sendrecv_perf -b 1K -e 64M -f 2"),
}


def elsewhere() -> dict[str, str]:
    """Return what is to be known of the tools that are not run here, by their names."""
    return {
        name: f"run it yourself and fit what it prints; {about}"
        if shutil.which(program)
        else f"not here: {program} not on PATH"
        for name, (program, about) in ELSEWHERE.items()
    }
