"""The fixed set of pipelines comes from its seeds and is what it says; the pictures are drawn."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.hardness import CLASSES, Hardness, class_of, longest_wait_us, optimum_of, slowest_stage
from bench.pipelines import COUNT, GROWING, NEAR, BenchPipeline, generated, named, stored
from bench.plots import ratios_svg, time_svg, write_plots
from bench.timing import interleaved
from tests.support.counts import is_campaign

NAMES = [one.name for one in stored()]
# Searching the seeds of the others takes minutes where there is no compiler.
AGAIN = CLASSES if is_campaign() else [class_of("c")]


def test_there_are_six_of_each_class_two_of_them_near_the_best_count() -> None:
    """Thirty problems of 500 x 8, a third of them with k near the best."""
    classes = [one.letter for one in CLASSES]
    assert Counter(one.letter for one in stored()) == dict.fromkeys(classes, 6)
    near = Counter(one.letter for one in stored() if one.is_near_best)
    assert all(near[letter] >= 2 for letter in classes)
    assert {(one.k, len(one.stages)) for one in stored()} == {(COUNT, 8)}


@pytest.mark.parametrize("name", NAMES)
def test_the_stages_come_from_the_seed(name: str) -> None:
    """To the last digit that is stored."""
    one = named(name)
    assert one.hardness.rows(one.seed) == one.stages


@pytest.mark.parametrize("name", NAMES)
def test_each_is_hard_in_the_way_its_class_says(name: str) -> None:
    """What the class asks for holds at the certified optimum."""
    one = named(name)
    optimum = optimum_of(one.lines, one.k)
    assert optimum.upper_us - optimum.lower_us <= 1e-8 * optimum.upper_us
    assert one.hardness.holds(one.lines, optimum)


def test_the_classes_tell_pipelines_apart() -> None:
    """Pipelines of other classes are not what these ask for."""
    ties, moving = named("c1"), named("b1")
    optimum = optimum_of(ties.lines, COUNT)
    assert not class_of("a").holds(ties.lines, optimum)
    assert not class_of("a").holds(moving.lines, optimum_of(moving.lines, COUNT))
    single = named("a4")
    assert not class_of("b").holds(single.lines, optimum_of(single.lines, COUNT))
    assert not class_of("d").holds(single.lines, optimum_of(single.lines, COUNT))


@pytest.mark.parametrize("name", [one.name for one in stored() if one.number <= 2])
def test_the_first_two_have_a_message_for_which_500_is_best(name: str) -> None:
    """By convexity in k, no count farther away is better."""
    one = named(name)
    here = optimum_of(one.lines, COUNT).upper_us
    for k in (COUNT - NEAR, COUNT + NEAR):
        assert here <= optimum_of(one.lines, k).lower_us * (1.0 + 1e-9)


def test_a_wait_is_measured_in_front_of_one_stage() -> None:
    """Two equal fragments: the second waits where the first is slow, and nowhere before."""
    problem = named("a4")
    lines = problem.lines
    slowest = slowest_stage(lines, COUNT)
    equal = optimum_of(lines, COUNT).x * 0.0 + lines.B / COUNT
    assert slowest > 0
    assert longest_wait_us(lines, equal, slowest) > 0.0
    single = equal[:1]
    assert longest_wait_us(lines, single, slowest) == 0.0


@pytest.mark.parametrize("hardness", AGAIN, ids=lambda one: str(one.letter))
def test_the_search_over_seeds_finds_the_same_set(hardness: Hardness) -> None:
    """Seeds, messages and stages; the best k may differ where the latency is flat in k."""
    again = list(generated(hardness))
    there = [one for one in stored() if one.letter == hardness.letter]
    assert [_without_best(one) for one in again] == [_without_best(one) for one in there]


def _without_best(one: BenchPipeline) -> BenchPipeline:
    return replace(one, best_k=0)


def test_two_of_each_class_grow() -> None:
    """The messages grow with k."""
    assert sorted(GROWING) == [one.letter for one in CLASSES]
    one = named("a1")
    assert pytest.approx(4 * one.lines.B) == one.lines_for(4 * COUNT).B
    with pytest.raises(LookupError):
        named("z9")


def test_sides_take_turns_and_garbage_is_collected_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round begins with another side; the collection comes between warm-ups and rounds."""
    happened: list[str] = []
    monkeypatch.setattr(gc, "collect", lambda: happened.append("collect"))

    def side(name: str) -> Callable[[], int]:
        def run() -> int:
            happened.append(name)
            return len(happened)

        return run

    timed = interleaved({"a": side("a"), "b": side("b")}, rounds=2)
    assert happened == ["a", "b", "collect", "a", "b", "b", "a"]
    assert {name: one.result for name, one in timed.items()} == {"a": 7, "b": 6}
    assert all(len(one.processor.samples_ms) == 2 for one in timed.values())
    assert gc.get_freeze_count() == 0


def _scaling() -> dict[str, Any]:
    columns = ["side", "problem", "k", "k n", "ms", "ended", "certified gap", "peak MiB"]
    rows = [
        ["native", "a1", 500, 4000, 1.0, "certified", 1e-10, 70.0],
        ["native", "a1", 5000, 40000, 10.0, "certified", 1e-10, 70.0],
        ["numpy", "a1", 500, 4000, 20.0, "certified", 1e-10, 70.0],
        ["A < B", "b1", 500, 4000, 900.0, "optimal", None, 90.0],
        ["A < B", "b1", 5000, 40000, None, "past the cap", None, None],
    ]
    return {"tables": [{"title": "", "columns": columns, "rows": rows}]}


def _structured() -> dict[str, Any]:
    columns = ["problem", "native ratio", "NumPy ratio"]
    rows: list[list[Any]] = [[one.name, 100.0 * one.number, 10.0] for one in stored()]
    rows[7] = ["b2", None, None]
    checks = [
        {"what": "native, median of class a", "limit": 1000.0},
        {"what": "native, median of class d", "limit": 300.0},
        {"what": "native, worst", "limit": 30.0},
    ]
    return {"tables": [{"title": "", "columns": columns, "rows": rows}], "checks": checks}


def test_the_picture_of_times_has_a_line_for_every_side() -> None:
    """A solve that did not end has no point; names are escaped."""
    root = ElementTree.fromstring(time_svg(_scaling()))
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"sluice, native", "sluice, NumPy", "A < B"} <= set(texts)
    lines = [
        path.get("d", "")
        for path in root.iter("{http://www.w3.org/2000/svg}path")
        if "line" in path.get("class", "")
    ]
    assert sorted(line.count("L") for line in lines) == [0, 0, 1]


def test_the_picture_of_ratios_has_a_median_for_every_class_and_side() -> None:
    """Six problems a class: 100 to 600 times as fast, so 350 in the middle; five of them in b."""
    root = ElementTree.fromstring(ratios_svg(_structured()))
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("350×") == 4
    assert texts.count("400×") == 1
    assert sum(text == "10×" for text in texts) >= 5
    asked = [one for one in root.iter() if "target" in one.get("class", "")]
    assert len(asked) == 2 + 1  # of two classes, and in the legend


def test_pictures_are_drawn_of_what_was_measured(tmp_path: Path) -> None:
    """Without results there is nothing to draw."""
    assert write_plots(tmp_path, tmp_path / "plots") == []
    assert not (tmp_path / "plots").exists()
