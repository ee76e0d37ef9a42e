"""What docs/items.md says that cuts between items are worth, computed again from layer lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

import pytest

import solvers
from bench.item_cases import (
    ARCHITECTURES,
    LAYERS,
    MIB,
    Gradients,
    Tensor,
    at_any_byte,
    gradients,
    kv_loading,
    kv_pushes,
    llama3_8b,
    resnet50,
    small_files,
    weight_sync,
)
from domain.bucket_setting import DDP_RULE, BucketSetting
from domain.items import Fill, FillRule, ItemCut, ItemProblem, layout
from domain.problem import Problem
from domain.schedule import latency_us
from domain.solution import Status
from solvers.contract import Deadline, SolveOptions
from solvers.items.caps import best_cap
from solvers.items.solve import solve_items
from tests.architecture.documents import document

PAGE = document("docs/items.md").text
TENSORS = {"ResNet-50": 161, "BERT-large": 391, "Llama 3 8B": 291, "Llama 3 70B / 8": 723}
BEFORE = FillRule(Fill.BEFORE)
DEFAULT_BYTES = 25 * MIB
PATIENT = SolveOptions(time_limit_s=600.0)  # 4000 files take two seconds where nothing else runs


def above(latency: float, best: float) -> float:
    """Per cent."""
    return 100.0 * (latency / best - 1.0)


def words(per_cent: float) -> str:
    """As the page writes it."""
    return f"{per_cent:.1f}".replace("-0.0", "0.0").replace("-", "−")


def best_cap_us(problem: ItemProblem, rule: FillRule) -> float:
    """The latency of the best layout of one cap."""
    found = best_cap(problem, rule, Deadline.after(30.0))
    assert found is not None
    assert found.is_complete
    return found.latency_us


@dataclass(frozen=True, slots=True)
class AnyByte:
    """What is said of the same bytes where they may be cut anywhere: the size to repeat, what that
    and 25 MiB are said to take, and the optimum.
    """

    size: int
    repeated_us: float
    default_us: float
    optimum_us: float


def any_byte(case: Gradients) -> AnyByte:
    """By the ordinary solver."""
    stages = at_any_byte(case.problem)
    problem = Problem(stages, case.problem.sequence.total_bytes)
    repeated, exact = solvers.solve(problem, "repeat"), solvers.solve(problem, "exact")
    size = repeated.schedule.fragment_bytes[0]
    whole, rest = divmod(problem.message_bytes, DEFAULT_BYTES)
    cut = (*(DEFAULT_BYTES,) * whole, *((rest,) if rest else ()))
    said_us = latency_us(stages, cut)
    return AnyByte(size, repeated.latency_us, said_us, exact.latency_us)


def priced(case: Gradients) -> tuple[float, ...]:
    """A row's five figures for one case, per cent above the exact cut."""
    problem, sequence = case.problem, case.problem.sequence
    best = solve_items(problem)
    assert best.status is Status.OPTIMAL
    said = any_byte(case)
    settings = (
        problem.latency_us(BucketSetting().cut(sequence)),
        problem.latency_us(BucketSetting((100.0,)).cut(sequence)),
        problem.latency_us(layout(sequence, said.size, DDP_RULE)),
        best_cap_us(problem, DDP_RULE),
        said.optimum_us,
    )
    return tuple(above(latency, best.latency_us) for latency in settings)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_row_of_gradients(name: str) -> None:
    tensors = ARCHITECTURES[name]()
    assert len(tensors) == TENSORS[name]
    columns = list(zip(*map(priced, gradients(tensors)), strict=True))
    assert {len(column) for column in columns} == {18}
    cells = [
        ", ".join(map(words, (min(column), median(column), max(column)))) for column in columns
    ]
    assert f"\n{name}: {TENSORS[name]} | {' | '.join(cells)}\n" in PAGE


def case_of(tensors: list[Tensor], overhead_us: float, bytes_per_us: float) -> Gradients:
    """Where the backward is as long as the wire's time."""
    wanted = (overhead_us, bytes_per_us, 1.0)
    (found,) = (
        case
        for case in gradients(tensors)
        if (case.overhead_us, case.bytes_per_us, case.backward) == wanted
    )
    return found


