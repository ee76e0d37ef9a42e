"""The workbench recognises own transfers among pasted measurements, and shows what they decide."""

from __future__ import annotations

import httpx
import pytest

from tests.app.serving import Live
from tests.app.test_own_transfers import ALIKE, FASTER, HEADER


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
