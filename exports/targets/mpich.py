"""MPICH: the size of the fragments of its pipelined collectives and of its rendezvous.

Source    names and defaults: src/mpi/coll/cvars.txt of 4.0.2, 4.1 and 5.0.0, and
          src/mpid/ch4/netmod/ofi/ofi_init.c of 5.0.0; numbers: `MPL_env2int` in
          src/mpl/src/env/mpl_env.c.
Exact     whole bytes; decimal digits alone: a unit ends the program.
Traps     nonblocking broadcasts count fragments in elements of each rank's own datatype, so that
          ranks with other datatypes do not fit together; up to 4.0.2 an element larger than the
          size is a division by zero (src/mpi/coll/algorithms/common/algo_common.h; corrected in
          4.0.3). MPIR_CVAR_CH4_OFI_GPU_PIPELINE_BUFFER_SZ of 4.2 and 4.3 is not written at all:
          below its default it has given wrong data (pmodels/mpich#7139), and its pipeline hung
          (#7373). Its successor in 5.0 is not written below its default either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting
from domain.regret import SizeRule
from exports.targets.commentary import commentary, one_size
from exports.targets.keyed_lines import (
    Entry,
    in_range,
    ini_entries,
    refuse,
    the_one,
    variables,
)
from exports.targets.target import (
    OF_A_COLLECTIVE,
    OF_COLLECTIVES,
    Effect,
    ExportInput,
    LibraryDefault,
    Takes,
    Target,
    TargetOption,
    repeats,
)

VERIFIED = "MPI_T of MPICH 4.0.2"
SIZES = SizeRule(min_bytes=4096, max_bytes=2**30, multiple_of=64)
# From the default on, in pages; a process may hold 1024 of them (…_PIPELINE_MAX_CHUNKS).
OFI_SIZES = SizeRule(min_bytes=2**20, max_bytes=2**24, multiple_of=4096)
_OFI = "MPIR_CVAR_CH4_OFI_PIPELINE_CHUNK_SZ"


@dataclass(frozen=True, slots=True)
class _Variable:
    """A control variable: since when, how it is brought to count, and for which programs."""

    since: str
    algorithm: str
    in_bytes: bool = False  # fragments counted in bytes: any datatypes fit
    is_broadcast: bool = False


_VARIABLES = {
    "MPIR_CVAR_BCAST_TREE_PIPELINE_CHUNK_SIZE": _Variable(
        "4.1", "MPIR_CVAR_BCAST_INTRA_ALGORITHM=pipelined_tree", in_bytes=True
    ),
    "MPIR_CVAR_ALLREDUCE_TREE_PIPELINE_CHUNK_SIZE": _Variable(
        "4.1", "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=tree"
    ),
    "MPIR_CVAR_IBCAST_TREE_PIPELINE_CHUNK_SIZE": _Variable(
        "4.0", "MPIR_CVAR_IBCAST_INTRA_ALGORITHM=tsp_tree", is_broadcast=True
    ),
    "MPIR_CVAR_IBCAST_RING_CHUNK_SIZE": _Variable(
        "4.0", "MPIR_CVAR_IBCAST_INTRA_ALGORITHM=tsp_ring", is_broadcast=True
    ),
    "MPIR_CVAR_IREDUCE_TREE_PIPELINE_CHUNK_SIZE": _Variable(
        "4.0", "MPIR_CVAR_IREDUCE_INTRA_ALGORITHM=tsp_tree"
    ),
    "MPIR_CVAR_IREDUCE_RING_CHUNK_SIZE": _Variable(
        "4.0", "MPIR_CVAR_IREDUCE_INTRA_ALGORITHM=tsp_ring"
    ),
    "MPIR_CVAR_IALLREDUCE_TREE_PIPELINE_CHUNK_SIZE": _Variable(
        "4.0", "MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM=tsp_tree"
    ),
}
_FORM = TargetOption(
    "form",
    "env",
    "NAME=VALUE lines, as containers and services take them, or shell commands",
    choices=("env", "shell"),
)
_OPTIONS = (
    TargetOption(
        "parameter",
        "MPIR_CVAR_BCAST_TREE_PIPELINE_CHUNK_SIZE",
        "the control variable that is set",
        choices=tuple(_VARIABLES),
    ),
    TargetOption("version", "4.1", "the oldest MPICH that reads it", choices=("4.0", "4.1")),
    TargetOption(
        "programs",
        "any",
        "what the programs are known to do: uniform, all ranks of a broadcast pass the same count "
        "and datatype, and no element is larger than a fragment; or any",
        choices=("any", "uniform"),
    ),
    _FORM,
)


def _render(given: ExportInput) -> str:
    name = given.options["parameter"]
    variable = _VARIABLES[name]
    _check(given, variable)
    note = f"# counts where this algorithm is used: {variable.algorithm}\n"
    head = commentary(given, TARGET, verified_by=VERIFIED if variable.since == "4.0" else "")
    return head + note + _line(given, name, one_size(given, SIZES))


def _render_ofi(given: ExportInput) -> str:
    size = one_size(given, OFI_SIZES)
    note = f"# a process may allocate 1024 of them: {1024 * size} bytes\n"
    return commentary(given, OFI_TARGET) + note + _line(given, _OFI, size)


def _line(given: ExportInput, name: str, size: int) -> str:
    return f"{'export ' if given.options['form'] == 'shell' else ''}{name}={size}\n"


def _default(options: Mapping[str, str]) -> LibraryDefault:
    """MPICH's own size; what it is where the variable came after the version that is read here."""
    if _VARIABLES[options["parameter"]].since == "4.0":
        return repeats(None, f"{VERIFIED}: 0 or below, nothing is cut")
    return LibraryDefault("MPICH's own size", "src/mpi/coll/cvars.txt of 4.1")


