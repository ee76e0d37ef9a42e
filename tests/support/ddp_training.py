"""Two processes of a training in two network namespaces, with a link of known rate and delay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.compiler import ROOT, compiler
from tests.support.system import require_system

Layers = list[tuple[list[int], float]]  # floats of each tensor, and seconds of backward
_SUPPORT = ROOT / "tests" / "support"
_PRIORITY = 5  # of real time, where that is allowed: the machine's other work comes behind
_LIMIT_S = 900.0


def convolutions(share: float, backward_s: float) -> Layers:
    """Tensors of ResNet-50, in the order of forward, a share of their sizes; time by operations."""
    found: list[tuple[list[int], float]] = [([64 * 3 * 49, 64, 64], 64 * 3 * 49 * 112 * 112)]
    channels = 64
    for width, blocks, side in ((64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7)):
        for block in range(blocks):
            weights = [channels * width, 9 * width * width, width * width * 4]
            weights += [] if block else [channels * width * 4]
            norms = [width, width, width, width, width * 4, width * 4]
            found.append(([*weights, *norms], sum(weights) * side * side))
            channels = width * 4
    found.append(([2048 * 1000, 1000], 2048.0 * 1000))
    return _scaled(found, share, backward_s)


def transformer(share: float, backward_s: float) -> Layers:
    """Tensors of BERT-base: an embedding that is ready last, and twelve equal layers."""
    layer = [768 * 768] * 4 + [768 * 3072] * 2 + [768] * 9 + [3072]
    found = [([30522 * 768, 512 * 768], 1.0), *[(layer, 12.0)] * 12]
    return _scaled(found, share, backward_s)


def _scaled(layers: list[tuple[list[int], float]], share: float, backward_s: float) -> Layers:
    work = sum(of_layer for _, of_layer in layers)
    return [
        ([max(4, int(size * share)) for size in sizes], backward_s * of_layer / work)
        for sizes, of_layer in layers
    ]


@dataclass(frozen=True)
class Link:
    """A link's rate (bytes a second) and its delay one way (µs)."""

    bytes_per_s: float = 25e6
    delay_us: float = 1500.0


class Training:
    """Two namespaces with a link between them, in which processes are started."""

    def __init__(self, python: Path, package: Path, spaces: tuple[str, str]) -> None:
        self._python, self._package, self._spaces = python, package, spaces

    def run(self, rank: dict[int, dict[str, Any]], **asked: Any) -> list[list[dict[str, Any]]]:
        """Return what each process printed, as JSON; `rank` has what one alone is asked."""
        started = []
        for number, space in enumerate(self._spaces):
            words = {
                "rank": number,
                "address": "10.93.1.1",
                "interface": "slow0",
                "package": str(self._package),
                "example": str(ROOT / "examples"),
                **asked,
                **rank.get(number, {}),
            }
            line = ["ip", "netns", "exec", space, str(self._python), _SUPPORT / "ddp_process.py"]
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
            started.append(
                subprocess.Popen(
                    [*map(str, line), json.dumps(words)],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    env=environment,
                )
            )
        try:
            printed = [process.communicate(timeout=_LIMIT_S) for process in started]
        finally:
            for process in started:
                process.kill()
        for process, (_, errors) in zip(started, printed, strict=True):
            assert process.returncode == 0, errors[-4000:]
        return [
            [json.loads(line) for line in out.splitlines() if line.startswith("{")]
            for out, _ in printed
        ]

    def torchrun(self, script: Path) -> str:
        """Return what a script printed in two processes of this machine, without the link."""
        paths = (self._package, ROOT / "examples")
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
        }
        words = [self._python, "-m", "torch.distributed.run", "--nproc-per-node", "2", script]
        done = subprocess.run(
            list(map(str, words)),
            capture_output=True,
            text=True,
            check=True,
            env=environment,
            timeout=_LIMIT_S,
        )
        return done.stdout


def real_time_priority() -> int:
    """The priority that processes may have here; 0 where they may have none."""
    asks = f"import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param({_PRIORITY}))"
    done = subprocess.run([sys.executable, "-c", asks], check=False, capture_output=True)
    return 0 if done.returncode else _PRIORITY


def torch_python() -> Path:
    """The Python that SLUICE_TORCH_PYTHON names, with torch; skips the test where there is none, or
    no right to make network namespaces.
    """
    named = os.environ.get("SLUICE_TORCH_PYTHON", "")
    asked = [named, "-c", "import numpy, torch"]
    has_torch = named and not subprocess.run(asked, check=False, capture_output=True).returncode
    install = "python3 -m venv torch && torch/bin/pip install torch numpy"
    require_system(has_torch, "PyTorch, in the Python of SLUICE_TORCH_PYTHON", install)
    require_system(os.geteuid() == 0, "root, for network namespaces", "sudo")
    return Path(named)


@contextmanager
def training(python: Path, package: Path, folder: Path, link: Link) -> Iterator[Training]:
    """Make the namespaces and the link, and take them away at the end."""
    spaces = (f"sluice-{os.getpid()}-a", f"sluice-{os.getpid()}-b")
    program = folder / "slow_link"
    source = str(_SUPPORT / "slow_link.c")
    subprocess.run([compiler(), "-std=gnu11", "-O2", source, "-o", str(program)], check=True)
    process = None
    try:
        for space in spaces:
            _ip("netns", "add", space)
        words = [str(program), *spaces, str(link.bytes_per_s), str(link.delay_us)]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        if real_time_priority():
            os.sched_setscheduler(process.pid, os.SCHED_FIFO, os.sched_param(_PRIORITY + 1))
        for host, space in enumerate(spaces, start=1):
            _ip("-n", space, "link", "set", "lo", "up")
            _ip("-n", space, "addr", "add", f"10.93.1.{host}/24", "dev", "slow0")
            _ip("-n", space, "link", "set", "slow0", "up", "mtu", "9000")
        yield Training(python, package, spaces)
    finally:
        if process is not None:
            process.kill()
            process.wait()
        for space in spaces:
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
