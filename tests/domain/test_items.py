"""Sequences of items, fill rules and layouts, and the evaluator of their cuts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.limits import MAX_ITEMS, MAX_MESSAGE_BYTES, MAX_OVERHEAD_US
from domain.aggregate import Aggregate
from domain.errors import Infeasible, InvalidInput, ItemsDeclined
from domain.items import (
    Fill,
    FillRule,
    ItemProblem,
    ItemSequence,
    item_problem_of,
    layout,
)
from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import FragmentLimits
from domain.schedule import latency_us
from tests.solvers.items.item_cases import (
    ORACLES,
    all_cuts,
    is_admitted,
    oracle,
    pipeline_of,
    plain_latency_us,
    some_problem,
)
from tests.support.counts import count

MIB = 2**20
NAN, INF = float("nan"), float("inf")
ONE_WIRE = pipeline_of([(1.0, 1000.0)])


def resnet18_bytes() -> list[int]:
    """The gradients of ResNet-18 in the order in which they are ready: its parameters reversed,
    four bytes each.
    """
    found = [3 * 64 * 49, 64, 64]
    before = 64
    for width in (64, 128, 256, 512):
        for block in range(2):
            into = before if block == 0 else width
            found += [9 * into * width, width, width, 9 * width * width, width, width]
            if into != width:
                found += [into * width, width, width]
        before = width
    return [4 * number for number in reversed([*found, 512 * 1000, 1000])]


class TestSequence:
    def test_columns(self) -> None:
        items = ItemSequence.of([3, 1, 4], [2, 1, 5], stage_us={"b": [1, 2, 3], "a": [0, 0, 0]})
        assert items.ends_bytes == (0, 3, 4, 8)
        assert items.total_bytes == 8
        assert items.all_ready_us == (0.0, 2.0, 2.0, 5.0)
        assert [name for name, _ in items.stage_us] == ["a", "b"]
        assert items.fragment_bytes((2, 3)) == (4, 4)
        assert (items.label(0), len(items)) == ("item 1", 3)

    def test_a_name_is_a_label(self) -> None:
        assert ItemSequence.of([3], names=["bias"]).label(0) == "bias"

    def test_canonical_bytes_and_their_digest(self) -> None:
        items = ItemSequence.of([3, 1], [2, 5], stage_us={"load": [1, 2]}, names=["x", "y"])
        expected = (
            b'{"bytes":[3,1],"names":["x","y"],"ready_us":[2.0,5.0],"stage_us":{"load":[1.0,2.0]}}'
        )
        assert items.canonical == expected
        assert items.digest == hashlib.sha256(expected).hexdigest()
        assert ItemSequence.of([3, 1]).canonical == b'{"bytes":[3,1]}'

    def test_what_is_stored_reads_back(self) -> None:
        items = ItemSequence.of([3, 1], [2.5, 5], stage_us={"load": [1, 2]}, names=["x", "y"])
        stored = json.loads(items.canonical)
        again = ItemSequence.of(
            stored["bytes"],
            stored["ready_us"],
            stage_us=stored["stage_us"],
            names=stored["names"],
        )
        assert again == items

    def test_each_column_counts_in_the_digest(self) -> None:
        items = ItemSequence.of([3, 1])
        others = [
            ItemSequence.of([1, 3]),
            ItemSequence.of([3, 1], [0, 0]),
            ItemSequence.of([3, 1], stage_us={"a": [0, 0]}),
            ItemSequence.of([3, 1], names=["a", "b"]),
        ]
        assert len({one.digest for one in (items, *others)}) == 5

    def test_whole_times_and_zeros_of_either_sign_are_one(self) -> None:
        assert ItemSequence.of([3], [2]).digest == ItemSequence.of([3], [2.0]).digest
        assert ItemSequence.of([3], [-0.0]).digest == ItemSequence.of([3], [0.0]).digest

    @pytest.mark.parametrize(
        ("columns", "field", "rule"),
        [
            ({"item_bytes": []}, "bytes", f"expected 1 to {MAX_ITEMS} items, got 0"),
            ({"item_bytes": [1] * (MAX_ITEMS + 1)}, "bytes", "expected 1 to 1000000 items"),
            ({"item_bytes": [1, 0]}, "bytes.1", "expected at least 1 byte an item"),
            ({"item_bytes": [1, 2, -3]}, "bytes.2", "expected at least 1 byte an item"),
            ({"item_bytes": [1.5]}, "bytes.0", "expected a whole number of bytes"),
            ({"item_bytes": [1, True]}, "bytes.1", "expected a whole number of bytes"),
            (
                {"item_bytes": [MAX_MESSAGE_BYTES, 1]},
                "bytes",
                f"expected items that sum to at most {MAX_MESSAGE_BYTES} bytes",
            ),
            ({"ready_us": [1]}, "ready_us", "expected 2 values, one for each item, got 1"),
            ({"ready_us": [1, -1]}, "ready_us.1", "expected a time from 0 to 1e+12 µs"),
            ({"ready_us": [NAN, 1]}, "ready_us.0", "expected a time from 0 to 1e+12 µs"),
            ({"ready_us": [0, INF]}, "ready_us.1", "expected a time from 0 to 1e+12 µs"),
            ({"ready_us": [0, 2 * MAX_OVERHEAD_US]}, "ready_us.1", "expected a time from 0"),
            ({"ready_us": [0, "1"]}, "ready_us.1", "expected a time in µs"),
            ({"ready_us": [False, 1]}, "ready_us.0", "expected a time in µs"),
            ({"stage_us": {"load": [1]}}, "stage_us.load", "expected 2 values"),
            ({"stage_us": {"load": [1, NAN]}}, "stage_us.load.1", "expected a time from 0"),
            ({"names": ["a"]}, "names", "expected 2 values"),
            ({"names": ["a", ""]}, "names.1", "expected a name of 1 to 100 characters"),
        ],
    )
    def test_rules(self, columns: dict[str, Any], field: str, rule: str) -> None:
        with pytest.raises(InvalidInput, match=rule.replace("+", r"\+")) as refused:
            ItemSequence.of(**{"item_bytes": [1, 2], **columns})
        assert refused.value.field == field

    def test_a_stage_given_twice(self) -> None:
        with pytest.raises(InvalidInput, match="expected each stage once") as refused:
            ItemSequence((1,), None, (("a", (1.0,)), ("a", (2.0,))))
        assert refused.value.field == "stage_us"

    def test_ready_times_that_fall_are_named(self) -> None:
        items = ItemSequence.of([1, 1, 1, 1], [5, 3, 7, 6], names=["a", "b", "c", "d"])
        (notice,) = items.notices
        assert notice.code == "ready_not_in_order"
        assert notice.detail.startswith("2 items are ready before the one in front, the first")
        assert "of them b;" in notice.detail
        assert notice.value("items") == 2
        assert ItemSequence.of([1, 1], [5, 5]).notices == ()
        assert ItemSequence.of([1, 1]).notices == ()

    def test_reversed(self) -> None:
        items = ItemSequence.of([1, 2], stage_us={"a": [3, 4]}, names=["x", "y"])
        assert items.reversed() == ItemSequence.of([2, 1], stage_us={"a": [4, 3]}, names=["y", "x"])
        with pytest.raises(InvalidInput, match="expected items without ready times"):
            ItemSequence.of([1], [1]).reversed()


class TestLayout:
    def test_published_buckets(self) -> None:
        """What DistributedDataParallel makes of ResNet-18 at its defaults, as published."""
        items = ItemSequence.of(resnet18_bytes())
        cut = layout(items, 25 * MIB, FillRule(Fill.UNTIL, MIB))
        assert items.fragment_bytes(cut) == (2_052_000, 28_852_224, 15_853_824)

    @pytest.mark.parametrize(
        ("cap", "until", "before"),
        [
            (1, (1, 2, 3, 4, 5), (1, 2, 3, 4, 5)),
            (4, (1, 4, 5), (1, 4, 5)),
            (5, (2, 5), (2, 4, 5)),
            (6, (3, 5), (3, 5)),
            (11, (5,), (4, 5)),
            (100, (5,), (5,)),
        ],
    )
    def test_both_rules(self, cap: int, until: tuple[int, ...], before: tuple[int, ...]) -> None:
        items = ItemSequence.of([4, 1, 1, 2, 4])
        assert layout(items, cap, FillRule(Fill.UNTIL)) == until
        assert layout(items, cap, FillRule(Fill.BEFORE)) == before

    def test_a_first_cap(self) -> None:
        items = ItemSequence.of([1] * 7)
        assert layout(items, 3, FillRule(Fill.UNTIL, 2)) == (2, 5, 7)
        assert layout(items, 3, FillRule(Fill.BEFORE, 1)) == (1, 4, 7)

    @given(
        st.lists(st.integers(1, 50), min_size=1, max_size=30),
        st.integers(1, 300),
        st.none() | st.integers(1, 100),
        st.sampled_from(Fill),
    )
    def test_as_programs_fill(
        self, sizes: list[int], cap: int, first_bytes: int | None, rule: Fill
    ) -> None:
        """Item after item into the open fragment, which is closed as the rule says."""
        cut, filled = list[int](), 0
        for item, size in enumerate(sizes):
            own = first_bytes if first_bytes is not None and not cut else cap
            if rule is Fill.BEFORE and filled and filled + size > own:
                cut.append(item)
                filled = 0
            filled += size
            if rule is Fill.UNTIL and filled >= own:
                cut.append(item + 1)
                filled = 0
        if filled:
            cut.append(len(sizes))
        assert layout(ItemSequence.of(sizes), cap, FillRule(rule, first_bytes)) == tuple(cut)

    def test_a_cap_below_a_byte(self) -> None:
        with pytest.raises(InvalidInput, match="expected 1 <= cap_bytes") as refused:
            layout(ItemSequence.of([1]), 0, FillRule())
        assert refused.value.field == "cap_bytes"

    def test_rules_by_name(self) -> None:
        assert FillRule.named(None) is None
        assert FillRule.named("before", 7) == FillRule(Fill.BEFORE, 7)
        with pytest.raises(InvalidInput, match="expected one of until, before") as refused:
            FillRule.named("during")
        assert refused.value.field == "rule"
        with pytest.raises(InvalidInput, match="first_bytes needs a rule") as refused:
            FillRule.named(None, 7)
        assert refused.value.field == "first_bytes"
        with pytest.raises(InvalidInput, match="expected 1 <= first_bytes") as refused:
            FillRule.named("until", 0)
        assert refused.value.field == "first_bytes"


class TestEvaluator:
    @pytest.mark.parametrize("number", range(len(ORACLES)))
    def test_published_latencies(self, number: int) -> None:
        assert oracle(number).latency_us(ORACLES[number][5]) == ORACLES[number][4]

    def test_plain_sums(self) -> None:
        """Against the recurrence written from the items, with ranges and items' own costs."""
        random = Random(3)
        for case in range(count(2000)):
            problem = some_problem(random, random.randint(1, 9), 1 + case % 5, has_ranges=True)
            cuts = list(all_cuts(len(problem.sequence)))
            for cut in random.sample(cuts, min(3, len(cuts))):
                expected = plain_latency_us(problem, cut)
                assert problem.latency_us(cut) == pytest.approx(expected, rel=1e-12)
                assert problem.simulate(cut).latency_us == problem.latency_us(cut)
                assert problem.admits(cut) == is_admitted(problem, cut)

    def test_without_ready_times_it_is_the_plain_evaluator(self) -> None:
        pipeline = pipeline_of([(1, 500), (2, 250)], delay_us=3.0)
        problem = ItemProblem(pipeline, ItemSequence.of([3, 1, 4, 1, 5]))
        for cut in all_cuts(5):
            sizes = problem.sequence.fragment_bytes(cut)
            assert problem.latency_us(cut) == latency_us(pipeline, sizes)

    def test_ready_times_are_a_front_stage(self) -> None:
        """One without overhead whose items take what lies between two of them."""
        random = Random(5)
        for _ in range(count(400)):
            problem = some_problem(random, 7, 2, is_ready=True, has_limits=False)
            times = problem.sequence.all_ready_us
            front = Stage.of_line("front", overhead_us=0.0, ns_per_byte=0.0)
            gaps = [behind - before for before, behind in pairwise(times)]
            columns = {**dict(problem.sequence.stage_us), "front": gaps}
            longer = ItemProblem(
                Pipeline((front, *problem.pipeline.stages), problem.pipeline.delay_us),
                ItemSequence.of(problem.sequence.item_bytes, stage_us=columns),
            )
            for cut in ((7,), (1, 2, 7), (3, 5, 6, 7)):
                assert longer.latency_us(cut) == pytest.approx(problem.latency_us(cut), rel=1e-12)

    def test_the_running_maximum_of_ready_times_changes_nothing(self) -> None:
        random = Random(6)
        for _ in range(count(400)):
            problem = some_problem(random, 7, 2, is_ready=True, has_limits=False)
            mixed = random.sample(problem.sequence.ready_us or (), 7)
            items = replace(problem.sequence, ready_us=tuple(mixed))
            raised = replace(items, ready_us=items.all_ready_us[1:])
            for cut in ((7,), (2, 3, 7), (1, 4, 6, 7)):
                fallen, risen = (replace(problem, sequence=one) for one in (items, raised))
                assert fallen.latency_us(cut) == risen.latency_us(cut)

    def test_reversed_stages_and_items_take_as_long(self) -> None:
        random = Random(7)
        for case in range(count(400)):
            problem = some_problem(random, 7, 1 + case % 4, is_ready=False, has_limits=False)
            mirror = ItemProblem(problem.pipeline.reversed(), problem.sequence.reversed())
            for cut in ((7,), (2, 3, 7), (1, 4, 6, 7)):
                turned = (*(7 - end for end in reversed(cut[:-1])), 7)
                assert mirror.latency_us(turned) == pytest.approx(
                    problem.latency_us(cut), rel=1e-12
                )

    def test_intervals(self) -> None:
        problem = ItemProblem(pipeline_of([(1, 1000), (0, 2000)]), ItemSequence.of([2, 1], [1, 9]))
        times = problem.simulate((1, 2))
        assert (times.cut, times.ready_us) == ((1, 2), (1.0, 9.0))
        assert times.in_stages.start_us == ((1.0, 4.0), (9.0, 11.0))
        assert times.in_stages.exit_us == ((4.0, 8.0), (11.0, 13.0))

    @pytest.mark.parametrize("cut", [(), (1,), (2, 2, 3), (0, 3), (3, 2, 3), (1, 4)])
    def test_what_is_no_cut(self, cut: tuple[int, ...]) -> None:
        problem = ItemProblem(ONE_WIRE, ItemSequence.of([1, 2, 3]))
        for method in (problem.latency_us, problem.simulate, problem.admits):
            with pytest.raises(InvalidInput, match="expected") as refused:
                method(cut)
            assert refused.value.field == "fragment_items"


