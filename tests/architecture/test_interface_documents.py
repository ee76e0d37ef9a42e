"""Documents name all that may be sent and all that may come back: fields, words, options, views."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute

from app.main import create_app
from app.web.routes import _ROUTERS
from exports.targets.registry import TARGETS
from exports.targets.target import Target
from tests.app.serving import settings_for
from tests.architecture.documents import ROOT, code_words, document, documents
from tests.exports.test_targets import page_of

INTERFACE = create_app(settings_for("sqlite:///unused.db")).openapi()
PAGES = [one for one in documents() if one.name.startswith("docs/") and one.name.count("/") == 1]
# Fields of a fit's options and of a layer's document stand where these are explained.
OF_REQUESTS = "".join(document(f"docs/{name}.md").text for name in ("service", "fitting", "layers"))
A_FIT = "#/components/schemas/FitGiven"  # Nobody writes one: it is the answer of POST /fit.


def named(schema: dict[str, Any]) -> Iterator[str]:
    """The fields of what a schema describes, of all below it too."""
    seen = {A_FIT}
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            if (reference := node.get("$ref")) and reference not in seen:
                seen.add(reference)
                waiting.append(INTERFACE["components"]["schemas"][reference.rpartition("/")[2]])
            properties = node.get("properties", {})
            yield from properties
            waiting += properties.values()
            waiting += [node[key] for key in ("anyOf", "oneOf", "allOf", "items") if key in node]


@pytest.mark.parametrize(
    ("method", "path"),
    [(method, path) for path, operations in INTERFACE["paths"].items() for method in operations],
)
def test_all_that_an_operation_takes_is_documented(method: str, path: str) -> None:
    """Parameters and headers, and the fields of a body down to the last one."""
    operation = INTERFACE["paths"][path][method]
    sent = {parameter["name"] for parameter in operation.get("parameters", [])}
    for body in operation.get("requestBody", {}).get("content", {}).values():
        sent |= set(named(body["schema"]))
    assert {name for name in sent if not re.search(rf"\b{re.escape(name)}\b", OF_REQUESTS)} == set()


def words(node: Any) -> Iterator[str]:
    """Every word that a field takes or gives out of a few."""
    if isinstance(node, dict):
        for one in (*node.get("enum", ()), node.get("const")):
            if isinstance(one, str):
                yield one
        for below in node.values():
            yield from words(below)
    elif isinstance(node, list):
        for below in node:
            yield from words(below)


def test_every_word_of_the_interface_is_explained() -> None:
    """States, verdicts, decisions, kinds, choices: between backticks, or in an example as JSON."""
    explained = set().union(*(code_words(one.text) for one in PAGES))
    explained |= {word for one in PAGES for word in re.findall(r'"([a-z_]+)"', one.text)}
    assert set(words(INTERFACE)) - explained == set()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_option_of_a_target_is_on_its_page(target: Target) -> None:
    """With all that may be chosen."""
    page = document(f"docs/{page_of(target)}").text
    marked = " ".join(code_words(page))
    for option in target.options:
        assert option.name in code_words(page)
        missing = [one for one in option.choices or () if not re.search(rf"\b{one}\b", marked)]
        assert missing == []


def test_every_view_of_the_page_is_documented() -> None:
    """Its address; parts of a view and files come with it."""
    documented = re.sub(r"\{\w+\}", "{}", document("docs/web.md").text)
    part = re.compile(r"/(parts|assets)/|\.(json|csv|svg|html)$|/(result|text|timeline)$")
    views = {
        re.sub(r"\{\w+\}", "{}", route.path)
        for router in _ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and route.methods == {"GET"} and not part.search(route.path)
    }
    assert {view for view in views if f"`{view}" not in documented} == {"/ui/optimize"}  # a form's


def test_every_variable_that_a_client_reads_is_documented() -> None:
    """The C library, NCCL's plugin, the Python client and the mover: strings in their sources."""
    sources = [
        path
        for folder in ("clients/c/src", "clients/c/nccl", "clients/c/mover", "clients/python/src")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".c", ".py") and "tests" not in path.parts
    ]
    read = {name for path in sources for name in re.findall(r'"(SLUICE_\w+)"', path.read_text())}
    assert read >= {"SLUICE_TABLE", "SLUICE_URL", "SLUICE_NCCL_TABLE"}
    assert read - set().union(*(code_words(one.text) for one in PAGES)) == set()


def test_the_map_leads_to_every_page() -> None:
    """Pages of targets by way of the page of exports."""
    linked = document("docs/README.md").text + document("docs/exports.md").text
    names = {one.path.name for one in PAGES} - {"README.md"}
    assert {name for name in names if not re.search(rf"\({re.escape(name)}[)#]", linked)} == set()
