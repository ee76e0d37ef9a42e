"""The Python clients' answers have every field that the service's outputs have."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import get_args

import pytest

from contract import answers as stored_answers
from contract import (
    audit,
    compare,
    crossover,
    export,
    jobs,
    keys,
    layer,
    layer_costs,
    optimize,
    plan,
    problem,
    profiles,
    schedule,
    sensitivities,
    service,
    setting,
    settings_in_draws,
    simulate,
    table,
    uncertainty,
    verification,
)
from contract.constraints import ConstraintsOut
from contract.fit import (
    AggregateFitOut,
    CurvePieceOut,
    EstimateOut,
    ExcludedSampleOut,
    FitOut,
    FitPlotOut,
    FittedPipelineOut,
    LineFitOut,
    LogGPFitOut,
    LogGPParametersOut,
    PlotPointsOut,
    SignatureCurveOut,
    SignaturePlotOut,
    SizeFitOut,
    StageFitOut,
    StagePlotOut,
)
from contract.hide import (
    BestProcessesOut,
    GammaWindowOut,
    HiddenCountOut,
    LatencyOptimalOut,
    ProcessPointOut,
    StoredHideOut,
)
from contract.notices import NoticeOut
from contract.pipeline import PipelineOut, RangeOut
from contract.profile import ProfileRevisionOut
from contract.thresholds import MessageThresholdsOut, OneChoiceOut, ThresholdsOut
from sluice_client import (
    Constraints,
    ExcludedSample,
    FitRange,
    Pipeline,
    SettingStep,
    answers,
    crossover_answers,
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
    (answers.Explanation, compare.ExplanationOut),
    (answers.PathShare, compare.PathShareOut),
    (answers.Saving, compare.SavingOut),
    (answers.OptimizationSummary, stored_answers.SummaryOut),
    (answers.Comparison, compare.VerifiedCompareOut),
    (answers.ComparisonRow, compare.CompareRowOut),
    (answers.Interval, simulate.Interval),
    (answers.PathStep, simulate.PathStepOut),
    (threshold_answers.Thresholds, ThresholdsOut),
    (threshold_answers.MessageThresholds, MessageThresholdsOut),
    (threshold_answers.OneChoice, OneChoiceOut),
    (crossover_answers.Crossovers, crossover.CrossoverOut),
    (crossover_answers.CrossoverPath, crossover.CrossoverPathOut),
    (crossover_answers.FasterRun, crossover.FasterRunOut),
    (crossover_answers.CrossoverAt, crossover.CrossoverAtOut),
    (crossover_answers.ThresholdPrice, crossover.ThresholdPriceOut),
    (crossover_answers.TimedByBoth, crossover.TimedByBothOut),
    (crossover_answers.PathSetting, crossover.PathSettingOut),
    (profile_answers.Profile, profiles.VerifiedProfileOut),
    (profile_answers.Revision, profiles.VerifiedRevisionOut),
    (profile_answers.Verification, verification.VerificationOut),
    (profile_answers.VerifiedSize, verification.VerifiedSizeOut),
    (profile_answers.Revisions, profiles.RevisionsOut),
    (profile_answers.Provenance, profiles.ProvenanceOut),
    (answers.Page, profiles.ProfilesOut),
    (profile_answers.CompiledTable, table.TableOut),
    (profile_answers.TableSummary, table.TableSummaryOut),
    (profile_answers.ProvenRange, table.GapRangeOut),
    (profile_answers.CountRun, table.CountRunOut),
    (export_answers.ExportTarget, export.ExportTargetOut),
    (export_answers.Exported, export.ExportedOut),
    (export_answers.ExportSizes, export.ExportSizesOut),
    (export_answers.ExportOption, export.ExportOptionOut),
    (answers.JobProgress, jobs.JobProgressOut),
    (answers.JobPoint, jobs.JobPointOut),
    (answers.BestSoFar, optimize.BestSoFarOut),
    (answers.Limits, service.LimitsOut),
    (answers.Readiness, service.ReadyOut),
    (answers.Key, keys.KeyOut),
    (answers.NewKey, keys.NewKeyOut),
    (answers.Keys, keys.KeysOut),
    (hide_answers.Hidden, StoredHideOut),
    (hide_answers.HiddenCount, HiddenCountOut),
    (hide_answers.LatencyOptimal, LatencyOptimalOut),
    (hide_answers.GammaWindow, GammaWindowOut),
    (hide_answers.BestProcesses, BestProcessesOut),
    (hide_answers.ProcessPoint, ProcessPointOut),
    (export_answers.Audit, audit.AuditOut),
    (export_answers.AuditRow, audit.AuditRowOut),
    (export_answers.AuditedWorkload, audit.AuditWorkloadOut),
    (export_answers.PricedSetting, audit.PricedOut),
    (export_answers.Regret, audit.SpanOut),
    (export_answers.ChosenSizes, export.ChosenOut),
    (export_answers.ComparedSetting, export.ComparedSettingOut),
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
    (uncertain.Sensitivities, sensitivities.SensitivitiesOut),
    (uncertain.StageSensitivity, sensitivities.StageSensitivityOut),
    (uncertain.CostChange, sensitivities.CostChangeOut),
    (uncertain.Slope, sensitivities.SlopeOut),
    (uncertain.Robust, uncertainty.RobustOut),
    (SettingStep, setting.SettingStepOut),
    (layer_answers.LayerComponent, layer.ComponentOut),
    (layer_answers.Layer, layer.LayerOut),
    (layer_answers.Disagreement, layer.DisagreementOut),
    (layer_answers.PublishedLayer, layer.PublishedLayerOut),
    (layer_answers.LayerSummary, layer.LayerSummaryOut),
    (layer_answers.LayerStages, layer_costs.LayerStagesOut),
    (layer_answers.FeatureStages, layer_costs.FeatureStagesOut),
    (layer_answers.ServiceCost, layer_costs.ServiceCostOut),
    (layer_answers.FullPackets, layer_costs.FullPacketsOut),
    (layer_answers.PacketSize, layer_costs.PacketSizeOut),
    (layer_answers.BestCut, layer_costs.BestCutOut),
    (layer_answers.FeatureSaving, layer_costs.FeatureSavingOut),
    (layer_answers.MessageCosts, layer_costs.MessageCostsOut),
    (layer_answers.LayerCosts, layer_costs.LayerCostsOut),
    (fit_answers.Fit, FitOut),
    (ExcludedSample, ExcludedSampleOut),
    (fit_answers.FittedPipeline, FittedPipelineOut),
    (fit_answers.FittedAggregate, AggregateFitOut),
    (fit_answers.FittedStage, StageFitOut),
    (fit_answers.FittedLine, LineFitOut),
    (fit_answers.FittedSize, SizeFitOut),
    (fit_answers.Estimate, EstimateOut),
    (fit_answers.LogGPFit, LogGPFitOut),
    (fit_answers.LogGPParameters, LogGPParametersOut),
    (fit_answers.Notice, NoticeOut),
    (fit_answers.ProfileRevision, ProfileRevisionOut),
    (fit_answers.FitPlot, FitPlotOut),
    (fit_answers.StagePlot, StagePlotOut),
    (fit_answers.PlotPoints, PlotPointsOut),
    (fit_answers.CurvePiece, CurvePieceOut),
    (fit_answers.SignaturePlot, SignaturePlotOut),
    (fit_answers.SignatureCurve, SignatureCurveOut),
    (fit_answers.MeasurementPlan, plan.MeasurementPlanOut),
    (fit_answers.NextMeasurement, plan.NextMeasurementOut),
    (fit_answers.Transition, plan.TransitionOut),
    (fit_answers.KnownBottleneck, plan.KnownBottleneckOut),
    (errors.Problem, problem.ProblemOut),
    (errors.FieldProblem, problem.FieldProblemOut),
    (Pipeline, PipelineOut),
    (FitRange, RangeOut),
    (Constraints, ConstraintsOut),
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
    kinds = (simulate.DeliveredOut, simulate.PricedCutOut)
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
    assert found - {"id"} == names(schedule.TableScheduleOut)
    assert found - {"table"} <= names(optimize.OptimizeOut)
