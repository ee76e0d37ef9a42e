"""UCX: the size of the fragments of its pipelined rendezvous, `UCX_RNDV_FRAG_SIZE`; and of the
fragments that cross shared memory, `UCX_POSIX_SEG_SIZE`.

Source    src/ucp/core/ucp_context.c (`ucp_fill_rndv_frag_config`) and src/ucs/sys/string.c
          (`ucs_str_to_memunits`) of UCX 1.13.1; the list of memory types since 1.12.0, one size
          before it. Memory types: src/ucs/memory/memory_type.c of 1.13.1 and of 1.17.0.
Exact     sizes are written in bytes, which every version reads as they are.
Traps     UCX 1.12 and later refuse a size without a memory type, those before it refuse the
          list: either ends the program. Fragments come from a pool whose elements have this size
          and which grows by `UCX_RNDV_FRAG_ALLOC_COUNT` (128) at a time. Below 64 KiB a fragment
          that is spread over four rails falls under `UCX_MIN_RNDV_CHUNK_SIZE` (16 KiB), where UCX
          has stopped on an assertion (openucx/ucx#10407): such sizes are not written. Fragments of
          shared memory hold what one message of the transport has; their lengths are 16 bits, and
          larger ones give wrong data or stop the program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting
from domain.regret import SizeRule
from exports.targets.commentary import commentary, one_size
from exports.targets.keyed_lines import (
    Entry,
    binary_size,
    ini_entries,
    last_in_each_section,
    refuse,
    the_one,
    variables,
)
from exports.targets.target import (
    Effect,
    ExportInput,
    LibraryDefault,
    Takes,
    Target,
    TargetOption,
    Unpriced,
    repeats,
)

VARIABLE = "UCX_RNDV_FRAG_SIZE"
VERIFIED = "ucx_info 1.13.1"
_MEMORY_TYPES = ("host", "cuda", "cuda-managed", "rocm", "rocm-managed")
_NEWER_TYPES = ("ze-host", "ze-device", "ze-managed")
_OWN_BYTES = {"host": 512 * 1024, "cuda": 4 * 2**20}  # UCX's defaults by memory type
_POOL = 128  # elements that the pool grows by: UCX_RNDV_FRAG_ALLOC_COUNT
_SIZES = SizeRule(min_bytes=65536, max_bytes=2**24, multiple_of=64)
_FORM = TargetOption(
    "form", "conf", "lines of ucx.conf, or shell commands", choices=("conf", "shell")
)
_OPTIONS = (
    TargetOption(
        "version",
        "1.12",
        "the oldest UCX that reads it: 1.12 to 1.16, or 1.17 and later, take a list of memory "
        "types; 1.9 to 1.11 take one size",
        choices=("1.9", "1.12", "1.17"),
    ),
    TargetOption(
        "memory_types",
        "host",
        "the memory that fragments lie in, separated by commas: host, cuda, cuda-managed, rocm, "
        "rocm-managed, and from 1.17 on ze-host, ze-device, ze-managed",
        pattern=r"[a-z-]{1,16}(,[a-z-]{1,16}){0,7}",
    ),
    _FORM,
    TargetOption(
        "scheme",
        "leave",
        "also sets UCX_RNDV_SCHEME; only the pipelined ones use these fragments",
        choices=("leave", "auto", "get_zcopy", "put_zcopy", "get_ppln", "put_ppln"),
    ),
    TargetOption(
        "threshold",
        "leave",
        "also sets UCX_RNDV_THRESH, the message size in bytes from which rendezvous is used",
        pattern=r"leave|[0-9]{1,15}",
    ),
    TargetOption(
        "alloc_count",
        "leave",
        "also sets UCX_RNDV_FRAG_ALLOC_COUNT, the fragments that a pool grows by (128)",
        pattern=r"leave|[1-9][0-9]{0,5}",
    ),
)


def _render(given: ExportInput) -> str:
    size = one_size(given, _SIZES)
    lines = [f"{VARIABLE}={_value(given, size)}", *_staging(given)]
    if given.options["scheme"] != "leave":
        lines.append(f"UCX_RNDV_SCHEME={_scheme(given)}")
    if given.options["threshold"] != "leave":
        lines.append(f"UCX_RNDV_THRESH={int(given.options['threshold'])}")
    before = "export " if given.options["form"] == "shell" else ""
    count = given.options["alloc_count"]
    grown = _POOL if count == "leave" else int(count)
    pool = f"# UCX allocates {grown} fragments at a time in each memory: {grown * size} bytes\n"
    is_read = given.options["version"] == "1.12"
    head = commentary(given, TARGET, verified_by=VERIFIED if is_read else "")
    return head + pool + "".join(f"{before}{line}\n" for line in lines)


def _value(given: ExportInput, size: int) -> str:
    version, asked = given.options["version"], given.options["memory_types"].split(",")
    known = _MEMORY_TYPES + (_NEWER_TYPES if version == "1.17" else ())
    if version == "1.9":
        if asked != ["host"]:
            raise InvalidInput(
                "UCX before 1.12 has one size for host memory alone", field="options"
            )
        if given.options["form"] == "conf":
            raise InvalidInput(
                "expected form shell: UCX reads ucx.conf only since 1.11", field="options"
            )
        return str(size)
    if any(name not in known for name in asked) or len(set(asked)) != len(asked):
        raise InvalidInput(
            f"expected memory_types of UCX {version}, each once: {', '.join(known)}",
            field="options",
        )
    return ",".join(f"{name}:{size}" for name in asked)


def _staging(given: ExportInput) -> list[str]:
    """What else staging through a device's memory needs: where fragments lie, and how many.

    Fragments lie in host memory unless another type is named, whatever sizes that type has.
    """
    types, count = given.options["memory_types"].split(","), given.options["alloc_count"]
    lines = []
    if len(types) == 1 and types != ["host"]:
        lines.append(f"UCX_RNDV_FRAG_MEM_TYPE={types[0]}")
    if count != "leave":
        if given.options["version"] == "1.9":
            raise InvalidInput("alloc_count is by memory type: UCX 1.12 and later", field="options")
        listed = ",".join(f"{name}:{count}" for name in types)
        lines.append(f"UCX_RNDV_FRAG_ALLOC_COUNT={listed}")
    return lines


def _scheme(given: ExportInput) -> str:
    scheme = given.options["scheme"]
    if given.options["version"] == "1.9" and scheme.endswith("_ppln"):
        raise InvalidInput(f"{scheme} came in UCX 1.12", field="options")
    return scheme


def _default(options: Mapping[str, str]) -> LibraryDefault:
    """UCX's own size, where the memory types that are asked for share one."""
    own = {_OWN_BYTES.get(name) for name in options["memory_types"].split(",")}
    size = own.pop() if len(own) == 1 else None
    if size is not None:
        return repeats(size, "ucx_info -c of 1.13.1")
    return LibraryDefault("a size by memory type", "src/ucp/core/ucp_context.c")


