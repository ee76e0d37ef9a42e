"""The workbench recognises own transfers among pasted measurements, and shows what they decide."""

from __future__ import annotations

import httpx
import pytest

from tests.app.serving import Live
from tests.app.test_own_transfers import ALIKE, FASTER, HEADER
from tests.app.test_transfers_decide import MESSAGE, STAGES, TOOK_MS, rows_of


def pasted(live: Live, text: str, **fields: str) -> httpx.Response:
    form = {"source": "trace", "trace": text, "message": "64 MiB", **fields}
    return live.client.post("/ui/optimize", data=form)


def test_the_decision_and_every_size_are_shown(live: Live) -> None:
    answer = pasted(live, FASTER, current="512 KiB")
    assert answer.status_code == 200
    assert "Set 4 MiB: 25 to 31 % faster than your 512 KiB" in answer.text
    assert "512 KiB × 128 (yours)" in answer.text
    assert "Regret at most" in answer.text
    assert 'name="trace"' in answer.text


def test_the_message_and_the_size_in_use_need_not_be_named(live: Live) -> None:
    answer = pasted(live, ALIKE, message="")
    assert answer.status_code == 200
    assert "Do not cut" not in answer.text
    assert "Own transfers of 64 MiB" in answer.text


@pytest.mark.parametrize(
    ("text", "fields", "words"),
    [
        (FASTER, {"message": "1 MiB"}, "say nothing of a message of 1 MiB"),
        (HEADER + "64MiB,x,1\n", {}, "line 2, fragment_bytes: expected a size"),
        (FASTER, {"current": "4 QiB"}, "expected a size such as"),
    ],
)
def test_mistakes_are_shown_at_their_fields(
    text: str, fields: dict[str, str], words: str, live: Live
) -> None:
    answer = pasted(live, text, **fields)
    assert answer.status_code == 422
    assert words in answer.text


def test_a_reason_is_no_markup(live: Live) -> None:
    rows = "64MiB,4MiB,7250,,ok\n64MiB,8MiB,,<script>alert(1)</script>,refused\n"
    text = f"{HEADER.strip()},reason,status\n{rows}"
    answer = pasted(live, text)
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    assert "&lt;script&gt;alert" in answer.text


@pytest.mark.parametrize("relative", [{"relative": 0.1}, {}])
def test_after_it_failed_no_page_of_an_answer_sets_a_size_by_that_model(
    relative: dict[str, float], live: Live
) -> None:
    client = live.client
    client.post("/profiles", json={"name": "failed", "pipeline": {"stages": STAGES}})
    verified = client.post("/profiles/failed/verification", json={"transfers": rows_of(TOOK_MS)})
    assert verified.json()["verification"]["verdict"] == "does_not_hold"

    def shown(message_bytes: int) -> str:
        current = {**relative, "current": {"repeat": 64 << 10}}
        body = {"message_bytes": message_bytes, "profile": "failed", "uncertainty": current}
        identifier = client.post("/optimize", json=body).json()["id"]
        text = client.get(f"/ui/answers/{identifier}").text
        return text[text.index('id="set-this"') : text.index('<dl class="figures"')]

    other = shown(4 << 20)
    assert '<p class="headline">Measure first</p>' in other
    assert "sluice sweep --bytes 4MiB" in other
    assert "of this model" not in other
    assert "in 90 % of the draws" not in other
    assert '<p class="headline">Repeat 1 MiB</p>' in shown(MESSAGE)
