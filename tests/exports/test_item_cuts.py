"""Cuts between items, as programs are given them: each program's own loop makes the cut."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from domain.bucket_setting import BucketSetting
from domain.errors import InvalidInput, StrategyDeclined
from domain.items import Fill, FillRule, ItemCut, ItemProblem, ItemSequence, layout
from domain.machine import Window
from domain.pipeline import pipeline_of_lines
from exports.targets.item_cuts import (
    ITEM_TARGETS,
    LMCACHE,
    MAX_LAYERS,
    MEGATRON,
    SLIME,
    TORCH,
    VERL,
    VLLM,
    AnsweredItems,
    ItemTarget,
    item_target_named,
    number_within,
)
from exports.targets.registry import TARGETS, target_named
from solvers.contract import Deadline
from solvers.items.caps import best_cap
from solvers.items.solve import solve_items
from tests.architecture.documents import code_words, document

MIB = 2**20
PAGE = document("docs/items.md").text
RECORDED = Path(__file__).parents[1] / "data" / "buckets"


def problem_of(seed: int, unit: int = 4, **limits: int) -> ItemProblem:
    """Forty tensors of several sizes, ready one after the other, through one or two stages."""
    rng = np.random.default_rng(seed)
    sizes = [int(count) * unit for count in np.ceil(10.0 ** rng.uniform(0.0, 3.0, 40))]
    total = float(sum(sizes))
    ready = (rng.uniform(0.3, 1.5) * np.cumsum(sizes)).tolist()
    lines = [("a", 0.03 * total, 1000.0), ("b", 0.02 * total, 700.0)][: 1 + seed % 2]
    return ItemProblem(pipeline_of_lines(lines), ItemSequence.of(sizes, ready), **limits)


def answered(problem: ItemProblem, rule: Fill, **more: Any) -> AnsweredItems:
    """What the solver says of it."""
    fill = FillRule(rule)
    solution, cap = solve_items(problem), best_cap(problem, fill, Deadline.after(10.0))
    caps = None if cap is None else (cap.from_bytes, cap.to_bytes)
    return AnsweredItems(problem, fill, solution.cut, solution.lower_bound_us, caps, **more)


def last_line(text: str) -> str:
    """What is no comment."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == 1, text
    return lines[0]


def number_of(text: str) -> int:
    """The one number of the last line."""
    found = re.findall(r"(?<![a-z])[0-9]+", last_line(text))
    assert len(found) == 1, text
    return int(found[0])


def keywords(text: str) -> dict[str, Any]:
    """The value that a script which holds the text has."""
    names: dict[str, Any] = {}
    exec(compile(text, "setting.py", "exec"), names)
    del names["__builtins__"]
    (value,) = names.values()
    assert isinstance(value, dict)
    return value


# --- how the programs close fragments, as their sources have it -----------------------------------


def megatron_buckets(elements: Sequence[int], size: int) -> ItemCut:
    """param_and_grad_buffer.py: a bucket is formed where enough elements are in it."""
    cut, begun = list[int](), 0
    for place, end in enumerate(accumulate(elements), start=1):
        if end - begun >= size or place == len(elements):
            cut.append(place)
            begun = end
    return tuple(cut)


def slime_buffers(sizes: Sequence[int], size: int) -> ItemCut:
    """update_weight_from_distributed.py: what would exceed the buffer flushes it."""
    cut, held = list[int](), 0
    for place, item in enumerate(sizes):
        if held + item > size:
            cut += [place] if place else []
            held = 0
        held += item
    return (*cut, len(sizes))


def vllm_buffers(sizes: Sequence[int], size: int) -> ItemCut:
    """packed_tensor.py, `pack_tensors`: tensors are taken until they exceed the size."""
    cut, held = list[int](), 0
    for place, item in enumerate(sizes, start=1):
        held += item
        if held > size or place == len(sizes):
            cut.append(place)
            held = 0
    return tuple(cut)


