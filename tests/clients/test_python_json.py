"""Requests and answers of the Python clients as JSON: what is written is read again as it was."""

from __future__ import annotations

import importlib
import json
import pkgutil
from dataclasses import MISSING, Field, asdict, fields
from itertools import combinations
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from sluice_client import (
    ComposedStageIn,
    LineStageIn,
    MeasurementIn,
    PipelineIn,
    RangeIn,
    RangesStageIn,
    UnexpectedAnswer,
    contract,
)
from sluice_client.contract.declare import Input, Output, Sparse, default_of, wire_name
from sluice_client.contract.fit import FittedPipelineOut
from sluice_client.contract.jobs import AnyJobOut, LayerJobOut
from sluice_client.contract.notices import NoticeOut
from sluice_client.contract.optimize import StoredOptimizeOut
from sluice_client.contract.pipeline import (
    LineStageOut,
    PipelineOut,
    RangeOut,
    RangesStageOut,
    StageOut,
    WindowIn,
)
from sluice_client.contract.schedule import TableScheduleOut
from sluice_client.contract.service import ReadyOut
from sluice_client.contract.simulate import DeliveredOut, PricedCutOut, SimulateOut
from sluice_client.dataclass_json import as_json, from_json

MODULES = [
    importlib.import_module(one.name)
    for one in pkgutil.iter_modules(contract.__path__, f"{contract.__name__}.")
]
CLASSES = [
    one
    for module in MODULES
    for one in vars(module).values()
    if isinstance(one, type)
    and issubclass(one, (Input, Output))
    and one not in (Input, Output, Sparse)
    and one.__module__ == module.__name__
]


def value_of(hint: Any, *, whole: bool) -> Any:
    """A value of this annotation; all optional parts of it where it is to be whole."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, type(int | None)):
        return None if type(None) in inner and not whole else value_of(inner[0], whole=whole)
    if origin is Literal:
        return inner[0]
    if origin is tuple and inner[1:] != (...,):
        return tuple(value_of(one, whole=whole) for one in inner)
    if origin in (tuple, list):
        return origin([value_of(inner[0], whole=whole)] * 2)
    if origin is dict:
        return {"a": value_of(inner[1], whole=whole)}
    plain = {int: 3, float: 0.5, str: "x", bool: True}
    return plain[hint] if hint in plain else made(hint, whole=whole)


def made(kind: Any, *, whole: bool = True) -> Any:
    """An object of this class, its optional fields given or left out."""
    hints = get_type_hints(kind)

    def is_given(each: Field[Any]) -> bool:
        return whole or default_of(each) is MISSING

    given = {
        each.name: value_of(hints[each.name], whole=whole)
        for each in fields(kind)
        if is_given(each)
    }
    return kind(**given)


def as_in_a_body(fields_of: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of an object by the names that bodies have."""
    return {wire_name(name): value for name, value in fields_of}


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("kind", CLASSES, ids=lambda one: one.__name__)
def test_everything_that_is_declared_is_read_as_it_was_written(kind: type, whole: bool) -> None:
    """Whether optional fields are there or not, and whether defaults are sent or left out."""
    value = made(kind, whole=whole)
    for document in (as_json(value), asdict(value, dict_factory=as_in_a_body)):
        read: Any = from_json(kind, json.loads(json.dumps(document)))
        assert repr(read) == repr(value)  # not a number is not equal to itself


def test_the_classes_are_those_of_the_contract() -> None:
    """All of it, in the package itself."""
    assert len(CLASSES) >= 200
    assert {one.__module__.rpartition(".")[0] for one in CLASSES} == {"sluice_client.contract"}


@pytest.mark.parametrize(
    "form",
    [
        StageOut,
        StoredOptimizeOut,
        AnyJobOut,
        TableScheduleOut | StoredOptimizeOut,
        DeliveredOut | SimulateOut | PricedCutOut,
    ],
)
def test_of_a_union_the_class_is_found_that_was_sent(form: Any) -> None:
    """By the fields that have to be there, in whatever order the classes are named."""
    for kind in get_args(form):
        for whole in (True, False):
            value = made(kind, whole=whole)
            assert from_json(form, as_json(value)) == value


def test_no_two_classes_of_a_union_want_the_same_fields() -> None:
    """Else a document would not say which of them it is."""
    for kind in CLASSES:
        for hint in get_type_hints(kind).values():
            given = [one for one in get_args(hint) if isinstance(one, type) and one in CLASSES]
            wanted = [
                {each.name for each in fields(one) if default_of(each) is MISSING} for one in given
            ]
            assert all(one != other for one, other in combinations(wanted, 2)), kind


def test_fields_that_say_their_defaults_are_left_out() -> None:
    """In any depth; one that has to be said is said, null too."""
    stages: list[LineStageIn | RangesStageIn] = [
        LineStageIn(overhead_us=1.0, ns_per_byte=2.0),
        RangesStageIn(ranges=[RangeIn(overhead_us=1.0, ns_per_byte=2.0)], handoff_bytes=8),
    ]
    assert as_json(PipelineIn(stages=stages)) == {
        "stages": [
            {"overhead_us": 1.0, "ns_per_byte": 2.0},
            {"ranges": [{"overhead_us": 1.0, "ns_per_byte": 2.0}], "handoff_bytes": 8},
        ]
    }
    assert as_json(RangeOut(None, 1.0, 2.0))["up_to_bytes"] is None


