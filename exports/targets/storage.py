"""Storage: the bounce buffers of cuFile (GPUDirect Storage), and the parts of S3 clients.

Source    cuFile: GPUDirect Storage configuration guide, table of cufile.json. S3: the limits of
          multipart uploads (5 MiB to 5 GiB a part, 10 000 parts); boto3/s3/transfer.py
          (`TransferConfig`), awscli/customizations/s3/transferconfig.py and
          awscli/customizations/s3/utils.py (`human_readable_to_bytes`); rclone backend/s3/s3.go and
          fs/sizesuffix.go.
Exact     cuFile takes whole KiB, of which these are multiples of 64; the others whole bytes.
Traps     cuFile reads one file, so that the two lines have to be put into the one in use. What is
          longer than per_buffer_cache_size_kb in a batch goes the POSIX way without a word. In
          compatibility mode (1.15.1, H100, no nvidia-fs) a read of 16 MiB is two `pread` of 8 MiB
          with 256, 1024 and 4096 KiB alike: counted by a preloaded library. A plain
          number is KiB for rclone, bytes for the others. Clients raise the size of a part where a
          file would have more than 10 000 of it, and send several parts at once: figures are for
          one after the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from domain.fragment_setting import FragmentSetting
from domain.regret import SizeRule
from exports.targets.commentary import commentary, one_size
from exports.targets.keyed_lines import Line, in_range, lines_of, refuse, the_one
from exports.targets.target import (
    ExportInput,
    LibraryDefault,
    Takes,
    Target,
    TargetOption,
    Unpriced,
    repeats,
)

_KIB = 1024
_CUFILE_SIZES = SizeRule(min_bytes=64 * _KIB, max_bytes=2**24, multiple_of=64 * _KIB)
_CUFILE_KIB = {"per_buffer_cache_size_kb": 1024, "max_direct_io_size_kb": 16384}
_IN_CUFILE = re.compile(rf'"({"|".join(_CUFILE_KIB)})"\s*:\s*([0-9]{{1,12}})\b')
_GUIDE = "GPUDirect Storage configuration guide, cufile.json"


def _render_cufile(given: ExportInput) -> str:
    size = one_size(given, _CUFILE_SIZES)
    comment = commentary(given, CUFILE_TARGET, prefix="// ")
    properties = {given.options["parameter"]: size // _KIB}
    return comment + json.dumps({"properties": properties}, indent=2) + "\n"


def _read_cufile(text: str) -> FragmentSetting:
    """The size that a cufile.json sets, whose comments begin with //. Raises InvalidInput."""
    found = {
        name: FragmentSetting.always(in_range(int(value) * _KIB, line.number) or None)
        for line in lines_of(text)
        for name, value in _IN_CUFILE.findall(line.text.partition("//")[0])
    }
    return the_one(found, what='a property such as "per_buffer_cache_size_kb": 1024')


CUFILE_TARGET = Target(
    name="cufile",
    title="cuFile: size of bounce buffers, or of what is read and written at once",
    takes=Takes.ONE_SIZE,
    render=_render_cufile,
    suffix="jsonc",  # cuFile takes comments after //
    grammar=_GUIDE,
    sizes=_CUFILE_SIZES,
    options=(
        TargetOption(
            "parameter",
            "per_buffer_cache_size_kb",
            "what crosses a bounce buffer of the device is cut by its size; what goes directly, by "
            "max_direct_io_size_kb",
            choices=tuple(_CUFILE_KIB),
        ),
    ),
    read=_read_cufile,
    default=lambda options: repeats(_CUFILE_KIB[options["parameter"]] * _KIB, _GUIDE),
    unpriced=lambda _: (
        Unpriced(
            "whether bounce buffers are in use: without nvidia-fs, in compatibility mode, the size "
            "changes nothing",
            may_lose=False,
        ),
        Unpriced("several requests at once, entries of a batch that are longer", may_lose=True),
    ),
)


# --- S3 -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Client:
    """A client: how a size is written for it, its default, and where that is stated."""

    lines: str
    default_bytes: int
    source: str


_S3_SIZES = SizeRule(min_bytes=5 * 2**20, max_bytes=5 * 2**30, multiple_of=_KIB)
_CLIENTS = {
    "boto3": _Client(
        "from boto3.s3.transfer import TransferConfig\n\n"
        "transfer_config = TransferConfig(multipart_chunksize={size})\n",
        2**23,
        "boto3/s3/transfer.py",
    ),
    "aws": _Client(
        "[default]\ns3 =\n  multipart_chunksize = {size}\n",
        2**23,
        "awscli/customizations/s3/transferconfig.py",
    ),
    "rclone": _Client("RCLONE_S3_CHUNK_SIZE={size}B\n", 5 * 2**20, "backend/s3/s3.go"),
}
_S3_SIZE = r"(?:=|\s)\s*\"?([0-9]{1,15})\s*([KMGT]?)(i?B?)\b"
_IN_S3 = re.compile(rf"\bmultipart_chunksize\s*{_S3_SIZE}", re.IGNORECASE | re.ASCII)
_IN_RCLONE = re.compile(
    rf"(?:\bRCLONE_S3_CHUNK_SIZE|--s3-chunk-size|^chunk_size)\s*{_S3_SIZE}",
    re.IGNORECASE | re.ASCII,
)
_UNITS = ".KMGT"


def _render_s3(given: ExportInput) -> str:
    size = one_size(given, _S3_SIZES)
    return commentary(given, S3_TARGET) + _CLIENTS[given.options["form"]].lines.format(size=size)


def _read_s3(text: str) -> FragmentSetting:
    """The size of a part that a client's configuration sets. Raises InvalidInput."""
    found = {
        name: FragmentSetting.always(size)
        for line in lines_of(text)
        if line.text[0] not in "#;"
        for name, size in _parts(line)
    }
    return the_one(found, what="a line such as multipart_chunksize = 8MB")


def _parts(line: Line) -> Iterator[tuple[str, int]]:
    """Sizes by name: a number alone is KiB for rclone, bytes for the others."""
    for name, pattern, plain in (("multipart_chunksize", _IN_S3, 0), ("chunk_size", _IN_RCLONE, 1)):
        if match := pattern.search(line.text):
            unit = _UNITS.find(match[2].upper()) if match[2] else plain * (not match[3])
            size = int(match[1]) << 10 * unit
            if size == 0:
                refuse(line.number, "expected a size of at least 1 byte")
            yield name, in_range(size, line.number)


def _s3_default(options: Mapping[str, str]) -> LibraryDefault:
    client = _CLIENTS[options["form"]]
    return repeats(client.default_bytes, client.source)


S3_TARGET = Target(
    name="s3",
    title="S3 clients: size of a part",
    takes=Takes.ONE_SIZE,
    render=_render_s3,
    suffix="conf",
    grammar="boto3/s3/transfer.py, awscli/customizations/s3/transferconfig.py, backend/s3/s3.go",
    sizes=_S3_SIZES,
    verified_by="uploads of aws-cli 1.45.11, boto3 1.43.11, rclone 1.60.1",
    options=(
        TargetOption(
            "form",
            "aws",
            "a section of the configuration of the AWS command line, a line of Python for boto3, "
            "or a variable for rclone",
            choices=("aws", "boto3", "rclone"),
        ),
    ),
    read=_read_s3,
    suffixes={"boto3": "py", "rclone": "env"},
    default=_s3_default,
    unpriced=lambda _: (
        Unpriced("parts that are sent at once, 10 by default and 4 of rclone", may_lose=True),
    ),
)
