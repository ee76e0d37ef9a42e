"""Mooncake's Transfer Engine: the size of the slices that it cuts a request into.

Source    Mooncake v0.3.12.post1, mooncake-transfer-engine: src/config.cpp (MC_SLICE_SIZE,
          MC_FRAGMENT_RATIO), src/transport/rdma_transport/rdma_transport.cpp,
          src/transport/tcp_transport/tcp_transport.cpp (MC_TCP_SLICE_SIZE),
          tent/src/transport/rdma/rdma_transport.cpp (transports/rdma/workers/block_size).
Traps     MC_SLICE_SIZE goes through atoi, the block size is an int: 2^31 and more are lost. With
          MC_FRAGMENT_RATIO unset the last slice takes up to 16 KiB more, whatever the size; so it
          is always written. TENT makes at most 64 slices of a request, 32 of a write or of a GPU's
          memory, by slices of a whole multiple of the size.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting
from domain.regret import SizeRule
from exports.targets.commentary import commentary, one_size
from exports.targets.target import (
    ExportInput,
    LibraryDefault,
    Takes,
    Target,
    TargetOption,
    Unpriced,
    repeats,
)

# A page at least: each slice is a work request, and queues are counted in requests. Whole cache
# lines, so that no two slices write to one.
SIZES = SizeRule(min_bytes=4096, max_bytes=2**31 - 64, multiple_of=64)
_RDMA, _TCP, _RATIO = "MC_SLICE_SIZE", "MC_TCP_SLICE_SIZE", "MC_FRAGMENT_RATIO"
_TENT = ("transports", "rdma", "workers", "block_size")
_ABSORBED = 4  # Mooncake's own ratio: a rest of up to a quarter goes with the slice before it
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Z][A-Z0-9_]*)=([\"']?)([^\"'#]*)\2\s*(?:#.*)?")
_MAX_DIGITS = 15


def render(given: ExportInput) -> str:
    """Variables, or the JSON of a TENT configuration. Raises InvalidInput."""
    size, form = one_size(given, SIZES), given.options["form"]
    if form == "tent":
        comment = [*commentary(given, TARGET, prefix="").splitlines(), *_notes(form)]
        rdma = {"workers": {"block_size": size}}
        return json.dumps({"sluice": comment, "transports": {"rdma": rdma}}, indent=2) + "\n"
    head = commentary(given, TARGET) + "".join(f"# {note}\n" for note in _notes(form))
    if form == "tcp":
        return f"{head}{_TCP}={size}\n"
    ratio = _ABSORBED if given.options["rest"] == "absorbed" else size - 1
    return f"{head}{_RDMA}={size}\n{_RATIO}={ratio}\n"


def _notes(form: str) -> Iterator[str]:
    if form == "tent":
        yield "TENT makes at most 64 slices of a request, 32 of a write or of a GPU's memory:"
        yield "longer requests have slices of a multiple of this size, which the figures leave out"
    if form == "rdma":
        yield "the last slice takes in a rest of at most 1/MC_FRAGMENT_RATIO of the size; the"
        yield "figures are for a rest that is a slice of its own (option rest=own)"


def _default(options: Mapping[str, str]) -> LibraryDefault:
    """The transport's own size, where a source of Mooncake states it."""
    if options["form"] == "rdma":
        return repeats(2**16, "slice_size in include/config.h")
    return LibraryDefault("the transport's own size", "not looked up")


def _unpriced(options: Mapping[str, str]) -> tuple[Unpriced, ...]:
    left_out = {
        "tent": Unpriced("slices that TENT makes longer, at most 64 of them", may_lose=True),
        "rdma": Unpriced("a rest that the last slice takes in", may_lose=False),
    }
    return (left_out[options["form"]],) if options["form"] in left_out else ()


def read(text: str) -> FragmentSetting:
    """The setting that such a text is. Raises InvalidInput."""
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        return FragmentSetting.always(_tent_size(text))
    sizes = {
        name: _size(value)
        for name, value in _assignments(text)
        if name in (_RDMA, _TCP)  # the last assignment counts
    }
    if len(set(sizes.values())) > 1:
        raise InvalidInput(
            f"expected one size: {_RDMA} and {_TCP} give two different ones", field="setting"
        )
    if not sizes:
        raise InvalidInput(f"expected {_RDMA}=bytes or {_TCP}=bytes", field="setting")
    return FragmentSetting.always(sizes.popitem()[1])


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        if found := _ASSIGNMENT.fullmatch(line):
            yield found[1], found[3].strip()


def _size(value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS and int(value)):
        raise InvalidInput("expected a size in plain digits, above 0", field="setting")
    return int(value)


def _tent_size(text: str) -> int:
    try:
        document: Any = json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        raise InvalidInput("expected a JSON document", field="setting") from None
    # A path may be nested objects, or one key with slashes in it (tent/common/config.h, get).
    found: Any = document
    for step in _TENT:
        found = found.get(step) if isinstance(found, dict) else None
    if found is None:
        found = document.get("/".join(_TENT))
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise InvalidInput(f"expected {'/'.join(_TENT)}, a whole number above 0", field="setting")
    return found


TARGET = Target(
    name="mooncake",
    title="Mooncake Transfer Engine: size of a slice",
    takes=Takes.ONE_SIZE,
    render=render,
    suffix="env",
    grammar="Mooncake v0.3.12.post1, mooncake-transfer-engine/src/config.cpp",
    sizes=SIZES,
    options=(
        TargetOption(
            "form",
            "rdma",
            "variables of the RDMA transport, of the TCP transport, or TENT's JSON",
            choices=("rdma", "tcp", "tent"),
        ),
        TargetOption(
            "rest",
            "absorbed",
            "with form rdma: a rest of up to a quarter of the size goes with the slice before it, "
            "or is a slice of its own",
            choices=("absorbed", "own"),
        ),
    ),
    read=read,
    suffixes={"tent": "json"},
    default=_default,
    unpriced=_unpriced,
)
