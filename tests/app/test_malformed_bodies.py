"""Every POST and PUT against the corpus of malformed bodies (tests/app/malformed.py)."""

from __future__ import annotations

import json

import pytest

from app.schemas.base import read_output
from contract.limits import MAX_REPORTED
from contract.problem import ProblemOut
from tests.app.malformed import MARK, bodies
from tests.app.serving import MYRINET, Live

MAX_ANSWER_BYTES = 16 * 1024
PIPELINE = json.dumps({**MYRINET, "delay_us": 777})

# The operation, a body that it accepts, and the number in it that the corpus spoils.
OPERATIONS = {
    "optimize": ("POST", "/optimize", f'{{"message_bytes": 4096, "pipeline": {PIPELINE}}}', "777"),
    "optimize size": ("POST", "/optimize", '{"message_bytes": 999, "profile": "gms"}', "999"),
    "simulate": (
        "POST",
        "/simulate",
        f'{{"fragment_bytes": [999, 1], "pipeline": {PIPELINE}}}',
        "999",
    ),
    "compare": (
        "POST",
        "/compare",
        f'{{"message_bytes": [999], "strategies": ["single"], "pipeline": {PIPELINE}}}',
        "999",
    ),
    "audit": (
        "POST",
        "/audit",
        f'{{"setting": {{"static_bytes": 999}}, "pipeline": {PIPELINE}}}',
        "999",
    ),
    "profiles": ("POST", "/profiles", f'{{"name": "corpus", "pipeline": {PIPELINE}}}', "777"),
    "revision": ("PUT", "/profiles/gms", f'{{"pipeline": {PIPELINE}}}', "777"),
    "current": ("POST", "/profiles/gms/current", '{"revision": 999}', "999"),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_malformed_bodies_are_refused_and_store_nothing(live: Live, operation: str) -> None:
    """4xx, a problem document of at most 16 KiB and 20 errors, the input never in it."""
    method, path, valid, number = OPERATIONS[operation]
    before = live.stored()
    for name, body in bodies(valid.encode(), number.encode()):
        response = live.client.request(
            method, path, content=body, headers={"content-type": "application/json"}
        )
        where = f"{operation}: {name}"
        assert response.status_code in (400, 413, 422), f"{where}: {response.status_code}"
        assert response.headers["content-type"] == "application/problem+json", where
        assert len(response.content) <= MAX_ANSWER_BYTES, where
        problem = read_output(ProblemOut, response.content)
        assert problem.status == response.status_code, where
        assert len(problem.errors) <= MAX_REPORTED, where
        reported = response.text.replace(f"/{MARK}", "")  # the place of a fault is not its value
        assert MARK not in reported, where
    assert live.stored() == before


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_the_corpus_spoils_is_accepted_as_it_is(live: Live, operation: str) -> None:
    """Else the corpus would be refused for another reason than its own."""
    method, path, valid, number = OPERATIONS[operation]
    assert valid.count(number) == 1
    if method == "PUT" or path == "/profiles" or "current" in path:
        valid = valid.replace("corpus", "corpus-valid").replace('"revision": 999', '"revision": 1')
        path = path.replace("/profiles/gms", "/profiles/gms-of-corpus")
        live.client.post("/profiles", json={"name": "gms-of-corpus", "pipeline": MYRINET})
    response = live.client.request(
        method, path, content=valid, headers={"content-type": "application/json"}
    )
    assert response.status_code in (200, 201), response.text


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ('{"message_bytes": 0, "profile": "gms"}', 422, "/message_bytes"),
        ('{"message_bytes": -5, "profile": "gms"}', 422, "/message_bytes"),
        ('{"message_bytes": 281474976710657, "profile": "gms"}', 422, "/message_bytes"),
        ('{"message_bytes": 1.5, "profile": "gms"}', 422, "/message_bytes"),
        ('{"message_bytes": NaN, "profile": "gms"}', 422, "/message_bytes"),
        ('{"profile": "gms"}', 422, "/message_bytes"),
        ('{"message_bytes": 1, "profile": "gms", "strategy": "best"}', 422, "/strategy"),
        ('{"message_bytes": 1, "profile": "gms", "time_limit_s": 0}', 422, "/time_limit_s"),
        ('{"message_bytes": 1, "profile": "gms", "relative_gap": 1.5}', 422, "/relative_gap"),
        ('{"message_bytes": 1, "profile": "gms", "extra": 1}', 422, "/extra"),
        ('{"message_bytes": 1, "profile": "No"}', 422, "/profile"),
        (
            '{"message_bytes": 1, "pipeline": {"stages": '
            '[{"name": "a", "overhead_us": 1e999, "ns_per_byte": 1}]}}',
            422,
            "/pipeline/stages/0/overhead_us",
        ),
        (
            '{"message_bytes": 1, "pipeline": {"stages": '
            '[{"name": "a", "overhead_us": 1, "ns_per_byte": -1}]}}',
            422,
            "/pipeline/stages/0/ns_per_byte",
        ),
        (
            '{"message_bytes": 1, "pipeline": {"stages": '
            '[{"name": "", "overhead_us": 1, "ns_per_byte": 1}]}}',
            422,
            "/pipeline/stages/0/name",
        ),
        (
            '{"message_bytes": 1, "pipeline": {"stages": [{"name": "a", "ranges": '
            '[{"up_to_bytes": 9, "overhead_us": 1, "ns_per_byte": 1}]}]}}',
            422,
            "/pipeline/stages/0/ranges",
        ),
        (
            '{"message_bytes": 1, "profile": "gms", "constraints": {"alignment_bytes": 0}}',
            422,
            "/constraints/alignment_bytes",
        ),
        ('{"message_bytes": 1, "profile": "gms", "profile": "gms"}', 422, "/profile"),
        (
            '{"message_bytes": 1, "note": "a:b", "pipeline": {"stages": '
            '[{"name": "a", "overhead_us": 1, "ns_per_byte": 1}, {"n\\u0061me": "\\u003a", '
            '"overhead_us": 1, "ns_per_byte": 1, "name": "b"}]}}',
            422,
            "/pipeline/stages/1/name",
        ),
        ("{", 400, None),
        ("", 400, None),
    ],
)
def test_the_field_and_the_rule_are_named(
    live: Live, body: str, status: int, pointer: str | None
) -> None:
    response = live.client.post(
        "/optimize", content=body, headers={"content-type": "application/json"}
    )
    assert response.status_code == status
    pointers = [error["pointer"] for error in response.json()["errors"]]
    assert (pointer in pointers) if pointer else (pointers == [])
    assert response.json()["detail"]