def test_what_25_mebibytes_are_said_to_cost() -> None:
    """Much too much for a large model and a fast wire, nearly what it is for a small one."""
    case = case_of(llama3_8b(), 1500.0, 40e3)
    said, problem = any_byte(case), case.problem
    default_us = problem.latency_us(BucketSetting().cut(problem.sequence))
    figures = (
        above(said.default_us, said.repeated_us),
        above(default_us, best_cap_us(problem, DDP_RULE)),
    )
    assert [words(figure) for figure in figures] == ["97.6", "23.3"]
    assert "97.6 %, which with whole tensors is 23.3 % over the best cap" in PAGE
    case = case_of(resnet50(), 300.0, 1.1e3)
    said, problem = any_byte(case), case.problem
    given_us = problem.latency_us(layout(problem.sequence, DEFAULT_BYTES, DDP_RULE))
    figures = (
        above(said.default_us, said.repeated_us),
        above(given_us, best_cap_us(problem, DDP_RULE)),
    )
    assert [words(figure) for figure in figures] == ["16.9", "15.0"]
    assert "16.9 and 15.0 %" in PAGE


def every(count: int, at_once: int) -> ItemCut:
    """So many items a fragment."""
    return (*range(at_once, count, at_once), count)


def layers(*named: tuple[str, int]) -> Callable[[ItemProblem], Mapping[str, ItemCut]]:
    """Cuts of layers by what they are called."""
    return lambda problem: {words: every(len(problem.sequence), each) for words, each in named}


def caps(*sizes: int) -> Callable[[ItemProblem], Mapping[str, ItemCut]]:
    """Packed buffers of so many MiB."""
    return lambda problem: {
        f"{size} MiB" if size % 1024 else f"{size // 1024} GiB": layout(
            problem.sequence, size * MIB, BEFORE
        )
        for size in sizes
    }


def files(problem: ItemProblem) -> Mapping[str, ItemCut]:
    """Objects of files."""
    count = len(problem.sequence)
    return {
        "one a file": every(count, 1),
        **caps(1, 8, 64)(problem),
        "one archive": (count,),
    }


ONE, EIGHT = ("1 layer", 1), ("8 layers", 8)
CASES: tuple[tuple[str, ItemProblem, Callable[[ItemProblem], Mapping[str, ItemCut]]], ...] = (
    (
        "KV of a 70B, 8192 tokens, 100 Gbit/s, 2 ms a push",
        kv_pushes(8192, 100.0, 2000.0),
        layers(ONE, ("2 layers", 2), EIGHT, ("16 layers", 16), ("all behind the prompt", LAYERS)),
    ),
    (
        "the same, 0.5 ms a push",
        kv_pushes(8192, 100.0, 500.0),
        layers(ONE, EIGHT, ("all behind the prompt", LAYERS)),
    ),
    (
        "loading it, 2 ms",
        kv_loading(8192, 100.0, 2000.0),
        layers(ONE, EIGHT, ("all first", LAYERS)),
    ),
    (
        "70B of weights, 141 GB, 218 ms a bucket (THUDM/slime pull request 689)",
        weight_sync(),
        caps(512, 1024, 2048, 6144),
    ),
    ("the same, at most 2 GiB a buffer", weight_sync(2 * 1024 * MIB), caps(2048)),
    ("4000 files of 40 KB, 38 ms a request (aws/aws-cli issue 6682)", small_files(), files),
)


@pytest.mark.parametrize(("name", "problem", "others"), CASES, ids=[case[0] for case in CASES])
def test_a_row_of_other_cases(
    name: str, problem: ItemProblem, others: Callable[[ItemProblem], Mapping[str, ItemCut]]
) -> None:
    best = solve_items(problem, PATIENT)
    latency = best.latency_us
    time = f"{latency / 1e3:.1f} ms" if latency < 1e6 else f"{latency / 1e6:.1f} s"
    proven = "optimal" if best.status is Status.OPTIMAL else "gap < 0.01 %"
    assert best.relative_gap < 1e-4
    found = {what: problem.latency_us(cut) for what, cut in others(problem).items()}
    found["best cap"] = best_cap_us(problem, BEFORE)
    cells = "; ".join(f"{what} {words(above(us, latency))}" for what, us in found.items())
    assert f"\n{name} | {time}, {proven} | {cells}\n" in PAGE


def test_what_a_layer_is_said_to_be_cut_into() -> None:
    """At any byte: 48 MiB, 0.4 % below the optimum of whole layers."""
    problem = kv_pushes(8192, 100.0, 2000.0)
    plain = Problem(at_any_byte(problem), problem.sequence.total_bytes)
    repeated = solvers.solve(plain, "repeat")
    size, best_us = repeated.schedule.fragment_bytes[0], solve_items(problem).latency_us
    assert f"{size / MIB:.1f}" == "48.3"
    assert words(above(repeated.latency_us, best_us)) == "−0.4"
    one_us = problem.latency_us(layout(problem.sequence, size, BEFORE))
    assert words(above(one_us, best_us)) == "13.9"
    assert "that 48 MiB are best, at 0.4 % less time than any cut of layers has" in PAGE
