"""Buckets of gradients, as programs are told of them."""

from __future__ import annotations

import pytest

from domain.bucket_setting import DDP_RULE, BucketSetting
from domain.errors import InvalidInput, StrategyDeclined
from domain.items import CapChoice, Fill, FillRule, ItemProblem, ItemSequence, layout
from domain.pipeline import Pipeline, Stage
from exports.targets.bucket_caps import (
    BUCKET_TARGETS,
    MEGATRON,
    TORCH,
    BestBuckets,
    bucket_target_named,
)
from solvers.contract import Deadline
from solvers.items.caps import best_cap
from solvers.items.one_wire import unlimited_cut

SIZES = [60_000 if place % 2 else 4_000 for place in range(40)]


def best() -> BestBuckets:
    """The best buckets of gradients that come one every 2 ms."""
    sequence = ItemSequence.of(SIZES, [2000.0 * (place + 1) for place in range(len(SIZES))])
    wire = Stage.of_line("all-reduce", overhead_us=5000.0, ns_per_byte=40.0)
    problem = ItemProblem(Pipeline((wire,)), sequence)
    cap = best_cap(problem, DDP_RULE, Deadline.after(10.0))
    assert cap is not None
    return BestBuckets(sequence, unlimited_cut(problem), cap)


def keywords(text: str) -> dict[str, float | list[float]]:
    """What a script that holds the text passes to DistributedDataParallel."""
    names: dict[str, dict[str, float | list[float]]] = {}
    exec(compile(text, "buckets.py", "exec"), names)
    return names["ddp_keywords"]


def test_a_list_makes_the_best_cut() -> None:
    found = best()
    text = TORCH.render(found, TORCH.options_from({}), ["made for a test"])
    (caps,) = keywords(text).values()
    assert isinstance(caps, list)
    assert BucketSetting(tuple(caps)).cut(found.sequence) == found.cut
    assert "# made for a test\n" in text
    assert "gradient_as_bucket_view=True" in text
    assert "find_unused_parameters" in text


def test_a_cap_makes_the_best_layout() -> None:
    found = best()
    text = TORCH.render(found, TORCH.options_from({"form": "cap"}), [])
    (cap,) = keywords(text).values()
    assert isinstance(cap, float)
    assert BucketSetting((cap,)).cut(found.sequence) == found.cap.cut


@pytest.mark.parametrize("element", ["4", "2"])
def test_megatron_is_told_elements(element: str) -> None:
    found = best()
    text = MEGATRON.render(found, MEGATRON.options_from({"element_bytes": element}), [])
    words = text.splitlines()[-1].split()
    assert words[:2] == ["--overlap-grad-reduce", "--ddp-bucket-size"]
    assert layout(found.sequence, int(words[2]) * int(element), DDP_RULE) == found.cap.cut
    assert "padding of buckets" in text


def test_no_whole_number_of_elements_is_declined() -> None:
    sequence = ItemSequence.of([3, 3])
    cap = CapChoice(DDP_RULE, (1, 2), 1.0, 1, 3, 2, is_complete=True)
    with pytest.raises(StrategyDeclined, match="no whole number of elements of 4 bytes"):
        MEGATRON.render(BestBuckets(sequence, (1, 2), cap), {"element_bytes": "4"}, [])


@pytest.mark.parametrize("rule", [FillRule(Fill.BEFORE), FillRule(Fill.UNTIL, 4)])
def test_another_rule_is_refused(rule: FillRule) -> None:
    cap = CapChoice(rule, (1, 2), 1.0, 1, 4, 2, is_complete=True)
    given = BestBuckets(ItemSequence.of([4, 4]), (1, 2), cap)
    with pytest.raises(InvalidInput, match="without first_bytes"):
        TORCH.render(given, TORCH.options_from({}), [])


def test_targets_by_name() -> None:
    assert [bucket_target_named(target.name) for target in BUCKET_TARGETS] == [TORCH, MEGATRON]
    with pytest.raises(InvalidInput, match="did you mean torch"):
        bucket_target_named("torc")
    with pytest.raises(InvalidInput, match="expected form to be one of list, cap"):
        TORCH.options_from({"form": "both"})
