"""The blocks that requests share: what is taken, what is refused where, and their words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import MISSING, fields
from enum import StrEnum
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

import contract
from analysis.audit import Reference, RegretVerdict
from analysis.explanation import Cost
from analysis.hiding import Exchange, MessagesAre
from analysis.layer_stages import Handshake, StageMapping
from analysis.published_layers import shipped_layers
from app.schemas.base import dump_json, parse_json
from app.schemas.jobs import JobKind
from app.schemas.source import options_of, source_of
from contract import (
    answers,
    audit,
    export,
    fit,
    fit_options,
    hide,
    jobs,
    keys,
    layer,
    layer_costs,
    overlap,
    plan,
    profiles,
    rules,
    transfers,
    verification,
    workload,
)
from contract.constraints import ConstraintsIn
from contract.declare import Input, Output, Sparse, default_of, wire_name, words_of
from contract.fit_options import FitOptionsIn
from contract.layer import PUBLISHED_LAYERS
from contract.limits import (
    MAX_EXCLUDED,
    MAX_MEASUREMENTS,
    MAX_MESSAGE_BYTES,
    MAX_NAME_LENGTH,
    MAX_NS_PER_BYTE,
    MAX_OVERHEAD_US,
    MAX_RANGES,
    MAX_STAGES,
    NETWORK_FEATURES,
    NUM_STRATEGIES,
)
from contract.pipeline import AggregateIn, LineStageIn, PipelineIn, RangesStageIn
from contract.setting import READABLE_TARGETS
from contract.source import SourceIn
from contract.uncertainty import RepeatIn, UncertaintyIn
from domain.delivery import DeliveryRule
from domain.errors import InvalidFields, InvalidInput
from domain.fit import Combine, FitMethod, FitShape, Verdict
from domain.fit_plot import PlotRole
from domain.hiding import Regime, SpeedupReference
from domain.measurement import TraceKind
from domain.messaging_layer import End, NetworkFeature, Per, Service, When
from domain.own_transfers import SizeVerdict, TransferStatus
from domain.plan import Quantity
from domain.profile import Origin
from domain.regret import Objective
from domain.solution import Status, Strategy
from domain.structure import StructureKind
from domain.verification import ModelVerdict
from exports.targets.registry import TARGETS
from exports.targets.target import Takes
from models.records import JobState, KeyScope

LINE = {"overhead_us": 1.0, "ns_per_byte": 2.0}
RANGES = {"ranges": [{"up_to_bytes": 4096, **LINE}, LINE]}


def parts(base: type, names: Iterable[str]) -> list[Any]:
    """Every part of a request, or of an answer, that these modules of contract declare."""
    modules = [import_module(f"contract.{name}") for name in names]
    found = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    kinds = [kind for kind in found if issubclass(kind, base) and kind not in (base, Sparse)]
    return sorted(kinds, key=lambda kind: kind.__name__)


KINDS = parts(Input, (module.name for module in iter_modules(contract.__path__)))
SENT = parts(Output, (module.name for module in iter_modules(contract.__path__)))


def refused(kind: type[Input], text: str) -> list[tuple[str, str]]:
    """Where and why a body is refused."""
    with pytest.raises(InvalidFields) as refusal:
        parse_json(kind, text.encode())
    return [(problem.pointer, problem.detail) for problem in refusal.value.problems]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_says_what_it_means(kind: Any) -> None:
    """In the interface's document too, whose properties are the fields and no other."""
    schema = TypeAdapter[Any](kind).json_schema()
    properties = schema["properties"]
    assert list(properties) == [wire_name(field.name) for field in fields(kind)]
    assert all(declared.get("description") for declared in properties.values())
    assert {wire_name(word.place[0]) for word in words_of(kind)} == set(properties)
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("kind", SENT, ids=lambda kind: kind.__name__)
def test_every_field_of_an_answer_says_what_it_means(kind: Any) -> None:
    """In the interface's document, whose properties are the fields in their order; all are there
    but those of a sparse part that say what their defaults say.
    """
    schema = TypeAdapter[Any](kind).json_schema(mode="serialization")
    properties, is_sparse = schema["properties"], issubclass(kind, Sparse)
    always = [field.name for field in fields(kind) if not is_sparse or default_of(field) is MISSING]
    assert list(properties) == [field.name for field in fields(kind)]
    assert schema["required"] == always
    assert all(declared.get("description") for declared in properties.values())


def test_readable_targets_are_those_of_the_registry() -> None:
    assert tuple(target.name for target in TARGETS if target.read) == READABLE_TARGETS


def test_published_layers_are_those_that_are_shipped() -> None:
    """A page offers them by name."""
    assert tuple(shipped_layers()) == PUBLISHED_LAYERS


def test_features_of_a_network_are_those_of_the_domain() -> None:
    assert tuple(NetworkFeature) == NETWORK_FEATURES


