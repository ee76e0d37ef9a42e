"""The Python clients have what the service publishes: operations, fields, and both the same."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel, TypeAdapter

from app.errors import KINDS
from app.main import create_app
from app.schemas import export, queries
from app.schemas.base import parse_json
from contract import (
    answers,
    audit,
    compare,
    compose,
    crossover,
    fit,
    keys,
    layer_costs,
    optimize,
    plan,
    profiles,
    simulate,
    table,
    thresholds,
    verification,
)
from contract.hide import HideIn
from contract.setting import SettingIn
from sluice_client import (
    AggregateIn,
    AsyncClient,
    Client,
    ComposedStageIn,
    ConfigurationIn,
    ConfiguredIn,
    ConstraintsIn,
    Declined,
    DeliveryIn,
    DrawsIn,
    ExcludedSampleIn,
    FitOptionsIn,
    GranularityIn,
    HostStagesIn,
    InputRefused,
    InvalidRequest,
    LineCostIn,
    MeasurementIn,
    ProcessesIn,
    RangeIn,
    RangesStageIn,
    RepeatIn,
    SourceIn,
    StatedIntervalIn,
    StaticIn,
    StepGroupIn,
    StepIn,
    StepsIn,
    Stopped,
    TransferIn,
    TransfersIn,
    UncertaintyIn,
    WholeIn,
    WorkloadSizeIn,
    as_json,
    errors,
    pipeline_of_lines,
)
from sluice_client.calls import Call
from sluice_client.contract.problem import ProblemOut
from sluice_client.events import events_call
from sluice_client.methods import Operation
from sluice_client.operations import Operations
from sluice_client.problems import error_of
from tests.app.serving import settings_for

ID = "0" * 32
DIGEST = "0" * 64
PIPELINE = pipeline_of_lines([("copy", 1.0, 2.0), ("wire", 2.0, 1.0)], delay_us=1.0)
RANGES = [
    RangeIn(up_to_bytes=64, overhead_us=1.0, ns_per_byte=2.0),
    RangeIn(overhead_us=2.0, ns_per_byte=1.0),
]
RANGED = RangesStageIn(name="copy", ranges=RANGES, handoff_bytes=16)
COST = LineCostIn(overhead_us=1.0, ns_per_byte=2.0)
GIVEN = MeasurementIn(content="x", kind="direct")
LIMITS = ConstraintsIn(max_fragment_bytes=2, max_fragments=4)
GROUP = StepGroupIn(name="a", steps=["b", "c"], combine="overlap")
LEFT_OUT = ExcludedSampleIn(stage="a", message_bytes=1, time_us=0.1)
FITTING: dict[str, Any] = {
    "method": "weighted",
    "shape": "narrowed",
    "max_ranges": 3,
    "groups": (GROUP,),
    "excluded": (LEFT_OUT,),
    "as_stage": "copy",
    "columns": "size=bytes,time=t:us",
    "test": "sendrecv_perf",
    "run": 2,
    "where": "connections=1",
    "total_is_uncut": True,
    "several_at_once": False,
    "stages_overlap": True,
}
DRAWN: dict[str, Any] = {
    "draws": 100,
    "seed": "18446744073709551615",
    "relative": 0.1,
    "intervals": (StatedIntervalIn(stage="a", overhead_us=(0.5, 1.5)),),
}
FIT: Call[Any] = Operations.fit.build(
    "x", kind="direct", message_bytes=1, save_as="a", plot=True, **FITTING
)
EXPORT: Call[Any] = Operations.export.build(
    "a",
    "ucx",
    min_message_bytes=1,
    max_message_bytes=2,
    workload=("3:2.0",),
    objective="mean",
    min_fragment_bytes=1,
    max_fragment_bytes=2,
    alignment_bytes=1,
    max_fragments=4,
    option=("a:b",),
    time_limit_s=1.0,
    table=DIGEST,
)
OPTIMIZATIONS: Call[Any] = Operations.optimizations.build(
    profile="a", revision=1, message_bytes=1, strategy="auto", cursor=ID, limit=1
)
CHANGES: Call[Any] = Operations.changes.build(subject="a", cursor="a", limit=1)
# Calls with a body, and the class by which the service reads it.
BODIES: list[tuple[Call[Any], type]] = [
    (
        Operations.optimize.build(
            message_bytes=1,
            pipeline=PIPELINE,
            constraints=LIMITS,
            uncertainty=UncertaintyIn(
                current=RepeatIn(repeat=65536), mtu_bytes=1500, robust=True, **DRAWN
            ),
            transfers=TransfersIn(rows=(TransferIn(fragment_bytes=1, latency_us=1.0),)),
        ),
        optimize.OptimizeIn,
    ),
    (
        Operations.optimize.build(
            message_bytes=1,
            measurements=[GIVEN],
            fit_options=FitOptionsIn(**FITTING),
            uncertainty=UncertaintyIn(current="whole"),
        ),
        optimize.OptimizeIn,
    ),
    (
        Operations.compare.build(message_bytes=[1], strategies=["auto"], profile="a"),
        compare.CompareIn,
    ),
    (
        Operations.simulate.build(
            aggregate=AggregateIn(total=COST, bottleneck=COST), fragment_bytes=[1]
        ),
        simulate.SimulateIn,
    ),
    (
        Operations.simulate.build(
            profile="a", delivery=[DeliveryIn(rule="planned", planned_bytes=[4])], message_bytes=4
        ),
        simulate.SimulateIn,
    ),
    (Operations.thresholds.build(message_bytes=[1], fit_id=ID, sizes=[1]), thresholds.ThresholdsIn),
    (
        Operations.crossover.build(a=SourceIn(profile="a"), b=SourceIn(fit_id=ID), current_bytes=1),
        crossover.CrossoverIn,
    ),
    (
        Operations.hide.build(
            message_bytes=1,
            calculation_us=1.0,
            profile="a",
            host_stages=HostStagesIn(sender=(0,), receiver=("b",)),
            processes=ProcessesIn(max_processes=8),
        ),
        HideIn,
    ),
    (Operations.hide.build(granularity=GranularityIn(software=1.0, hardware=2.0)), HideIn),
    (Operations.fit_together.build([GIVEN], excluded=(LEFT_OUT,)), fit.FitIn),
    (
        Operations.compose.build(stages=[ComposedStageIn(name="a", measurements=GIVEN, step="b")]),
        compose.ComposeIn,
    ),
    (
        Operations.plan_measurements.build(min_message_bytes=1, max_message_bytes=2),
        plan.MeasurementPlanIn,
    ),
    (Operations.create_profile.build(name="a", pipeline=PIPELINE), profiles.ProfileIn),
    (Operations.revise_profile.build("a", fit_id=ID, detail="x"), profiles.RevisionIn),
    (Operations.set_current.build("a", revision=1), profiles.CurrentIn),
    (Operations.verify.build("a", transfers="x"), verification.VerificationIn),
    (Operations.compile_table.build("a", constraints=LIMITS, activate=True), table.TableIn),
    (Operations.activate_table.build("a", digest=DIGEST), table.ActivateIn),
    (
        Operations.audit.build(
            setting=StaticIn(static_bytes=1),
            profile="a",
            workload=[WorkloadSizeIn(message_bytes=1, weight=2.0)],
            uncertainty=DrawsIn(**DRAWN),
        ),
        audit.AuditIn,
    ),
    (
        Operations.layer_costs.build(layer="cmam-finite", message_bytes=[1], between=[RANGED]),
        layer_costs.LayerCostsIn,
    ),
    (Operations.describe_optimization.build(ID, name="NIC ×2"), answers.DescriptionIn),
    (Operations.create_key.build(name="a", scope="read", expires_in_s=1), keys.KeyIn),
    (Operations.rotate_key.build("a", kept_s=0), keys.RotationIn),
]
CALLS: list[Call[Any]] = [
    *(call for call, _ in BODIES),
    *(FIT, EXPORT, OPTIMIZATIONS, CHANGES),
    *(build.build() for build in (Operations.layers, Operations.export_targets)),
    *(build.build() for build in (Operations.limits, Operations.keys, Operations.is_alive)),
    *(build.build() for build in (Operations.readiness, Operations.metrics)),
    *(build.build() for build in (Operations.profiles,)),
    *(build.build(ID) for build in (Operations.optimization, Operations.hidden)),
    *(build.build(ID) for build in (Operations.stored_fit, Operations.fit_plot)),
    *(build.build(DIGEST) for build in (Operations.trace, Operations.table)),
    *(build.build("a") for build in (Operations.profile, Operations.revisions)),
    *(build.build("a") for build in (Operations.delete_profile, Operations.active_table)),
    *(build.build("a") for build in (Operations.layer, Operations.revoke_key)),
    *(build.build(ID) for build in (Operations.job, Operations.cancel_job)),
    Operations.tables.build("a"),
    Operations.explanation.build(ID),
    Operations.export_items.build(ID, "torch"),
    Operations.schedule.build("a", 1),
    events_call(ID),
]


def test_every_operation_of_the_service_has_a_call() -> None:
    """The OpenAPI document has no other, and the clients have no other."""
    paths = create_app(settings_for("sqlite:///unused.db")).openapi()["paths"]
    published = {
        (method.upper(), path) for path, operations in paths.items() for method in operations
    }
    # Segments that are words come before those that are names, as in the router.
    patterns = {path: re.compile(re.sub(r"\{\w+\}", "[^/]+", path)) for path in sorted(paths)}
    made = set()
    for call in CALLS:
        (fitting,) = [path for path, one in patterns.items() if one.fullmatch(call.path)]
        made.add((call.method, fitting))
    assert made == published


@pytest.mark.parametrize(("call", "model"), BODIES)
def test_every_body_is_read_as_it_was_meant(call: Call[Any], model: type) -> None:
    """By the service: what it reads says the same, and nothing that a default says is sent."""
    assert call.content is not None
    read = parse_json(model, call.content)
    assert as_json(read) == json.loads(call.content)


@pytest.mark.parametrize(
    ("call", "model"),
    [
        (OPTIMIZATIONS, queries.OptimizationsQuery),
        (FIT, queries.FitQuery),
        (EXPORT, export.ExportQuery),
        (Operations.profiles.build(cursor="a", limit=1), queries.ProfilesQuery),
        (Operations.tables.build("a", cursor="a", limit=1), queries.TablesQuery),
        (CHANGES, queries.ChangesQuery),
        (Operations.explanation.build(ID, cheaper_by=0.1), queries.ExplanationQuery),
        (Operations.export_items.build(ID, "torch", option=("form:cap",)), export.ItemExportQuery),
        (Operations.table.build("a"), queries.TableQuery),
        (Operations.schedule.build("a", 1), queries.ScheduleQuery),
    ],
)
def test_every_parameter_can_be_given(call: Call[Any], model: type[BaseModel]) -> None:
    """And no other; those that repeat as often as they are given."""
    assert set(call.query) == set(model.model_fields)
    assert call.target.count("=") >= len(model.model_fields)


@pytest.mark.parametrize(
    "setting",
    [
        StaticIn(static_bytes=1),
        WholeIn(whole=True),
        StepsIn(steps=[StepIn(from_bytes=1, size_bytes=None)]),
        ConfiguredIn(configuration=ConfigurationIn(target="ucx", content="x")),
    ],
)
def test_every_way_to_say_a_setting_is_read(setting: Any) -> None:
    """By the service."""
    read = TypeAdapter[object](SettingIn)
    assert as_json(read.validate_json(json.dumps(as_json(setting)))) == as_json(setting)


def test_what_was_drawn_of_a_fit_is_not_sent_again() -> None:
    """It says nothing of the costs, and may be most of the document."""
    document = {"kind": "direct", "plot": {"stages": [], "signatures": []}}
    call = Operations.optimize.build(message_bytes=1, fit=document)  # type: ignore[arg-type]
    assert call.content is not None
    assert json.loads(call.content)["fit"] == {"kind": "direct"}


def test_a_number_that_is_none_is_refused_before_it_is_sent() -> None:
    """In any depth."""
    stages = pipeline_of_lines([("copy", float("nan"), 1.0)])
    with pytest.raises(InvalidRequest, match="finite"):
        Operations.optimize.build(message_bytes=1, pipeline=stages)


class Whole:
    """A whole number of another library."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __index__(self) -> int:
        return self._value


