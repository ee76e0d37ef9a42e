"""UCC: the fragment size of its pipelined collectives, one of the `…_PIPELINE` variables.

Source    `ucc_config_sscanf_pipeline_params` in src/utils/ucc_parser.c and
          `ucc_pipeline_nfrags_pdepth` in src/schedule/ucc_schedule_pipelined.h; names:
          src/components/cl/hier/cl_hier.c and src/components/tl/ucp/tl_ucp.c, of 1.3.0 and 1.6.0.
Exact     whole bytes. UCC makes ⌈B/s⌉ fragments of equal sizes, of s bytes at most.
Traps     the order is a bare word: `order=sequential`, which UCC itself prints, is passed over in
          silence. Without a threshold nothing is cut; messages above it are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from domain.fragment_setting import FragmentSetting, SettingStep
from domain.regret import SizeRule
from exports.targets.commentary import commentary, one_size
from exports.targets.keyed_lines import (
    Entry,
    binary_size,
    ini_entries,
    last_in_each_section,
    refuse,
    the_one,
)
from exports.targets.target import (
    OF_A_COLLECTIVE,
    OF_COLLECTIVES,
    ExportInput,
    LibraryDefault,
    Takes,
    Target,
    TargetOption,
    repeats,
)

_SIZES = SizeRule(min_bytes=4096, max_bytes=2**30, multiple_of=64)
_VARIABLES = (
    "UCC_CL_HIER_ALLREDUCE_RAB_PIPELINE",
    "UCC_CL_HIER_ALLREDUCE_SPLIT_RAIL_PIPELINE",
    "UCC_CL_HIER_BCAST_2STEP_PIPELINE",
    "UCC_CL_HIER_REDUCE_2STEP_PIPELINE",
    "UCC_TL_UCP_ALLREDUCE_SRA_KN_PIPELINE",
)
_OPTIONS = (
    TargetOption(
        "parameter",
        "UCC_CL_HIER_ALLREDUCE_RAB_PIPELINE",
        "the variable that is set; REDUCE_2STEP came after 1.3",
        choices=_VARIABLES,
    ),
    TargetOption("depth", "2", "fragments in flight", pattern=r"[1-9][0-9]?"),
    TargetOption(
        "order",
        "sequential",
        "how fragments follow each other",
        choices=("sequential", "ordered", "parallel"),
    ),
    TargetOption("form", "conf", "lines of ucc.conf, or shell commands", choices=("conf", "shell")),
)


def _render(given: ExportInput) -> str:
    size, options = one_size(given, _SIZES), given.options
    value = f"thresh={size}:fragsize={size}:nfrags=2:pdepth={options['depth']}:{options['order']}"
    before = "export " if options["form"] == "shell" else ""
    return f"{commentary(given, TARGET)}{before}{options['parameter']}={value}\n"


def _default(options: Mapping[str, str]) -> LibraryDefault:
    """UCC's own value: no pipeline in the hierarchical collectives, its choice in the others."""
    if options["parameter"].startswith("UCC_CL_HIER"):
        return repeats(None, "src/components/cl/hier/cl_hier.c of 1.3.0, value n")
    return LibraryDefault("UCC's choice (auto)", "src/components/tl/ucp/tl_ucp.c of 1.3.0")


def read(text: str) -> FragmentSetting:
    """The fragment size that ucc.conf or an environment sets, of messages above its threshold.

    `n` and `auto` cut nothing. Several variables that differ are ambiguous. Raises InvalidInput.
    """
    entries = ini_entries(text, "|".join(_VARIABLES))
    found = {
        f"{name} (line {entry.number})": _setting(entry)
        for name in _VARIABLES
        for entry in last_in_each_section(entries, name)
    }
    return the_one(found, what=f"a variable such as {_VARIABLES[0]}")


def _setting(entry: Entry) -> FragmentSetting:
    if re.fullmatch("n|auto", entry.value, re.IGNORECASE):
        return FragmentSetting.always(None)
    parts = dict(part.partition("=")[::2] for part in entry.value.split(":"))
    max_whole = _size(parts, "thresh", entry.number)
    size = _size(parts, "fragsize", entry.number)
    if max_whole is None or size is None:
        return FragmentSetting.always(None)
    if size == 0:
        refuse(entry.number, "expected a fragsize of at least 1 byte")
    if max_whole < size * (_min_fragments(parts, entry.number) - 1):
        refuse(entry.number, "nfrags cuts messages finer than fragsize: expected a higher thresh")
    if max_whole == 0:
        return FragmentSetting.always(size)
    return FragmentSetting((SettingStep(1, None), SettingStep(max_whole + 1, size)))


def _size(parts: dict[str, str], name: str, number: int) -> int | None:
    value = parts.get(name, "inf")
    return None if value.lower() == "inf" else binary_size(value, number)


def _min_fragments(parts: dict[str, str], number: int) -> int:
    value = parts.get("nfrags", "2")
    if re.fullmatch("[0-9]{1,9}", value, re.ASCII) is None:
        refuse(number, "expected a whole number of nfrags")
    return int(value)


TARGET = Target(
    name="ucc",
    title="UCC: fragment size of a pipelined collective",
    takes=Takes.ONE_SIZE,
    render=_render,
    suffix="conf",
    grammar="ucc_config_sscanf_pipeline_params in src/utils/ucc_parser.c, UCC 1.3.0 and 1.6.0",
    sizes=_SIZES,
    options=_OPTIONS,
    read=read,
    suffixes={"shell": "sh"},
    figures_note=OF_A_COLLECTIVE,
    default=_default,
    unpriced=lambda _: (OF_COLLECTIVES,),
)
