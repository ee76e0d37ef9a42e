"""The answer view without a browser: what it says, its parts, and what it survives."""

from __future__ import annotations

import html
import json
import re
from dataclasses import asdict, replace
from typing import Any

import pytest

import solvers
from analysis import explore
from analysis.explanation import Cost, Explanation, PathShare, Saving
from analysis.explore import Line, Point
from app.plots.timeline_rows import STYLE
from app.text.numbers import format_gap, format_percent, format_size
from app.text.units import TimeUnit
from app.ui.pages import FOLDER, POLICY
from app.verbs.optimize.page.surroundings import (
    about_size,
    alternatives_of,
    counts_chart,
    sizes_chart,
    surroundings_of,
)
from app.verbs.optimize.page.view import AnswerView, cut_of
from app.verbs.optimize.page.why import WhyView
from app.verbs.optimize.show import proof_of
from domain.pipeline import pipeline_of_lines
from domain.solution import Status, Strategy
from solvers.count_points import CountPoint
from tests.app.serving import MYRINET, Live
from tests.web.conftest import Ask

AGGREGATE = {
    "total": {"name": "all", "overhead_us": 27.3, "ns_per_byte": 63.0},
    "bottleneck": {"name": "worst", "overhead_us": 7.5, "ns_per_byte": 24.3},
}


def text_of(live: Live, path: str) -> str:
    """A page under the strict policy."""
    response = live.client.get(path)
    assert response.status_code == 200, response.text
    assert response.headers["content-security-policy"] == POLICY
    assert not re.search(r"<[^>]+ style=|<style|<script>|\son[a-z]+=", response.text)
    return html.unescape(response.text)


def chart_of(text: str) -> dict[str, Any]:
    """The data that a script draws."""
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


@pytest.mark.usefixtures("native_kernels")
def test_the_page_says_what_the_document_says(live: Live, ask: Ask) -> None:
    """Figures, sizes, the default settings and what they cost."""
    document = ask()
    text = text_of(live, f"/ui/answers/{document.id}")
    for reported in (
        "184.357 µs",
        "184.348 µs",
        "0.00486 %",
        "820 B",
        "34 % faster than sending it whole",
    ):
        assert reported in text
    assert [
        int(size) for size in re.findall(r"<b>(\d[\d\u202f]*)</b> B", text.replace("\u202f", ""))
    ] == list(document.fragment_bytes)


def test_it_opens_with_one_round_size(live: Live) -> None:
    """What to set, how near the bound, its gain over today's setting, a deciding sentence."""
    staging = json.loads((FOLDER.parents[2] / "examples" / "kv-staging.json").read_text("utf-8"))
    typed = staging | {"uncertainty": {"current": {"repeat": 65536}}}
    document = live.client.post("/optimize", json=typed).json()
    text = text_of(live, f"/ui/answers/{document['id']}")
    first = text[text.index('id="set-this"') : text.index('<dl class="figures">')]
    latency = solvers.evaluator_of(
        pipeline_of_lines(
            [(s["name"], s["overhead_us"], s["ns_per_byte"]) for s in staging["pipeline"]["stages"]]
        )
    )([2**21] * 8)
    assert "Repeat 2 MiB" in first
    above = latency / document["lower_bound_us"] - 1.0
    assert f"{format_gap(above)} above the best possible of this model" in first
    yours = document["baselines"][0]["latency_us"]
    assert f"{format_percent(1.0 - latency / yours)} faster than your 64 KiB" in first
    assert "These costs are taken as exact." in first
    assert "No uneven sizes are faster" in first
    told = live.client.post("/optimize", json=staging | {"uncertainty": {"relative": 0.1}}).json()
    first = text_of(live, f"/ui/answers/{told['id']}")
    first = first[first.index('id="set-this"') : first.index('<dl class="figures">')]
    assert "Repeat 2 MiB" in first
    assert told["uncertainty"]["round"][0]["size_bytes"] == 2**21
    assert told["uncertainty"]["sentence"] in first
    assert "of the best size in 90 % of the draws or more" in first


def test_another_setting_of_today_is_in_the_address(live: Live, ask: Ask) -> None:
    """The same answer is told against it, without another solve; what is no size counts as none."""
    place = f"/ui/answers/{ask().id}"
    assert "faster than your 256 B" in text_of(live, f"{place}?current=256+B")
    assert "faster than sending it whole, your setting" in text_of(live, f"{place}?current=whole")
    assert (
        "your"
        not in text_of(live, f"{place}?current=-3").split('class="facts"')[1].split("</ul>")[0]
    )


