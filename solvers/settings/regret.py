"""The size, or the size steps, of least regret over a workload.

Source    docs/theory.md, "The regret of a setting".
Notation  B: messages; s: sizes; R: regrets (solvers/settings/costs.py).
Cost      see solvers/settings/sizes.py; a list of size steps costs what its octaves cost together.
Exact     regrets are the evaluator's; what is exact about a size is said in sizes.py. A list of
          size steps is the best size of each octave, then merged greedily: no claim beyond its
          regret.
Traps     messages outside the workload's range follow its first and its last step. Where messages
          are best sent whole, the size is the power of two above them, not the largest of the
          workload: one between that and the octave's end would have a tiny second fragment.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting, SettingStep
from domain.model import CostModel
from domain.regret import BestKnown, ChosenSetting, Objective, Regret, SizeRule, share_over
from domain.workload import Workload
from solvers.settings.costs import WorkloadCosts, over, repeated_latencies_us
from solvers.settings.merging import merged
from solvers.settings.sizes import Ints, Sizes, best_size

MERGE_REGRET = 1e-3  # a step is dropped where that adds less than this to its messages' regret


def regrets(
    pipeline: CostModel, setting: FragmentSetting, best: Sequence[BestKnown]
) -> tuple[Regret, ...]:
    """Return the setting's regret on each of these messages, in their order."""
    sizes = [setting.size_at(one.message_bytes) for one in best]
    s = np.array(sizes, dtype=np.int64)
    B = np.array([one.message_bytes for one in best], dtype=np.int64)
    latency_us = repeated_latencies_us(pipeline, s, B).tolist() if best else []
    return tuple(Regret(*row) for row in zip(best, sizes, latency_us, strict=True))


def choose_size(
    pipeline: CostModel,
    best: Sequence[BestKnown],
    workload: Workload,
    *,
    rule: SizeRule,
    objective: Objective = Objective.MEAN,
) -> ChosenSetting:
    """Return the admitted size of which the objective says least over the workload; of equals the
    largest.

    `best` has each size of the workload and each power of two in its range. Raises InvalidInput
    where one of the workload is missing or the rule admits no size.
    """
    costs = WorkloadCosts.of(pipeline, best, workload, objective=objective)
    whole = 1 << (int(costs.B[-1]) - 1).bit_length()
    size = best_size(costs, Sizes.of(rule, whole), also=_known_sizes(best))
    return _chosen(costs, FragmentSetting.always(size), best, workload)


def choose_size_steps(
    pipeline: CostModel,
    best: Sequence[BestKnown],
    workload: Workload,
    *,
    rule: SizeRule,
    objective: Objective = Objective.MEAN,
    max_steps: int = 24,
) -> ChosenSetting:
    """Return a size for each octave of messages, neighbours merged where a size serves both.

    Two neighbours become one step where one of their sizes costs less than MERGE_REGRET more over
    their messages, the cheapest merger first, and as long as there are more than `max_steps`.
    Raises InvalidInput as `choose_size` does, and for less than one step.
    """
    if max_steps < 1:
        raise InvalidInput("expected max_steps >= 1", field="max_steps")
    costs = WorkloadCosts.of(pipeline, best, workload, objective=objective)
    also = _known_sizes(best)
    octaves = [costs.part(1 << bit, (2 << bit) - 1) for bit in range(int(costs.B[-1]).bit_length())]
    octaves = [octave for octave in octaves if len(octave.B)]
    wholes = [1 << int(octave.B[-1]).bit_length() for octave in octaves]
    sizes = [
        best_size(octave, Sizes.of(rule, whole), also=also)
        for octave, whole in zip(octaves, wholes, strict=True)
    ]
    steps = merged(octaves, sizes, merge_regret=MERGE_REGRET, max_steps=max_steps)
    begins = [1, *(1 << (int(octaves[at].B[0]).bit_length() - 1) for at, _ in steps[1:])]
    setting = FragmentSetting(
        tuple(SettingStep(begin, size) for begin, (_, size) in zip(begins, steps, strict=True))
    )
    return _chosen(costs, setting, best, workload)


def _chosen(
    costs: WorkloadCosts, setting: FragmentSetting, best: Sequence[BestKnown], workload: Workload
) -> ChosenSetting:
    s = np.array([setting.size_at(int(size)) for size in costs.B], dtype=np.int64)
    latency_us = repeated_latencies_us(costs.model, s, costs.B)
    bounds = {one.message_bytes: one.lower_bound_us for one in best}
    bound_us = np.array([bounds[int(size)] for size in costs.B])
    R = over(latency_us, costs.min_us)
    at_most = np.maximum(R, over(latency_us, bound_us))
    totals_us = ((us * costs.w).sum() for us in (latency_us, costs.min_us, bound_us))
    taken_us, best_us, proven_us = map(float, totals_us)
    time_regret = share_over(taken_us, best_us)
    low, high = workload.sizes[0].message_bytes, workload.sizes[-1].message_bytes
    powers = [one for one in best if one.message_bytes.bit_count() == 1]
    at_powers = [one for one in powers if low <= one.message_bytes <= high]
    return ChosenSetting(
        setting=setting,
        objective=costs.objective,
        workload=workload,
        time_regret=time_regret,
        time_at_most=max(time_regret, share_over(taken_us, proven_us)),
        mean_regret=float((R * costs.w).sum() / costs.w.sum()),
        mean_at_most=float((at_most * costs.w).sum() / costs.w.sum()),
        worst_regret=float(R.max()),
        worst_at_most=float(at_most.max()),
        at_powers=regrets(costs.model, setting, at_powers),
    )


def _known_sizes(best: Sequence[BestKnown]) -> Ints:
    """The best repeated sizes of single messages: often good for their neighbours too."""
    return np.array([one.repeat_bytes for one in best if one.repeat_bytes], dtype=np.int64)
