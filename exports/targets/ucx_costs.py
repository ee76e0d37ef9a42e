"""UCX: fitted stage costs as UCX's own estimates, by which it chooses among its protocols.

Source    src/ucs/config/parser.c: `ucs_config_sscanf_bw`, `ucs_config_sscanf_time`,
          `ucs_config_sscanf_key_value`; sections with filters since 1.17.0
          (`ucs_config_parse_check_filter`). Variables: the tables of ucp_context.c and of the
          transports in src/uct, with the release that each came in.
Exact     bandwidths and times to 12 digits.
Traps     UCX's MBs are 2^20 bytes a second. UCX before 1.17 reads sections and does not look at
          their filters: such a section would apply on every machine, so that none is written.
          UCX before 1.19 refuses bandwidths by direction (`h2d:`) and ends the program
          (parthenon-hpc-lab/parthenon#1260). A list by direction needs a value for every key, so
          that it begins with UCX's default for the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from domain.errors import InvalidInput
from domain.pipeline import FitRange, Stage
from exports.targets.commentary import commentary
from exports.targets.target import ExportInput, Takes, Target, TargetOption

_MIN_NS_PER_BYTE = 1e-6  # a petabyte a second: what is faster was no measurement
_MAX_SECTION = 49  # bytes of a section's name: MAX_SECTION in src/ucs/config/ini.c, and its end
_FILTER = r"[A-Za-z0-9_.*?()+ -]{0,40}"
_FILTERS = (
    ("cpu_vendor", "CPU vendor"),
    ("cpu_model", "CPU model"),
    ("product", "Product name"),
)


@dataclass(frozen=True, slots=True)
class _Variable:
    """Where a stage's cost goes. `default` is UCX's own for the other keys of a list."""

    name: str
    is_bandwidth: bool
    since: tuple[int, int]
    key: str = ""
    default: str = ""


_CUDA_DEFAULT = "10000MBs"  # of BW in src/uct/cuda/cuda_copy/cuda_copy_iface.c
_VARIABLES = {
    "bcopy_bw": _Variable("UCX_BCOPY_BW", True, (1, 12)),
    "posix_bw": _Variable("UCX_POSIX_BW", True, (1, 12)),
    "sysv_bw": _Variable("UCX_SYSV_BW", True, (1, 12)),
    "cma_bw": _Variable("UCX_CMA_BW", True, (1, 12)),
    "cuda_copy_bw": _Variable("UCX_CUDA_COPY_BW", True, (1, 12)),
    "tcp_max_bw": _Variable("UCX_TCP_MAX_BW", True, (1, 17)),
    "cuda_ipc_bw": _Variable("UCX_CUDA_IPC_BW", True, (1, 17)),
    "cuda_ipc_lat": _Variable("UCX_CUDA_IPC_LAT", False, (1, 19)),
    "cuda_ipc_overhead": _Variable("UCX_CUDA_IPC_OVERHEAD", False, (1, 19)),
    "cuda_copy_bw.h2d": _Variable("UCX_CUDA_COPY_BW", True, (1, 19), "h2d", _CUDA_DEFAULT),
    "cuda_copy_bw.d2h": _Variable("UCX_CUDA_COPY_BW", True, (1, 19), "d2h", _CUDA_DEFAULT),
    "cuda_copy_bw.d2d": _Variable("UCX_CUDA_COPY_BW", True, (1, 19), "d2d", _CUDA_DEFAULT),
}
_READ_BACK = ("bcopy_bw", "posix_bw", "sysv_bw", "cma_bw")  # those that Debian's UCX has
_OPTIONS = (
    TargetOption(
        "version",
        "1.12",
        "the oldest UCX that reads it; sections with filters need 1.17, directions 1.19",
        choices=("1.12", "1.17", "1.19"),
    ),
    TargetOption(
        "stages",
        "",
        "which stage is which variable: pairs stage:variable, such as 1:bcopy_bw or "
        f"2:cuda_copy_bw.h2d, separated by commas; variables: {', '.join(_VARIABLES)}",
        pattern=r"[0-9]{1,2}:[a-z0-9_.]{1,24}(,[0-9]{1,2}:[a-z0-9_.]{1,24}){0,19}|",
    ),
    *(
        TargetOption(
            option,
            "",
            f"the machines that it is for, a shell pattern for UCX's {label}; empty: every machine",
            pattern=_FILTER,
        )
        for option, label in _FILTERS
    ),
)


def _render(given: ExportInput) -> str:
    pairs = _pairs(given)
    is_read = given.options["version"] == "1.12" and all(name in _READ_BACK for _, name in pairs)
    head = commentary(given, TARGET, verified_by=TARGET.verified_by if is_read and pairs else "")
    if not pairs:
        return head + "# nothing is set: the option stages says which stage is which variable\n"
    notes = "".join(f"# {note}\n" for note in _notes(given, pairs))
    return head + notes + "\n".join([*_section(given), *_lines(given, pairs)]) + "\n"


def _pairs(given: ExportInput) -> list[tuple[Stage, str]]:
    version = _version(given.options["version"])
    pairs = []
    for pair in filter(None, given.options["stages"].split(",")):
        number, name = pair.split(":")
        if not 1 <= int(number) <= len(given.pipeline):
            raise InvalidInput(f"expected stages from 1 to {len(given.pipeline)}", field="options")
        if name not in _VARIABLES:
            raise InvalidInput(
                f"expected variables out of: {', '.join(_VARIABLES)}", field="options"
            )
        if _VARIABLES[name].since > version:
            since = ".".join(map(str, _VARIABLES[name].since))
            raise InvalidInput(f"{name} is for UCX {since} and later", field="options")
        pairs.append((given.pipeline.stages[int(number) - 1], name))
    _check_once([name for _, name in pairs])
    return pairs


def _check_once(names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise InvalidInput("expected each variable once", field="options")
    if any(f"{name}." in other for name in names for other in names):
        raise InvalidInput(
            "expected either one cuda_copy_bw or one for each direction", field="options"
        )


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


def _section(given: ExportInput) -> Iterator[str]:
    filters = [(label, given.options[option].strip()) for option, label in _FILTERS]
    if not any(value for _, value in filters):
        return
    if given.options["version"] == "1.12":
        raise InvalidInput(
            "UCX before 1.17 applies a section on every machine: expected version 1.17 or later",
            field="options",
        )
    profile = re.sub(r"[^A-Za-z0-9_. -]", "_", given.profile)
    yield f"[{f'Sluice {profile}'[:_MAX_SECTION].strip()}]"
    yield from (f"{label}={value}" for label, value in filters if value)


def _lines(given: ExportInput, pairs: list[tuple[Stage, str]]) -> Iterator[str]:
    values: dict[str, list[str]] = {}
    for stage, name in pairs:
        variable = _VARIABLES[name]
        value = _value(stage, variable)
        listed = values.setdefault(variable.name, [variable.default] if variable.key else [])
        listed.append(f"{variable.key}:{value}" if variable.key else value)
    yield from (f"{name}={','.join(listed)}" for name, listed in values.items())


def _value(stage: Stage, variable: _Variable) -> str:
    part = _range_of(stage)
    if not variable.is_bandwidth:
        return f"{part.overhead_us:.12g}us"
    if part.ns_per_byte < _MIN_NS_PER_BYTE:
        raise InvalidInput(
            "a stage without a cost per byte has no bandwidth to export", field="options"
        )
    return f"{1e9 / part.ns_per_byte / 2**20:.12g}MBs"


def _range_of(stage: Stage) -> FitRange:
    """What a message of any length is bound by in the end: the last range, which is open."""
    return stage.ranges[-1]


def _notes(given: ExportInput, pairs: list[tuple[Stage, str]]) -> Iterator[str]:
    yield "UCX's MBs are 2^20 bytes a second; these are estimates: they choose among protocols"
    if any(not stage.is_line for stage, _ in pairs):
        yield "a stage with several ranges is given by its last one"


TARGET = Target(
    name="ucx-costs",
    title="UCX: fitted stage costs as its performance estimates",
    takes=Takes.COSTS,
    render=_render,
    suffix="conf",
    grammar="src/ucs/config/parser.c, UCX 1.13.1 and 1.20.0",
    options=_OPTIONS,
    verified_by="ucx_info 1.13.1",
)
