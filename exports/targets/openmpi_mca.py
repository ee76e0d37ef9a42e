"""Open MPI: a parameter of one fragment size, as an MCA parameter file or as environment.

Source    names: ompi/mca/coll/{han,adapt,tuned}, opal/mca/btl/base/btl_base_mca.c of 4.1.4, 5.0.10
          and the branch that becomes 6.0; file: opal/util/keyval/keyval_lex.l; numbers:
          `int_from_string` in opal/mca/base/mca_base_var.c, of 4.1.4.
Exact     whole bytes.
Traps     an unknown name in a file is passed over in silence, so that only checked names are
          written. A size of a tuned collective counts only beside its algorithm and
          coll_tuned_use_dynamic_rules, and the algorithm is not written: forced for every message,
          it has made reductions 2 to 5.7 times slower, which no price of a size shows. HAN's sizes
          are safe with its default inner collectives (tuned): its shared-memory ones have crashed
          with 512 KiB (open-mpi/ompi#11360).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting
from exports.targets.commentary import commentary, one_size
from exports.targets.keyed_lines import Entry, Line, in_range, lines_of, refuse, the_one
from exports.targets.openmpi_collectives import (
    LIBRARY,
    OWN_DECISION,
    PROGRAMS,
    PROGRAMS_SHOWING,
    SIZES,
    check_uniform,
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
    Unpriced,
    repeats,
)

_VERIFIED = "ompi_info 4.1.4"


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A parameter: the versions that have it, its default, and what else has to be known."""

    versions: str
    default: LibraryDefault
    is_for_uniform: bool = False
    is_read_back: bool = True
    note: str = ""


_TUNED = (
    "counts only beside coll_tuned_use_dynamic_rules and an algorithm, coll_tuned_*_algorithm, "
    "which are not set here: what an algorithm costs is not priced"
)


def _repeats(size_bytes: int | None) -> LibraryDefault:
    return repeats(size_bytes, _VERIFIED)


_OF_HAN = replace(_repeats(2**16), words="65536 bytes up to Open MPI 5.0, 524288 after")


_HAN = "for HAN with its default inner collectives (coll_han_*_low_module left alone)"
_PHASE = "cuts what is sent by RDMA after the first part of a message; for BTLs with put"
_COPIED = (
    "cuts what crosses shared memory by two copies, where no single copy is in use "
    "(btl_vader_single_copy_mechanism none, as in containers without CMA); a fragment's header "
    "is part of its size"
)
_PARAMETERS = {
    "coll_han_bcast_segsize": _Parameter("4.1 and later", _OF_HAN, note=_HAN),
    "coll_han_reduce_segsize": _Parameter("4.1 and later", _OF_HAN, note=_HAN),
    "coll_han_allreduce_segsize": _Parameter("4.1 and later", _OF_HAN, note=_HAN),
    "coll_tuned_reduce_algorithm_segmentsize": _Parameter(
        "4.0 and later", OWN_DECISION, note=_TUNED
    ),
    "coll_tuned_bcast_algorithm_segmentsize": _Parameter(
        "4.0 and later", OWN_DECISION, is_for_uniform=True, note=_TUNED
    ),
    "coll_adapt_bcast_segment_size": _Parameter(
        "4.1 and later", _repeats(None), is_for_uniform=True
    ),
    "coll_adapt_reduce_segment_size": _Parameter("4.1 and later", _repeats(163_740)),
    "btl_vader_max_send_size": _Parameter("4.0 and 4.1", _repeats(2**15), note=_COPIED),
    "btl_tcp_rdma_pipeline_frag_size": _Parameter(
        "4.0 and later", _repeats(2_147_482_624), note=_PHASE
    ),
    "btl_openib_rdma_pipeline_frag_size": _Parameter("4.0 and 4.1", _repeats(2**20), note=_PHASE),
    "btl_smcuda_rdma_pipeline_frag_size": _Parameter(
        "4.0 and later, built with CUDA",
        LibraryDefault("Open MPI's own size", "not read: Debian's is built without CUDA"),
        is_read_back=False,
        note=_PHASE,
    ),
}
_OPTIONS = (
    TargetOption(
        "parameter",
        "coll_han_bcast_segsize",
        "the parameter that is set",
        choices=tuple(_PARAMETERS),
    ),
    TargetOption(
        "form",
        "file",
        "lines of an MCA parameter file (mpirun --tune, openmpi-mca-params.conf), or shell "
        "commands",
        choices=("file", "shell"),
    ),
    PROGRAMS,
)


def _render(given: ExportInput) -> str:
    size, name = one_size(given, SIZES), given.options["parameter"]
    parameter = _PARAMETERS[name]
    if parameter.is_for_uniform:
        check_uniform(given)
    head = commentary(given, TARGET, verified_by=_VERIFIED if parameter.is_read_back else "")
    notes = [f"{name}: Open MPI {parameter.versions}", *filter(None, [parameter.note])]
    is_shell = given.options["form"] == "shell"
    line = f"export OMPI_MCA_{name}={size}" if is_shell else f"{name} = {size}"
    return "".join([head, *(f"# {note}\n" for note in notes), f"{line}\n"])


