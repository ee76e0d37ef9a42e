"""Plan tables made by hand: cuts without any claim to be good, right in everything else."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from domain.hiding import HiddenBehind
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.plan_table import PlanTable, TableCut, TableRepeat
from domain.problem import FragmentLimits
from domain.schedule import latency_us

Block = tuple[int, int, int]  # least and greatest message, number of fragments

PLAIN = FragmentLimits()
BLOCKS: tuple[Block, ...] = ((1, 7, 1), (8, 200, 2), (201, 1000, 3))


def a_ranged_pipeline() -> Pipeline:
    """Two stages, one with a range and a name that is not ASCII, and a delay."""
    ranges = (FitRange(1.5, 2.0, 64), FitRange(3.0, 1.25))
    return Pipeline((Stage("drát", ranges), Stage("host", (FitRange(0.1, 4.0),))), 0.25)


def a_line_pipeline() -> Pipeline:
    """Three stages of one line each."""
    return pipeline_of_lines(
        [("copy out", 2.5, 10.0), ("wire", 1.0, 20.5), ("copy in", 3.0, 10.0)], delay_us=1.0
    )


def a_plan_table(
    blocks: Sequence[Block] = BLOCKS,
    *,
    limits: FragmentLimits = PLAIN,
    pipeline: Pipeline | None = None,
    seed: int = 1,
) -> PlanTable:
    """A plan table with random cuts of these counts; the blocks follow each other."""
    model, rng = pipeline or a_line_pipeline(), random.Random(seed)
    cuts = []
    for minimum, maximum, fragments in blocks:
        for message in sorted({minimum, maximum}):
            sizes = _random_cut(message, fragments, limits, rng)
            cuts.append(TableCut(message, sizes, latency_us(model, sizes), rng.random() / 500))
    sizes = [size for block in blocks for size in _repeats(*block, limits.alignment_bytes)]
    repeats = [
        TableRepeat(message, size, latency_us(model, _repeated(message, size)), 0.0)
        for message, size in sorted(dict(sizes).items())
    ]
    minimum, maximum = blocks[0][0], blocks[-1][1]
    return PlanTable(model, limits, 100_000, minimum, maximum, 1e-3, tuple(cuts), tuple(repeats))


def _random_cut(
    message: int, fragments: int, limits: FragmentLimits, rng: random.Random
) -> tuple[int, ...]:
    unit = limits.alignment_bytes
    room = message - (2 * unit if unit > 1 else 1)  # the last fragment keeps its margin
    ends = sorted(rng.sample(range(1, room // unit + 1), fragments - 1))
    edges = [0, *(unit * end for end in ends), message]
    return tuple(high - low for low, high in pairwise(edges))


def _repeats(minimum: int, maximum: int, fragments: int, unit: int) -> list[tuple[int, int]]:
    first, last = (_share(message, fragments, unit) for message in (minimum, maximum))
    if -(-minimum // first) == -(-maximum // last):
        return [(minimum, first), (maximum, last)]
    steps = range(last + 1, maximum + 1, last)
    return [
        (size, last) for size in (minimum, *(step for step in steps if step > minimum), maximum)
    ]


def _share(message: int, fragments: int, unit: int) -> int:
    return -(-message // (fragments * unit)) * unit


def _repeated(message: int, size: int) -> tuple[int, ...]:
    ends = [*range(size, message, size), message]
    return tuple(high - low for low, high in pairwise((0, *ends)))


def positions_of(sizes: Sequence[int]) -> list[int]:
    """Where each fragment but the last one ends."""
    return list(accumulate(sizes))[:-1]


def whole_messages(
    pipeline: Pipeline,
    limits: FragmentLimits,
    *,
    min_message_bytes: int,
    max_message_bytes: int,
    relative_gap: float,
    fragment_cap: int,
    time_limit_s: float,
    behind: HiddenBehind | None = None,
    on_progress: Callable[[float], None] | None = None,
    on_loosened: Callable[[float], None] | None = None,
    on_cut_off: Callable[[], None] | None = None,
    is_ended: Callable[[], bool] | None = None,
) -> PlanTable:
    """In place of the compiler: every message in one piece, with a certificate that is none.

    The upper half of the range says that it misses the tolerance; less than a second ends it early.
    """
    assert time_limit_s > 0.0
    gap = 0.25 if time_limit_s >= 1.0 else 0.5
    if on_cut_off is not None and time_limit_s < 1.0:
        on_cut_off()
    middle = (min_message_bytes + max_message_bytes) // 2
    sizes = sorted({min_message_bytes, middle, max_message_bytes})
    cuts = tuple(
        TableCut(size, (size,), latency_us(pipeline, (size,)), gap * (size >= middle))
        for size in sizes
    )
    repeats = tuple(TableRepeat(cut.message_bytes, max_message_bytes, 1.0, 0.0) for cut in cuts)
    return PlanTable(
        pipeline,
        limits,
        fragment_cap,
        min_message_bytes,
        max_message_bytes,
        relative_gap,
        cuts,
        repeats,
    )


# --- the golden files -----------------------------------------------------------------------------


def the_worked_example() -> PlanTable:
    """The plan table that docs/format.md reads in numbers."""
    pipeline = pipeline_of_lines([("copy", 1.0, 2.0), ("wire", 2.0, 4.0)])
    cuts = [(1,), (99,), (40, 60), (450, 550)]
    repeats = [(1, 1), (99, 99), (100, 50), (1000, 500)]
    return _evaluated(pipeline, PLAIN, cuts, repeats, gaps=(0.0, 0.001, 0.0005, 0.002))


def the_aligned_example() -> PlanTable:
    """Units of 64 bytes, limits on sizes and counts, ranges, and stretches of one byte."""
    limits = FragmentLimits(64, 4096, 64, 9)
    cuts = [(200,), (499,), (64, 128, 308), (640, 1280, 1728), (640, 1344, 1665), (576, 1280, 1794)]
    repeats = [(200, 512), (499, 512), (500, 256), (3648, 1920), (3650, 1920)]
    return _evaluated(a_ranged_pipeline(), limits, cuts, repeats, gaps=(0.0, 0.01, 1 / 3, 1e-9))


def the_huge_example() -> PlanTable:
    """Messages to 256 TiB, whose positions need eight bytes; stretches of at most 2 GiB."""
    top = 2**48
    cuts = [(2**40, top - 2**40 - 2**31), (2**40, top - 2**40 - 5), (2**40 + 5, top - 2**40 - 5)]
    repeats = [(top - 2**31, 2**47), (top - 5, 2**47), (top, 2**47)]
    return _evaluated(a_line_pipeline(), PLAIN, cuts, repeats, gaps=(1e-3,))


def the_sparse_example() -> PlanTable:
    """Limits that some messages meet with no repeated size: 36 bytes are 16, 8 and 12."""
    cuts = [(16, 8, 11), (16, 8, 16), (16, 16, 9)]
    repeats = [(35, 0), (38, 16), (40, 8), (41, 16)]
    limits = FragmentLimits(6, 16, 8)
    return _evaluated(a_line_pipeline(), limits, cuts, repeats, gaps=(0.25,))


def _evaluated(
    pipeline: Pipeline,
    limits: FragmentLimits,
    cuts: Sequence[tuple[int, ...]],
    repeats: Sequence[tuple[int, int]],
    *,
    gaps: Sequence[float],
) -> PlanTable:
    return PlanTable(
        pipeline,
        limits,
        1000,
        sum(cuts[0]),
        sum(cuts[-1]),
        1e-3,
        tuple(
            TableCut(sum(cut), cut, latency_us(pipeline, cut), gaps[at % len(gaps)])
            for at, cut in enumerate(cuts)
        ),
        tuple(
            TableRepeat(message, size, latency_us(pipeline, _repeated(message, size)), 0.5)
            if size
            else TableRepeat(message, 0, 0.0, 0.0)
            for message, size in repeats
        ),
    )


GOLDEN = {
    "worked-example": (the_worked_example, "worked-example", 1),
    "aligned": (the_aligned_example, "", 0),
    "sparse": (the_sparse_example, "sparse_1", 7),
    "huge": (the_huge_example, "huge.v2", 2**31 - 1),
}
