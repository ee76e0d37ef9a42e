"""The question of a stored answer, as a request that gives the answer again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import orjson

from app.schemas.answers import current_of
from app.schemas.base import dump_json
from app.schemas.stages import given_aggregate
from contract.optimize import OptimizeOut

_UNLIMITED = {
    "min_fragment_bytes": 1,
    "max_fragment_bytes": None,
    "alignment_bytes": 1,
    "max_fragments": None,
}


def question_of(answer: OptimizeOut) -> dict[str, Any]:
    """Return the body for POST /optimize, without what is left to its default anyway.

    It names the strategy that gave the schedule: a question with `auto` gets the same one.
    """
    return dict(_fields(answer))


def whole_question_of(answer: OptimizeOut) -> dict[str, Any]:
    """Return the same with costs in place of a profile's name, or a fit in place of where it is
    stored: it needs no store.
    """
    fit = None if answer.fit is None else replace(answer.fit, fit_id=None)
    return question_of(replace(answer, profile=None, fit=fit))


def _fields(answer: OptimizeOut) -> Iterator[tuple[str, Any]]:
    yield "message_bytes", answer.message_bytes
    yield _source(answer)
    yield "strategy", str(answer.strategy)
    if answer.strategy == "static":
        yield "static_bytes", answer.fragment_bytes[0]
    limits = asdict(answer.constraints)
    given = {name: limits[name] for name, default in _UNLIMITED.items() if limits[name] != default}
    if given:
        yield "constraints", given
    if answer.allow_refragmentation:
        yield "allow_refragmentation", True
    current = current_of(answer)
    if current is not None:
        is_whole = current >= answer.message_bytes
        yield "uncertainty", {"current": "whole" if is_whole else {"repeat": current}}


def _source(answer: OptimizeOut) -> tuple[str, Any]:
    if answer.profile is not None:
        return "profile", answer.profile.reference
    if answer.fit is not None:
        fit_id = answer.fit.fit_id
        return ("fit", _plain(answer.fit)) if fit_id is None else ("fit_id", fit_id)
    if answer.aggregate is not None:
        return "aggregate", _plain(given_aggregate(answer.aggregate))
    return "pipeline", _plain(answer.pipeline)


def _plain(part: object) -> Any:
    """Return a part as JSON has it: objects and lists."""
    return orjson.loads(dump_json(part))


def json_lines(question: dict[str, Any]) -> str:
    """Return a question as JSON, a line for each field and for each stage."""
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