def _unpriced(options: Mapping[str, str]) -> tuple[Unpriced, ...]:
    if options["scheme"] == "leave":
        use = "whether UCX takes a pipelined rendezvous, which alone has these fragments"
        return (Unpriced(use, may_lose=False),)
    return (Unpriced(f"UCX_RNDV_SCHEME={options['scheme']}, which is forced", may_lose=True),)


def _since(text: str) -> tuple[int, ...]:
    """Of the form with memory types, and of the only section of a file."""
    value = variables(text, r"UCX_\w+").get(VARIABLE, "")
    return (1, 12) if ":" in value else (1, 9)


_EFFECT = Effect("UCX", ("tag_lat", "tag_bw"), lambda text, _: variables(text, r"UCX_\w+"), _since)


def read(text: str) -> FragmentSetting:
    """The fragment size that ucx.conf or an environment sets. Raises InvalidInput.

    Several memory types, or several sections for other hardware, with other sizes are ambiguous,
    and so refused; `inf` means that messages are sent whole.
    """
    entries = last_in_each_section(ini_entries(text, VARIABLE), VARIABLE)
    found: dict[str, FragmentSetting] = {}
    for entry in entries:
        where = f" (line {entry.number})" if len(entries) > 1 else ""
        found |= {f"{name}{where}": setting for name, setting in _sizes(entry)}
    return the_one(found, what=f"a line {VARIABLE}=host:512K")


