"""Layers of public architectures as items, under assumed costs: gradients, layers, weights, files.

Source    sizes: the published architectures of ResNet-50, BERT-large, Llama 3 8B and 70B. Costs
          are assumed, but where a thread is named: LMCache pull request 4460 (layers a push), slime
          pull request 689 (seconds a bucket), aws-cli issue 6682 (rates of small and large files).
Notation  gradients are ready in the order of backward, after a share of it by multiply-adds.
Traps     2 G bytes an all-reduce: a ring sends nearly everything twice.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from domain.items import ItemProblem, ItemSequence
from domain.pipeline import Pipeline, Stage, pipeline_of_lines

MIB = 2**20
Tensor = tuple[int, float]  # bytes, and multiply-adds that its gradient takes, of some unit
OVERHEADS_US = (50.0, 300.0, 1500.0)  # of an all-reduce
BACKWARD = (0.6, 1.0, 1.6)  # of what all bytes take on the wire
_SMALL, _LARGE = (1.1e3, 11e3), (11e3, 40e3)  # bytes a microsecond, bus bandwidth
_LARGE_FROM = 3e9  # bytes of gradients


# --- architectures --------------------------------------------------------------------------------


def resnet50() -> list[Tensor]:
    """161 tensors of fp32, in the order in which they are registered."""

    def norms(width: int) -> list[Tensor]:
        return [(width, 0.0), (width, 0.0)]

    found, wide = [(3 * 64 * 49, 112.0 * 112), *norms(64)], 64
    for width, blocks, side in ((64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7)):
        for block in range(blocks):
            first = side * (2 if block == 0 and width > 64 else 1)
            convolutions = (
                (wide * width, first, width),
                (9 * width * width, side, width),
                (4 * width * width, side, 4 * width),
            )
            for weights, across, out in convolutions:
                found += [(weights, float(across * across)), *norms(out)]
            if block == 0:
                found += [(wide * 4 * width, float(side * side)), *norms(4 * width)]
            wide = 4 * width
    found += [(wide * 1000, 1.0), (1000, 0.0)]
    return [(4 * weights, weights * times) for weights, times in found]


def bert_large() -> list[Tensor]:
    """391 tensors of fp32."""
    wide, inner = 1024, 4096
    found: list[Tensor] = [(30522 * wide, 0), (512 * wide, 0), (2 * wide, 0), (wide, 0), (wide, 0)]
    for _ in range(24):
        found += [(wide * wide, 1), (wide, 0)] * 4
        found += [(wide, 0)] * 2
        found += [(wide * inner, 1), (inner, 0), (wide * inner, 1), (wide, 0)]
        found += [(wide, 0)] * 2
    found += [(wide * wide, 0), (wide, 0)]
    return [(4 * weights, weights * times) for weights, times in found]


def llama3(layers: int, wide: int, inner: int, keys: int, *, parts: int = 1) -> list[Tensor]:
    """Tensors of bf16, 9 a layer, and each a part of so many; a vocabulary of 128 256."""
    vocabulary = 128256 * wide
    layer = [(wide * wide, 1), (wide * keys, 1), (wide * keys, 1), (wide * wide, 1)]
    layer += [(inner * wide, 1)] * 3 + [(wide, 0)] * 2
    found = [(vocabulary, 0), *layer * layers, (wide, 0), (vocabulary, 1)]
    return [(2 * weights // parts, float(2 * weights * times)) for weights, times in found]


def llama3_8b() -> list[Tensor]:
    """291 tensors."""
    return llama3(32, 4096, 14336, 1024)


def llama3_70b(*, parts: int = 1) -> list[Tensor]:
    """723 tensors, of 8192 values a token."""
    return llama3(80, 8192, 28672, 1024, parts=parts)


ARCHITECTURES: dict[str, Callable[[], list[Tensor]]] = {
    "ResNet-50": resnet50,
    "BERT-large": bert_large,
    "Llama 3 8B": llama3_8b,
    "Llama 3 70B / 8": lambda: llama3_70b(parts=8),
}


# --- gradients ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gradients:
    """A backward pass and its wire: what an all-reduce takes, its bandwidth in bytes/µs, and the
    backward as a share of what all bytes take.
    """

    problem: ItemProblem
    overhead_us: float
    bytes_per_us: float
    backward: float


def at_any_byte(problem: ItemProblem) -> Pipeline:
    """Return the stages that the same message has where it may be cut anywhere: a calculation in
    front, of which all bytes come evenly.
    """
    sequence = problem.sequence
    ns_per_byte = 1e3 * sequence.all_ready_us[-1] / sequence.total_bytes
    calculation = Stage.of_line("calculation", overhead_us=0.0, ns_per_byte=ns_per_byte)
    return Pipeline((calculation, *problem.pipeline.stages))


def gradients(tensors: Sequence[Tensor]) -> Iterator[Gradients]:
    """Yield 18 cases: three overheads, two bandwidths, three lengths of the backward pass."""
    total_bytes, work = (sum(column) for column in zip(*tensors, strict=True))
    rates = _SMALL if total_bytes < _LARGE_FROM else _LARGE
    for overhead_us, bytes_per_us, backward in product(OVERHEADS_US, rates, BACKWARD):
        per_byte_us = 2.0 / bytes_per_us
        backward_us, now_us, ready_us = backward * total_bytes * per_byte_us, 0.0, list[float]()
        for _, flops in reversed(tensors):
            now_us += backward_us * flops / work
            ready_us.append(now_us)
        sequence = ItemSequence.of([size for size, _ in reversed(tensors)], ready_us)
        wire = pipeline_of_lines([("all-reduce", overhead_us, 1e3 * per_byte_us)])
        yield Gradients(ItemProblem(wire, sequence), overhead_us, bytes_per_us, backward)


# --- layers of a KV cache, weights, files ---------------------------------------------------------

LAYERS = 80
_COPY_NS = 1e3 / 0.6e6  # a byte of HBM, read and written at half its rate


def layer_bytes(tokens: int) -> int:
    """Keys and values of a layer of Llama 3 70B, bf16."""
    return 2 * 8 * 128 * 2 * tokens


def layer_us(tokens: int) -> float:
    """A layer of the prompt on eight GPUs of 450 TFLOP/s each."""
    attention = 4 * 8192 * tokens * tokens / 2
    return (2 * 70.6e9 * tokens / LAYERS + attention) / (8 * 450e12) * 1e6


def kv_pushes(tokens: int, gbit_per_s: float, overhead_us: float) -> ItemProblem:
    """Layers pushed while the prompt is calculated: gather, wire, scatter."""
    ready_us = [layer_us(tokens) * (place + 1) for place in range(LAYERS)]
    ns_per_byte = 1e3 / (gbit_per_s * 125 * 0.9)
    path = [("gather", 30.0, _COPY_NS), ("wire", overhead_us, ns_per_byte)]
    stages = pipeline_of_lines([*path, ("scatter", 30.0, _COPY_NS)])
    return ItemProblem(stages, ItemSequence.of([layer_bytes(tokens)] * LAYERS, ready_us))


def kv_loading(tokens: int, gbit_per_s: float, overhead_us: float) -> ItemProblem:
    """Layers fetched while the rest of the prompt is calculated, layer by layer."""
    stages = [("wire", overhead_us, 1e3 / (gbit_per_s * 125 * 0.9)), ("prefill", 0.0, 0.0)]
    calculated = {"prefill": [layer_us(tokens)] * LAYERS}
    sequence = ItemSequence.of([layer_bytes(tokens)] * LAYERS, stage_us=calculated)
    return ItemProblem(pipeline_of_lines(stages), sequence)


def weight_sync(max_buffer_bytes: int | None = None) -> ItemProblem:
    """141 GB of weights from a trainer to an engine in packed buffers."""
    sizes = [size for size, _ in llama3_70b()]
    stages = [
        ("gather", 120e3, 1e3 / 12e3),
        ("broadcast", 218e3, 1e3 / 22e3),
        ("load", 120e3, 1e3 / 15e3),
    ]
    each = {name: [300.0] * len(sizes) for name in ("gather", "load")}
    sequence = ItemSequence.of(sizes, stage_us=each)
    return ItemProblem(pipeline_of_lines(stages), sequence, max_fragment_bytes=max_buffer_bytes)


def small_files(count: int = 4000) -> ItemProblem:
    """Files of some 40 KB read, sent as objects over one connection, and stored."""
    drawn = random.Random(3)
    sizes = [
        min(50_000_000, math.ceil(drawn.lognormvariate(math.log(40e3), 1.5))) for _ in range(count)
    ]
    request_us = 40e3 / 1.048576 - 40e3 / (120 * 1.048576)
    stages = [
        ("read", 500.0, 1e3 / 1500),
        ("send", request_us, 1e3 / 125.8),
        ("store", 2000.0, 1e3 / 900),
    ]
    each = {"read": [60.0] * count, "store": [20.0] * count}
    return ItemProblem(pipeline_of_lines(stages), ItemSequence.of(sizes, stage_us=each))