def _unpriced(options: Mapping[str, str]) -> tuple[Unpriced, ...]:
    name = options["parameter"]
    if name.startswith("coll_"):
        used = Unpriced("whether this component and its algorithm are in use", may_lose=False)
        return used, OF_COLLECTIVES
    return (
        Unpriced("the first part of a message, and what a BTL adds to a fragment", may_lose=True),
    )


# --- reading --------------------------------------------------------------------------------------

_SIZE = re.compile(r"(0x[0-9a-f]{1,16}|[0-9]{1,18})(?:([kmg])b?)?", re.IGNORECASE | re.ASCII)
_UNITS = ".kmg"  # powers of 1024, by their places
_ASSIGNMENTS = (
    re.compile(r"(?:export\s+)?OMPI_MCA_(\w+)\s*=\s*(.*)", re.ASCII),
    re.compile(r"(\w+)\s*=\s*(.*)", re.ASCII),
)
_ARGUMENTS = re.compile(r"(?<!\S)--?g?mca\s+(\w+)\s+(\S+)", re.ASCII)
_NAMED = re.compile(rf"(?:OMPI_MCA_|\b)(?:{'|'.join(_PARAMETERS)})\b")


def read(text: str) -> FragmentSetting:
    """The fragment size that a parameter file or an environment sets. Raises InvalidInput.

    Only the parameters that this target knows count; the last of a name wins, as in Open MPI, and
    several with other sizes are ambiguous. A size of 0 means that messages are sent whole.
    """
    found = {
        entry.name: FragmentSetting.always(_bytes(entry) or None)
        for entry in _entries(text)
        if entry.name in _PARAMETERS
    }
    return the_one(found, what=f"a parameter such as {next(iter(_PARAMETERS))}")


def _environment(text: str, _: str) -> dict[str, str]:
    """The parameters as variables: a file of parameters would replace those that are in use."""
    found = {
        entry.name: re.sub(r"""^(["'])(.*)\1$""", r"\2", entry.value) for entry in _entries(text)
    }
    if not found:
        raise InvalidInput("expected lines NAME = VALUE", field="setting")
    return {f"OMPI_MCA_{name}": value for name, value in found.items()}


def _since(text: str) -> tuple[int, ...]:
    versions = [
        _PARAMETERS[entry.name].versions for entry in _entries(text) if entry.name in _PARAMETERS
    ]
    return max((tuple(map(int, one.split()[0].split("."))) for one in versions), default=())


def _entries(text: str) -> Iterator[Entry]:
    is_comment = False
    for line in lines_of(text):
        if is_comment or line.text.startswith("/*"):
            is_comment = "*/" not in line.text
        elif not line.text.startswith(("#", "//")):
            yield from _of_line(line)


def _of_line(line: Line) -> Iterator[Entry]:
    """What a line sets: one assignment, or the arguments of mpirun."""
    match = next(filter(None, (form.fullmatch(line.text) for form in _ASSIGNMENTS)), None)
    pairs = [match.groups()] if match else _ARGUMENTS.findall(line.text)
    for name, value in pairs:
        yield Entry(line.number, "", name, value.strip())
    if len(_NAMED.findall(line.text)) != sum(name in _PARAMETERS for name, _ in pairs):
        refuse(line.number, "expected one NAME = VALUE, or arguments of the form --mca NAME VALUE")


def _bytes(entry: Entry) -> int:
    value = re.sub(r"""^(["'])(.*)\1$""", r"\2", entry.value)
    match = _SIZE.fullmatch(value)
    if match is None:
        refuse(entry.number, "expected a size such as 262144, 256k or 1M")
    digits = match[1].lower()
    base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") else 10
    try:
        size = int(digits, base) << 10 * _UNITS.find((match[2] or "").lower())
    except ValueError:
        refuse(entry.number, "expected digits of an octal number after a leading 0")
    return in_range(size, entry.number)


TARGET = Target(
    name="openmpi-mca",
    title="Open MPI: one fragment size as an MCA parameter",
    takes=Takes.ONE_SIZE,
    render=_render,
    suffix="conf",
    grammar="opal/util/keyval/keyval_lex.l and the parameter's component, Open MPI 4.1.4",
    sizes=SIZES,
    options=_OPTIONS,
    verified_by=_VERIFIED,
    read=read,
    suffixes={"shell": "sh"},
    figures_note=OF_A_COLLECTIVE,
    default=lambda options: _PARAMETERS[options["parameter"]].default,
    unpriced=_unpriced,
    effect=Effect(LIBRARY, PROGRAMS_SHOWING, _environment, _since),
)
