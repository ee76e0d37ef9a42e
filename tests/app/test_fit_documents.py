"""A fit that a client sends: read back to the fit that it was, or refused by its field and rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.questions.fits import fit_traces
from app.questions.traces import LoadedTrace
from app.schemas.base import dump_json
from app.schemas.fit_documents import MAX_FIT_BYTES, read_fit
from app.schemas.fits import fit_out, given_fit_out
from domain.errors import MeasurementMissing, NotJson, SluiceError
from domain.fit import FitOptions, TraceFit
from domain.uncertain_fit import uncertain_model
from models.records import FitRequest
from tests.support.outside_traces import BOTH_CSV, LATENCY_CSV

DATA = Path(__file__).resolve().parents[1] / "data" / "traces"
NOISE = (0.0, 0.01, -0.01, 0.02, -0.02, 0.005, -0.005)


def direct_csv(**stages: Callable[[int], float]) -> bytes:
    """Times of these stages, in µs, by message size."""
    rows = [",".join(["message_bytes", "repetition", *(f"{name}_us" for name in stages)])]
    rows += [
        ",".join(
            [str(size), str(at), *(f"{time_us(size) * (1 + noise)}" for time_us in stages.values())]
        )
        for size in (2**power for power in range(6, 21))
        for at, noise in enumerate(NOISE)
    ]
    return "\n".join(rows).encode()


def copy_us(size: int) -> float:
    return 7.2 + 0.00703 * size


def wire_us(size: int) -> float:
    """A protocol switch at 8 KiB."""
    return 10.0 + 0.02 * size if size <= 8192 else 60.0 + 0.0113 * size


FILES = {
    "stages": direct_csv(copy=copy_us, wire=lambda size: 7.5 + 0.024 * size),
    "ranges": direct_csv(wire=wire_us, copy=copy_us),
    "outside": BOTH_CSV.encode(),
    "signatures": (DATA / "netgauge-loggp.out").read_bytes(),
    "totals": (DATA / "direct.json").read_bytes(),
}


@cache
def fitted(name: str) -> tuple[TraceFit, bytes]:
    """The fit of a file, and its document as it is sent."""
    request = FitRequest(FitOptions(total_is_uncut=name == "outside"), kinds=(None,))
    found = fit_traces((LoadedTrace.of(FILES[name]),), request, sizes_used=lambda _: ())
    return found.fit, dump_json(fit_out(found, None))


def changed(name: str, change: Callable[[Any], object]) -> bytes:
    """The document with a change made to it."""
    document = json.loads(fitted(name)[1])
    change(document)
    return json.dumps(document).encode()


def refusal(content: bytes) -> dict[str, str]:
    """What is said of each field, by its pointer."""
    from app.errors import field_problems

    with pytest.raises(SluiceError) as refused:
        read_fit(content)
    return {one.pointer: one.detail for one in field_problems(refused.value)}


@pytest.mark.parametrize("name", FILES)
def test_nothing_that_is_known_is_lost(name: str) -> None:
    fit, document = fitted(name)
    read = read_fit(document)
    assert read.fit == fit
    assert read.fit.to_model() == fit.to_model()
    assert uncertain_model(read.fit) == uncertain_model(fit)
    sent = json.loads(document)
    assert json.loads(dump_json(given_fit_out(read))) == sent
    assert read.trace_digests == tuple(sent["trace_digests"])


def test_where_it_was_stored_and_what_was_drawn_is_left_out() -> None:
    """They are not of the fit, and nobody has looked whether they are so."""

    def stored(document: Any) -> None:
        document["fit_id"] = "0" * 32
        document["profile"] = {"name": "a", "revision": 1}
        document["plot"] = {"stages": [], "signatures": []}

    read = read_fit(changed("stages", stored))
    assert read == read_fit(fitted("stages")[1])
    assert read.fit_id is None


def of_stage(**values: Any) -> Callable[[Any], None]:
    return lambda document: document["pipeline"]["stages"][0].update(values)


def of_line(**values: Any) -> Callable[[Any], None]:
    return lambda document: document["pipeline"]["stages"][0]["ranges"][0].update(values)


def of_size(**values: Any) -> Callable[[Any], None]:
    return lambda document: document["pipeline"]["stages"][0]["sizes"][1].update(values)


STAGE = "/fit/pipeline/stages/0"
LINE = f"{STAGE}/ranges/0"


@pytest.mark.parametrize(
    ("name", "change", "pointer", "rule"),
    [
        ("stages", lambda one: one.pop("kind"), "/fit/kind", "required"),
        ("stages", lambda one: one.update(speed=3), "/fit/speed", "unknown field"),
        ("stages", lambda one: one.update(kind="guess"), "/fit/kind", "one of"),
        ("stages", of_line(overhead_us=-1.0), f"{LINE}/overhead_us", ">= 0"),
        ("stages", of_line(overhead_us="7 us"), f"{LINE}/overhead_us", "a number"),
        ("stages", of_line(overhead_us=1e13), f"{STAGE}/overhead_us", "<= 1e+12"),
        ("stages", of_line(covariance=[1.0, 9.0, 1.0]), f"{LINE}/covariance", "semidefinite"),
        ("stages", of_line(covariance=[1e31, 0.0, 1.0]), f"{LINE}/covariance/0", "<= 1e+30"),
        ("stages", of_line(overhead_us_interval=[2, 1]), f"{LINE}/overhead_us_interval", "low <="),
        ("stages", of_line(from_bytes=2**40), f"{LINE}/to_bytes", "from_bytes <= to_bytes"),
        ("stages", of_line(degrees_of_freedom=-2.0), f"{LINE}/degrees_of_freedom", ">= 0"),
        ("stages", of_line(up_to_bytes=4096), f"{STAGE}/ranges", "must be open"),
        ("stages", of_stage(name=""), f"{STAGE}/name", "1 to 100 characters"),
        ("stages", of_stage(overhead_us=1.0), f"{STAGE}/overhead_us", "follows from the ranges"),
        ("stages", of_stage(ranges=[]), f"{STAGE}/ranges", "1 to 64 ranges"),
        ("stages", of_size(message_bytes=1), f"{STAGE}/sizes/1/message_bytes", "ascending"),
        ("stages", of_size(num_samples=-1), f"{STAGE}/sizes/1/num_samples", ">= 0"),
        (
            "stages",
            lambda one: one["pipeline"].update(stages=[]),
            "/fit/pipeline/stages",
            "a stage or more",
        ),
        (
            "stages",
            lambda one: one["pipeline"].update(stages=one["pipeline"]["stages"] * 40),
            "/fit/pipeline/stages",
            "at most 64 items",
        ),
        (
            "ranges",
            lambda one: one["pipeline"]["stages"][0]["ranges"].reverse(),
            f"{STAGE}/ranges",
            "must be open",
        ),
        (
            "outside",
            lambda one: one["aggregate"].update(sum_overhead_us=0.5),
            "/fit/aggregate/sum_overhead_us",
            "follows from the ranges",
        ),
        (
            "outside",
            lambda one: one["aggregate"].pop("bottleneck"),
            "/fit/aggregate/bottleneck",
            "required",
        ),
        (
            "outside",
            lambda one: one["pipeline"].update(stages=[one["aggregate"]["total"]]),
            "/fit/pipeline/stages",
            "no stages beside an aggregate",
        ),
        (
            "stages",
            lambda one: one["understood"].update(notes="x" * MAX_FIT_BYTES),
            "/fit",
            f"at most {MAX_FIT_BYTES} bytes",
        ),
    ],
)
def test_what_breaks_a_rule_is_named(
    name: str, change: Callable[[Any], object], pointer: str, rule: str
) -> None:
    found = refusal(changed(name, change))
    assert pointer in found
    assert rule in found[pointer]


@pytest.mark.parametrize("word", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
def test_a_number_is_finite(word: bytes) -> None:
    line = json.loads(fitted("stages")[1])["pipeline"]["stages"][0]["ranges"][0]
    text = f'"correlation":{line["correlation"]}'.encode()
    content = fitted("stages")[1].replace(text, b'"correlation":' + word, 1)
    assert content != fitted("stages")[1]
    with pytest.raises(SluiceError, match=r"finite|beyond every limit"):
        read_fit(content)


def test_half_of_an_aggregate_says_what_is_missing() -> None:
    request = FitRequest(kinds=(None,))
    half = fit_traces((LoadedTrace.of(LATENCY_CSV.encode()),), request, sizes_used=lambda _: ())
    with pytest.raises(MeasurementMissing, match="inter-arrival times"):
        read_fit(dump_json(fit_out(half, None)))


def test_a_key_that_stands_twice_is_refused() -> None:
    content = fitted("stages")[1]
    assert refusal(b'{"kind":"direct",' + content[1:]) == {
        "/fit/kind": "the key is given more than once"
    }


@pytest.mark.parametrize("content", [b"{", b'{"fit":1}}{', b"\xff", b'{"understood":{}} x'])
def test_what_is_no_json_says_so(content: bytes) -> None:
    with pytest.raises(NotJson):
        read_fit(content)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A document with one value in it replaced, removed, or moved."""
    document = json.loads(fitted(draw(st.sampled_from(list(FILES))))[1])
    place: Any = document
    while True:
        steps = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not steps:
            break
        step = draw(st.sampled_from(steps))
        if isinstance(place[step], dict | list) and draw(st.booleans()):
            place = place[step]
            continue
        action = draw(st.sampled_from(["replace", "remove", "scale", "copy"]))
        if action == "remove":
            del place[step]
        elif action == "scale" and isinstance(place[step], int | float):
            place[step] *= draw(st.sampled_from([-1, 0, 2, 1e-30, 1e12, 1e300]))
        elif action == "copy" and isinstance(place, list):
            place.append(deepcopy(place[step]))
        else:
            place[step] = draw(
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats(allow_nan=False, allow_infinity=False)
                | st.text(max_size=4)
                | st.just([])
                | st.just({})
            )
        break
    return json.dumps(document).encode()


@given(mutated())
def test_any_other_document_is_a_fit_or_is_refused(content: bytes) -> None:
    """A fit has a model, errors that can be drawn, and the document that it came as."""
    try:
        read = read_fit(content)
    except SluiceError:
        return
    model = read.fit.to_model()
    known = uncertain_model(read.fit)
    assert known is None or known.model == model
    assert read_fit(read.document).fit == read.fit
