"""What the page of a profile says of it: the parts of the terminal, and forms for every model."""

from __future__ import annotations

import re
from html import unescape

import httpx
import pytest

from app.schemas.base import dump_json, read_output
from app.verbs.profiles import show
from contract.pipeline import PipelineOut

AGGREGATE = {
    "total": {"overhead_us": 20.0, "ns_per_byte": 40.0},
    "bottleneck": {"overhead_us": 5.0, "ns_per_byte": 25.0},
}


def test_the_page_says_what_the_terminal_does(client: httpx.Client) -> None:
    """Stages with their rates, which of them hand bytes on, and the delay."""
    sent = client.get("/profiles/trapeze").json()["pipeline"]
    pipeline = read_output(PipelineOut, dump_json(sent))
    said = [part for part in show.costs(pipeline, None) if isinstance(part, str)]
    page = client.get("/ui/profiles/trapeze").text
    assert len(said) == 3
    for words in said:
        assert f"<p>{words}</p>" in page
    assert '<td class="number">0.1280</td>' in page


def test_what_is_seen_from_outside_has_tables_and_exports(client: httpx.Client) -> None:
    """As the interface takes them."""
    body = {"name": "outside", "aggregate": AGGREGATE}
    assert client.post("/profiles", json=body).status_code == 201
    page = client.get("/ui/profiles/outside").text
    assert 'action="/ui/profiles/outside@1/tables"' in page
    assert "/ui/profiles/outside@1/exports/ucx" in page
    asked = {"max_message": "2 KiB", "tolerance": "5 %"}
    started = client.post("/ui/profiles/outside/tables", data=asked)
    assert started.status_code == 303
    assert client.get(started.headers["location"]).status_code == 200


@pytest.mark.parametrize(
    ("target", "query", "words"),
    [
        ("c-header", "objective=least", "objective: expected one of"),
        ("c-header", "min_message=a", "Min message: expected a size"),
        ("c-header", "option.colour=red", "c-header has no option 'colour'."),
        ("c-header", "option.prefix=X", ""),
        ("nccl-buffsize", "objective=least", ""),
    ],
)
def test_a_refused_export_says_why_where_its_form_has_no_such_field(
    client: httpx.Client, target: str, query: str, words: str
) -> None:
    """In a notice; what a field has stands at the field alone."""
    page = client.get(f"/ui/profiles/trapeze/exports/{target}?{query}")
    assert page.status_code == 422
    text = unescape(page.text)
    found = re.search(r'<div class="notice bad" role="alert"><p>(.*?)</p>', text)
    assert (found[1] if found else "").startswith(words)
    assert bool(found) == bool(words)
    assert ('class="mistake"' in text) != bool(words)