def test_limits_that_admit_no_repeated_size(live: Live, ask: Ask) -> None:
    """Then nothing is advised to be repeated, and stages that hand bytes on have no curve."""
    uneven = ask(message_bytes=13, constraints={"min_fragment_bytes": 4, "max_fragment_bytes": 5})
    assert "Send the fragments below" in text_of(live, f"/ui/answers/{uneven.id}")
    stages = [{**stage, "handoff_bytes": 64} for stage in MYRINET["stages"]]
    handed = ask(pipeline={"stages": stages}, strategy="fixed")
    assert handed.best_fixed is not None
    said = text_of(live, f"/ui/answers/{handed.id}")
    assert f"Repeat {format_size(handed.best_fixed.size_bytes)}" in said
    assert 'id="choices"' not in said


def test_the_rules_of_the_timeline_are_those_of_the_picture() -> None:
    """A page refuses styles inside a picture, so they are a file of their own."""
    assert (FOLDER / "timeline.css").read_text(encoding="utf-8") == STYLE.lstrip("\n")


@pytest.mark.parametrize(
    ("changes", "word", "reported"),
    [
        (
            {"status": "optimal", "relative_gap": 0.0},
            "optimum of this model",
            "No schedule of this model within these limits is faster.",
        ),
        (
            {"status": "optimal", "relative_gap": 1e-7},
            "optimum of this model",
            "by more than 0.0001 %",
        ),
        ({"status": "proven_gap"}, "proven gap of this model", "this one is 0.00486 % above that"),
        ({"status": "time_limit"}, "time limit reached", "best found until then"),
        (
            {"status": "optimal_before_rounding"},
            "optimum of this model before rounding",
            "whole bytes are",
        ),
        (
            {"status": "proven_gap", "allow_refragmentation": True},
            "proven gap of this model",
            "cuts anew between stages",
        ),
    ],
)
@pytest.mark.usefixtures("native_kernels")
def test_no_more_is_said_than_was_proven(
    ask: Ask, changes: dict[str, Any], word: str, reported: str
) -> None:
    """Each status in its own words."""
    proof = proof_of(replace(ask(), **changes))
    assert proof.word == word
    assert reported in proof.sentence


def test_the_alignment_is_what_rounding_costs(ask: Ask) -> None:
    """Multiples of it, not whole bytes, are what the optimum was rounded to."""
    document = ask(constraints={"alignment_bytes": 64})
    assert (
        "whole multiples of 64 B"
        in proof_of(replace(document, status=Status.OPTIMAL_BEFORE_ROUNDING)).sentence
    )
    assert AnswerView.from_answer(document).limits == ("all but the last a multiple of 64 B",)


def test_a_long_cut_is_summarised() -> None:
    """The first and the last groups; none of the fragments between is lost count of."""
    sizes = list(range(1, 1001))
    cut = cut_of(sizes)
    shown = sum(run.count for run in (*cut.head, *cut.tail))
    assert shown + cut.left_out == 1000
    assert (cut.head[0].size_bytes, cut.tail[-1].last) == (1, 1000)
    assert cut_of([7] * 100_000).head[0].count == 100_000


@pytest.mark.parametrize(
    ("time_us", "reported"),
    [
        (0.0, "0 µs"),
        (184.357, "184.4 µs"),
        (0.0123, "12.30 ns"),
        (1000.05, "1.000 ms"),
        (1.5e4, "15.00 ms"),
        (2.5e9, "2500 s"),
    ],
)
def test_times_beside_each_other_share_a_unit(time_us: float, reported: str) -> None:
    """Five digits of the one that it was chosen for."""
    unit = TimeUnit.of(time_us)
    assert f"{unit.text(time_us)} {unit.name}" == reported


@pytest.mark.usefixtures("native_kernels")
def test_why_in_words(live: Live, ask: Ask, explained_in_full: None) -> None:
    """Binding stages and what each cost less would save, the most first."""
    text = text_of(live, f"/ui/answers/{ask().id}/parts/why")
    assert "network DMAs and receiver host DMA holds the message up: 4 fragments" in text
    rows = re.findall(
        r'<th scope="row">([^<]+)</th><td>(overhead|per byte)</td>\s*'
        r'<td class="number">([\d.]+)</td>\s*<td class="number">([\d.]+)</td>',
        text,
    )
    assert "Cut anew, µs" in text
    assert "and with this one." in text
    assert len(rows) == 8
    saved = [float(row[2]) for row in rows]
    assert saved == sorted(saved, reverse=True)
    assert all(float(row[3]) <= float(row[2]) for row in rows)
    assert rows[1][:2] == ("sender host DMA", "per byte")


