"""What cannot be measured here, seen before anything is started.

Each check asks the system alone, and raises InvalidInput or InconsistentInput for an option that it
names, NotMeasurable for what this machine has not. A probe refuses the same, but only once it is
started: of several stages that is after the first ones were measured.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path

from contract.limits import MAX_NAME_LENGTH
from domain.errors import InconsistentInput, InvalidInput, NotMeasurable
from domain.units import format_bytes

# As measuring/probe has them: main.c, transfer.c, stages.c and mpi.c.
MAX_STAGES = 16
MAX_FRAGMENTS = 1 << 16
MAX_DEPTH = 1 << 16
MAX_WINDOW = 1 << 40
MAX_BYTES = 1 << 40
MAX_MPI_BYTES = 2**31 - 1
PAGE = 4096
COLD_BYTES = 256 << 20
FILE_BYTES = 64 << 20

_NOT_HERE = "not here: "
_MOVING = frozenset({"memcpy", "pipe", "unix", "tcp", "shm", "d2h"})  # into memory of the host
_COLD = frozenset({"memcpy", "crc32"})
_NAMESPACES = Path("/run/netns")
_PLACE = re.compile(r"([^/]{1,63})/([^/]{1,63})/([0-9.]{1,63})", re.ASCII)
_NO_DIRECT = (errno.EINVAL, errno.EOPNOTSUPP, errno.EISDIR)


def known_of(program: Path) -> dict[tuple[str, str], str]:
    """Return what a built probe has, by kind (stage, signature) and name, and what it is, or why it
    is not here.
    """
    done = subprocess.run([program, "list"], capture_output=True, text=True, check=True)
    lines = (line.split("\t") for line in done.stdout.splitlines())
    return {
        ("signature" if kind == "transport" else kind, name): about for kind, name, about in lines
    }


def check_stages(
    stages: Sequence[str], known: Mapping[tuple[str, str], str], *, field: str = "stage"
) -> None:
    """Check that each stage can run here, and each after the one before it."""
    if len(stages) > MAX_STAGES:
        raise InvalidInput(f"expected at most {MAX_STAGES} stages, got {len(stages)}", field=field)
    if any(len(stage) > MAX_NAME_LENGTH for stage in stages):
        raise InvalidInput(f"expected at most {MAX_NAME_LENGTH} characters", field=field)
    names = [name for kind, name in known if kind == "stage"]
    is_on_gpu = bool(stages) and _kind(stages[0]) == "d2h"
    for stage in stages:
        kind = _kind(stage)
        if kind not in names or "," in stage:
            raise InvalidInput(
                f"expected one of {', '.join(names)}, got {stage[:100]!r}", field=field
            )
        if (about := known["stage", kind]).startswith(_NOT_HERE):
            raise NotMeasurable(f"{kind}: {about}")
        if is_on_gpu != (kind == "d2h"):
            where = "the GPU" if is_on_gpu else "the host"
            raise InconsistentInput(
                f"what comes before {stage} leaves the message in memory of {where}", field=field
            )
        is_on_gpu = kind == "h2d"
        check_place(stage, field=field)


def _kind(stage: str) -> str:
    return stage.partition(":")[0]


def check_place(stage: str, *, field: str) -> None:
    """Check what follows tcp and a colon: two network namespaces, and the far one's address."""
    kind, colon, place = stage.partition(":")
    if not colon or kind != "tcp":
        return
    found = _PLACE.fullmatch(place)
    try:
        IPv4Address(found[3] if found else "")
    except AddressValueError:
        raise InvalidInput(
            f"{stage[:100]}: expected near/far/address behind the colon, as a/b/10.0.0.2",
            field=field,
        ) from None
    for name in found.groups()[:2] if found else ():
        if not (_NAMESPACES / name).exists():
            raise NotMeasurable(f"{stage}: there is no network namespace {name}")


def check_sizes(sizes: Sequence[int], *, max_bytes: int = MAX_BYTES) -> None:
    """Check sizes that are measured."""
    wrong = next((size for size in sizes if not 1 <= size <= max_bytes), None)
    if wrong is not None:
        raise InvalidInput(f"expected sizes of 1 to {max_bytes} bytes, got {wrong}", field="bytes")


def check_several(sizes: Iterable[int]) -> None:
    """Check that a fit can tell an overhead and a cost a byte apart."""
    if len(set(sizes)) < 2:
        raise InvalidInput(
            "expected two sizes or more: of one alone no overhead and no cost a byte can be told",
            field="bytes",
        )


def check_whole_pages(sizes: Iterable[int], *, field: str) -> None:
    """Check sizes of transfers past the page cache."""
    wrong = next((size for size in sizes if size % PAGE), None)
    if wrong is not None:
        raise InvalidInput(
            f"direct transfers are of multiples of {PAGE} bytes, got {wrong}", field=field
        )


def is_direct(stage: str) -> bool:
    """Return whether a stage transfers past the page cache."""
    return _kind(stage).endswith("-direct")


def can_be_cold(stage: str) -> bool:
    """Return whether what a stage reads can be kept out of the caches."""
    return _kind(stage) in _COLD


