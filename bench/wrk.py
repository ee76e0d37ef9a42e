"""wrk, the load generator: its script, its run, its figures.

Source    wrk 4.1, wrk(1) and SCRIPTING; the Debian package `wrk`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CONNECTIONS = 32
_UNITS_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}
_NUMBER = r"([\d.]+)(us|ms|s|m)?"
_SCRIPT = """\
local paths = {
%s
}
local next_one = 0
function request()
   next_one = next_one %% #paths + 1
   return "GET " .. paths[next_one] .. " HTTP/1.1\\r\\nHost: bench\\r\\n%s\\r\\n"
end
"""
# Numbers that are made as they are asked for: no supply that a fast machine could use up.
_NUMBERED = """\
local at, first, last, step = %d, %d, %d, %d
function request()
   local number = 1 + at * step %% (last + 1)
   at = at < last and at + 1 or first
   return "GET %s" .. number .. " HTTP/1.1\\r\\nHost: bench\\r\\n\\r\\n"
end
"""


@dataclass(frozen=True, slots=True)
class Scattered:
    """The numbers 1 to `total`, each once, in an order that jumps about: that of a golden ratio.

    A power of two is `total`, so that every odd step meets each number; products stay below 2^53,
    where Lua's numbers are exact.
    """

    total: int

    def __post_init__(self) -> None:
        if self.total & (self.total - 1) or not 4 <= self.total <= 2**26:
            raise ValueError("expected a power of two from 4 to 2^26")

    @property
    def step(self) -> int:
        """From one number to the next, modulo the total."""
        return round(self.total * 0.6180339887) | 1

    def __getitem__(self, at: int) -> int:
        return 1 + at * self.step % self.total


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run reported; latencies in ms. `failures` are answers that are no 2xx or 3xx."""

    requests: int
    per_second: float
    p50_ms: float
    p99_ms: float
    failures: int


def wrk() -> str:
    """The program. Raises RuntimeError where it is not installed."""
    found = shutil.which("wrk")
    if found is None:
        raise RuntimeError("this needs wrk: apt-get install wrk")
    return found


def write_script(path: Path, paths: Sequence[str], *, header: str = "") -> Path:
    """A script that asks for these paths in their order, and then again."""
    lines = ",\n".join(f'"{one}"' for one in paths)
    path.write_text(_SCRIPT % (lines, f"{header}\\r\\n" if header else ""))
    return path


def write_numbered(path: Path, prefix: str, numbers: Scattered, *, first: int, at: int) -> Path:
    """A script that asks for `prefix` and a number: those from place `at` on, and after the last
    again from place `first`, without an end.
    """
    path.write_text(_NUMBERED % (at, first, numbers.total - 1, numbers.step, prefix))
    return path


def run(script: Path, port: int, *, seconds: int) -> Figures:
    """One run of one thread, which keeps its connections alive. Raises RuntimeError."""
    done = subprocess.run(
        [
            wrk(),
            *("--threads", "1", "--connections", str(CONNECTIONS)),
            *("--duration", f"{seconds}s", "--timeout", "60s", "--latency"),
            *("--script", str(script), f"http://127.0.0.1:{port}"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return _figures(done.stdout)


def _figures(output: str) -> Figures:
    if "Socket errors" in output:
        raise RuntimeError(output)
    failures = re.search(r"Non-2xx or 3xx responses: (\d+)", output)
    return Figures(
        requests=int(_found(r"(\d+) requests in", output)[1]),
        per_second=float(_found(r"Requests/sec:\s+([\d.]+)", output)[1]),
        p50_ms=_ms(_found(rf"\s50%\s+{_NUMBER}", output)),
        p99_ms=_ms(_found(rf"\s99%\s+{_NUMBER}", output)),
        failures=int(failures[1]) if failures else 0,
    )


def _found(pattern: str, output: str) -> re.Match[str]:
    found = re.search(pattern, output)
    if found is None:
        raise RuntimeError(output)
    return found


def _ms(found: re.Match[str]) -> float:
    return float(found[1]) * _UNITS_MS[found[2] or "s"]
