"""The Python clients have what the service publishes: operations, fields, and both the same."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import MISSING, fields
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from app.errors import KINDS
from app.main import create_app
from app.questions.compare import Interval
from app.schemas import (
    audit,
    base,
    compare,
    exports,
    fit_requests,
    fits,
    hide,
    jobs,
    layer_costs,
    layers,
    optimize,
    profiles,
    queries,
    service,
    simulate,
    stages,
    tables,
    uncertainty,
)
from app.schemas import base as problems
from app.schemas import compare as explanations
from app.schemas import fit_requests as measurement_plans
from app.schemas import simulate as schedules
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
    answers,
    errors,
    export_answers,
    fit_answers,
    hide_answers,
    layer_answers,
)
from sluice_client import uncertainty as uncertain
from sluice_client.calls import Call
from sluice_client.operations import exporting, hiding, measuring, messaging, solving, storing
from sluice_client.operations import service as about
from tests.app.serving import settings_for

STAGE = Stage("a", (FitRange(1.0, 2.0, 64), FitRange(2.0, 1.0)), 16)
PIPELINE = Pipeline((STAGE,), 1.0)
AGGREGATE = Aggregate(STAGE, STAGE, 1.0)
GIVEN = Measurement("x", "direct")
LIMITS = Constraints(1, 2, 1, 4)
GROUP = StepGroup("a", ("b", "c"), "overlap")
LEFT_OUT = ExcludedSample("a", 1, 0.1)
OPTIONS = FitOptions("robust", "line", 3, (GROUP,), (LEFT_OUT,), "copy")
RULE = Delivery("eager", 1, 2, 3, (4,))
DRAWN = Draws(100, 7, 0.1)
IN_USE = UncertaintyOptions(100, 7, 0.1, 65536, 1500)
SOURCES: dict[str, Any] = {
    "pipeline": PIPELINE,
    "aggregate": AGGREGATE,
    "profile": "a",
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
    "message_bytes": 1,
    "save_as": "a",
    "plot": True,
}
OPTIMIZE: Call[Any] = solving.optimize(
    1,
    **SOURCES,
    **SOLVING,
    measurements=GIVEN,
    strategy="auto",
    save_as="a",
    fit_options=OPTIONS,
    uncertainty=IN_USE,
)
COMPARE: Call[Any] = solving.compare([1], strategies=["auto"], **SOURCES, **SOLVING)
SIMULATE: Call[Any] = solving.simulate(
    pipeline=PIPELINE,
    profile="a",
    fragment_bytes=[1],
    levels=[[1]],
    delivery=[RULE],
    message_bytes=1,
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
CREATE: Call[Any] = storing.create_profile("a", pipeline=PIPELINE, aggregate=AGGREGATE, detail="x")
REVISE: Call[Any] = storing.revise_profile("a", pipeline=PIPELINE, aggregate=AGGREGATE, detail="x")
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
    objective="mean",
    constraints=LIMITS,
    options={"a": "b"},
    time_limit_s=1.0,
    table="0" * 64,
)
AUDIT: Call[Any] = exporting.audit(
    Setting.static(1),
    **SOURCES,
    measurements=GIVEN,
    fit_options=OPTIONS,
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
    pipeline=PIPELINE,
    profile="a",
    measurements=GIVEN,
    granularity=Granularity(1.0, 1.0),
    fit_options=OPTIONS,
    constraints=LIMITS,
    messages=1,
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
CALLS: list[Call[Any]] = [
    OPTIMIZE,
    OPTIMIZATIONS,
    COMPARE,
    SIMULATE,
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
    solving.optimization("0" * 32),
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
    storing.tables("a"),
    storing.table("0" * 64),
    storing.active_table("a"),
    storing.activate_table("a", "0" * 64),
    storing.job("a"),
    storing.cancel_job("a"),
    storing.job_events("a"),
    exporting.export_targets(),
    about.limits(),
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
        (PLAN, measurement_plans.MeasurementPlanIn),
        (COMPOSE, fit_requests.ComposeIn),
        (CREATE, profiles.ProfileIn),
        (REVISE, profiles.RevisionIn),
        (COMPILE, tables.TableIn),
        (AUDIT, audit.AuditIn),
        (LAYER, layer_costs.LayerCostsIn),
        (HIDE, hide.HideIn),
        (storing.set_current("a", 1), profiles.CurrentIn),
        (storing.activate_table("a", "0"), tables.ActivateIn),
    ],
)
def test_every_field_of_a_body_can_be_given(call: Call[Any], model: type[BaseModel]) -> None:
    """And no other."""
    assert call.content is not None
    assert set(json.loads(call.content)) == set(model.model_fields)


@pytest.mark.parametrize(
    ("call", "model"),
    [
        (OPTIMIZATIONS, queries.OptimizationsQuery),
        (FIT, queries.FitQuery),
        (EXPORT, exports.ExportQuery),
        (storing.profiles(cursor="a", limit=1), queries.ProfilesQuery),
        (storing.tables("a", cursor="a", limit=1), queries.TablesQuery),
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
        (STAGE, stages.RangesStageIn),
        (PIPELINE, stages.PipelineIn),
        (AGGREGATE, stages.AggregateIn),
        (LIMITS, stages.ConstraintsIn),
        (GIVEN, fit_requests.MeasurementIn),
        (OPTIONS, fit_requests.FitOptionsIn),
        (RULE, simulate.DeliveryIn),
        (DRAWN, uncertainty.DrawsIn),
        (Draws(), uncertainty.DrawsIn),
        (Draws(seed="18446744073709551615"), uncertainty.DrawsIn),
        (IN_USE, uncertainty.UncertaintyIn),
        (UncertaintyOptions(), uncertainty.UncertaintyIn),
        (UncertaintyOptions(current="whole"), uncertainty.UncertaintyIn),
        (WorkloadSize(1), audit.WorkloadSizeIn),
        (SettingStep(1, None), audit.StepIn),
        (Granularity(1.0, 2.0), hide.GranularityIn),
        (HostStages((0,), ("b",)), hide.HostStagesIn),
        (Processes(8), hide.ProcessesIn),
    ],
)
def test_every_part_of_a_body_is_whole(value: Any, model: type[BaseModel]) -> None:
    """The service reads it, and it lacks no field."""
    assert set(value.as_json()) == set(model.model_fields)
    assert model.model_validate_json(json.dumps(value.as_json()))


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
    read = TypeAdapter[object](audit.SettingIn)
    assert read.validate_json(json.dumps(setting.document)) is not None


PAIRS: list[tuple[type, type]] = [
    (answers.Optimization, optimize.OptimizeOut),
    (answers.BestFixed, optimize.BestFixedOut),
    (answers.Baseline, optimize.BaselineOut),
    (answers.Explanation, explanations.ExplanationOut),
    (answers.PathShare, explanations.PathShareOut),
    (answers.Saving, explanations.SavingOut),
    (answers.OptimizationSummary, optimize.SummaryOut),
    (answers.Comparison, compare.CompareOut),
    (answers.ComparisonRow, compare.CompareRowOut),
    (answers.Simulation, simulate.DeliveredOut),
    (answers.Interval, Interval),
    (answers.PathStep, simulate.PathStepOut),
    (answers.Profile, profiles.ProfileOut),
    (answers.Revision, profiles.RevisionOut),
    (answers.Revisions, profiles.RevisionsOut),
    (answers.Provenance, profiles.ProvenanceOut),
    (answers.Page, profiles.ProfilesOut),
    (answers.CompiledTable, tables.TableOut),
    (answers.TableSummary, tables.TableSummaryOut),
    (answers.ProvenRange, tables.GapRangeOut),
    (answers.CountRun, tables.CountRunOut),
    (export_answers.ExportTarget, exports.ExportTargetOut),
    (export_answers.Exported, exports.ExportedOut),
    (export_answers.ExportSizes, exports.ExportSizesOut),
    (export_answers.ExportOption, exports.ExportOptionOut),
    (answers.Job, jobs.LayerJobOut),
    (answers.JobProgress, jobs.JobProgressOut),
    (answers.JobPoint, jobs.JobPointOut),
    (answers.BestSoFar, optimize.BestSoFarOut),
    (answers.Limits, service.LimitsOut),
    (answers.Readiness, service.ReadyOut),
    (hide_answers.Hidden, hide.HideOut),
    (hide_answers.HiddenCount, hide.HiddenCountOut),
    (hide_answers.LatencyOptimal, hide.LatencyOptimalOut),
    (hide_answers.GammaWindow, hide.GammaWindowOut),
    (hide_answers.BestProcesses, hide.BestProcessesOut),
    (hide_answers.ProcessPoint, hide.ProcessPointOut),
    (export_answers.Audit, audit.AuditOut),
    (export_answers.AuditRow, audit.AuditRowOut),
    (export_answers.AuditedWorkload, audit.AuditWorkloadOut),
    (export_answers.PricedSetting, audit.PricedOut),
    (export_answers.Regret, audit.SpanOut),
    (export_answers.ChosenSizes, exports.ChosenOut),
    (uncertain.Uncertainty, uncertainty.UncertaintyOut),
    (uncertain.Quantiles, uncertainty.QuantilesOut),
    (uncertain.Against, uncertainty.AgainstOut),
    (uncertain.RegretInDraws, uncertainty.RegretOut),
    (uncertain.GoodSizes, uncertainty.GoodSizesOut),
    (uncertain.RoundSize, uncertainty.RoundSizeOut),
    (uncertain.WorthMeasuring, uncertainty.MeasureOut),
    (uncertain.RestsOn, uncertainty.RestsOnOut),
    (uncertain.SettingsInDraws, uncertainty.SettingsInDrawsOut),
    (uncertain.SettingInDraws, uncertainty.SettingInDrawsOut),
    (SettingStep, audit.SettingStepOut),
    (layer_answers.LayerComponent, layers.ComponentOut),
    (layer_answers.Layer, layers.LayerOut),
    (layer_answers.Disagreement, layers.DisagreementOut),
    (layer_answers.PublishedLayer, layers.PublishedLayerOut),
    (layer_answers.LayerSummary, layers.LayerSummaryOut),
    (layer_answers.LayerStages, layer_costs.LayerStagesOut),
    (layer_answers.FeatureStages, layer_costs.FeatureStagesOut),
    (layer_answers.ServiceCost, layer_costs.ServiceCostOut),
    (layer_answers.FullPackets, layer_costs.FullPacketsOut),
    (layer_answers.PacketSize, layer_costs.PacketSizeOut),
    (layer_answers.BestCut, layer_costs.BestCutOut),
    (layer_answers.FeatureSaving, layer_costs.FeatureSavingOut),
    (layer_answers.MessageCosts, layer_costs.MessageCostsOut),
    (layer_answers.LayerCosts, layer_costs.LayerCostsOut),
    (fit_answers.Fit, fits.FitOut),
    (ExcludedSample, fits.ExcludedSampleOut),
    (fit_answers.FittedPipeline, fits.FittedPipelineOut),
    (fit_answers.FittedAggregate, fits.AggregateFitOut),
    (fit_answers.FittedStage, fits.StageFitOut),
    (fit_answers.FittedLine, fits.LineFitOut),
    (fit_answers.FittedSize, fits.SizeFitOut),
    (fit_answers.Estimate, fits.EstimateOut),
    (fit_answers.LogGPFit, fits.LogGPFitOut),
    (fit_answers.LogGPParameters, fits.LogGPParametersOut),
    (fit_answers.Notice, base.NoticeOut),
    (fit_answers.ProfileRevision, base.ProfileRevisionOut),
    (fit_answers.FitPlot, fits.FitPlotOut),
    (fit_answers.StagePlot, fits.StagePlotOut),
    (fit_answers.PlotPoints, fits.PlotPointsOut),
    (fit_answers.CurvePiece, fits.CurvePieceOut),
    (fit_answers.SignaturePlot, fits.SignaturePlotOut),
    (fit_answers.SignatureCurve, fits.SignatureCurveOut),
    (fit_answers.MeasurementPlan, measurement_plans.MeasurementPlanOut),
    (fit_answers.NextMeasurement, measurement_plans.NextMeasurementOut),
    (fit_answers.Transition, measurement_plans.TransitionOut),
    (fit_answers.KnownBottleneck, measurement_plans.KnownBottleneckOut),
    (errors.Problem, problems.ProblemOut),
    (errors.FieldProblem, problems.FieldProblemOut),
    (Pipeline, stages.PipelineOut),
    (FitRange, stages.RangeOut),
    (Constraints, stages.ConstraintsOut),
]


def names(kind: type) -> set[str]:
    """The fields of a dataclass."""
    return {one.name for one in fields(kind)}


@pytest.mark.parametrize(("kind", "model"), PAIRS, ids=lambda one: one.__name__)
def test_an_answer_has_every_field(kind: type, model: type) -> None:
    """That the service publishes, and no other."""
    assert names(kind) == names(model)


@pytest.mark.parametrize(
    ("kind", "later"),
    [
        (answers.Optimization, {"uncertainty"}),
        (answers.CompiledTable, {"uncertainty"}),
        (export_answers.Exported, {"chosen", "uncertainty"}),
        (
            export_answers.Audit,
            {"fit_warnings", "worst_of", "best_repeats_at_most", "in_draws", "uncertainty"},
        ),
    ],
)
def test_answers_of_earlier_versions_are_read(kind: type, later: set[str]) -> None:
    """Which lack these fields."""
    assert {one.name for one in fields(kind) if one.default is not MISSING} == later


def test_a_lookup_has_what_both_kinds_of_answer_have() -> None:
    """From a table all of it but the id; solved, all of it but the table."""
    found = names(answers.Schedule)
    assert found - {"id"} == names(schedules.TableScheduleOut)
    assert found - {"table"} <= names(optimize.OptimizeOut)


def public(kind: type) -> dict[str, Any]:
    """Methods that are offered."""
    return {name: value for name, value in vars(kind).items() if not name.startswith("_")}


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
