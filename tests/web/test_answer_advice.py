"""What an answer's page advises: libraries' texts, what if, sweeps, and what changed."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

import solvers
from app.questions.settings import ExportScope, export, export_question
from app.schemas.answers import current_of, read_answer
from app.schemas.stages import stored_model
from app.text.numbers import format_gap, format_size
from app.text.units import format_time
from app.verbs.optimize.page.libraries import library_named
from app.verbs.optimize.page.set_this import set_this_of
from app.verbs.optimize.page.surroundings import curve_of
from app.verbs.optimize.page.view import cut_of
from app.verbs.optimize.show import parts as answer_parts
from domain.errors import SluiceError
from domain.pipeline import Pipeline, pipeline_of_lines
from exports.targets.registry import TARGETS
from tests.app.serving import Live
from tests.web.conftest import Ask
from tests.web.test_answer import AGGREGATE, chart_of, text_of


@pytest.mark.parametrize("target", [one.name for one in TARGETS])
def test_each_library_has_the_text_of_its_export(live: Live, ask: Ask, target: str) -> None:
    """The round size to set, as the export writes it, or why there is no text: saved or not."""
    answer = ask()
    text = text_of(live, f"/ui/answers/{answer.id}/parts/library?target={target}")
    scope = ExportScope(
        target=target, min_message_bytes=4096, max_message_bytes=4096, time_limit_s=1.0
    )
    model = stored_model(answer.model)
    declined, made = "", None
    try:
        question = export_question(model, None, scope, None, fragment_cap=100_000)
        made = export(question)  # nobody says which size: one message is asked for
    except SluiceError as refusal:
        declined = refusal.detail
    if made is None:
        assert declined[1:] in text
        return
    assert made.content.decode().strip() in text
    if made.chosen is not None:
        assert made.chosen.is_given == library_named(target).sizes.admits(1024)


@pytest.mark.parametrize("message_bytes", [4096, 65536, 10**6 + 1])
@pytest.mark.parametrize("current", [None, 1024, 4096, 6000, 2**30])
@pytest.mark.parametrize("relative", [None, 0.1])
def test_every_door_says_the_same_to_set(
    live: Live,
    ask: Ask,
    message_bytes: int,
    current: int | None,
    relative: float | None,
) -> None:
    """The API's field, the page's headline, the command line's first line, the library's text."""
    known = {} if relative is None else {"relative": relative}
    if current is not None:
        known["current"] = {"repeat": current}
    answer = ask(message_bytes=message_bytes, uncertainty=known or None)
    stated = answer.set_this
    assert stated is not None
    page = text_of(live, f"/ui/answers/{answer.id}")
    (headline,) = re.findall(r'<p class="headline">(.*?)</p>', page)
    assert stated.sentence.startswith(headline)
    found = set_this_of(answer, fragment_cap=100_000)
    assert found.size_bytes == stated.size_bytes
    asked = min(current or 0, message_bytes) == stated.size_bytes
    assert stated.keeps_current is asked is headline.startswith("Keep")
    assert stated.latency_us >= answer.latency_us * (1.0 - 1e-9)
    first = next(iter(answer_parts(answer)))
    assert first == (answer.uncertainty.sentence if answer.uncertainty else stated.sentence)


def test_the_sentence_of_an_earlier_version_is_marked(ask: Ask) -> None:
    """Its rules were others: what is above it is by those of now."""
    answer = ask(uncertainty={"relative": 0.1, "current": {"repeat": 1024}})
    assert answer.uncertainty is not None
    sentence = answer.uncertainty.sentence
    assert set_this_of(answer, fragment_cap=100_000).sentence == sentence
    earlier = set_this_of(replace(answer, set_this=None), fragment_cap=100_000)
    assert earlier.sentence == (
        f"Said by an earlier version: “{sentence}” Optimise again to decide anew."
    )


@pytest.mark.parametrize(
    ("target", "given", "written"),
    [
        ("ucx-shm", 6401, 6464),
        ("ucx-shm", 4096, 4096),
        ("ucx-shm", 4031, None),
        ("cufile", 70_000, None),
    ],
)
def test_a_size_is_rounded_up_to_what_a_library_takes(
    ask: Ask, target: str, given: int, written: int | None
) -> None:
    """By 1 % at most; else it takes its own."""
    scope = ExportScope(
        target=target, min_message_bytes=200_000, max_message_bytes=200_000, time_limit_s=1.0
    )
    question = export_question(stored_model(ask().model), None, scope, None, fragment_cap=100_000)
    chosen = export(replace(question, given_bytes=given)).chosen
    assert chosen is not None
    assert chosen.is_given == (written is not None)
    assert written in (None, chosen.setting.steps[0].size_bytes)


def test_what_a_library_cannot_take_is_said_aloud(live: Live, ask: Ask) -> None:
    """UCX takes no less than 64 KiB, which costs much of 128 KiB through slow stages: over the best
    size, not over uneven ones.
    """
    answer = ask(message_bytes=131_072)
    text = text_of(live, f"/ui/answers/{answer.id}/parts/library?target=ucx")
    said = re.search(r'class="notice bad" role="note">([^<]+)<', text)
    assert said is not None
    pipeline = stored_model(answer.model)
    assert isinstance(pipeline, Pipeline)
    evaluator = solvers.evaluator_of(pipeline)
    assert answer.best_fixed is not None
    regret = evaluator([65536, 65536]) / answer.best_fixed.latency_us - 1.0
    assert "takes 64 KiB to 16 MiB, multiples of 64 B: 64 KiB instead of" in said[1]
    assert f"costs {format_gap(regret)} on this message" in said[1]


def test_a_library_of_a_profile_has_a_way_to_its_export(live: Live, ask: Ask) -> None:
    """With the name and revision in the text; an unknown library is the first one."""
    answer = ask(pipeline=None, profile="myrinet-gam")
    text = text_of(live, f"/ui/answers/{answer.id}/parts/library?target=nonsense")
    assert f"/ui/profiles/{answer.profile.reference}/exports/ucx" in text  # type: ignore[union-attr]
    assert "profile 'myrinet-gam', revision" in text


def test_fragment_sizes_have_bands_and_marks(live: Live, ask: Ask) -> None:
    """At most five series; the bands hold what is within 1 and 5 % of the best size."""
    answer = ask(message_bytes=65536, uncertainty={"current": {"repeat": 1024}})
    text = text_of(live, f"/ui/answers/{answer.id}/parts/fragments")
    data = chart_of(text)
    assert [mark["name"] for mark in data["marks"]] == [
        *("best size", "to set", "yours", "systems' defaults")
    ]
    ((size, latency),) = data["marks"][2]["points"]
    assert (size, latency) == (1024, pytest.approx(answer.baselines[0].latency_us))
    best = min(data["latency_us"])
    assert {band[0] for band in data["bands"]} == {0.01, 0.05}
    for within, low, high in data["bands"]:
        inside = [
            us
            for size, us in zip(data["sizes"], data["latency_us"], strict=True)
            if low <= size <= high
        ]
        assert max(inside, default=best) <= best * (1.0 + within) * (1.0 + 1e-9)
    uneven = ask(message_bytes=13, constraints={"min_fragment_bytes": 4, "max_fragment_bytes": 5})
    assert "No size can be repeated" in text_of(live, f"/ui/answers/{uneven.id}/parts/fragments")


def test_one_cost_is_swept(live: Live, ask: Ask) -> None:
    """From a quarter to four times, the answer in the middle; other texts are the default."""
    answer = ask(message_bytes=65536, uncertainty={"current": {"repeat": 1024}})
    for given in ("2.overhead", "nonsense"):
        text = text_of(live, f"/ui/answers/{answer.id}/parts/sweep?cost={given}")
        data = chart_of(text)
        assert (data["factors"][0], data["factors"][8], data["factors"][-1]) == (0.25, 1.0, 4.0)
        names = [name for name, _ in data["lines"]]
        assert names[0] == "best size at each cost"
        assert names[2] == "1 KiB, yours"
        for _, values in data["lines"]:
            assert values == sorted(values)
        yours = data["lines"][2][1]
        assert yours[8] == pytest.approx(answer.baselines[0].latency_us)
    assert 'value="2.per_byte" selected' in text


@pytest.mark.parametrize("what", ["1.per_byte.half", "0.overhead.double", "3.both.half"])
@pytest.mark.usefixtures("native_kernels")
def test_what_if_asks_again(live: Live, ask: Ask, what: str) -> None:
    """With that cost alone changed; the answer says what that changed, and offers to compare."""
    before = ask(message_bytes=65536)
    place = f"/ui/answers/{before.id}/what-if?current=1+KiB&relative=10+%25"
    sent = live.client.post(place, data={"what": what})
    assert sent.status_code == 303
    query = dict(parse_qsl(urlsplit(sent.headers["location"]).query))
    assert query == {"current": "1 KiB", "relative": "10 %", "last": before.id}
    path = urlsplit(sent.headers["location"]).path
    now = read_answer(live.client.get(path.replace("/ui/answers/", "/optimizations/")).content)
    stage, cost, factor = what.split(".")
    times = {"half": 0.5, "double": 2.0}[factor]
    assert now.pipeline is not None
    assert before.pipeline is not None
    changes = [
        (
            new.parts[0].overhead_us / old.parts[0].overhead_us,
            new.parts[0].ns_per_byte / old.parts[0].ns_per_byte,
        )
        for old, new in zip(before.pipeline.stages, now.pipeline.stages, strict=True)
    ]
    expected = [(1.0, 1.0)] * 4
    expected[int(stage)] = (
        times if cost != "per_byte" else 1.0,
        times if cost != "overhead" else 1.0,
    )
    assert changes == [pytest.approx(one) for one in expected]
    assert current_of(now) == 1024
    assert now.uncertainty is not None
    text = text_of(live, sent.headers["location"])
    said = text[text.index("Against the answer before:") :][:900]
    assert f"latency {format_time(now.latency_us)}, instead of" in said
    assert f"/ui/compare?id={before.id}&id={now.id}" in said
    assert f"{before.pipeline.stages[int(stage)].name}: " in said


@pytest.mark.usefixtures("native_kernels")
def test_what_if_of_several_costs(live: Live, ask: Ask) -> None:
    """Sliders have binary logarithms; a script is told in place, a form led to the same answer.

    What a script is told is stored nowhere, for a slider passes many.
    """
    before = ask(message_bytes=65536)
    place = f"/ui/answers/{before.id}/what-if?current=1+KiB"
    sliders = {"0.overhead": "-0.5", "1.per_byte": "2", "2.per_byte": "0"}
    stored = live.client.get("/optimizations").content
    told = live.client.post(place, data=sliders, headers={"HX-Request": "true"}).text
    assert live.client.get("/optimizations").content == stored
    sent = live.client.post(place, data=sliders)
    path = urlsplit(sent.headers["location"]).path
    now = read_answer(live.client.get(path.replace("/ui/answers/", "/optimizations/")).content)
    assert now.pipeline is not None
    assert before.pipeline is not None
    new, old = now.pipeline.stages, before.pipeline.stages
    assert new[0].parts[0].overhead_us == pytest.approx(old[0].parts[0].overhead_us * 2**-0.5)
    assert new[1].parts[0].ns_per_byte == 4.0 * old[1].parts[0].ns_per_byte
    assert new[2:] == old[2:]
    assert f"latency {format_time(now.latency_us)}, instead of" in told
    none = live.client.post(place, data={"0.overhead": "0"}, headers={"HX-Request": "true"})
    assert "Slide costs" in none.text


@pytest.mark.parametrize("slider", ["2.01", "nan", "half", ""])
def test_sliders_have_an_end(live: Live, ask: Ask, slider: str) -> None:
    """No factor is beyond a quarter and four."""
    sent = live.client.post(f"/ui/answers/{ask().id}/what-if", data={"0.overhead": slider})
    assert sent.status_code in (400, 422)


@pytest.mark.parametrize("what", ["", "9.both.half", "x.both.half", "1.other.half", "1.both.third"])
def test_what_if_of_nothing_is_refused(live: Live, ask: Ask, what: str) -> None:
    """In words, and nothing is stored; nor of a pipeline whose stages are not known."""
    place = f"/ui/answers/{ask().id}/what-if"
    assert live.client.post(place, data={"what": what}).status_code in (400, 422)
    outside = ask(pipeline=None, aggregate=AGGREGATE, message_bytes=65536)
    sent = live.client.post(f"/ui/answers/{outside.id}/what-if", data={"what": "0.both.half"})
    assert sent.status_code in (400, 409, 422)


def test_an_answer_before_that_is_gone_is_not_spoken_of(live: Live, ask: Ask) -> None:
    """Nor is the answer itself."""
    answer = ask()
    for last in ("0" * 32, answer.id, "x"):
        assert "Against the answer" not in text_of(live, f"/ui/answers/{answer.id}?last={last}")


def test_sizes_that_rounding_made_unequal_are_one_run() -> None:
    """Large ones that differ by a byte; small ones, and others, stay as they are."""
    near = cut_of([5000, 5001, 5000, 5001, 4000]).head
    assert [(run.first, run.last, run.size_bytes, run.or_bytes) for run in near] == [
        (1, 4, 5000, 5001),
        (5, 5, 4000, None),
    ]
    assert [run.size_bytes for run in cut_of([5000, 5001, 5002]).head] == [5000, 5002]
    assert len(cut_of([10, 11, 10]).head) == 3


def test_ends_that_are_small_are_explained(live: Live, ask: Ask) -> None:
    """Below the sizes; a link of this machine says that it is one."""
    text = text_of(live, f"/ui/answers/{ask().id}")
    assert "The first and the last fragments are small, so that later stages start early" in text
    assert "reachable only on this machine" in text
    equal = text_of(live, f"/ui/answers/{ask(strategy='fixed').id}")
    assert "The fragments are as good as equal" in equal


@pytest.mark.parametrize("current", [None, "whole", 65536, 2**21, 1_900_000])
@pytest.mark.parametrize(("message", "relative"), [(2**24, 0.1), (2**24, 0.02), (40_000, 0.5)])
def test_what_is_set_is_what_was_decided(
    ask: Ask, message: int, relative: float, current: int | str | None
) -> None:
    """The advised size, or a round one within 2 % of the best in the mean; yours where kept."""
    uncertainty: dict[str, Any] = {"relative": relative}
    if current is not None:
        uncertainty["current"] = current if isinstance(current, str) else {"repeat": current}
    stages = [("to host", 9.15, 0.02428), ("network", 2.8, 0.0204), ("to device", 9.15, 0.02428)]
    answer = ask(
        message_bytes=message,
        uncertainty=uncertainty,
        pipeline={
            "stages": [
                {"name": name, "overhead_us": overhead, "ns_per_byte": cost}
                for name, overhead, cost in stages
            ]
        },
    )
    found, said = answer.uncertainty, set_this_of(answer, fragment_cap=100_000)
    assert found is not None
    rounds = {one.size_bytes for one in found.round if (one.regret_mean or 0.0) <= 0.02}
    advised = min(found.advised_bytes or message, message)
    if found.decision == "keep_yours":
        assert said.size_bytes == min(current_of(answer) or 0, message)
        assert said.headline.startswith("Keep ")
    elif found.decision == "set_it" and advised < message:
        assert said.size_bytes in rounds | {advised}
        assert said.headline == f"Repeat {format_size(said.size_bytes or 0)}"
    else:
        assert said.size_bytes == advised
    assert said.sentence == found.sentence


TYPED = [("to host", 9.15, 0.02428), ("network", 2.8, 0.0204), ("to device", 9.15, 0.02428)]
UNEVEN = [("a", 5.0, 0.1), ("b", 20.0, 0.01), ("c", 1.0, 0.3)]
NEAR = [("a", 0.173, 0.0138), ("b", 3.615, 0.0878)]  # sent whole, an uneven cut gains 4 %


@pytest.mark.parametrize("relative", [None, 0.01, 0.05, 0.6])
@pytest.mark.parametrize(
    ("lines", "message", "current"),
    [
        (TYPED, 2**24, 1_864_136),  # the best of all sizes
        (TYPED, 2**24, 1_525_202),
        (TYPED, 2**24, 2**21),
        (TYPED, 2**24, 2**16),
        (UNEVEN, 2**20, 95_326),
        (UNEVEN, 2**20, 2**17),
        (NEAR, 450_013, "whole"),
        (NEAR, 450_013, 225_007),
        (NEAR, 186_654, 31_109),
    ],
)
def test_nothing_is_advised_that_is_slower_than_today(
    ask: Ask,
    lines: list[tuple[str, float, float]],
    message: int,
    current: int | str,
    relative: float | None,
) -> None:
    """A change gains more than 1 % by the model, unless it is to be measured first; else yours is
    kept. The best of all sizes in the table is none that the answer beats.
    """
    stages = [
        {"name": name, "overhead_us": overhead, "ns_per_byte": cost}
        for name, overhead, cost in lines
    ]
    uncertainty: dict[str, Any] = {} if relative is None else {"relative": relative}
    uncertainty["current"] = current if isinstance(current, str) else {"repeat": current}
    answer = ask(message_bytes=message, uncertainty=uncertainty, pipeline={"stages": stages})
    said = set_this_of(answer, fragment_cap=100_000)
    evaluator = solvers.evaluator_of(pipeline_of_lines(lines))
    today, size = current_of(answer) or 0, said.size_bytes or 0
    gain = 1.0 - evaluator(repeated(message, size)) / evaluator(repeated(message, today))
    if said.headline.startswith("Keep"):
        assert size == min(today, message)
    else:
        assert gain > 0.01 or said.headline.startswith("Measure first")
    curve = curve_of(answer, fragment_cap=100_000, current_bytes=today)
    assert curve is not None
    assert answer.best_fixed is not None
    assert curve.best.latency_us <= answer.best_fixed.latency_us * (1.0 + 1e-9)


def test_todays_setting_in_the_address_is_kept_too(live: Live, ask: Ask) -> None:
    """Though the decision is against one piece; one that the limits forbid is told to be."""
    stages = [{"name": n, "overhead_us": o, "ns_per_byte": c} for n, o, c in TYPED]
    asked = {"message_bytes": 2**24, "pipeline": {"stages": stages}}
    answer = ask(**asked, uncertainty={"relative": 0.05})
    text = text_of(live, f"/ui/answers/{answer.id}?current=1864136")
    first = text[text.index('id="set-this"') : text.index('<dl class="figures">')]
    assert f"Keep your {format_size(1_864_136)}" in first
    assert "Set 2 MiB" not in first
    limited = ask(**asked, constraints={"max_fragment_bytes": 2**20})
    text = text_of(live, f"/ui/answers/{limited.id}?current=4+MiB")
    assert "your 4 MiB is not within the limits" in text


def test_what_is_to_be_measured_first_is_said_beside_the_librarys_text(
    live: Live, ask: Ask
) -> None:
    """Aloud, above the lines that would set it."""
    stages = [
        {"name": n, "overhead_us": o, "ns_per_byte": c}
        for n, o, c in [("a", 6.861, 0.0638), ("b", 0.698, 0.0206)]
    ]
    answer = ask(
        message_bytes=16_841_466,
        pipeline={"stages": stages},
        uncertainty={"relative": 0.9, "current": {"repeat": 3_918_232}},
    )
    assert answer.uncertainty is not None
    assert answer.uncertainty.decision == "measure_first"
    text = text_of(live, f"/ui/answers/{answer.id}/parts/library?target=ucx")
    assert f'class="notice bad" role="note">{answer.uncertainty.sentence}<' in text


def repeated(message: int, size: int) -> list[int]:
    """The fragments of a repeated size."""
    whole, rest = divmod(message, size)
    return [size] * whole + [rest] * (rest > 0)
