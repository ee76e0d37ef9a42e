"""Names with characters that databases, files or terminals cannot hold, on each database."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

from tests.app.serving import MYRINET, Live

ODD = ("a\0b", "\0", "a\x1bb", "a\x85b", "\u202eb", "\ud800")  # NUL, ESC, NEL, right-to-left, half


def named(name: str) -> dict[str, Any]:
    """A pipeline whose first stage has this name."""
    first, *rest = MYRINET["stages"]
    return {"stages": [{**first, "name": name}, *rest]}


def test_no_database_fails_over_a_name(own: Live) -> None:
    """A stage's name is kept as it was given, or no text at all; a profile's is refused."""
    for number, name in enumerate(ODD):
        asked = {"pipeline": named(name), "message_bytes": 4096}
        answer = own.client.post("/optimize", content=json.dumps(asked))
        kept = {"name": f"odd-{number}", "pipeline": named(name)}
        saved = own.client.post("/profiles", content=json.dumps(kept))
        refused = own.client.post("/profiles", content=json.dumps({**kept, "name": name}))
        assert refused.status_code in (400, 422)
        if name == "\ud800":  # JSON in UTF-8 has no halves of characters
            assert (answer.status_code, saved.status_code) == (400, 400)
            continue
        assert (answer.status_code, saved.status_code) == (200, 201), name
        there = own.client.get(f"/profiles/odd-{number}").json()
        assert there["pipeline"]["stages"][0]["name"] == name
        page = own.client.get(f"/ui/answers/{answer.json()['id']}")
        assert page.status_code == 200
        assert "\0" not in page.text


def test_addresses_with_such_names(own: Live) -> None:
    """An ordinary refusal, or a page that finds nothing."""
    places = ("/ui/profiles/{}", "/profiles/{}", "/ui/profiles?q={}", "/ui/answers?profile={}")
    names = ("%00", "a%00b", "%ff", "%ed%a0%80", "%1b%5b2J")
    for place, name in product(places, names):
        answer = own.client.get(place.format(name))
        assert answer.status_code in (200, 400, 404, 422), (name, answer.text)
        assert "\0" not in answer.text