def test_an_answers_pipeline_is_a_requests() -> None:
    """Its stages in both forms, handing bytes on or not."""
    line = {"name": "a", "overhead_us": 1.0, "ns_per_byte": 2.0}
    ranged = {"name": "b", "ranges": [{"up_to_bytes": None, "overhead_us": 1, "ns_per_byte": 2.5}]}
    stages = [line, ranged, {**line, "handoff_bytes": 8}, {**ranged, "handoff_bytes": 8}]
    answered = from_json(PipelineOut, {"stages": stages, "delay_us": 0})
    assert [type(one) for one in answered.stages] == [LineStageOut, RangesStageOut] * 2
    assert [one.handoff_bytes for one in answered.stages] == [None, None, 8, 8]
    assert answered.delay_us == 0.0
    asked = from_json(PipelineIn, as_json(answered))
    assert [type(one) for one in asked.stages] == [LineStageIn, RangesStageIn] * 2


def test_a_machine_s_windows_are_asked_and_answered() -> None:
    """By the names of bodies, of which `from` is none of Python's."""
    window = WindowIn(from_="a", to="a", fragments=2)
    stage = LineStageIn(name="a", overhead_us=1.0, ns_per_byte=2.0, lanes=3)
    asked = PipelineIn(stages=[stage], windows=[window])
    body = as_json(asked)
    assert body["windows"] == [{"from": "a", "to": "a", "fragments": 2}]
    assert from_json(PipelineIn, body) == asked
    answered = from_json(PipelineOut, {**body, "delay_us": 0.0})
    assert (answered.stages[0].lanes, answered.windows) == (3, tuple(body["windows"]))
    assert from_json(PipelineIn, as_json(answered)) == asked
    with pytest.raises(UnexpectedAnswer, match="/windows/0: from is missing"):
        from_json(PipelineIn, {**body, "windows": [{"to": "a"}]})


def test_one_or_several_files_are_told_apart() -> None:
    """A list is a list, and an object an object."""
    one = {"name": "a", "measurements": {"content": "x"}}
    assert from_json(ComposedStageIn, one).measurements == MeasurementIn(content="x")
    many = {"name": "a", "measurements": [{"content": "x"}]}
    assert from_json(ComposedStageIn, many).measurements == [MeasurementIn(content="x")]


def test_a_later_service_may_say_more() -> None:
    """Fields and names that this client does not know; an earlier one says less."""
    ready = {"status": "warm", "database": "sqlite", "workers": 1, "since": "yesterday"}
    assert from_json(ReadyOut, ready) == ReadyOut("warm", "sqlite", 1)  # type: ignore[arg-type]
    assert from_json(NoticeOut, {"code": "a", "detail": "b"}) == NoticeOut("a", "b", None, {})
    values = {"code": "a", "detail": "b", "values": {"share": 1, "name": "x"}}
    assert from_json(NoticeOut, values).values == {"share": 1.0, "name": "x"}


READY = {"status": "ready", "database": None, "workers": 1}


@pytest.mark.parametrize(
    ("kind", "document", "problem"),
    [
        (ReadyOut, [], "the answer: expected an object"),
        (ReadyOut, None, "the answer: expected an object"),
        (ReadyOut, {}, "the answer: database is missing"),
        (ReadyOut, {**READY, "workers": "1"}, "/workers: expected a whole number"),
        (ReadyOut, {**READY, "workers": True}, "/workers: expected a whole number"),
        (ReadyOut, {**READY, "workers": None}, "/workers: expected a whole number"),
        (ReadyOut, {**READY, "status": 1}, "/status: expected a string"),
        (PipelineOut, {"stages": {}, "delay_us": 0.0}, "/stages: expected a list"),
        (PipelineOut, {"stages": [7], "delay_us": 0.0}, "/stages/0: expected an object"),
        (PipelineOut, {"stages": [], "delay_us": "0"}, "/delay_us: expected a number"),
        (
            PipelineOut,
            {"stages": [{"name": "a", "ranges": [{}]}], "delay_us": 0.0},
            "/stages/0/ranges/0: ns_per_byte is missing",
        ),
        (NoticeOut, {"code": "a", "detail": "b", "values": []}, "/values: expected an object"),
        (
            NoticeOut,
            {"code": "a", "detail": "b", "values": {"c": []}},
            "/values/c: expected a string",
        ),
        (FittedPipelineOut, {"stages": [None], "delay_us": 0}, "/stages/0: expected an object"),
        (AnyJobOut, {"layer_costs": None}, "the answer: answer_id is missing"),
        (LayerJobOut, "x", "the answer: expected an object"),
    ],
)
def test_what_is_another_names_the_place(kind: Any, document: Any, problem: str) -> None:
    """By JSON pointer; what came is not repeated."""
    with pytest.raises(UnexpectedAnswer) as refusal:
        from_json(kind, document)
    assert str(refusal.value) == problem