def torch_buckets(sizes: Sequence[int], caps_mb: Sequence[float]) -> ItemCut:
    """compute_bucket_assignment_by_size of reducer.cpp: limits in turn, the last one stays."""
    limits = [int(cap * MIB) for cap in caps_mb]
    cut, held = list[int](), 0
    for place, item in enumerate(sizes, start=1):
        held += item
        if held >= limits[min(len(cut), len(limits) - 1)] or place == len(sizes):
            cut.append(place)
            held = 0
    return tuple(cut)


@pytest.mark.parametrize("seed", range(8))
def test_a_list_for_torch_makes_the_best_cut(seed: int) -> None:
    found = answered(problem_of(seed), Fill.UNTIL)
    text = TORCH.render(found, TORCH.options_from({}))
    (caps,) = keywords(text).values()
    assert isinstance(caps, list)
    assert torch_buckets(found.problem.sequence.item_bytes, caps) == found.cut
    assert "bucket_cap_mb_list is in PyTorch 2.15; older: bucket_cap_mb=" in text


@pytest.mark.parametrize("seed", range(8))
def test_a_cap_for_torch_makes_the_best_layout(seed: int) -> None:
    found = answered(problem_of(seed), Fill.UNTIL)
    (cap,) = keywords(TORCH.render(found, TORCH.options_from({"form": "cap"}))).values()
    check_best(found, torch_buckets(found.problem.sequence.item_bytes, [cap]))


@pytest.mark.parametrize("name", ["transformer", "convolutions"])
def test_buckets_that_torch_made_are_those_that_are_written(name: str) -> None:
    """Of a list and of a cap, as DistributedDataParallel made them when they were recorded."""
    recorded = json.loads((RECORDED / f"{name}.json").read_text())
    sequence = ItemSequence.of(recorded["bytes"], recorded["ready_us"])
    problem = ItemProblem(pipeline_of_lines([("all-reduce", 7000.0, 41.0)]), sequence)
    for row in recorded["rows"][1:3]:
        seen = tuple(row["seen"])
        ends = list(accumulate(sequence.item_bytes))
        cut = tuple(ends.index(end) + 1 for end in accumulate(seen))
        text = TORCH.render(replace(answered(problem, Fill.UNTIL), cut=cut), {"form": "list"})
        (caps,) = keywords(text).values()
        assert sequence.fragment_bytes(BucketSetting(tuple(caps)).cut(sequence)) == seen