def test_a_comparison_may_ask_for_every_strategy() -> None:
    assert len(Strategy) == NUM_STRATEGIES


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (fit_options.Method, FitMethod),
        (fit_options.Shape, FitShape),
        (fit_options.Combined, Combine),
        (fit.Measured, TraceKind),
        (fit.Supported, Verdict),
        (fit.Role, PlotRole),
        (overlap.Structured, StructureKind),
        (hide.MessagesAre, MessagesAre),
        (hide.Exchange, Exchange),
        (hide.Reference, SpeedupReference),
        (hide.Regime, Regime),
        (rules.Status, Status),
        (rules.Strategy, Strategy),
        (audit.Reference, Reference),
        (audit.Verdict, RegretVerdict),
        (answers.Cost, Cost),
        (jobs.JobKind, JobKind),
        (jobs.JobState, JobState),
        (workload.Objective, Objective),
        (rules.DeliveryRule, DeliveryRule),
        (transfers.TransferStatus, TransferStatus),
        (transfers.SizeVerdict, SizeVerdict),
        (layer.Service, Service),
        (layer.NetworkFeature, NetworkFeature),
        (layer.End, End),
        (layer.Per, Per),
        (layer.When, When),
        (layer_costs.StageMapping, StageMapping),
        (layer_costs.Handshake, Handshake),
        (profiles.Origin, Origin),
        (verification.Verdict, ModelVerdict),
        (keys.KeyScope, KeyScope),
        (plan.Quantity, Quantity),
        (export.Takes, Takes),
    ],
)
def test_names_are_those_of_the_domain(names: Any, kind: type[StrEnum]) -> None:
    """In the same order, which is that of a refusal."""
    assert get_args(names) == tuple(one.value for one in kind)


STAGES = "/stages/0"


@pytest.mark.parametrize(
    ("kind", "body", "pointer", "rule"),
    [
        (PipelineIn, "[]", "", "expected an object"),
        (PipelineIn, "{}", "/stages", "this field is required"),
        (PipelineIn, '{"stages": []}', "/stages", "expected at least 1 items"),
        (PipelineIn, '{"stages": {}}', "/stages", "expected a list"),
        (PipelineIn, '{"stages": [1]}', STAGES, "expected an object"),
        (PipelineIn, '{"stages": [{"a": 1}]}', f"{STAGES}/overhead_us", "this field is required"),
        (LineStageIn, dump_json({**LINE, "a": 1}).decode(), "/a", "unknown field"),
        (
            LineStageIn,
            dump_json({**LINE, "overhead_us": -1}).decode(),
            "/overhead_us",
            "expected a number >= 0.0",
        ),
        (
            LineStageIn,
            dump_json({**LINE, "overhead_us": 2 * MAX_OVERHEAD_US}).decode(),
            "/overhead_us",
            f"expected a number <= {MAX_OVERHEAD_US}",
        ),
        (
            LineStageIn,
            dump_json({**LINE, "ns_per_byte": 2 * MAX_NS_PER_BYTE}).decode(),
            "/ns_per_byte",
            f"expected a number <= {MAX_NS_PER_BYTE}",
        ),
        (
            LineStageIn,
            '{"overhead_us": NaN, "ns_per_byte": 1}',
            "/overhead_us",
            "expected a finite number",
        ),
        (
            LineStageIn,
            '{"overhead_us": "1", "ns_per_byte": 1}',
            "/overhead_us",
            "expected a number",
        ),
        (
            LineStageIn,
            dump_json({**LINE, "name": "x" * (MAX_NAME_LENGTH + 1)}).decode(),
            "/name",
            f"expected at most {MAX_NAME_LENGTH} characters",
        ),
        (
            LineStageIn,
            dump_json({**LINE, "handoff_bytes": 1.5}).decode(),
            "/handoff_bytes",
            "expected a whole number",
        ),
        (
            RangesStageIn,
            dump_json({"ranges": [LINE] * (MAX_RANGES + 1)}).decode(),
            "/ranges",
            f"expected at most {MAX_RANGES} items",
        ),
        (
            PipelineIn,
            dump_json({"stages": [LINE] * (MAX_STAGES + 1)}).decode(),
            "/stages",
            f"expected at most {MAX_STAGES} items",
        ),
        (
            ConstraintsIn,
            dump_json({"max_fragments": MAX_MESSAGE_BYTES + 1}).decode(),
            "/max_fragments",
            f"expected a number <= {MAX_MESSAGE_BYTES}",
        ),
        (ConstraintsIn, '{"alignment_bytes": true}', "/alignment_bytes", "expected a whole number"),
        (ConstraintsIn, '{"alignment_bytes": null}', "/alignment_bytes", "expected a whole number"),
        (
            FitOptionsIn,
            '{"method": "best"}',
            "/method",
            "expected one of 'robust', 'weighted' or 'ordinary'",
        ),
        (
            FitOptionsIn,
            dump_json({"groups": [{"name": "a", "steps": ["b"], "combine": "sequence"}]}).decode(),
            "/groups/0/steps",
            "expected at least 2 items",
        ),
        (
            FitOptionsIn,
            dump_json(
                {
                    "excluded": [{"stage": "a", "message_bytes": 1, "time_us": 1}]
                    * (MAX_EXCLUDED + 1)
                }
            ).decode(),
            "/excluded",
            f"expected at most {MAX_EXCLUDED} items",
        ),
        (
            SourceIn,
            dump_json({"measurements": [{"content": ""}] * (MAX_MEASUREMENTS + 1)}).decode(),
            "/measurements",
            f"expected at most {MAX_MEASUREMENTS} items",
        ),
        (
            SourceIn,
            '{"measurements": {"kind": "direct"}}',
            "/measurements/content",
            "this field is required",
        ),
        (UncertaintyIn, '{"draws": 49}', "/draws", "expected a number >= 50"),
        (UncertaintyIn, '{"current": "half"}', "/current", "expected 'whole'"),
        (UncertaintyIn, '{"current": {"repeat": 0}}', "/current/repeat", "expected a number >= 1"),
        (
            UncertaintyIn,
            '{"seed": "18446744073709551616"}',
            "/seed",
            "expected the digits of a whole number <= 18446744073709551615",
        ),
    ],
)
def test_a_refusal_names_the_field_and_its_rule(
    kind: type[Input], body: str, pointer: str, rule: str
) -> None:
    """The first one, where there are several."""
    assert refused(kind, body)[0] == (pointer, rule)