def check_fragments(message_bytes: int, fragment_bytes: int) -> None:
    """Check that the size in use cuts the message into no more fragments than a transfer has."""
    fragments = -(-message_bytes // fragment_bytes)
    if fragments > MAX_FRAGMENTS:
        smallest = format_bytes(-(-message_bytes // MAX_FRAGMENTS))
        largest = format_bytes(fragment_bytes * MAX_FRAGMENTS)
        raise InconsistentInput(
            f"expected at most {MAX_FRAGMENTS} fragments of a transfer, and "
            f"{format_bytes(fragment_bytes)} cut {format_bytes(message_bytes)} into {fragments}: "
            f"give {smallest} or more, or --bytes {largest} or less",
            field="current",
        )


def check_count(value: int, most: int, *, field: str) -> None:
    """Check a whole number of 1 to most."""
    if not 1 <= value <= most:
        raise InvalidInput(f"expected a whole number from 1 to {most}, got {value}", field=field)


def check_processors(cpus: Sequence[int] | None) -> None:
    """Check that this process may run on each of these: it tries, and goes back."""
    if cpus is None or not hasattr(os, "sched_setaffinity"):
        return
    before = os.sched_getaffinity(0)
    try:
        for cpu in cpus:
            try:
                os.sched_setaffinity(0, {cpu})
            except (OSError, OverflowError, ValueError):
                raise InvalidInput(
                    f"expected processors that this process may run on, and cpu {cpu} is none",
                    field="cpus",
                ) from None
    finally:
        os.sched_setaffinity(0, before)


# --- memory and files -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Needs:
    """Bytes of memory, and of files in the folder for them; `is_direct`: past the page cache."""

    memory_bytes: int
    file_bytes: int = 0
    is_direct: bool = False

    @classmethod
    def of_stage(cls, stage: str, largest_bytes: int, *, is_cold: bool = False) -> Needs:
        """Return what measuring a stage up to this size needs: what it reads and what it writes."""
        memory_bytes = 2 * max(largest_bytes, COLD_BYTES if is_cold else 0)
        files = _files((stage,))
        file_bytes = max(4 * largest_bytes, FILE_BYTES) if files else 0
        return cls(memory_bytes, file_bytes, is_direct(stage))

    @classmethod
    def of_transfers(cls, stages: Sequence[str], message_bytes: int) -> Needs:
        """Return what transfers through these stages need: the message, one to compare, and what
        each stage moves it to.
        """
        moved = [stage for stage in stages if _kind(stage) in _MOVING or _is_read(stage)]
        files = _files(stages)
        return cls(
            (2 + len(moved)) * message_bytes,
            len(files) * message_bytes,
            any(map(is_direct, files)),
        )

    def check(self, folder: str) -> None:
        """Check that there is so much memory, and that files can be made in the folder."""
        free_bytes = free_memory_bytes()
        if free_bytes is not None and self.memory_bytes > free_bytes:
            raise InvalidInput(
                f"expected a size that memory is there for: {_rounded(self.memory_bytes)} are "
                f"needed, {_rounded(free_bytes)} are free",
                field="bytes",
            )
        if self.file_bytes:
            _check_files(folder, self.file_bytes, is_direct=self.is_direct)


def _is_read(stage: str) -> bool:
    return _kind(stage).startswith("read")


def _files(stages: Sequence[str]) -> list[str]:
    """The stages that have a file."""
    return [stage for stage in stages if _is_read(stage) or _kind(stage).startswith("write")]


def _check_files(folder: str, file_bytes: int, *, is_direct: bool) -> None:
    if not Path(folder).is_dir():
        raise InvalidInput("expected a folder that exists, for the files", field="path")
    flags = os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_TMPFILE", 0)
    try:
        os.close(os.open(folder, flags | (getattr(os, "O_DIRECT", 0) if is_direct else 0), 0o600))
    except OSError as refusal:
        if refusal.errno in _NO_DIRECT:
            past = " past the page cache" if is_direct else ""
            raise NotMeasurable(
                f"{folder}: its file system has no files without a name{past}: give another --path"
            ) from None
        reason = refusal.strerror or "no file can be made in it"
        raise InvalidInput(f"{folder}: {reason}", field="path") from None
    about = os.statvfs(folder)
    free_bytes = about.f_bavail * about.f_frsize
    if file_bytes > free_bytes:
        raise InvalidInput(
            f"{folder}: {_rounded(file_bytes)} are needed, {_rounded(free_bytes)} are free",
            field="path",
        )


def _rounded(size_bytes: int) -> str:
    """A size in the largest unit that it has one of, to a tenth."""
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size_bytes >> bits:
            return f"{size_bytes / (1 << bits):.1f} {unit}"
    return f"{size_bytes} B"


def free_memory_bytes() -> int | None:
    """Return how much memory may be had without swapping, by the kernel's estimate and the limit of
    the control group; None where neither is known.
    """
    found = [_memory_available(), _memory_limit()]
    return min((one for one in found if one is not None), default=None)


def _memory_available() -> int | None:
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024
    return None


def _memory_limit() -> int | None:
    with suppress(OSError, ValueError):
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        for line in groups:
            if line.startswith("0::/"):
                limit = Path("/sys/fs/cgroup") / line.removeprefix("0::/") / "memory.max"
                return int(limit.read_text(encoding="ascii"))  # "max" is no number
    return None
