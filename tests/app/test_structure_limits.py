"""What a request may say of the overlap of a fit's stages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

SERIAL = (Path(__file__).resolve().parents[1] / "data" / "movers" / "serial.csv").read_bytes()
Place = tuple[str, ...]
REASON, SHARE = ("reason",), ("evidence", "overlap")


@pytest.fixture
def fit(client: httpx.Client) -> dict[str, Any]:
    """A fit whose begins show a structure."""
    found: dict[str, Any] = client.post("/fit", content=SERIAL).json()
    return found


def sent(client: httpx.Client, fit: dict[str, Any], place: Place, value: Any) -> httpx.Response:
    within = fit["overlap"]["structure"]
    for name in place[:-1]:
        within = within[name]
    within[place[-1]] = value
    body = json.dumps({"message_bytes": 65536, "fit": fit})
    headers = {"content-type": "application/json"}
    return client.post("/optimize", content=body.encode(), headers=headers)


@pytest.mark.parametrize(
    ("place", "value"),
    [(REASON, ""), (REASON, "x" * 300), (REASON, "naïve µs"), (SHARE, 0), (SHARE, 1.0)],
)
def test_the_ends_of_what_is_allowed(
    place: Place, value: Any, fit: dict[str, Any], client: httpx.Client
) -> None:
    answer = sent(client, fit, place, value)
    assert answer.is_success, answer.text


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (REASON, "x" * 301),
        (REASON, "x" * 10**6),
        (REASON, "two\nlines"),
        (REASON, "\x1b[31m"),
        (REASON, "\u202e"),
        (REASON, 7),
        (SHARE, -1e-9),
        (SHARE, 1.0001),
        (SHARE, 1e300),
        (SHARE, "0.5"),
        (SHARE, None),
    ],
)
def test_anything_else_is_refused_by_the_name_of_its_field(
    place: Place, value: Any, fit: dict[str, Any], client: httpx.Client
) -> None:
    answer = sent(client, fit, place, value)
    assert answer.status_code == 422, answer.text
    pointers = [one["pointer"] for one in answer.json()["errors"]]
    assert pointers == ["/".join(("/fit/overlap/structure", *place))]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_no_json(
    value: float, fit: dict[str, Any], client: httpx.Client
) -> None:
    answer = sent(client, fit, SHARE, value)
    assert answer.status_code in (400, 422), answer.text