@pytest.mark.parametrize(
    ("units", "reported"),
    [
        ("", "at 21.88 instead of 24.32 ns/byte"),
        ("?cost_unit=gb_per_s", "at 0.04569 instead of 0.04112 GB/s"),
    ],
)
def test_what_would_help_most_is_said_above(
    live: Live, ask: Ask, explained_in_full: None, units: str, reported: str
) -> None:
    """In the units of the address, as one of the part's rows has it."""
    place = f"/ui/answers/{ask().id}"
    assert '<p id="advice"><a href="#why">What would help most</a></p>' in text_of(live, place)
    text = text_of(live, f"{place}/parts/why{units}")
    found = re.search(r'<p id="advice" hx-swap-oob="true">(.*)</p>', text)
    assert found is not None
    assert reported in found[1]


def test_a_saving_far_below_the_latency_is_not_said_to_be_none(
    live: Live, ask: Ask, explained_in_full: None
) -> None:
    """In microseconds, beside an answer of seconds."""
    long = {**MYRINET, "delay_us": 5e6}
    text = text_of(live, f"/ui/answers/{ask(pipeline=long).id}/parts/why")
    found = re.search(r'<p id="advice" hx-swap-oob="true">.*: −([\d.]+) µs \(0.\d+ %\)', text)
    assert found is not None
    assert 5.0 < float(found[1]) < 50.0


def test_savings_of_nothing_are_counted_only() -> None:
    """And one that was not solved anew says with what schedule it is had."""
    shares = (PathShare(0, "a", 1, 1.0, 9.0, 1.0),)
    savings = (
        Saving(0, "a", Cost.OVERHEAD, 0.0, None),
        Saving(0, "a", Cost.PER_BYTE, 0.9, None),
    )
    view = WhyView.from_explanation(Explanation(10.0, 0.0, shares, 0.1, savings))
    assert (len(view.savings), view.useless) == (1, 1)
    assert view.savings[0].is_solved is False
    assert view.binding.startswith("No stage holds the message up")


def test_counts_surround_the_answer(live: Live, ask: Ask) -> None:
    """Equal fragments above the optimum above the bound, at every count."""
    document = ask()
    data = chart_of(text_of(live, f"/ui/answers/{document.id}/parts/counts"))
    assert data["answer"] == [6, document.latency_us]
    assert data["fragments"] == list(range(1, 25))
    rows = zip(data["bound_us"], data["best_us"], data["equal_us"], strict=True)
    for bound_us, best_us, equal_us in rows:
        assert bound_us <= equal_us * (1 + 1e-9)
        assert best_us is None or bound_us <= best_us * (1 + 1e-9) <= equal_us * (1 + 2e-9)
    assert data["bound_us"][5] == pytest.approx(document.lower_bound_us, rel=1e-3)


def test_a_bound_is_rounded_down_unless_it_is_reached() -> None:
    """In the unit of the latency that it stands beside."""
    unit = TimeUnit.of(1000.05)
    assert unit.bound(968.177, 1000.05) == "0.968 ms"
    assert unit.bound(1000.05, 1000.05) == unit.named(1000.05)


def test_through_ranges_no_count_is_shown_better_than_the_bound(ask: Ask) -> None:
    """The curve of the best sizes is what cuts take, and the answer's own where it stands."""
    ranges = [
        {"overhead_us": 1.0, "ns_per_byte": 1.0, "up_to_bytes": 1024},
        {"overhead_us": 40.0, "ns_per_byte": 1.0},
    ]
    wire = {"name": "wire", "overhead_us": 5.0, "ns_per_byte": 2.0}
    document = ask(pipeline={"stages": [{"name": "jump", "ranges": ranges}, wire]})
    asked = surroundings_of(document, fragment_cap=1000)
    chart = counts_chart(document, explore.counts(asked, time_limit_s=30.0))
    best = dict(zip(chart.data.fragments, chart.data.best_us, strict=True))
    assert best[document.fragments] <= document.latency_us
    assert min(us for us in best.values() if us) >= document.lower_bound_us * (1 - 1e-9)
    assert any("best that were found" in remark for remark in chart.remarks)


def test_sizes_surround_the_message(live: Live, ask: Ask) -> None:
    """Every strategy and static size that can run; those that cannot say why."""
    document = ask()
    text = text_of(live, f"/ui/answers/{document.id}/parts/sizes?as=latency")
    data = chart_of(text)
    assert data["messages"][data["own"]] == 4096
    names = [line["name"] for line in data["lines"]]
    assert names == ["exact", "repeat", "single", "GAM, 4 KiB", "Mooncake, 64 KiB"]
    assert '<th scope="col" class="number">hierarchical</th>' in text  # the table has them all
    exact = next(line for line in data["lines"] if line["name"] == "exact")
    assert exact["latency_us"][data["own"]] == pytest.approx(document.latency_us, rel=1e-4)
    assert "<code>ramp</code>: ramp needs exactly two stages<" in text
    assert 'value="latency" aria-pressed="true"' in text