@pytest.mark.parametrize("given", [np.int64(65536), np.uint32(65536), Whole(65536)])
def test_whole_numbers_of_other_libraries_are_taken(given: Any) -> None:
    """At the top and in any depth."""
    stages = pipeline_of_lines([("copy", 3.0, 1.0)])
    constraints = ConstraintsIn(min_fragment_bytes=given)
    call = Operations.optimize.build(message_bytes=given, pipeline=stages, constraints=constraints)
    assert call.content is not None
    body = json.loads(call.content)
    assert body["message_bytes"] == body["constraints"]["min_fragment_bytes"] == 65536


@pytest.mark.parametrize("given", [object(), b"64", {1}, np.zeros(3), np.float32(2.0)])
def test_what_no_body_can_have_is_refused_by_its_field(given: Any) -> None:
    """Before it is sent, and the input is not repeated."""
    stages = pipeline_of_lines([("copy", 3.0, 1.0)])
    constraints = ConstraintsIn(min_fragment_bytes=given)
    with pytest.raises(InvalidRequest, match=r"^/constraints/min_fragment_bytes: expected"):
        Operations.optimize.build(message_bytes=1, pipeline=stages, constraints=constraints)


def public(kind: type) -> dict[str, Any]:
    """What is offered, inherited too."""
    offered = {name: value for of in kind.__mro__[-2::-1] for name, value in vars(of).items()}
    return {name: value for name, value in offered.items() if not name.startswith("_")}


