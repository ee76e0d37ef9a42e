"""The question that leads to a stored answer's schedule again: a body for POST /optimize."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]

_UNLIMITED = {
    "min_fragment_bytes": 1,
    "max_fragment_bytes": None,
    "alignment_bytes": 1,
    "max_fragments": None,
}


def question_of(document: Document) -> dict[str, Any]:
    """OptimizeIn out of an OptimizeOut, without what is left to its default anyway.

    It names the strategy that gave the schedule: whoever asked with `auto` gets the same one.
    """
    return dict(_fields(document))


def whole_question_of(document: Document) -> dict[str, Any]:
    """The same with the costs themselves in place of a profile's name: it needs no store."""
    return question_of({**document, "profile": None})


def _fields(document: Document) -> Iterator[tuple[str, Any]]:
    yield "message_bytes", document["message_bytes"]
    yield from _source(document)
    yield "strategy", document["strategy"]
    if document["strategy"] == "static":
        yield "static_bytes", document["fragment_bytes"][0]
    limits = document["constraints"]
    given = {name: limits[name] for name, usual in _UNLIMITED.items() if limits[name] != usual}
    if given:
        yield "constraints", given
    if document["allow_refragmentation"]:
        yield "allow_refragmentation", True


def _source(document: Document) -> Iterator[tuple[str, Any]]:
    profile, aggregate = document["profile"], document["aggregate"]
    if profile is not None:
        yield "profile", f"{profile['name']}@{profile['revision']}"
    elif aggregate is not None:
        names = ("total", "bottleneck", "delay_us")
        yield "aggregate", {name: aggregate[name] for name in names}
    else:
        yield "pipeline", document["pipeline"]


def json_lines(question: Document) -> str:
    """A question as JSON, a line for each field and for each stage."""
    return (
        "{\n" + ",\n".join(f"  {_dump(key)}: {_field(question[key])}" for key in question) + "\n}"
    )


def _field(value: Any) -> str:
    if not isinstance(value, dict) or "stages" not in value:
        return _dump(value)
    stages = ",\n".join(f"      {_dump(stage)}" for stage in value["stages"])
    others = "".join(
        f",\n    {_dump(key)}: {_dump(value[key])}" for key in value if key != "stages"
    )
    return f'{{\n    "stages": [\n{stages}\n    ]{others}\n  }}'


def _dump(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)
