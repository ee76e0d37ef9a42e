"""Fragment sizes that systems come with: who repeats each, and where that is written.

They are what messages are cut into where nobody has set a size, so an answer is compared with them,
and with nothing that was made up.

from domain.default_sizes import default_sizes
[(one.name, one.fragment_bytes) for one in default_sizes(problem)]
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from domain.problem import MessageProblem

CURRENT = "current"  # the name of the setting in use
ONE_PIECE = "one piece"
MAX_DEFAULTS = 4  # shown beside one answer
MAX_PIECES = 128  # into which one cuts the message: with many more it is meant for smaller ones


@dataclass(frozen=True, slots=True)
class DefaultSize:
    """What a system repeats unless told another size, bytes; `source` is where that is written.

    `parameter` is what it is set by, None where it cannot be set. `fragment_bytes` is
    `default_bytes`, or the next multiple of a problem's alignment.
    """

    name: str
    default_bytes: int
    source: str
    parameter: str | None = None
    fragment_bytes: int = 0

    def __post_init__(self) -> None:
        if not self.fragment_bytes:
            object.__setattr__(self, "fragment_bytes", self.default_bytes)


_GITHUB = "https://github.com"
_UCX = f"{_GITHUB}/openucx/ucx/blob/master/src/ucp/core/ucp_context.c"
_MOONCAKE = "kvcache-ai/Mooncake/blob/main/mooncake-transfer-engine/include/config.h"
_MPICH = "pmodels/mpich/blob/main/src/mpid/ch4/netmod/ofi/ofi_init.c"

# By size, one system each.
DEFAULT_SIZES = (
    DefaultSize("Fast Messages", 128, "Wang et al. 1998, section 3"),
    DefaultSize("Ethernet packet", 1500, "https://www.rfc-editor.org/rfc/rfc894"),
    DefaultSize("GAM", 4096, "Wang et al. 1998, section 3"),
    DefaultSize("Mooncake", 65_536, f"{_GITHUB}/{_MOONCAKE}", "MC_SLICE_SIZE"),
    DefaultSize(
        "NCCL network",
        131_072,
        f"{_GITHUB}/NVIDIA/nccl/blob/master/src/init.cc",
        "NCCL_P2P_NET_CHUNKSIZE",
    ),
    DefaultSize(
        "MVAPICH2-GDR",
        262_144,
        "http://mvapich.cse.ohio-state.edu/userguide/gdr/2.3",
        "MV2_CUDA_BLOCK_SIZE",
    ),
    DefaultSize("UCX host memory", 524_288, _UCX, "UCX_RNDV_FRAG_SIZE"),
    DefaultSize(
        "MPICH libfabric", 1_048_576, f"{_GITHUB}/{_MPICH}", "MPIR_CVAR_CH4_OFI_PIPELINE_CHUNK_SZ"
    ),
    DefaultSize("UCX GPU memory", 4_194_304, _UCX, "UCX_RNDV_FRAG_SIZE"),
    DefaultSize(
        "boto3 to S3",
        8_388_608,
        f"{_GITHUB}/boto/boto3/blob/develop/boto3/s3/transfer.py",
        "multipart_chunksize",
    ),
)


def default_sizes(
    problem: MessageProblem, *, current_bytes: int | None = None
) -> tuple[DefaultSize, ...]:
    """Return the defaults that fit a message, in ascending order: the largest four of those that
    the limits admit and that cut it into 2 to 128 fragments; the largest one in any case.

    Each is in whole units of the alignment, rounded up; of those that are then equal the largest
    default stays. `current_bytes`, which the user repeats, is left out. Source: docs/service.md,
    "Default sizes". O(1).
    """
    return (
        problem.derived(_defaults) if current_bytes is None else _defaults(problem, current_bytes)
    )


def _defaults(problem: MessageProblem, current_bytes: int | None = None) -> tuple[DefaultSize, ...]:
    unit, total = problem.limits.alignment_bytes, problem.message_bytes
    found: dict[int, DefaultSize] = {}
    for one in reversed(DEFAULT_SIZES):
        size = -(-one.default_bytes // unit) * unit
        if found and (size * MAX_PIECES < total or len(found) == MAX_DEFAULTS):
            break
        if size < total and size != current_bytes and _is_admitted(problem, size):
            found.setdefault(size, one)
    return tuple(_in_units(one, size) for size, one in reversed(found.items()))


def _in_units(one: DefaultSize, size: int) -> DefaultSize:
    return one if size == one.default_bytes else replace(one, fragment_bytes=size)


def _is_admitted(problem: MessageProblem, size: int) -> bool:
    """Whether the limits admit a size, a multiple of the alignment, and what is left."""
    limits, (full, rest) = problem.limits, divmod(problem.message_bytes, size)
    count = full + (rest > 0)
    return (
        size <= problem.largest_fragment_bytes
        and min(size, rest or size) >= limits.min_fragment_bytes
        and count <= min(limits.max_fragments or count, problem.fragment_cap)
    )