def test_every_fault_of_several_is_named() -> None:
    """Of a list that may be long the first fault alone."""
    body = {"pipeline": {"stages": [{"overhead_us": -1}, {}]}, "fit_options": {"max_ranges": 17}}
    assert [pointer for pointer, _ in refused(SourceIn, json.dumps(body))] == [
        "/pipeline/stages/0/overhead_us",
        "/pipeline/stages/0/ns_per_byte",
        "/fit_options/max_ranges",
    ]


def test_a_form_is_chosen_by_what_is_there() -> None:
    """A stage by `ranges`, measurements by being a list, the setting in use by being a text."""
    body = {"stages": [LINE, {**RANGES, "handoff_bytes": 64.0}]}
    line, ranges = parse_json(PipelineIn, dump_json(body)).stages
    assert isinstance(line, LineStageIn)
    assert isinstance(ranges, RangesStageIn)
    assert (ranges.handoff_bytes, len(ranges.ranges)) == (64, 2)
    aggregate = parse_json(AggregateIn, dump_json({"total": LINE, "bottleneck": RANGES}))
    assert not isinstance(aggregate.total, LineStageIn)
    assert parse_json(UncertaintyIn, b'{"current": "whole"}').current == "whole"
    assert parse_json(UncertaintyIn, b'{"current": {"repeat": 1}}').current == RepeatIn(repeat=1)


COSTS = st.floats(0.0, 1e9) | st.integers(0, 10**9)
SIZES = st.integers(1, MAX_MESSAGE_BYTES)
LINES = st.fixed_dictionaries({"overhead_us": COSTS, "ns_per_byte": COSTS})
STAGE = st.one_of(
    LINES,
    st.fixed_dictionaries({"ranges": st.lists(LINES, min_size=1, max_size=4)}),
    LINES.flatmap(lambda line: SIZES.map(lambda size: {**line, "handoff_bytes": size})),
)
PIPELINES = st.fixed_dictionaries(
    {"stages": st.lists(STAGE, min_size=1, max_size=5)}, optional={"delay_us": COSTS}
)


@given(PIPELINES, st.dictionaries(st.sampled_from(["min", "max"]), SIZES))
def test_what_is_taken_is_kept_and_taken_again(body: Any, sizes: dict[str, int]) -> None:
    """As a job keeps it: all fields with their defaults."""
    made = parse_json(PipelineIn, dump_json(body))
    assert parse_json(PipelineIn, dump_json(made)) == made
    limits = {f"{name}_fragment_bytes": size for name, size in sizes.items()}
    kept = parse_json(ConstraintsIn, dump_json(limits))
    floats = {name: float(size) for name, size in limits.items()}
    assert parse_json(ConstraintsIn, dump_json(floats)) == kept
    assert kept.said() == {
        name: size for name, size in limits.items() if size != 1 or "max" in name
    }


def test_columns_are_checked_where_they_are_used() -> None:
    """They are refused at their field, in words that say what is wrong with them."""
    files = {"measurements": {"content": ""}}
    options = parse_json(SourceIn, dump_json({**files, "fit_options": {"columns": "time=a"}}))
    source_of(options)
    with pytest.raises(InvalidInput, match="expected size and a time or a rate") as refusal:
        options_of(options)
    assert refusal.value.field == "fit_options.columns"
