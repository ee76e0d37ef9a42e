"""The stored form of what messages cross, and of its verification: a versioned document each.

Floats are written by `repr` and so read back to the same bits. `kind` names a pipeline by its
stages from an aggregate, and leaves room for more. Reading a document that this version does not
know is refused: it was written by newer software.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from domain.aggregate import Aggregate
from domain.errors import Conflict
from domain.machine import Machine, StageRules, Window
from domain.model import Cost, CostModel
from domain.pipeline import FitRange, Pipeline, Stage
from domain.solution import Notice
from domain.verification import ModelVerdict, Verification, VerifiedSize

VERSION = 1


def dump_model(model: CostModel) -> str:
    """The document of a model: its kind, its costs by name, and its delay."""
    costs = {name: _of_cost(cost) for name, cost in model.costs().items()}
    known: dict[str, Any] = {**costs, "delay_us": model.delay_us, **model.words()}
    return _dump({"version": VERSION, "kind": model.kind, **known})


def load_model(text: str) -> CostModel:
    """The model of a document. Raises Conflict for a version or kind that is not known."""
    document = _load(text)
    load = _LOADED.get(document["kind"])
    if load is None:
        raise Conflict(f"the stored pipeline is of the unknown kind {document['kind']!r}")
    return load(document)


def dump_verification(found: Verification) -> str:
    """The document of a verification. When it was stored is a column beside it."""
    document = asdict(found)
    del document["verified_at"]
    return _dump({"version": VERSION, **document})


def load_verification(text: str, verified_at: datetime) -> Verification:
    """The verification of a document. Raises Conflict for a version that is not known."""
    document = _load(text)
    return Verification(
        ModelVerdict(document["verdict"]),
        document["message_bytes"],
        tuple(document["stages"]),
        tuple(VerifiedSize(**size) for size in document["sizes"]),
        document["offset_us"],
        tuple(map(_notice, document["reasons"])),
        verified_at,
    )


def _notice(stored: dict[str, Any]) -> Notice:
    values = tuple((name, value) for name, value in stored["values"])
    return Notice(stored["code"], stored["detail"], stored["stage"], values)


def _pipeline(document: dict[str, Any]) -> Pipeline:
    return Pipeline(tuple(map(_stage, document["stages"])), document["delay_us"])


def _machine(document: dict[str, Any]) -> Machine:
    rules = tuple(StageRules(**rules) for rules in document["rules"])
    windows = tuple(Window(**window) for window in document.get("windows", ()))
    return Machine(_pipeline(document), rules, windows)


def _aggregate(document: dict[str, Any]) -> Aggregate:
    costs = _stage(document["total"]), _stage(document["bottleneck"])
    return Aggregate(*costs, document["delay_us"], document.get("total_is_uncut", False))


_LOADED: Mapping[str, Callable[[dict[str, Any]], CostModel]] = {
    Pipeline.kind: _pipeline,
    Aggregate.kind: _aggregate,
    Machine.kind: _machine,
}


def _of_cost(cost: Cost) -> Any:
    return list(map(_of_stage, cost)) if isinstance(cost, tuple) else _of_stage(cost)


def _of_stage(stage: Stage) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": stage.name,
        "ranges": [asdict(part) for part in stage.ranges],
    }
    if stage.handoff_bytes is not None:
        document["handoff_bytes"] = stage.handoff_bytes
    return document


def _stage(stored: dict[str, Any]) -> Stage:
    ranges = tuple(FitRange(**part) for part in stored["ranges"])
    return Stage(stored["name"], ranges, stored.get("handoff_bytes"))


def _dump(document: dict[str, Any]) -> str:
    # ASCII on purpose: a name may hold characters that a text column refuses (NUL, surrogates).
    return json.dumps(document, separators=(",", ":"), ensure_ascii=True)


def _load(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    if document["version"] != VERSION:
        raise Conflict(
            f"the stored document has version {document['version']}, and this version of Sluice "
            f"reads {VERSION}: it was written by newer software"
        )
    return document
