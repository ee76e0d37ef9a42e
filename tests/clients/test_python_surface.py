"""The Python clients have what the service publishes: operations, fields, and both the same."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import fields
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from app.errors import KINDS
from app.main import create_app
from app.schemas import (
    export,
    queries,
)
from app.schemas.base import parse_json
from contract import (
    audit,
    compare,
    compose,
    keys,
    layer_costs,
    optimize,
    plan,
    profiles,
    simulate,
    table,
    uncertainty,
    verification,
    workload,
)
from contract.constraints import ConstraintsIn
from contract.crossover import CrossoverIn
from contract.declare import Input
from contract.fit_options import FitOptionsIn
from contract.hide import GranularityIn, HideIn, HostStagesIn, ProcessesIn
from contract.measurements import MeasurementIn
from contract.pipeline import AggregateIn, PipelineIn, RangesStageIn
from contract.setting import SettingIn, StepIn
from contract.thresholds import ThresholdsIn
from sluice_client import (
    Aggregate,
    AsyncClient,
    Client,
    ComposedStage,
    Constraints,
    Declined,
    Delivery,
    Draws,
    ExcludedSample,
    FitOptions,
    FitRange,
    Granularity,
    HostStages,
    InputRefused,
    Measurement,
    Pipeline,
    Problem,
    Processes,
    Setting,
    SettingStep,
    Stage,
    StepGroup,
    Stopped,
    UncertaintyOptions,
    WorkloadSize,
    errors,
)
from sluice_client.calls import Call
from sluice_client.operations import exporting, hiding, measuring, messaging, solving, storing
from sluice_client.operations import service as about
from tests.app.serving import settings_for
from tools import write_client

STAGE = Stage("a", (FitRange(1.0, 2.0, 64), FitRange(2.0, 1.0)), 16)
PIPELINE = Pipeline((STAGE,), 1.0)
PART = Stage("a", (FitRange(1.0, 2.0, 64), FitRange(2.0, 1.0)))
AGGREGATE = Aggregate(PART, PART, 1.0)
GIVEN = Measurement("x", "direct")
LIMITS = Constraints(1, 2, 1, 4)
GROUP = StepGroup("a", ("b", "c"), "overlap")
LEFT_OUT = ExcludedSample("a", 1, 0.1)
OPTIONS = FitOptions(
    "robust", "line", 3, (GROUP,), (LEFT_OUT,), "copy", "size=bytes,time=t:us", False, True, True
)
RULE = Delivery("eager", 1, 2, 3, (4,))
DRAWN = Draws(100, 7, 0.1)
IN_USE = UncertaintyOptions(100, 7, 0.1, 65536, 1500)
SOURCES: dict[str, Any] = {
    "pipeline": PIPELINE,
    "aggregate": AGGREGATE,
    "profile": "a",
    "measurements": GIVEN,
    "fit": {"kind": "direct"},
    "fit_id": "a",
    "fit_options": OPTIONS,
}
SOLVING: dict[str, Any] = {
    "static_bytes": 1,
    "constraints": LIMITS,
    "allow_refragmentation": True,
    "relative_gap": 0.1,
    "time_limit_s": 1.0,
}
FITTING: dict[str, Any] = {
    "method": "robust",
    "shape": "narrowed",
    "max_ranges": 3,
    "groups": [GROUP],
    "excluded": [LEFT_OUT],
    "as_stage": "copy",
    "columns": "size=bytes,time=t:us",
    "total_is_uncut": True,
    "several_at_once": False,
    "stages_overlap": True,
    "message_bytes": 1,
    "save_as": "a",
    "plot": True,
}
OPTIMIZE: Call[Any] = solving.optimize(
    1,
    **SOURCES,
    **SOLVING,
    strategy="auto",
    save_as="a",
    uncertainty=IN_USE,
    transfers={"rows": [{"fragment_bytes": 1, "latency_us": 1.0}]},
)
COMPARE: Call[Any] = solving.compare([1], strategies=["auto"], **SOURCES, **SOLVING)
SIMULATE: Call[Any] = solving.simulate(
    **SOURCES,
    fragment_bytes=[1],
    levels=[[1]],
    delivery=[RULE],
    message_bytes=1,
)
THRESHOLDS: Call[Any] = solving.thresholds(
    [1], **SOURCES, rule="eager", stages=[1], sizes=[1], time_limit_s=1.0
)
CROSSOVER: Call[Any] = solving.crossover(
    "a",
    SOURCES["pipeline"],
    a_name="x",
    b_name="y",
    current_bytes=1,
    min_message_bytes=1,
    max_message_bytes=1,
    target="ucx-rndv-thresh",
    form="conf",
    parameter="p",
)
FIT: Call[Any] = measuring.fit("x", kind="direct", **FITTING)
PLAN: Call[Any] = measuring.plan_measurements(1, 2, measurements=[GIVEN], tolerance=0.1)
COMPOSE: Call[Any] = measuring.compose(
    [ComposedStage("a", GIVEN, "b", "c")],
    method="robust",
    shape="line",
    max_ranges=3,
    excluded=[LEFT_OUT],
    save_as="a",
    plot=True,
)
HELD: dict[str, Any] = {name: SOURCES[name] for name in ("pipeline", "aggregate", "fit", "fit_id")}
CREATE: Call[Any] = storing.create_profile("a", **HELD, detail="x")
REVISE: Call[Any] = storing.revise_profile("a", **HELD, detail="x")
COMPILE: Call[Any] = storing.compile_table(
    "a",
    min_message_bytes=1,
    max_message_bytes=2,
    relative_gap=0.1,
    constraints=LIMITS,
    time_limit_s=1.0,
    activate=True,
)
EXPORT: Call[Any] = exporting.export(
    "a",
    "ucx",
    min_message_bytes=1,
    max_message_bytes=2,
    workload=(WorkloadSize(3, 2.0),),
    objective="mean",
    constraints=LIMITS,
    options={"a": "b"},
    time_limit_s=1.0,
    table="0" * 64,
)
AUDIT: Call[Any] = exporting.audit(
    Setting.static(1),
    **SOURCES,
    min_message_bytes=1,
    max_message_bytes=2,
    workload=[WorkloadSize(1, 2.0)],
    objective="mean",
    max_regret=0.1,
    over="best",
    time_limit_s=1.0,
    in_draws=0.95,
    uncertainty=DRAWN,
)
LAYER: Call[Any] = messaging.layer_costs(
    "cmam-finite",
    [1],
    cycles={"reg": 1.0},
    clock_mhz=1.0,
    features=["in_order"],
    packet_words=[4],
    mapping="packet",
    handshake="blocking",
    between=[STAGE],
    wire_us=1.0,
    out_of_order=0.5,
    tune=True,
    relative_gap=0.1,
    time_limit_s=1.0,
    save_as="a",
)
HIDE: Call[Any] = hiding.hide(
    1,
    calculation_us=1.0,
    **SOURCES,
    granularity=Granularity(1.0, 1.0),
    constraints=LIMITS,
    messages=1,
    messages_are="train",
    instructions=1.0,
    instructions_per_us=1.0,
    hideable_fraction=1.0,
    streamed=False,
    hiding_overhead_us=0.0,
    host_stages=HostStages((0,), ("b",)),
    exchange="one_way",
    min_gain=1.5,
    processes=Processes(8),
    relative_gap=0.1,
    time_limit_s=1.0,
)
OPTIMIZATIONS: Call[Any] = solving.optimizations(
    profile="a", revision=1, message_bytes=1, strategy="auto", cursor="0" * 32, limit=1
)
CHANGES: Call[Any] = about.changes(subject="a", cursor="a", limit=1)
CREATE_KEY: Call[Any] = about.create_key("a", scope="read", expires_in_s=1, requests_per_s=1)
ROTATE_KEY: Call[Any] = about.rotate_key("a", kept_s=0)
CALLS: list[Call[Any]] = [
    OPTIMIZE,
    OPTIMIZATIONS,
    COMPARE,
    SIMULATE,
    THRESHOLDS,
    CROSSOVER,
    FIT,
    PLAN,
    COMPOSE,
    CREATE,
    REVISE,
    COMPILE,
    EXPORT,
    AUDIT,
    LAYER,
    messaging.layers(),
    messaging.layer("cmam-finite"),
    HIDE,
    hiding.hidden("0" * 32),
    solving.optimization("0" * 32),
    solving.describe_optimization("0" * 32, name="NIC ×2"),
    solving.explanation("0" * 32),
    solving.schedule("a", 1),
    measuring.stored_fit("a"),
    measuring.fit_plot("a"),
    measuring.trace("a"),
    storing.profiles(),
    storing.profile("a"),
    storing.delete_profile("a"),
    storing.revisions("a"),
    storing.set_current("a", 1),
    storing.verify("a", "x"),
    storing.tables("a"),
    storing.table("0" * 64),
    storing.active_table("a"),
    storing.activate_table("a", "0" * 64),
    storing.job("a"),
    storing.cancel_job("a"),
    storing.job_events("a"),
    exporting.export_targets(),
    about.limits(),
    about.keys(),
    CHANGES,
    CREATE_KEY,
    ROTATE_KEY,
    about.revoke_key("a"),
    about.is_alive(),
    about.readiness(),
    about.metrics(),
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


@pytest.mark.parametrize(
    ("call", "model"),
    [
        (OPTIMIZE, optimize.OptimizeIn),
        (COMPARE, compare.CompareIn),
        (SIMULATE, simulate.SimulateIn),
        (THRESHOLDS, ThresholdsIn),
        (CROSSOVER, CrossoverIn),
        (PLAN, plan.MeasurementPlanIn),
        (COMPOSE, compose.ComposeIn),
        (CREATE, profiles.ProfileIn),
        (REVISE, profiles.RevisionIn),
        (CREATE_KEY, keys.KeyIn),
        (ROTATE_KEY, keys.RotationIn),
        (COMPILE, table.TableIn),
        (AUDIT, audit.AuditIn),
        (LAYER, layer_costs.LayerCostsIn),
        (HIDE, HideIn),
        (storing.set_current("a", 1), profiles.CurrentIn),
        (storing.verify("a", "x"), verification.VerificationIn),
        (storing.activate_table("a", "0"), table.ActivateIn),
    ],
)
def test_every_field_of_a_body_can_be_given(call: Call[Any], model: type[Input]) -> None:
    """And no other."""
    assert call.content is not None
    assert set(json.loads(call.content)) == {one.name for one in fields(model)}


@pytest.mark.parametrize(
    ("call", "model"),
    [
        (OPTIMIZATIONS, queries.OptimizationsQuery),
        (FIT, queries.FitQuery),
        (EXPORT, export.ExportQuery),
        (storing.profiles(cursor="a", limit=1), queries.ProfilesQuery),
        (storing.tables("a", cursor="a", limit=1), queries.TablesQuery),
        (CHANGES, queries.ChangesQuery),
        (storing.table("a"), queries.TableQuery),
        (solving.schedule("a", 1), queries.ScheduleQuery),
    ],
)
def test_every_parameter_can_be_given(call: Call[Any], model: type[BaseModel]) -> None:
    """And no other; those that repeat as often as they are given."""
    assert set(call.query) == set(model.model_fields)
    assert call.target.count("=") >= len(model.model_fields)


@pytest.mark.parametrize(
    ("value", "model"),
    [
        (STAGE, RangesStageIn),
        (PIPELINE, PipelineIn),
        (AGGREGATE, AggregateIn),
        (LIMITS, ConstraintsIn),
        (GIVEN, MeasurementIn),
        (OPTIONS, FitOptionsIn),
        (RULE, simulate.DeliveryIn),
        (DRAWN, uncertainty.DrawsIn),
        (Draws(), uncertainty.DrawsIn),
        (Draws(seed="18446744073709551615"), uncertainty.DrawsIn),
        (IN_USE, uncertainty.UncertaintyIn),
        (UncertaintyOptions(), uncertainty.UncertaintyIn),
        (UncertaintyOptions(current="whole"), uncertainty.UncertaintyIn),
        (WorkloadSize(1), workload.WorkloadSizeIn),
        (SettingStep(1, None), StepIn),
        (Granularity(1.0, 2.0), GranularityIn),
        (HostStages((0,), ("b",)), HostStagesIn),
        (Processes(8), ProcessesIn),
    ],
)
def test_every_part_of_a_body_is_whole(value: Any, model: type[Input]) -> None:
    """The service reads it, and it lacks no field."""
    assert set(value.as_json()) == {one.name for one in fields(model)}
    assert parse_json(model, json.dumps(value.as_json()).encode())


@pytest.mark.parametrize(
    "setting",
    [
        Setting.static(1),
        Setting.whole(),
        Setting.stepped([SettingStep(1, None)]),
        Setting.configured("ucx", "x"),
    ],
)
def test_every_way_to_say_a_setting_is_read(setting: Setting) -> None:
    """By the service."""
    read = TypeAdapter[object](SettingIn)
    assert read.validate_json(json.dumps(setting.document)) is not None


def public(kind: type) -> dict[str, Any]:
    """Methods that are offered, inherited ones too."""
    offered = {name: value for of in kind.__mro__[-2::-1] for name, value in vars(of).items()}
    return {name: value for name, value in offered.items() if not name.startswith("_")}


def test_both_clients_offer_the_same() -> None:
    """The same methods, of the same parameters and words."""
    blocking, waiting = public(Client), public(AsyncClient)
    assert set(blocking) == set(waiting)
    for name, method in blocking.items():
        assert [*inspect.signature(method).parameters] == [
            *inspect.signature(waiting[name]).parameters
        ]
        assert method.__doc__
        assert method.__name__ == name


def test_every_call_is_a_method() -> None:
    """With the parameters, the defaults and the words of the function that makes the call."""
    count = 0
    for module in write_client.MODULES:
        for name, build in write_client.operations(module):
            made, method = inspect.signature(build), inspect.signature(getattr(Client, name))
            ((_, itself), *taken) = method.parameters.items()
            assert itself.annotation is inspect.Parameter.empty
            assert taken == list(made.parameters.items())
            assert made.return_annotation == f"Call[{method.return_annotation}]"
            assert inspect.getdoc(getattr(Client, name)) == inspect.getdoc(build)
            count += 1
    assert count >= 54


def test_generated_files_are_current() -> None:
    """`python -m tools.write_client` would change nothing."""
    written = write_client.files()
    assert set(written) == {"core.py", "client.py", "async_client.py"}
    for name, text in written.items():
        assert (write_client.PACKAGE / name).read_text() == text, name


@pytest.mark.parametrize("code", KINDS)
def test_every_code_has_a_class_of_its_own(code: str) -> None:
    """By what it means: exit codes group the codes as the classes do."""
    kind = KINDS[code]
    error = Problem("", "", kind.status, code, "").as_error()
    by_exit: dict[int, type[errors.ProblemError]] = {
        2: InputRefused,
        3: Declined,
        5: errors.Conflict,
        6: Stopped,
        69: errors.Unavailable,
        70: errors.ServiceFailed,
    }
    assert type(error) is by_exit.get(kind.exit_code, errors.NotFound)
