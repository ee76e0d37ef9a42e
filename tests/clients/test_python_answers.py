"""The Python clients' answers have every field that the service's outputs have."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import get_args

import pytest

from app.questions.compare import Interval
from app.schemas import (
    audit,
    base,
    compare,
    exports,
    fits,
    hide,
    jobs,
    layer_costs,
    layers,
    optimize,
    priced_cut,
    profiles,
    queries,
    settings_in_draws,
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
    Constraints,
    ExcludedSample,
    FitRange,
    Pipeline,
    SettingStep,
    answers,
    errors,
    export_answers,
    fit_answers,
    hide_answers,
    layer_answers,
    profile_answers,
    threshold_answers,
)
from sluice_client import uncertainty as uncertain

PAIRS: list[tuple[type, type]] = [
    (answers.Optimization, optimize.DeliveredOptimizeOut),
    (answers.SetThis, uncertainty.SetThisOut),
    (answers.StageDelivery, optimize.StageDeliveryOut),
    (answers.BestFixed, optimize.BestFixedOut),
    (answers.Baseline, optimize.BaselineOut),
    (answers.Explanation, explanations.ExplanationOut),
    (answers.PathShare, explanations.PathShareOut),
    (answers.Saving, explanations.SavingOut),
    (answers.OptimizationSummary, queries.SummaryOut),
    (answers.Comparison, compare.VerifiedCompareOut),
    (answers.ComparisonRow, compare.CompareRowOut),
    (answers.Interval, Interval),
    (answers.PathStep, simulate.PathStepOut),
    (threshold_answers.Thresholds, simulate.ThresholdsOut),
    (threshold_answers.MessageThresholds, simulate.MessageThresholdsOut),
    (threshold_answers.OneChoice, simulate.OneChoiceOut),
    (profile_answers.Profile, profiles.VerifiedProfileOut),
    (profile_answers.Revision, profiles.VerifiedRevisionOut),
    (profile_answers.Verification, profiles.VerificationOut),
    (profile_answers.VerifiedSize, profiles.VerifiedSizeOut),
    (profile_answers.Revisions, profiles.RevisionsOut),
    (profile_answers.Provenance, profiles.ProvenanceOut),
    (answers.Page, profiles.ProfilesOut),
    (profile_answers.CompiledTable, tables.TableOut),
    (profile_answers.TableSummary, tables.TableSummaryOut),
    (profile_answers.ProvenRange, tables.GapRangeOut),
    (profile_answers.CountRun, tables.CountRunOut),
    (export_answers.ExportTarget, exports.ExportTargetOut),
    (export_answers.Exported, exports.ExportedOut),
    (export_answers.ExportSizes, exports.ExportSizesOut),
    (export_answers.ExportOption, exports.ExportOptionOut),
    (answers.JobProgress, jobs.JobProgressOut),
    (answers.JobPoint, jobs.JobPointOut),
    (answers.BestSoFar, optimize.BestSoFarOut),
    (answers.Limits, queries.LimitsOut),
    (answers.Readiness, queries.ReadyOut),
    (answers.Key, queries.KeyOut),
    (answers.NewKey, queries.NewKeyOut),
    (answers.Keys, queries.KeysOut),
    (hide_answers.Hidden, hide.StoredHideOut),
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
    (export_answers.ComparedSetting, exports.ComparedSettingOut),
    (uncertain.Uncertainty, uncertainty.UncertaintyOut),
    (uncertain.Quantiles, uncertainty.QuantilesOut),
    (uncertain.Against, uncertainty.AgainstOut),
    (uncertain.RegretInDraws, uncertainty.RegretOut),
    (uncertain.GoodSizes, uncertainty.GoodSizesOut),
    (uncertain.RoundSize, uncertainty.RoundSizeOut),
    (uncertain.WorthMeasuring, uncertainty.MeasureOut),
    (uncertain.RestsOn, uncertainty.RestsOnOut),
    (uncertain.FileVote, uncertainty.FileVoteOut),
    (uncertain.SettingsInDraws, settings_in_draws.SettingsInDrawsOut),
    (uncertain.SettingInDraws, settings_in_draws.SettingInDrawsOut),
    (uncertain.Sensitivities, stages.SensitivitiesOut),
    (uncertain.StageSensitivity, stages.StageSensitivityOut),
    (uncertain.CostChange, stages.CostChangeOut),
    (uncertain.Slope, stages.SlopeOut),
    (uncertain.Robust, uncertainty.RobustOut),
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


def test_a_simulation_has_the_fields_of_every_kind() -> None:
    """Of stages, of stages that chose their pulses, and of an aggregate."""
    kinds = (simulate.DeliveredOut, priced_cut.PricedCutOut)
    assert names(answers.Simulation) == set().union(*map(names, kinds))


def test_a_job_has_the_fields_of_every_kind() -> None:
    """Each of which only jobs of its kind have."""
    assert names(answers.Job) == set().union(*map(names, get_args(jobs.AnyJobOut)))


@pytest.mark.parametrize(
    ("kind", "later"),
    [
        (
            answers.Optimization,
            {
                "uncertainty",
                "sensitivities",
                "set_this",
                "delivery",
                "ideal_us",
                "store_and_forward_us",
                "sustained_mb_per_s",
            },
        ),
        (profile_answers.CompiledTable, {"uncertainty"}),
        (export_answers.Exported, {"chosen", "uncertainty", "is_gain_known", "warnings"}),
        (
            export_answers.Audit,
            {
                "fit_warnings",
                "worst_of",
                "best_repeats_at_most",
                "in_draws",
                "uncertainty",
                "best_repeats_time",
                "schedules_time_at_most",
            },
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
