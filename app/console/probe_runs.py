"""What every run of the probe has in common: options, facts of the machine, a line meanwhile."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.console.files import KeptAsItGoes
from app.console.running import erased_line
from app.ui.grammar import Arguments
from app.ui.terminal import Output

PROBED = ("gpu", "timer_ns", "library", "lanes", "waits")  # of what the probe says first
_PROCESSOR = "model name"


def facts_of_machine(arguments: Arguments) -> dict[str, str]:
    """Return where this was measured, for the first lines of the file."""
    system = platform.uname()
    found = {"machine": f"{system.machine}, {_processor()}", "kernel": system.release}
    if arguments.cpus is not None:
        found["cpus"] = ",".join(map(str, arguments.cpus))
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith(_PROCESSOR))
    return next(named, "unknown processor")


def probe_options(arguments: Arguments, max_bytes: int) -> list[str]:
    """Return the options by which the probe moves messages of up to so many bytes."""
    options = ["--max-bytes", str(max_bytes)]
    if arguments.cpus is not None:
        options += ["--cpus", ",".join(map(str, arguments.cpus))]
    return options


@contextmanager
def shown(
    output: Output, what: str, target: str, text: Callable[[], str]
) -> Iterator[Callable[[int, int], None]]:
    """Show how far it is, in a line that is erased after, and keep what there is in the file."""
    kept = KeptAsItGoes(target, text)
    with erased_line(output.err) as show:

        def on_block(wanted: int, taken: int) -> None:
            show(f"{taken} samples; {wanted} {what} not known yet")
            if taken:
                kept.write()

        yield on_block
