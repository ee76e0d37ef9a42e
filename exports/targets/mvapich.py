"""MVAPICH2: the block size of its pipelined transfers between GPUs, `MV2_CUDA_BLOCK_SIZE`.

Source    MVAPICH2 2.3.7 User Guide, section on MV2_CUDA_BLOCK_SIZE: default 262144, in bytes. Its
          sources are not public in a repository, so that nothing more is known of its limits.
Exact     whole bytes.
Traps     MVAPICH 3 and later are MPICH: take the target mpich. Sizes stay inside what its guide and
          its users name, powers of two from 64 KiB to 16 MiB.
"""

from __future__ import annotations

from domain.fragment_setting import FragmentSetting
from domain.regret import SizeRule
from exports.targets.commentary import commentary, one_size
from exports.targets.keyed_lines import binary_size, ini_entries, refuse, the_one
from exports.targets.target import ExportInput, Takes, Target, TargetOption, repeats

_VARIABLE = "MV2_CUDA_BLOCK_SIZE"
_SIZES = SizeRule(min_bytes=65536, max_bytes=2**24, is_power_of_two=True)


def _render(given: ExportInput) -> str:
    before = "export " if given.options["form"] == "shell" else ""
    return f"{commentary(given, TARGET)}{before}{_VARIABLE}={one_size(given, _SIZES)}\n"


def read(text: str) -> FragmentSetting:
    """The block size that an environment sets; the last one wins. Raises InvalidInput."""
    found: dict[str, FragmentSetting] = {}
    for entry in ini_entries(text, _VARIABLE):
        size = binary_size(entry.value, entry.number)
        if size == 0:
            refuse(entry.number, "expected a size of at least 1 byte")
        found[_VARIABLE] = FragmentSetting.always(size)
    return the_one(found, what=f"a line {_VARIABLE}=262144")


TARGET = Target(
    name="mvapich",
    title="MVAPICH2: block size of pipelined transfers between GPUs",
    takes=Takes.ONE_SIZE,
    render=_render,
    suffix="env",
    grammar="MVAPICH2 2.3.7 User Guide, MV2_CUDA_BLOCK_SIZE",
    sizes=_SIZES,
    options=(
        TargetOption(
            "form",
            "env",
            "NAME=VALUE lines, as containers and services take them, or shell commands",
            choices=("env", "shell"),
        ),
    ),
    read=read,
    suffixes={"shell": "sh"},
    default=lambda _: repeats(2**18, "User Guide of 2.3.7"),
)
