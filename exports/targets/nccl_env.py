"""NCCL's variables: the chunk of sends and receives, and the buffer that collectives are cut by.

Source    NCCL v2.30.7-1: src/init.cc (computeBuffSizes), src/enqueue.cc (addP2pToPlan,
          calcCollChunking), src/misc/param.cc (setEnvFile, ncclLoadParam), src/include/bitops.h
          (u32fp8Encode), src/transport/nvls.cc.
Traps     ncclLoadParam takes what strtoll can use: `512K` is 512 for it, so sizes are plain digits.
          In silence a chunk is lowered to an eighth of NCCL_BUFFSIZE (4 MiB by default) and rounded
          down to four binary digits; so powers of two up to 512 KiB are written, and what is read
          is what NCCL makes of it. Buffers that are no powers of two gave wrong results
          (NVIDIA/nccl#698). NVLS trees take chunks of up to 128 KiB whatever the buffer is, so no
          buffer below eight of those is written. NCCL_CHUNK_SIZE is never written, and refused
          where it is read: it corrupts data without a word (NVIDIA/nccl#2408, #1496).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from domain.fragment_setting import FragmentSetting
from domain.regret import SizeRule
from exports.targets.commentary import commentary, one_size
from exports.targets.keyed_lines import Entry, ini_entries, refuse, the_one
from exports.targets.target import (
    OF_COLLECTIVES,
    ExportInput,
    Takes,
    Target,
    TargetOption,
    Unpriced,
    repeats,
)

P2P = {
    "net": "NCCL_P2P_NET_CHUNKSIZE",
    "pci": "NCCL_P2P_PCI_CHUNKSIZE",
    "nvl": "NCCL_P2P_NVL_CHUNKSIZE",
}
BUFFER = "NCCL_BUFFSIZE"
_OWN_BYTES = {"net": 2**17, "pci": 2**17, "nvl": 2**19}  # NCCL's defaults of P2P
STEPS = 8  # NCCL_STEPS: a buffer is a ring of so many steps, and a step is a chunk
DEFAULT_BUFFER_BYTES = 2**22
_FORBIDDEN = "NCCL_CHUNK_SIZE"
_GRAIN_BYTES = 512  # ncclProtoGrainSize of protocol Simple, src/include/device.h
_DIGITS = 4  # u32fp8: a power of two and three binary digits
_MAX_SIZE = 2**31 - 1  # NCCL keeps both in an int
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,15}|0[0-7]{0,20}|[1-9][0-9]{0,17}", re.ASCII)
P2P_SIZES = SizeRule(2**14, DEFAULT_BUFFER_BYTES // STEPS, is_power_of_two=True)
BUFFER_SIZES = SizeRule(2**17, 2**20, is_power_of_two=True)
FORM = TargetOption(
    "form",
    "conf",
    "lines of nccl.conf (NCCL_CONF_FILE), or shell commands",
    choices=("conf", "shell"),
)


def assignments(given: ExportInput, values: dict[str, str]) -> str:
    """Lines that set these variables, in the form that the options ask for."""
    before = "export " if given.options["form"] == "shell" else ""
    return "".join(f"{before}{name}={value}\n" for name, value in values.items())


def _render_p2p(given: ExportInput) -> str:
    size, name = one_size(given, P2P_SIZES), P2P[given.options["path"]]
    notes = (
        "# for ncclSend and ncclRecv: a message is what one channel carries of it; over a network\n"
        "# NCCL halves the size for messages below 8 of it, and again below one, which the\n"
        "# figures leave out; to be set alike on all ranks\n"
    )
    return commentary(given, TARGET) + notes + assignments(given, {name: str(size)})


def _render_buffer(given: ExportInput) -> str:
    size = one_size(given, BUFFER_SIZES)
    notes = (
        f"# a chunk of trees, and of ring broadcasts and reduces, is an eighth of {BUFFER}: the\n"
        "# size above; a message is what one channel carries of it. It changes every collective\n"
        "# of protocol Simple, and the memory of every connection; to be set alike on all ranks\n"
    )
    values = {BUFFER: str(STEPS * size)}
    return commentary(given, BUFFER_TARGET) + notes + assignments(given, values)


def read_p2p(text: str) -> FragmentSetting:
    """The chunk of sends and receives as NCCL makes it of these variables. Raises InvalidInput."""
    entries = _allowed(text)
    buffers = {
        f"{BUFFER} (line {entry.number})": FragmentSetting.always(_size(entry))
        for entry in entries
        if entry.name == BUFFER
    }
    buffer = the_one(buffers, what=BUFFER).size_at(_MAX_SIZE) if buffers else DEFAULT_BUFFER_BYTES
    found = {
        f"{entry.name} (line {entry.number})": _chunk(entry, buffer)
        for entry in entries
        if entry.name in P2P.values()
    }
    return the_one(found, what=f"a line {P2P['net']}=131072 (or _PCI_, or _NVL_)")


def read_buffer(text: str) -> FragmentSetting:
    """The chunk that NCCL_BUFFSIZE gives trees and ring broadcasts. Raises InvalidInput."""
    found = {
        f"line {entry.number}": _step(entry) for entry in _allowed(text) if entry.name == BUFFER
    }
    return the_one(found, what=f"a line {BUFFER}={DEFAULT_BUFFER_BYTES}")


def _allowed(text: str) -> list[Entry]:
    entries = list(_entries(text))
    for entry in entries:
        if entry.name == _FORBIDDEN:
            refuse(entry.number, f"{_FORBIDDEN} corrupts data (NVIDIA/nccl#2408): take it out")
    return entries


def _entries(text: str) -> Iterator[Entry]:
    return iter(ini_entries(text, r"NCCL_\w+"))


def _chunk(entry: Entry, buffer_bytes: int) -> FragmentSetting:
    size = min(_size(entry), buffer_bytes // STEPS)
    if size < 1:
        refuse(entry.number, f"expected a {BUFFER} of at least {STEPS} bytes")
    shift = max(0, size.bit_length() - _DIGITS)
    return FragmentSetting.always(size >> shift << shift)


def _step(entry: Entry) -> FragmentSetting:
    size = _size(entry)
    if size % (STEPS * _GRAIN_BYTES):
        refuse(
            entry.number,
            f"expected a multiple of {STEPS * _GRAIN_BYTES}: NCCL gives wrong results with steps "
            "of broken grains (NVIDIA/nccl#698)",
        )
    return FragmentSetting.always(size // STEPS)


def _size(entry: Entry) -> int:
    """What strtoll of base 0 reads. Raises InvalidInput for what it reads otherwise than meant."""
    if _NUMBER.fullmatch(entry.value) is None:
        refuse(entry.number, "expected plain digits: NCCL reads 512K as 512")
    is_octal = entry.value[0] == "0" and entry.value[1:2] not in ("x", "X")
    size = int(entry.value, 8) if is_octal else int(entry.value, 0)
    if not 1 <= size <= _MAX_SIZE:
        refuse(entry.number, f"expected 1 to {_MAX_SIZE} bytes")
    return size


TARGET = Target(
    name="nccl-env",
    title="NCCL: chunk of sends and receives",
    takes=Takes.ONE_SIZE,
    render=_render_p2p,
    suffix="conf",
    grammar="NCCL v2.30.7-1, src/init.cc (computeBuffSizes) and src/misc/param.cc (setEnvFile)",
    sizes=P2P_SIZES,
    options=(
        TargetOption(
            "path",
            "net",
            "communicators over several nodes; over PCI within one node; over NVLink alone",
            choices=tuple(P2P),
        ),
        FORM,
    ),
    read=read_p2p,
    suffixes={"shell": "sh"},
    default=lambda options: repeats(_OWN_BYTES[options["path"]], "src/init.cc"),
    unpriced=lambda options: (
        (Unpriced("the size that NCCL halves for short messages over a network", may_lose=True),)
        if options["path"] == "net"
        else ()
    ),
)

BUFFER_TARGET = Target(
    name="nccl-buffsize",
    title="NCCL: buffer that collectives are cut by",
    takes=Takes.ONE_SIZE,
    render=_render_buffer,
    suffix="conf",
    grammar="NCCL v2.30.7-1, src/init.cc (computeBuffSizes) and src/misc/param.cc (setEnvFile)",
    sizes=BUFFER_SIZES,
    options=(FORM,),
    read=read_buffer,
    suffixes={"shell": "sh"},
    default=lambda _: repeats(DEFAULT_BUFFER_BYTES // STEPS, "src/init.cc (computeBuffSizes)"),
    unpriced=lambda _: (OF_COLLECTIVES,),
)
