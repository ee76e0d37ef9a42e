"""What exports are made of, for tests of targets."""

from __future__ import annotations

from collections.abc import Mapping

from domain.fragment_setting import FragmentSetting, SettingStep
from domain.pipeline import Pipeline
from domain.regret import BestKnown, ChosenSetting, Objective, Regret
from domain.workload import Workload
from exports.table.slt import decode, digest_of, encode
from exports.targets.target import ExportInput, Takes, Target
from tests.support.plan_tables import a_line_pipeline, a_plan_table


def a_chosen(setting: FragmentSetting) -> ChosenSetting:
    """A setting with figures that nobody computed."""
    best = BestKnown(65536, 100.0, 99.0, 4096, 101.0)
    return ChosenSetting(
        setting,
        Objective.MEAN,
        Workload.log_uniform(1, 2**24),
        time_regret=0.02,
        time_at_most=0.021,
        mean_regret=0.0123,
        mean_at_most=0.0125,
        worst_regret=0.5,
        worst_at_most=0.51,
        at_powers=(Regret(best, setting.size_at(65536), 110.0),),
    )


def given_for(
    target: Target,
    options: Mapping[str, str] | None = None,
    *,
    pipeline: Pipeline | None = None,
    setting: FragmentSetting | None = None,
    profile: str = "lab-7",
) -> ExportInput:
    """What this target takes, and nothing else."""
    chosen, table, file, digest = None, None, b"", ""
    if target.takes in (Takes.ONE_SIZE, Takes.SIZE_STEPS):
        chosen = a_chosen(setting or a_setting(target))
    model = pipeline or a_line_pipeline()
    revision = 3 if profile else 0
    if target.takes is Takes.TABLE:
        file = encode(a_plan_table(pipeline=model), profile=profile, revision=revision)
        table, digest = decode(file), digest_of(file)
    return ExportInput(
        profile,
        revision,
        model,
        target.options_from(options or {}),
        chosen,
        table,
        digest,
        file,
    )


def a_setting(target: Target) -> FragmentSetting:
    """Sizes that this target's rule admits: one, or a list of size steps of three."""
    sizes = sizes_of(target)
    if target.takes is Takes.ONE_SIZE:
        return FragmentSetting.always(sizes[1])
    starts = (1, 100_000, 1_000_000)
    return FragmentSetting(tuple(SettingStep(*step) for step in zip(starts, sizes, strict=True)))


def sizes_of(target: Target) -> tuple[int, int, int]:
    """Three sizes, ascending, that this target's rule admits: the middle one a power of two."""
    rule = target.sizes
    wanted = (2**12, 2**16, 2**19)
    if any(not rule.min_bytes <= size <= rule.max_bytes for size in wanted):
        first = 1 << (rule.min_bytes - 1).bit_length()
        wanted = (
            first,
            min(first * 2, rule.max_bytes),
            min(first * 4, rule.max_bytes),
        )
    return wanted
