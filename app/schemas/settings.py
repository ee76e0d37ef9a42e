"""Settings and workloads as they are sent, and a workload as the domain has it."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from app.schemas.base import same_named
from contract.setting import SettingStepOut
from contract.workload import WorkloadSizeIn
from domain.errors import InconsistentInput, InvalidInput
from domain.fragment_setting import FragmentSetting
from domain.workload import Workload


def workload_of(sizes: Sequence[WorkloadSizeIn]) -> Workload:
    """Return the workload that is given. Raises InconsistentInput."""
    weights = [(size.message_bytes, size.weight) for size in sizes]
    try:
        return Workload.weighted(weights, f"the given workload of {len(weights)} sizes")
    except InvalidInput as refusal:
        raise InconsistentInput(refusal.detail, field="workload") from None


def steps_out(setting: FragmentSetting) -> tuple[SettingStepOut, ...]:
    """Return the steps of a setting as they are sent."""
    return tuple(same_named(SettingStepOut, step) for step in setting.steps)


def finite(share: float | None) -> float | None:
    """Return a regret, None for one without end: of an optimum of the model that takes no time."""
    return share if share is not None and isfinite(share) else None