@pytest.mark.parametrize("element", ["4", "2"])
@pytest.mark.parametrize("seed", range(4))
def test_megatron_counts_elements(seed: int, element: str) -> None:
    found = answered(problem_of(seed), Fill.UNTIL)
    text = MEGATRON.render(found, MEGATRON.options_from({"element_bytes": element}))
    assert last_line(text).startswith("--overlap-grad-reduce --ddp-bucket-size ")
    elements = [size // int(element) for size in found.problem.sequence.item_bytes]
    check_best(found, megatron_buckets(elements, number_of(text)))


def test_bytes_that_are_no_whole_elements_are_declined() -> None:
    found = answered(problem_of(1, unit=3), Fill.UNTIL)
    with pytest.raises(StrategyDeclined, match=r"item 1 has .* elements of 4 bytes"):
        MEGATRON.render(found, MEGATRON.options_from({}))


def test_the_default_of_megatron_grows_with_the_ranks() -> None:
    found = answered(problem_of(0), Fill.UNTIL)
    options = MEGATRON.options_from({"data_parallel_size": "64"})
    assert "default: 64000000 elements" in MEGATRON.render(found, options)
    assert "default: 40000000 elements" in MEGATRON.render(found, MEGATRON.options_from({}))


@pytest.mark.parametrize("seed", range(4))
def test_slime_is_given_bytes(seed: int) -> None:
    found = answered(problem_of(seed), Fill.BEFORE)
    number = number_of(SLIME.render(found, SLIME.options_from({})))
    check_best(found, slime_buffers(found.problem.sequence.item_bytes, number))


def test_a_tensor_above_the_buffer_is_sent_by_itself() -> None:
    found = answered(problem_of(2, max_fragment_bytes=400), Fill.BEFORE)
    assert max(found.problem.sequence.item_bytes) > 400
    number = number_of(SLIME.render(found, SLIME.options_from({})))
    assert number <= 400
    check_best(found, slime_buffers(found.problem.sequence.item_bytes, number))


@pytest.mark.parametrize("target", ITEM_TARGETS)
def test_a_default_that_no_window_holds_is_said(target: ItemTarget) -> None:
    """Memory that the program's default is above is why the setting is asked for."""
    stages = pipeline_of_lines([("a", 2000.0, 1.0), ("b", 500.0, 1.0)])
    window = Window(0, 1, bytes=MIB * 96, return_us=3.0)
    items = ItemSequence.of([32 * MIB] * 80)
    options = target.options_from({})
    rule = target.rule(options) or Fill.UNTIL
    text = target.render(answered(ItemProblem(stages, items, windows=(window,)), rule), options)
    joined = " ".join(text.replace("#", " ").split())
    assert "window of 96 MiB from 'a' to 'b': " in joined
    assert " of the written fragments at once, free again after 3 us" in joined
    refused = "does not fit the window of 100663296 bytes" in joined
    assert refused is (target is not TORCH)  # of 25 MiB, where each tensor is a bucket
    assert ("NOT BETTER" in text) is not refused


@pytest.mark.parametrize(("backend", "rule"), [("nccl", Fill.UNTIL), ("ipc", Fill.BEFORE)])
@pytest.mark.parametrize("seed", range(4))
def test_vllm_closes_by_its_backend(seed: int, backend: str, rule: Fill) -> None:
    found = answered(problem_of(seed), rule)
    setting = keywords(VLLM.render(found, VLLM.options_from({"backend": backend})))
    makes = vllm_buffers if backend == "nccl" else slime_buffers
    sizes = found.problem.sequence.item_bytes
    assert setting["packed"] is True
    check_best(found, makes(sizes, setting["packed_buffer_size_bytes"]))


def test_vllm_ends_every_tensor_by_no_number() -> None:
    problem = ItemProblem(pipeline_of_lines([("a", 0.0, 1.0)]), ItemSequence.of([1, 1], [1, 9]))
    with pytest.raises(StrategyDeclined, match="takes none so"):
        VLLM.render(answered(problem, Fill.UNTIL), VLLM.options_from({}))


@pytest.mark.parametrize("seed", range(4))
def test_verl_is_given_whole_mebibytes(seed: int) -> None:
    """Its better neighbour of the best cap, and what that loses."""
    found = answered(problem_of(seed, unit=40_000), Fill.BEFORE)
    problem, sizes = found.problem, found.problem.sequence.item_bytes
    text = VERL.render(found, VERL.options_from({}))
    assert ".checkpoint_engine.update_weights_bucket_megabytes=" in last_line(text)
    written_us = problem.latency_us(slime_buffers(sizes, number_of(text) * MIB))
    assert found.caps is not None
    near = [found.caps[0] // MIB, found.caps[0] // MIB + 1]
    allowed = [number for number in near if number * MIB >= max(sizes)]
    best_us = min(problem.latency_us(slime_buffers(sizes, number * MIB)) for number in allowed)
    assert written_us <= best_us
    wanted_us = problem.latency_us(layout(problem.sequence, found.caps[0], found.fill))
    assert ("wanted: " in text) == (wanted_us < written_us)
    older = VERL.render(found, VERL.options_from({"key": "rollout"}))
    assert "actor_rollout_ref.rollout.update_weights_bucket_megabytes=" in last_line(older)


@pytest.mark.parametrize(("target", "options"), [(VERL, {}), (VLLM, {"backend": "ipc"})])
def test_a_tensor_that_no_admitted_buffer_holds_is_declined(
    target: ItemTarget, options: dict[str, str]
) -> None:
    found = answered(problem_of(2, unit=40_000, max_fragment_bytes=2**22), Fill.BEFORE)
    with pytest.raises(StrategyDeclined, match="that holds the largest item"):
        target.render(found, target.options_from(options))


@pytest.mark.parametrize("seed", range(4))
def test_lmcache_counts_layers(seed: int) -> None:
    """The best of all numbers, by the evaluator."""
    found = answered(problem_of(seed), Fill.UNTIL)
    text = LMCACHE.render(found, LMCACHE.options_from({}))
    assert last_line(text).startswith("--layerwise-batch ")
    problem, count = found.problem, len(found.problem.sequence)
    latencies = {
        each: problem.latency_us((*range(each, count, each), count)) for each in range(1, count + 1)
    }
    assert latencies[number_of(text)] == min(latencies.values())


def test_lmcache_keeps_the_limits() -> None:
    sequence = ItemSequence.of([10] * 6, [100.0] * 6)
    line = pipeline_of_lines([("push", 5.0, 1.0)])
    problem = ItemProblem(line, sequence, max_fragment_bytes=25)
    assert number_of(LMCACHE.render(answered(problem, Fill.UNTIL), {})) == 2
    found = AnsweredItems(
        ItemProblem(line, ItemSequence.of([20, 5] * 3), max_fragment_items=1, max_fragments=5),
        *(FillRule(), (2, 4, 6), 0.0, None),
    )
    with pytest.raises(StrategyDeclined, match="no equal number of layers"):
        LMCACHE.render(found, {})
    many = ItemProblem(line, ItemSequence.of([1] * (MAX_LAYERS + 1)))
    with pytest.raises(StrategyDeclined, match="at most 500"):
        LMCACHE.render(AnsweredItems(many, FillRule(), (MAX_LAYERS + 1,), 0.0, None), {})


def check_best(found: AnsweredItems, cut: ItemCut) -> None:
    """The cut is the layout of the best cap."""
    assert found.caps is not None
    assert cut == layout(found.problem.sequence, found.caps[0], found.fill)


# --- what stands above it -------------------------------------------------------------------------


def all_options(target: ItemTarget) -> list[dict[str, str]]:
    """None, and each choice of each option."""
    chosen = [{option.name: word} for option in target.options for word in option.choices]
    return [{}, *chosen]


RULES = [
    (target, rule, options)
    for target in ITEM_TARGETS
    for options in all_options(target)
    for rule in Fill
]


@pytest.mark.parametrize(("target", "rule", "options"), RULES)
def test_an_answer_for_the_other_rule_is_declined(
    target: ItemTarget, rule: Fill, options: dict[str, str]
) -> None:
    """By name, with the rule to ask with; and one whose first cap is another."""
    found, chosen = answered(problem_of(2), rule), target.options_from(options)
    wanted = target.rule(chosen)
    if wanted is None or wanted is rule:
        text = target.render(found, chosen)
        assert "40 items, " in text
        assert "over the best cut" in text
        assert "unit: " in text
        other = replace(found, fill=FillRule(rule, 4))
        if wanted is not None:
            with pytest.raises(StrategyDeclined, match="without first_bytes"):
                target.render(other, chosen)
        return
    with pytest.raises(StrategyDeclined, match=f"ask with the fill rule {wanted}"):
        target.render(found, chosen)


def test_a_cut_that_is_no_better_than_the_default_is_said_to_be_none() -> None:
    """All items are ready at once: the default's one fragment is the best."""
    line = pipeline_of_lines([("a", 5.0, 1.0)])
    found = answered(ItemProblem(line, ItemSequence.of([40] * 10)), Fill.UNTIL)
    assert MEGATRON.render(found, MEGATRON.options_from({})).startswith("# NOT BETTER than")
    better = answered(problem_of(0), Fill.UNTIL)
    assert "NOT BETTER" not in MEGATRON.render(better, MEGATRON.options_from({}))


def test_limits_that_admit_no_cap_are_declined() -> None:
    found = replace(answered(problem_of(0), Fill.UNTIL), caps=None)
    with pytest.raises(StrategyDeclined, match="no layout that one cap gives"):
        MEGATRON.render(found, MEGATRON.options_from({}))
    (caps,) = keywords(TORCH.render(found, {"form": "list"})).values()
    assert torch_buckets(found.problem.sequence.item_bytes, caps) == found.cut


def test_a_profile_is_named_and_stays_in_the_comment() -> None:
    found = answered(problem_of(0), Fill.UNTIL, profile="profile '*/\nrm -rf', revision 1")
    text = TORCH.render(found, {"form": "cap"})
    assert "profile '* / rm -rf', revision 1" in text
    last_line(text)


@pytest.mark.parametrize("first", [1, 3, 1000, 4095, 4097, 10**9 + 7])
@pytest.mark.parametrize("more", [0, 1, 5, 100, 10**6])
def test_the_roundest_number_of_a_range(first: int, more: int) -> None:
    """No other is divided by a greater power of two; a small range is looked through."""
    found = number_within(first, first + more)
    assert found is not None
    assert first <= found <= first + more
    if more <= 100:
        best = max(range(first, first + more + 1), key=lambda each: (each & -each, -each))
        assert found == best
    assert number_within(first + more + 1, first) is None


def test_without_a_last_number_the_first_is_at_most_doubled() -> None:
    found = number_within(1000, None)
    assert found == 1024


def test_targets_by_name() -> None:
    assert [item_target_named(target.name) for target in ITEM_TARGETS] == list(ITEM_TARGETS)
    assert not {target.name for target in ITEM_TARGETS} & {target.name for target in TARGETS}
    with pytest.raises(InvalidInput, match="did you mean torch"):
        item_target_named("torc")
    with pytest.raises(InvalidInput, match="expected form to be one of list, cap"):
        TORCH.options_from({"form": "both"})
    with pytest.raises(InvalidInput, match="sluice optimize SOURCE --items FILE --target torch"):
        target_named("torch")


@pytest.mark.parametrize("target", ITEM_TARGETS, ids=lambda target: target.name)
def test_the_page_has_a_target_with_its_options(target: ItemTarget) -> None:
    """How it fills, what it sets, and whether the program reads it in tests."""
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"`{target.name}` | "))
    for option in target.options:
        assert {option.name, *option.choices} <= code_words(row) | set(re.findall(r"\w+", row))
    assert row.endswith(target.verified_by or "unverified")
    set_by = last_line(target.render(answered(problem_of(2), _rule(target)), _options(target)))
    assert re.search(r"[a-z_]*(bucket|batch|buffer)[-_a-z]*", set_by)
    assert any(word.strip("-") in set_by for word in code_words(row))


def _options(target: ItemTarget) -> dict[str, str]:
    return target.options_from({})


def _rule(target: ItemTarget) -> Fill:
    return target.rule(_options(target)) or Fill.UNTIL


LOOPS: tuple[tuple[Callable[[Sequence[int], int], ItemCut], Fill, int], ...] = (
    (megatron_buckets, Fill.UNTIL, 0),
    (vllm_buffers, Fill.UNTIL, 1),
    (slime_buffers, Fill.BEFORE, 0),
)


@pytest.mark.parametrize(("makes", "rule", "more"), LOOPS)
def test_the_loops_fill_by_these_rules(
    makes: Callable[[Sequence[int], int], ItemCut], rule: Fill, more: int
) -> None:
    """For every cap of small sequences."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sequence = ItemSequence.of(rng.integers(1, 9, 12).tolist())
        for cap in range(1, sequence.total_bytes + 2):
            expected = layout(sequence, cap + more, FillRule(rule))
            assert makes(sequence.item_bytes, cap) == expected, (seed, cap)