def _check(given: ExportInput, variable: _Variable) -> None:
    is_old = given.options["version"] == "4.0"
    if is_old and variable.since == "4.1":
        raise InvalidInput("this control variable came in MPICH 4.1", field="options")
    is_safe = variable.in_bytes or not (variable.is_broadcast or is_old)
    if not is_safe and given.options["programs"] != "uniform":
        raise InvalidInput(
            "expected programs=uniform: cut like this, a broadcast with other counts or datatypes "
            "on other ranks gives wrong data, and up to MPICH 4.0.2 an element larger than a "
            "fragment ends the program",
            field="options",
        )


# --- reading --------------------------------------------------------------------------------------


def read(text: str) -> FragmentSetting:
    """The fragment size that an environment sets. Raises InvalidInput.

    Only the variables of these targets count; the last of a name wins, several with other sizes are
    ambiguous. Sizes of 0 and below mean that messages are sent whole.
    """
    known = "|".join([*_VARIABLES, _OFI, "MPIR_CVAR_CH4_OFI_GPU_PIPELINE_BUFFER_SZ"])
    found = {
        entry.name: FragmentSetting.always(_bytes(entry) or None)
        for entry in ini_entries(text, known)
    }
    return the_one(found, what=f"a variable such as {next(iter(_VARIABLES))}=65536")


def _bytes(entry: Entry) -> int:
    match = re.fullmatch(r"(-?)\+?([0-9]{1,18})", entry.value, re.ASCII)
    if match is None:
        refuse(entry.number, "expected bytes in decimal digits: MPICH reads no units")
    return 0 if match[1] else in_range(int(match[2]), entry.number)


_SHOWING = ("ping-pong", "bcast", "reduce", "allreduce", "ibcast", "ireduce", "iallreduce")


def _since(text: str) -> tuple[int, ...]:
    """That of the youngest variable; one that is not known here is of any version."""
    names = variables(text, r"MPIR_CVAR_\w+")
    known = [_VARIABLES[name].since for name in names if name in _VARIABLES]
    found = [tuple(map(int, one.split("."))) for one in known]
    return max([*found, *([(5, 0)] if _OFI in names else [])], default=())


_EFFECT = Effect("MPICH", _SHOWING, lambda text, _: variables(text, r"MPIR_CVAR_\w+"), _since)
TARGET = Target(
    name="mpich",
    title="MPICH: fragment size of a pipelined collective",
    takes=Takes.ONE_SIZE,
    render=_render,
    suffix="env",
    grammar="src/mpi/coll/cvars.txt and src/mpl/src/env/mpl_env.c, MPICH 4.0.2 and 4.1",
    sizes=SIZES,
    options=_OPTIONS,
    verified_by=VERIFIED,
    read=read,
    suffixes={"shell": "sh"},
    figures_note=OF_A_COLLECTIVE,
    default=_default,
    unpriced=lambda _: (OF_COLLECTIVES,),
    effect=_EFFECT,
)
OFI_TARGET = Target(
    name="mpich-ofi",
    title="MPICH 5: fragment size of the pipelined rendezvous of ch4:ofi",
    takes=Takes.ONE_SIZE,
    render=_render_ofi,
    suffix="env",
    grammar="src/mpid/ch4/netmod/ofi/ofi_init.c, MPICH 5.0.0",
    sizes=OFI_SIZES,
    options=(_FORM,),
    read=read,
    suffixes={"shell": "sh"},
    default=lambda _: repeats(2**20, "src/mpid/ch4/netmod/ofi/ofi_init.c of 5.0.0"),
    effect=_EFFECT,
)
