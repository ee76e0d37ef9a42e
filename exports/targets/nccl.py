"""What makes NCCL load the tuner plugin (clients/c/nccl) with a plan table.

Source    NCCL v2.30.7-1: src/plugin/plugin_open.cc and src/plugin/tuner.cc (NCCL_TUNER_PLUGIN),
          src/misc/param.cc (setEnvFile); clients/c/nccl/tuner.c.
Traps     ranks that cut a message differently wait for each other, or take each other's data for
          something else. So the table's checksum is written too: a rank with another table, or
          with none, makes no communicator.
"""

from __future__ import annotations

from domain.errors import InvalidInput
from exports.targets.commentary import commentary
from exports.targets.nccl_env import FORM, assignments
from exports.targets.target import ExportInput, Takes, Target, TargetOption

_CHECKSUM = slice(24, 28)  # in the header of a table file, docs/format.md
_ONE = "(broadcast|reduce|allreduce)"


def _render(given: ExportInput) -> str:
    if len(given.table_bytes) < _CHECKSUM.stop:
        raise InvalidInput("expected a plan table", field="table")
    path = given.options["table"] or f"/etc/sluice/{given.profile or 'plan'}.slt"
    values = {
        "NCCL_TUNER_PLUGIN": given.options["plugin"],
        "SLUICE_NCCL_TABLE": path,
        "SLUICE_NCCL_CHECKSUM": f"{int.from_bytes(given.table_bytes[_CHECKSUM], 'little'):08x}",
        "SLUICE_NCCL_COLLECTIVES": given.options["collectives"],
    }
    notes = (
        "# the table file has to be at this path on every node, and libnccl-tuner-sluice.so where\n"
        "# the linker finds it; NCCL 2.30.3 or later; to be set alike on all ranks\n"
    )
    return commentary(given, TARGET) + notes + assignments(given, values)


TARGET = Target(
    name="nccl",
    title="NCCL: the tuner plugin and its table",
    takes=Takes.TABLE,
    render=_render,
    suffix="conf",
    grammar="NCCL v2.30.7-1, src/plugin/tuner.cc and src/misc/param.cc (setEnvFile)",
    options=(
        TargetOption(
            "table",
            "",
            "absolute path of the table file on every node; empty: /etc/sluice/PROFILE.slt",
            pattern=r"(/[A-Za-z0-9_./+@%-]{1,255})?",
        ),
        TargetOption(
            "plugin",
            "sluice",
            "name or path of the plugin: sluice stands for libnccl-tuner-sluice.so",
            pattern=r"[A-Za-z0-9_./+-]{1,200}",
        ),
        TargetOption(
            "collectives",
            "broadcast,reduce,allreduce",
            "those whose chunks are looked up, with commas",
            pattern=rf"{_ONE}(,{_ONE}){{0,2}}",
        ),
        FORM,
    ),
    suffixes={"shell": "sh"},
)
