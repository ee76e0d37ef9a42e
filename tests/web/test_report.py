"""The report of an answer, and its curves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape
from math import inf, nan
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from app.plots.curves_svg import Curve, CurvesPlot, HorizontalAxis, VerticalAxis, curves_element
from app.schemas.base import dump_json
from contract.optimize import OptimizeOut
from tests.app.serving import Live
from tests.web.conftest import Ask

CHECKOUT = Path(__file__).parents[2]
HOSTILE = '</style><script>alert("1")</script>&amp; \'"'
LINE = {"name": HOSTILE, "overhead_us": 3.0, "ns_per_byte": 9.0}
AGGREGATE = {
    "total": {"name": "total", "overhead_us": 9.0, "ns_per_byte": 20.0},
    "bottleneck": LINE,
    "delay_us": 2.0,
}


def report(live: Live, document: OptimizeOut) -> str:
    """The file, as it is downloaded."""
    answer = live.client.get(f"/ui/answers/{document.id}/report.html")
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith("attachment")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "script" not in policy
    return answer.text


@pytest.mark.usefixtures("native_kernels")
def test_it_has_all_of_the_answer(ask: Ask, live: Live) -> None:
    """Figures, stages, every fragment, pictures, strategies; nothing loaded."""
    document = ask(profile="myrinet-gam")
    text = report(live, document)
    words = unescape(re.sub(r"<[^>]*>", " ", text.split("<body>")[1]))
    assert "184.357 µs" in words
    assert "Profile myrinet-gam, revision 1" in words
    for stage in document.pipeline.stages:
        assert stage.name in words
    for size in document.fragment_bytes:
        assert f"{size:,}".replace(",", "\u202f") in words
    assert text.count('class="sluice-timeline"') == 1
    assert text.count('class="sluice-curves"') == 2
    assert re.search(r"<script|<link|<img|\ssrc=|@import|url\((?!#)", text) is None


def test_it_has_the_name_and_the_note(ask: Ask, live: Live) -> None:
    """As they are when it is made."""
    answer = ask(message_bytes=4099)
    named = {"name": "NIC <x2>", "note": "of\nnext year"}
    live.client.patch(f"/optimizations/{answer.id}", json=named)
    text = live.client.get(f"/ui/answers/{answer.id}/report.html").text
    assert "<h1>NIC &lt;x2&gt;</h1>" in text
    assert '<p class="noted">of\nnext year</p>' in text


def test_its_command_leads_to_the_same_schedule(ask: Ask, live: Live, tmp_path: Path) -> None:
    """As it stands in the report, without a server and without a profile."""
    document = ask(profile="gms", constraints={"max_fragment_bytes": 700})
    shown = re.search(r"<pre>(.*?)</pre>", report(live, document), re.DOTALL)
    assert shown is not None
    reported = unescape(shown[1]).replace(".venv/bin/sluice", f"{sys.executable} -m app.cli")
    reported = reported.replace("optimize -", "optimize - --json")
    ended = subprocess.run(
        ["sh", "-c", reported], capture_output=True, text=True, timeout=60, check=True, cwd=CHECKOUT
    )
    again, stored = json.loads(ended.stdout), json.loads(dump_json(document))
    for name in ("fragment_bytes", "latency_us", "pipeline", "constraints"):
        assert again[name] == stored[name]


@pytest.mark.parametrize(
    "question",
    [
        {"pipeline": {"stages": [LINE, {**LINE, "name": "b"}], "delay_us": 5.0}},
        {"aggregate": AGGREGATE},
        {"profile": "gms", "strategy": "hierarchical", "allow_refragmentation": True},
        {"message_bytes": 1},
        {"pipeline": {"stages": [{"name": "free", "overhead_us": 0.0, "ns_per_byte": 0.0}]}},
        {"message_bytes": 2**20, "strategy": "static", "static_bytes": 16},
    ],
    ids=["hostile", "aggregate", "levels", "one byte", "no time", "many fragments"],
)
def test_of_every_kind_of_answer(question: dict[str, Any], ask: Ask, live: Live) -> None:
    """Each has a report; names are text in it."""
    text = report(live, ask(**question))
    assert "<script" not in text
    assert text.count("</style>") == text.count("<style>")
    assert text.endswith("</html>\n")


def test_curves_leave_out_what_no_axis_holds() -> None:
    """Not a number, infinite, zero; and nothing where nothing is left."""
    points = ((1.0, 5.0), (2.0, nan), (3.0, inf), (4.0, 0.0), (5.0, -1.0), (6.0, 9.0))
    drawn = curves_element(_plot(Curve("<a> & b", points)))
    root = ElementTree.fromstring(drawn)
    path = next(one for one in root.iter() if "curve c0" in one.get("class", "") and one.get("d"))
    assert path.get("d", "").count("L") == 1
    assert curves_element(_plot(Curve("none", ((1.0, nan),)))) == ""
    assert curves_element(_plot()) == ""


@pytest.mark.parametrize("across", list(HorizontalAxis))
@pytest.mark.parametrize("upwards", list(VerticalAxis))
@pytest.mark.parametrize(
    "points",
    [
        ((1.0, 1.0),),
        tuple((float(2**i), 10.0**i) for i in range(40)),
        tuple((float(i), 1e-9 * i) for i in range(1, 60)),
        ((1.0, 1e12), (2.0, 1e12)),
    ],
    ids=["one point", "many decades", "small", "level"],
)
def test_curves_stay_inside_and_have_ticks(
    across: HorizontalAxis, upwards: VerticalAxis, points: tuple[tuple[float, float], ...]
) -> None:
    """Well-formed, labelled, every coordinate in the picture."""
    plot = CurvesPlot("t", across, upwards, (Curve("a", points), Curve("b", points, is_mark=True)))
    root = ElementTree.fromstring(curves_element(plot))
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    rings = [one for one in root.iter() if one.tag.endswith("circle")]
    assert len(rings) == len(points) + 1
    for ring in rings[:-1]:
        assert 0.0 <= float(ring.get("cx", "")) <= width
        assert 0.0 <= float(ring.get("cy", "")) <= height


def _plot(*curves: Curve) -> CurvesPlot:
    return CurvesPlot("t", HorizontalAxis.FRAGMENTS, VerticalAxis.LATENCY, curves)