class TestProblem:
    def test_an_item_above_the_cap_is_a_fragment_of_its_own(self) -> None:
        items = ItemSequence.of([9, 1, 8, 7, 9, 6])
        problem = ItemProblem(ONE_WIRE, items, max_fragment_bytes=5)
        assert problem.min_fragments == 6
        assert problem.admits((1, 2, 3, 4, 5, 6))
        (notice,) = problem.notices
        assert notice.code == "item_above_cap"
        assert notice.detail.startswith("item 1, item 3, item 4 and 2 more: above")
        assert notice.value("items") == 5

    def test_one_fragment_is_best(self) -> None:
        items = ItemSequence.of([1, 2])
        said = [notice.code for notice in ItemProblem(ONE_WIRE, items).notices]
        assert said == ["one_fragment_is_best"]
        assert ItemProblem(ONE_WIRE, ItemSequence.of([1, 2], [0, 1])).notices == ()
        assert ItemProblem(ONE_WIRE, items, max_fragment_items=1).notices == ()
        assert ItemProblem(pipeline_of([(1, 1), (1, 1)]), items).notices == ()

    def test_limits_that_clash(self) -> None:
        items = ItemSequence.of([1] * 6)
        problem = ItemProblem(ONE_WIRE, items, 2, 4, max_fragments=2)
        with pytest.raises(Infeasible) as refused:
            problem.check_feasible()
        assert refused.value.detail == (
            "max_fragment_bytes 2 and max_fragment_items 4 needs at least 3 fragments of these "
            "items, and max_fragments allows 2"
        )
        replace(problem, max_fragments=3).check_feasible()

    @pytest.mark.parametrize("name", ["max_fragment_bytes", "max_fragment_items", "max_fragments"])
    @pytest.mark.parametrize("value", [0, -1, True, 1.5, 2**63])
    def test_limits_out_of_range(self, name: str, value: Any) -> None:
        with pytest.raises(InvalidInput, match=name) as refused:
            ItemProblem(ONE_WIRE, ItemSequence.of([1]), **{name: value})
        assert refused.value.field == name
        assert refused.value.code == "invalid_limits"

    def test_a_stage_of_another_name(self) -> None:
        with pytest.raises(InvalidInput, match="this is no stage of the pipeline") as refused:
            ItemProblem(ONE_WIRE, ItemSequence.of([1], stage_us={"load": [1]}))
        assert refused.value.field == "stage_us.load"

    def test_a_name_of_two_stages(self) -> None:
        twice = Pipeline(ONE_WIRE.stages * 2)
        with pytest.raises(InvalidInput, match="this names several stages of the pipeline"):
            ItemProblem(twice, ItemSequence.of([1], stage_us={"s0": [1]}))

    def test_handoffs_are_refused(self) -> None:
        stage = Stage("wire", (FitRange(1.0, 1.0),), handoff_bytes=64)
        with pytest.raises(ItemsDeclined, match="handoff_bytes") as refused:
            ItemProblem(Pipeline((*ONE_WIRE.stages, stage)), ItemSequence.of([1]))
        assert refused.value.field == "stages.1.handoff_bytes"

    @pytest.mark.parametrize(
        ("limits", "options", "field"),
        [
            ({"alignment_bytes": 64}, {}, "alignment_bytes"),
            ({"min_fragment_bytes": 64}, {}, "min_fragment_bytes"),
            ({}, {"allow_refragmentation": True}, "allow_refragmentation"),
        ],
    )
    def test_what_items_do_not_go_with(
        self, limits: dict[str, int], options: dict[str, Any], field: str
    ) -> None:
        with pytest.raises(InvalidInput, match="beside items") as refused:
            item_problem_of(ONE_WIRE, ItemSequence.of([1]), FragmentLimits(**limits), **options)
        assert refused.value.field == field

    def test_an_aggregate_is_refused(self) -> None:
        stage = ONE_WIRE.stages[0]
        with pytest.raises(InvalidInput, match="items need plain stages") as refused:
            item_problem_of(Aggregate(stage, stage), ItemSequence.of([1]), FragmentLimits())
        assert refused.value.field == "items"

    def test_limits_of_a_question(self) -> None:
        limits = FragmentLimits(max_fragment_bytes=9, max_fragments=4)
        items = ItemSequence.of([1, 2])
        assert item_problem_of(ONE_WIRE, items, limits, max_fragment_items=2) == ItemProblem(
            ONE_WIRE, items, 9, 2, 4
        )

    def test_digests(self) -> None:
        problem = ItemProblem(ONE_WIRE, ItemSequence.of([1, 2]))
        others = [
            replace(problem, pipeline=pipeline_of([(2.0, 1000.0)])),
            replace(problem, sequence=ItemSequence.of([2, 1])),
            replace(problem, max_fragment_bytes=3),
            replace(problem, max_fragment_items=2),
            replace(problem, max_fragments=2),
        ]
        assert len({one.digest() for one in (problem, *others)}) == 6
        assert replace(problem).digest() == problem.digest()