def test_both_clients_offer_the_same() -> None:
    """The very same methods, with words and parameters for `help` and editors."""
    blocking, waiting = public(Client), public(AsyncClient)
    assert blocking == waiting
    assert len(blocking) >= 70
    client = Client("http://a")
    for name in blocking:
        method = getattr(client, name)
        assert inspect.getdoc(method)
        assert method.__name__ == name
        assert "self" not in inspect.signature(method).parameters


@pytest.mark.parametrize(("name", "model"), [("optimize", optimize.OptimizeIn), ("hide", HideIn)])
def test_keywords_are_those_of_the_request(name: str, model: type) -> None:
    """With their defaults, for a job too; so a new field of a request needs nothing here."""
    for method in (getattr(Client, name), getattr(Client, f"start_{name}")):
        assert isinstance(method, Operation)
        _, *taken = inspect.signature(method).parameters.values()
        assert {one.name for one in taken} == {one.name for one in fields(model)}
        assert {one.kind for one in taken} == {inspect.Parameter.KEYWORD_ONLY}
        assert model.__name__ in (inspect.getdoc(method) or "")


@pytest.mark.parametrize("code", KINDS)
def test_every_code_has_a_class_of_its_own(code: str) -> None:
    """By what it means: exit codes group the codes as the classes do."""
    kind = KINDS[code]
    error = error_of(ProblemOut("", "", kind.status, code, "", ()))
    by_exit: dict[int, type[errors.ProblemError]] = {
        2: InputRefused,
        3: Declined,
        5: errors.Conflict,
        6: Stopped,
        69: errors.Unavailable,
        70: errors.ServiceFailed,
    }
    assert type(error) is by_exit.get(kind.exit_code, errors.NotFound)