def _sizes(entry: Entry) -> list[tuple[str, FragmentSetting]]:
    parts = [part.strip() for part in entry.value.split(",")]
    named = dict(_named(part, entry.number, single=len(parts) == 1) for part in parts)
    return list(named.items())


def _named(part: str, number: int, *, single: bool) -> tuple[str, FragmentSetting]:
    name, colon, value = part.rpartition(":")
    if not colon and not single:
        refuse(number, "expected a memory type before every size, such as host:512K,cuda:4M")
    if colon and name not in _MEMORY_TYPES + _NEWER_TYPES + ("rdma", "gaudi"):
        refuse(number, "expected a memory type that UCX knows, such as host or cuda")
    return name or "host", FragmentSetting.always(_bytes(value.strip(), number))


def _bytes(value: str, number: int) -> int | None:
    if re.fullmatch("inf", value, re.IGNORECASE):
        return None
    if re.fullmatch("auto", value, re.IGNORECASE):
        refuse(number, "auto is no fragment size: UCX has no automatic one")
    size = binary_size(value, number)
    if size == 0:
        refuse(number, "expected a fragment size of at least 1 byte")
    return size


TARGET = Target(
    name="ucx",
    title="UCX: size of rendezvous fragments",
    takes=Takes.ONE_SIZE,
    render=_render,
    suffix="conf",
    grammar="ucp_fill_rndv_frag_config in src/ucp/core/ucp_context.c, UCX 1.13.1 and 1.20.0",
    sizes=_SIZES,
    options=_OPTIONS,
    verified_by=VERIFIED,
    read=read,
    suffixes={"shell": "sh"},
    default=_default,
    unpriced=_unpriced,
    effect=_EFFECT,
)

# --- shared memory --------------------------------------------------------------------------------

_SHM_VARIABLE = "UCX_POSIX_SEG_SIZE"
# A fragment's length is 16 bits in the queue: with 131072 bytes messages came out wrong.
_SHM_SIZES = SizeRule(min_bytes=4096, max_bytes=2**16 - 64, multiple_of=64)


def _render_shm(given: ExportInput) -> str:
    size = one_size(given, _SHM_SIZES)
    before = "export " if given.options["form"] == "shell" else ""
    return f"{commentary(given, SHM_TARGET)}{before}{_SHM_VARIABLE}={size}\n"


def _read_shm(text: str) -> FragmentSetting:
    """The fragment size that ucx.conf or an environment sets. Raises InvalidInput."""
    entries = last_in_each_section(ini_entries(text, _SHM_VARIABLE), _SHM_VARIABLE)
    found = {
        f"line {entry.number}": FragmentSetting.always(_bytes(entry.value, entry.number))
        for entry in entries
    }
    return the_one(found, what=f"a line {_SHM_VARIABLE}=8256")


def _shm_environment(text: str, _: str) -> dict[str, str]:
    """The variables. Raises InvalidInput for a size that gives wrong data: not every program that
    measures it compares them.
    """
    (step,) = _read_shm(text).steps
    if step.size_bytes is None or step.size_bytes > _SHM_SIZES.max_bytes:
        raise InvalidInput(
            f"expected at most {_SHM_SIZES.max_bytes} bytes: a fragment's length has 16 bits, and "
            "longer ones give wrong data",
            field="setting",
        )
    return variables(text, r"UCX_\w+")


SHM_TARGET = Target(
    name="ucx-shm",
    title="UCX: size of fragments that cross shared memory by two copies",
    takes=Takes.ONE_SIZE,
    render=_render_shm,
    suffix="conf",
    grammar="src/uct/sm/mm/base/mm_iface.c and src/ucs/sys/string.c, UCX 1.13.1",
    sizes=_SHM_SIZES,
    options=(_FORM,),
    verified_by=VERIFIED,
    read=_read_shm,
    suffixes={"shell": "sh"},
    default=lambda _: repeats(8256, "ucx_info -cf of 1.13.1"),
    unpriced=lambda _: (
        Unpriced("whether messages cross by two copies: with CMA or KNEM long ones do not", False),
    ),
    effect=Effect("UCX", ("tag_lat", "tag_bw"), _shm_environment, lambda _: (1, 9)),
)
