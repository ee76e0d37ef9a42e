"""The OpenAPI document against what the service takes and gives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from app.main import create_app
from contract.declare import Input, Sparse, all_whole, whole
from contract.rules import decimals_to
from tests.app.serving import settings_for

OPERATIONS = {
    ("POST", "/optimize"),
    ("GET", "/optimizations"),
    ("GET", "/optimizations/{id}"),
    ("PATCH", "/optimizations/{id}"),
    ("GET", "/optimizations/{id}/explanation"),
    ("POST", "/compare"),
    ("POST", "/audit"),
    ("POST", "/audit"),
    ("POST", "/compose"),
    ("POST", "/measurement-plans"),
    ("GET", "/layers"),
    ("GET", "/layers/{name}"),
    ("POST", "/layer-costs"),
    ("POST", "/hide"),
    ("GET", "/hide/{id}"),
    ("POST", "/thresholds"),
    ("POST", "/crossover"),
    ("POST", "/simulate"),
    ("POST", "/fit"),
    ("GET", "/fits/{id}"),
    ("GET", "/fits/{id}/plot"),
    ("GET", "/traces/{digest}"),
    ("GET", "/profiles"),
    ("POST", "/profiles"),
    ("GET", "/profiles/{name}"),
    ("PUT", "/profiles/{name}"),
    ("DELETE", "/profiles/{name}"),
    ("GET", "/profiles/{name}/revisions"),
    ("POST", "/profiles/{name}/current"),
    ("POST", "/profiles/{name}/verification"),
    ("GET", "/profiles/{name}/schedule"),
    ("POST", "/profiles/{name}/tables"),
    ("GET", "/profiles/{name}/tables"),
    ("GET", "/profiles/{name}/table"),
    ("POST", "/profiles/{name}/table"),
    ("GET", "/tables/{digest}"),
    ("GET", "/exports"),
    ("GET", "/profiles/{name}/exports/{target}"),
    ("GET", "/optimizations/{id}/exports/{target}"),
    ("GET", "/jobs/{id}"),
    ("GET", "/jobs/{id}/events"),
    ("DELETE", "/jobs/{id}"),
    ("GET", "/keys"),
    ("POST", "/keys"),
    ("POST", "/keys/{id}/rotation"),
    ("DELETE", "/keys/{id}"),
    ("GET", "/limits"),
    ("GET", "/healthz"),
    ("GET", "/changes"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The document; nothing has to run for it."""
    return create_app(settings_for("sqlite:///never-opened.db")).openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_every_operation_is_there(document: dict[str, Any]) -> None:
    assert {(method, path) for method, path, _ in operations(document)} == OPERATIONS


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    found = set(references(document))
    assert found
    for reference in found:
        node: Any = document
        for step in reference.removeprefix("#/").split("/"):
            node = node[step]


def test_schemas_have_names_of_their_own_and_are_used(document: dict[str, Any]) -> None:
    """Two classes of one name would be distinguished by the modules that they are in."""
    names = set(document["components"]["schemas"])
    assert {name for name in names if not name.isalnum()} == set()
    assert {reference.rpartition("/")[2] for reference in references(document)} >= names


def test_every_refusal_is_a_problem_document(document: dict[str, Any]) -> None:
    """And every operation with a body says that it refuses with 400, 413, 415 and 422."""
    for method, path, operation in operations(document):
        for status, response in operation["responses"].items():
            if status.startswith(("4", "5")):
                assert list(response["content"]) == ["application/problem+json"], (method, path)
        if "requestBody" in operation:
            assert {"400", "413", "415", "422", "503"} <= operation["responses"].keys()


def test_outputs_have_no_defaults(document: dict[str, Any]) -> None:
    """Every field of an output is required, but those that are only there where they say something,
    and no others may come.
    """
    schemas = document["components"]["schemas"]
    outputs = {name: schema for name, schema in schemas.items() if name.endswith("Out")}
    assert len(outputs) > 20
    sparse = {kind.__name__ for kind in Sparse.__subclasses__()}
    for name, schema in outputs.items():
        rest = sorted(set(schema["properties"]) - set(schema["required"]))
        unsaid = [field for field in rest if "default" in schema["properties"][field]]
        assert rest == (unsaid if name in sparse else []), name
        assert schema["additionalProperties"] is False, name


def test_inputs_are_closed(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    inputs = {name: schema for name, schema in schemas.items() if name.endswith("In")}
    assert len(inputs) >= 8
    assert all(schema["additionalProperties"] is False for schema in inputs.values())


def test_operations_have_names_and_words(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names))
    assert all(operation["description"] for _, _, operation in operations(document))


def integers_that_refuse_floats(node: object, guarded: bool = False) -> Iterator[object]:
    """Yield every integer of a core schema that no validator turns 4096.0 into 4096 for."""
    if isinstance(node, dict):
        if node.get("type") == "int" and not guarded:
            yield node
        if node.get("type") == "function-before":
            guarded = guarded or node["function"]["function"] in {whole, all_whole}
        for key, value in node.items():
            if key not in {"serialization", "metadata", "config"}:
                yield from integers_that_refuse_floats(value, guarded)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from integers_that_refuse_floats(value, guarded)


def inputs_below(kind: type[Input]) -> Iterator[type[Input]]:
    for below in kind.__subclasses__():
        yield below
        yield from inputs_below(below)


def test_whole_numbers_may_be_written_with_a_point() -> None:
    """JSON knows one kind of number: 4096.0 is the integer that a schema allows."""
    kinds = set(inputs_below(Input))
    assert len(kinds) > 20
    found = {
        kind.__name__
        for kind in kinds
        if any(integers_that_refuse_floats(TypeAdapter[Any](kind).core_schema))
    }
    assert found == set()


@given(st.integers(0, 2**70), st.integers(0, 2**70))
def test_patterns_of_numbers_end_where_they_say(limit: int, value: int) -> None:
    pattern = re.compile(decimals_to(limit))
    for one in (value, limit, limit + 1, max(0, limit - 1), value % (limit + 1)):
        assert bool(pattern.search(str(one))) == (one <= limit)
    assert not pattern.search(f"0{value}")
    assert not pattern.search("")
