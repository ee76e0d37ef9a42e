"""An installed MPI: its compiler wrapper and its launcher, and what they start.

from measuring.mpi import Mpi
mpi = Mpi("mpicc.mpich")
words = [*mpi.launch(), "./program"]  # two ranks, or as many as `ranks` says
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from domain.errors import InvalidInput

MAX_RANKS = 64  # whose sums trial_mpi.c can check
_END_GRACE_S = 2.0
_VERSION_S = 10.0


@dataclass(frozen=True, slots=True)
class Mpi:
    """The wrapper `mpicc`, and the launcher of the same MPI; None: the one named like the wrapper.

    `allow_run_as_root` is passed on to Open MPI, which else refuses that user. `ranks`: how many
    are started, where the launcher's own settings say. Raises InvalidInput for less than two.
    """

    mpicc: str = "mpicc"
    launcher: str | None = None
    allow_run_as_root: bool = False
    ranks: int = 2

    def __post_init__(self) -> None:
        if not 2 <= self.ranks <= MAX_RANKS:
            raise InvalidInput(f"expected 2 to {MAX_RANKS} ranks", field="ranks")

    @property
    def starts_with(self) -> str:
        """The launcher."""
        folder, name = os.path.split(self.mpicc)
        return self.launcher or os.path.join(folder, name.replace("mpicc", "mpirun", 1))

    @property
    def missing(self) -> str:
        """What is not here of the two, and what would bring it; empty where both are."""
        for name in (self.mpicc, self.starts_with):
            if shutil.which(name) is None:
                return f"not here: there is no {name} (libopenmpi-dev openmpi-bin)"
        return ""

    def compiler(self) -> str:
        """Return where the wrapper is. Raises InvalidInput."""
        return _found(self.mpicc, field="mpicc")

    def compiling(self) -> tuple[list[str], list[str]]:
        """Return the words before the probe's sources, and behind them. Raises InvalidInput."""
        return [self.compiler(), "-DPROBE_MPI"], []

    def launch(self) -> list[str]:
        """Return the words that start the ranks of what follows them. Raises InvalidInput."""
        launcher = _found(self.starts_with, field="launcher")
        return [launcher, *self._root_options(launcher), "-np", str(self.ranks)]

    def launch_bound(self) -> list[str]:
        """Return the same words with a core for each rank: two that share one wait for each other
        by whole time slices. Open MPI binds two ranks by itself.
        """
        words = self.launch()
        is_hydra = "hydra" in first_line([words[0], "--version"]).lower()
        return [*words, *(("-bind-to", "core") if is_hydra else ())]

    def alone(self, library: str) -> InvalidInput:
        """Return why each rank of a program is alone that was compiled for this library."""
        return InvalidInput(
            f"{self.mpicc} builds for {library[:100]}, and {self.starts_with} starts "
            f"{first_line([self.starts_with, '--version'])[:100]}: each rank is alone",
            field="launcher",
        )

    def _root_options(self, launcher: str) -> list[str]:
        is_open_mpi = "open" in first_line([launcher, "--version"]).lower()
        if os.geteuid() != 0 or not is_open_mpi:
            return []
        if not self.allow_run_as_root:
            raise InvalidInput(
                "Open MPI does not start programs as root: take another user, or "
                "--allow-run-as-root",
                field="allow_run_as_root",
            )
        return ["--allow-run-as-root"]


def _found(name: str, *, field: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise InvalidInput(
            f"there is no {name[:100]} here: name the one of an installed MPI, as mpicc.mpich and "
            "mpirun.mpich",
            field=field,
        )
    return path


def first_line(command: Sequence[str]) -> str:
    """Return the first line that a command prints, as of `--version`; empty without one.

    One that cannot be run, or does not end in time, says nothing.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (done.stdout or done.stderr).splitlines()
    return next((line.strip() for line in lines if line.strip()), "")


def end_session(child: subprocess.Popen[bytes]) -> None:
    """End a launcher that leads a session, and then the ranks that it leaves behind: these may be
    in groups of their own.
    """
    if child.poll() is None:
        child.terminate()  # first the launcher: it takes its ranks with it
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=_END_GRACE_S)
    for process in _in_session(child.pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
    child.wait()


def _in_session(session: int) -> Iterator[int]:
    for entry in os.scandir("/proc") if os.path.isdir("/proc") else ():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if os.getsid(int(entry.name)) == session and int(entry.name) != os.getpid():
                yield int(entry.name)
