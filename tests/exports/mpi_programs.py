"""Debian's MPI libraries, for tests that let them read an export: Open MPI 4.1.4, MPICH 4.0.2."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.support.system import require_system

HERE = Path(__file__).parent
OPENMPI = ("Open MPI 4.1.4 and its compiler", "apt-get install openmpi-bin libopenmpi-dev gcc")
MPICH = ("MPICH 4.0.2 and its compiler", "apt-get install mpich libmpich-dev gcc")
# Point to point alone, counted, and collectives that nothing but `tuned` decides on.
_PLAIN = (
    *("--allow-run-as-root", "--oversubscribe", "--mca", "pml", "ob1,monitoring"),
    *("--mca", "btl", "self,vader", "--mca", "coll", "^han,adapt,sm"),
)
_COUNTED = (*("--mca", "pml_monitoring_enable", "2", "--mca", "pml_monitoring_enable_output", "3"),)


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """This one without any setting of an MPI, and with these."""
    own = ("OMPI_", "PMIX_", "MPIR_", "MPICH_", "UCX_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return {**kept, **more}


def reported(command: list[str], more: Mapping[str, str] | None = None) -> str:
    """What the command prints; it has to succeed."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=environment(more or {}),
    )
    return done.stdout


@cache
def openmpi(program: str) -> str:
    """The path of one of its programs."""
    paths = [shutil.which(name) for name in ("ompi_info", "mpirun.openmpi", "mpicc.openmpi")]
    is_there = all(paths) and "Open MPI v4.1.4" in reported(["ompi_info", "--version"])
    require_system(is_there, *OPENMPI)
    return str(shutil.which(program))


@cache
def mpich(program: str) -> str:
    """The path of one of its programs."""
    names = ("mpichversion", "mpicc.mpich", "mpirun.mpich")
    paths = [shutil.which(name) for name in names]
    is_there = all(paths) and re.search(r"\s4\.0\.2\s", reported(["mpichversion"]))
    require_system(is_there, *MPICH)
    return str(shutil.which(program))


@cache
def built(source: str, compiler: str) -> str:
    """A program of this folder, compiled once for the whole run."""
    target = Path(tempfile.mkdtemp(prefix="sluice-mpi-")) / Path(source).stem
    atexit.register(shutil.rmtree, target.parent, ignore_errors=True)
    reported(
        [compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(target), str(HERE / source)]
    )
    return str(target)


def parameters(more: Mapping[str, str]) -> dict[str, str]:
    """Every MCA parameter that ompi_info has a value for, in this environment."""
    printed = reported([openmpi("ompi_info"), "--all", "--level", "9", "--parsable"], more)
    return dict(re.findall(r"^mca:\w+:\w+:param:(\w+):value:(.*)$", printed, re.MULTILINE))


def messages(folder: Path, collective: str, size: int, *options: str) -> dict[str, int]:
    """How many messages go from rank to rank ("0>1") in one collective of two ranks."""
    for old in folder.glob("counted.*"):
        old.unlink()
    counted = (*_COUNTED, "--mca", "pml_monitoring_filename", str(folder / "counted"))
    assert is_right_with_openmpi(collective, size, *counted, *options)
    lines = "".join(path.read_text() for path in folder.glob("counted.*"))
    sent = re.findall(r"^I\t(\d+)\t(\d+)\t\d+ bytes\t(\d+) msgs sent", lines, re.MULTILINE)
    return {f"{source}>{target}": int(count) for source, target, count in sent}


def is_right_with_openmpi(mode: str, size: int, *options: str, ranks: int = 2) -> bool:
    """Whether a program of mpi_messages.c ends with the right data on every rank."""
    run = [openmpi("mpirun.openmpi"), *_PLAIN, *options, "-np", str(ranks)]
    return _is_right([*run, built("mpi_messages.c", openmpi("mpicc.openmpi")), mode, str(size)], {})


def is_right_with_mpich(mode: str, size: int, more: Mapping[str, str], *, ranks: int = 2) -> bool:
    """The same with MPICH, with these variables in its environment."""
    run = [mpich("mpirun.mpich"), "-np", str(ranks)]
    return _is_right([*run, built("mpi_messages.c", mpich("mpicc.mpich")), mode, str(size)], more)


def _is_right(command: list[str], more: Mapping[str, str]) -> bool:
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, timeout=120, env=environment(more)
        )
    except subprocess.TimeoutExpired as late:
        # Now and then mpirun does not end after its program did, with wrong data, by MPI_Abort.
        if b"MPI_ABORT was invoked" in (late.stderr or b""):
            return False
        raise
    return done.returncode == 0


def variables(names: list[str], more: Mapping[str, str]) -> dict[str, int]:
    """MPICH's control variables, read through MPI_T in a program of its own."""
    program = built("mpi_cvar.c", mpich("mpicc.mpich"))
    printed = reported([program, *names], more)
    return {name: int(value) for name, value in re.findall(r"^(\w+)=(-?\d+)$", printed, re.M)}