def test_all_strategies_on_the_message(live: Live, ask: Ask) -> None:
    """The fastest first, with what declined at the end."""
    text = text_of(live, f"/ui/answers/{ask().id}/parts/alternatives")
    names = re.findall(r'<th scope="row"><code>(\w+)</code>', text)
    assert (names[0], names.count("exact")) == ("exact", 1)
    assert set(names) >= {"repeat", "fixed", "single", "hierarchical"}
    folded = text[text.index('<details class="impossible">') :]
    assert "ramp needs exactly two stages" in folded[: folded.index("</details>")]


def test_a_search_that_time_ended_is_not_shown_slower_than_it_is(ask: Ask) -> None:
    """Its latency would be of the time given, not of the strategy; a faster one is shown."""
    answer = ask()
    unfinished, faster = answer.latency_us * 1.2, answer.latency_us * 0.9
    lines = [
        Line(Strategy.HIERARCHICAL, points=(Point(4096, unfinished, 3, None, None, True),)),
        Line(Strategy.HIERARCHICAL_RAMP, points=(Point(4096, faster, 3, None, None, True),)),
        Line(Strategy.SINGLE, points=(Point(4096, unfinished, 1, None, None),)),
        Line(Strategy.RAMP, points=(Point(4096, None, None, None, "ramp needs two stages"),)),
    ]
    own, *rows = alternatives_of(answer, lines)
    assert own.is_answer
    assert [row.name for row in rows] == ["hierarchical_ramp", "single", "hierarchical", "ramp"]
    assert [row.is_unfinished for row in rows] == [False, False, True, False]
    assert rows[2].latency == rows[2].above_answer == ""
    assert rows[0].how.endswith("*")


def test_the_answers_own_strategy_is_not_listed_again(ask: Ask) -> None:
    """Unless it is faster by now; a static size is another one."""
    answer = ask(strategy="static", static_bytes=512)
    for strategy, latency_us, is_listed in (
        (Strategy.EXACT, answer.latency_us, False),
        (Strategy.EXACT, answer.latency_us * 1.1, False),
        (Strategy.EXACT, answer.latency_us * 0.9, True),
        (Strategy.STATIC, answer.latency_us * 1.1, True),
    ):
        line = Line(strategy, points=(Point(4096, latency_us, 3, None, None),))
        _, *rows = alternatives_of(replace(answer, strategy=strategy), [line])
        assert bool(rows) is is_listed


def test_an_aggregate(live: Live, ask: Ask) -> None:
    """Curves of what is known; no stage is named."""
    document = ask(aggregate=AGGREGATE, message_bytes=65536)
    address = f"/ui/answers/{document.id}"
    assert "nothing to draw" in text_of(live, address)
    data = chart_of(text_of(live, f"{address}/parts/counts"))
    assert set(data["best_us"]) == {None}
    assert {
        line["name"] for line in chart_of(text_of(live, f"{address}/parts/sizes"))["lines"]
    } >= {
        "repeat",
        "NCCL network, 128 KiB",
    }
    for part in ("why", "timeline"):
        assert live.client.get(f"{address}/parts/{part}").status_code == 422


def test_numbers_that_no_axis_has_are_left_out(ask: Ask) -> None:
    """Infinite and zero times are gaps in a curve, not errors."""
    document = ask()
    points = [CountPoint(1, float("inf"), 0.0, float("nan")), CountPoint(2, 5.0, 4.0, None)]
    data = counts_chart(document, points).data
    assert data.equal_us == [None, 5.0]
    assert data.bound_us == [None, 4.0]
    assert data.best_us == [None, None]
    json.dumps(asdict(data), allow_nan=False)
    assert sizes_chart(document, []).is_empty


@pytest.mark.parametrize(
    ("size", "reported"), [(64, "64 B"), (4096, "4 KiB"), (200_000, "195.3 KiB"), (2**31, "2 GiB")]
)
def test_sizes_on_an_axis(size: int, reported: str) -> None:
    """Short, and rounded where they are no whole number of a unit."""
    assert about_size(size) == reported


def test_a_long_list_of_sizes_is_a_part(live: Live, ask: Ask) -> None:
    """All of them, in order."""
    document = ask()
    text = text_of(live, f"/ui/answers/{document.id}/parts/cut")
    assert ", ".join(map(str, document.fragment_bytes)) in text


@pytest.mark.parametrize("part", ["why", "counts", "sizes", "alternatives", "cut", "timeline"])
def test_no_part_of_no_answer(live: Live, part: str) -> None:
    """The refusal says so."""
    response = live.client.get(f"/ui/answers/{'0' * 32}/parts/{part}")
    assert response.status_code == 404
