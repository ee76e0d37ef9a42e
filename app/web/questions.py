"""The question that leads to a stored answer's schedule again: a body for POST /optimize."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import orjson

from app.schemas.base import dump_json
from app.schemas.optimize import OptimizeOut
from app.schemas.stages import given_aggregate

_UNLIMITED = {
    "min_fragment_bytes": 1,
    "max_fragment_bytes": None,
    "alignment_bytes": 1,
    "max_fragments": None,
}


def question_of(answer: OptimizeOut) -> dict[str, Any]:
    """The body for POST /optimize, without what is left to its default anyway.

    It names the strategy that gave the schedule: whoever asked with `auto` gets the same one.
    """
    return dict(_fields(answer))


def whole_question_of(answer: OptimizeOut) -> dict[str, Any]:
    """The same with the costs themselves in place of a profile's name: it needs no store."""
    return question_of(replace(answer, profile=None))


def _fields(answer: OptimizeOut) -> Iterator[tuple[str, Any]]:
    yield "message_bytes", answer.message_bytes
    yield _source(answer)
    yield "strategy", str(answer.strategy)
    if answer.strategy == "static":
        yield "static_bytes", answer.fragment_bytes[0]
    limits = asdict(answer.constraints)
    given = {name: limits[name] for name, usual in _UNLIMITED.items() if limits[name] != usual}
    if given:
        yield "constraints", given
    if answer.allow_refragmentation:
        yield "allow_refragmentation", True


def _source(answer: OptimizeOut) -> tuple[str, Any]:
    if answer.profile is not None:
        return "profile", answer.profile.reference
    if answer.aggregate is not None:
        return "aggregate", _plain(given_aggregate(answer.aggregate))
    return "pipeline", _plain(answer.pipeline)


def _plain(part: object) -> Any:
    """As JSON has it: objects and lists."""
    return orjson.loads(dump_json(part))


def json_lines(question: dict[str, Any]) -> str:
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
