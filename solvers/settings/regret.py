"""The regret of a setting; the size, or the size steps, of least regret over a workload; and the
cut of least worst regret over draws of the costs.

Source    docs/theory.md, "The regret of a setting" and "A cut for uncertain costs".
Notation  B: messages; s: sizes; R: regrets (solvers/settings/sizes.py).
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
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting, SettingStep
from domain.model import CostModel
from domain.regret import BestKnown, ChosenSetting, Objective, Regret, SizeRule, share_over
from domain.workload import Workload
from solvers.contract import Deadline
from solvers.exact.lp.lines import PARAMETER_SETS, SparseModel, run_glop, sparse_matrix
from solvers.exact.structured import solve_count
from solvers.line_problem import LineProblem
from solvers.settings.sizes import (
    Ints,
    Sizes,
    WorkloadCosts,
    best_size,
    merged,
    over,
    repeated_latencies_us,
)

Floats = NDArray[np.float64]

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


# --- one cut over draws of the costs --------------------------------------------------------------

_MOST_SOLVES = 100
_WORST_DRAWS = 12  # whose longest paths are added in each step
_FIRST_RADIUS = 0.3  # of the mean size: how far a size may move in the first step
_TAKEN = 0.1  # of the decrease that a step promises: with less it is not taken
_WIDENED = 0.5  # with more the next may be twice as far


@dataclass(frozen=True, slots=True, eq=False)
class LinesInDraws:
    """Stages that are lines, in d draws: g, G (d, n) in µs and µs/byte, and what is to be reached.

    `best_us` (d,) is what regret is measured from, > 0; `delay_us` the delay in all draws. `B` is
    the message, `m` and `M` the least and the greatest size, bytes.
    """

    g: Floats
    G: Floats
    best_us: Floats
    delay_us: float
    B: float
    m: float
    M: float

    @classmethod
    def of(
        cls,
        lines: LineProblem,
        overhead_us: Floats,
        ns_per_byte: Floats,
        best_us: Floats,
        delay_us: float,
    ) -> LinesInDraws:
        """Return the same problem with the costs of each draw, (d, n)."""
        limits = (lines.B, lines.m, lines.M)
        return cls(overhead_us, ns_per_byte / 1000.0, best_us, delay_us, *limits)

    def regrets(self, x: Floats) -> Floats:
        """Return T/T* - 1 of sizes x (k,) in each draw, (d,)."""
        return self.paths(x)[0]

    def paths(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the regrets (d,), and of each draw's longest path the constant (d,) and the
        weight of each fragment's bytes (d, k), both as shares of T*.
        """
        d, n = self.g.shape
        k = len(x)
        left = np.zeros((n, d))  # when each stage is free
        from_before = np.zeros((k, n, d), dtype=bool)  # from the stage before, not the fragment
        for i in range(k):
            ahead = np.full(d, -np.inf) if i else np.zeros(d)
            for j in range(n):
                begins = np.maximum(ahead, left[j]) if i or j else ahead
                from_before[i, j] = ahead >= left[j] if i else j > 0
                ahead = left[j] = begins + self.g[:, j] + self.G[:, j] * x[i]
        constant = np.full(d, self.delay_us)
        weight = np.zeros((d, k))
        draws, at, stage = np.arange(d), np.full(d, k - 1), np.full(d, n - 1)
        for _ in range(k + n - 1):
            constant += self.g[draws, stage]
            weight[draws, at] += self.G[draws, stage]
            is_from_before = from_before[at, stage, draws]
            at, stage = at - ~is_from_before, stage - is_from_before
        scale = self.best_us
        return (left[-1] + self.delay_us) / scale - 1.0, constant / scale, weight / scale[:, None]


def best_cuts_us(
    lines: LineProblem, overhead_us: Floats, ns_per_byte: Floats, count: int
) -> Floats:
    """Return the latency in µs, without delay, of the best `count` real sizes in each draw, (d,).

    The costs are (d, n). Each is attained, and above its bound by 1e-9 of itself at most where the
    solve succeeds.
    """
    never = Deadline(float("inf"))
    drawn = zip(overhead_us, ns_per_byte / 1000.0, strict=True)
    found = (solve_count(replace(lines, g=g, G=G), count, never) for g, G in drawn)
    return np.array([one.upper_us for one in found])


@dataclass(frozen=True, slots=True, eq=False)
class CutInDraws:
    """Real sizes x (k,), their worst regret, and a proven lower bound on that of any k sizes."""

    x: Floats
    worst_regret: float
    lower_bound: float


def min_worst_regret(
    lines: LinesInDraws, start: Floats, deadline: Deadline, *, close: float = 1e-4
) -> CutInDraws:
    """Return the cut into len(start) fragments whose worst regret over the draws is least.

    A linear program over the longest paths seen so far, within a trust region about the best sizes
    so far, which it is kept within as long as its promises fail. Ends where the bound is `close`
    (absolute), at the deadline or after a hundred programs; the distance left is that of the two.
    """
    k = len(start)
    best, (regret, constant, weight) = start, lines.paths(start)
    worst = float(regret.max())
    rows = _Rows(weight[:0], constant[:0]).grown(regret, constant, weight)
    bound, radius = -1.0, _FIRST_RADIUS * lines.B / k
    for _ in range(_MOST_SOLVES):
        if worst - bound <= close or deadline.passed:
            break
        step = rows.solve(lines, best, radius, deadline)
        if step is None:
            break
        x, promised, shares = step
        bound = max(bound, rows.bound(lines, shares))
        regret, constant, weight = lines.paths(x)
        rows = rows.grown(regret, constant, weight)
        gained, expected = worst - float(regret.max()), worst - promised
        radius *= (
            2.0 if gained > _WIDENED * expected else 1.0 if gained > _TAKEN * expected else 0.5
        )
        if gained > 0.0:
            best, worst = x, worst - gained
        if expected <= close / 10.0:  # nothing near is better, so nothing is: widen for the bound
            radius = lines.B
    return CutInDraws(best, worst, min(bound, worst))


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Paths seen: regret >= constant + weight . x - 1 for all x, each of one draw."""

    weight: Floats
    constant: Floats

    def grown(self, regret: Floats, constant: Floats, weight: Floats) -> _Rows:
        """The same with the longest paths of the draws of most regret."""
        worst = np.argsort(-regret, kind="stable")[:_WORST_DRAWS]
        return _Rows(
            np.vstack([self.weight, weight[worst]]), np.append(self.constant, constant[worst])
        )

    def solve(
        self, lines: LinesInDraws, centre: Floats, radius: float, deadline: Deadline
    ) -> tuple[Floats, float, Floats] | None:
        """The best sizes near the centre, their regret by these paths, and the paths' multipliers.

        Sizes are in units of the mean one. None where the solver fails.
        """
        k, count = len(centre), len(self.constant)
        unit = lines.B / k
        low = np.maximum(centre - radius, lines.m) / unit
        high = np.minimum(centre + radius, lines.M) / unit
        rows, columns = np.indices((count, k))
        matrix = sparse_matrix(
            np.concatenate([(self.weight * unit).ravel(), np.full(count, -1.0), np.ones(k)]),
            np.concatenate([rows.ravel(), np.arange(count), np.full(k, count)]),
            np.concatenate([columns.ravel(), np.full(count, k), np.arange(k)]),
            shape=(count + 1, k + 1),
        )
        model = SparseModel(
            cost=np.append(np.zeros(k), 1.0),
            low=np.append(low, -np.inf),
            high=np.append(high, np.inf),
            row_low=np.append(np.full(count, -np.inf), float(k)),
            row_high=np.append(1.0 - self.constant, float(k)),
            matrix=matrix,
        )
        found = run_glop(model, PARAMETER_SETS[0], deadline)
        if found is None:
            return None
        values, multipliers = found
        x = np.clip(values[:k] * unit, lines.m, lines.M)
        free = x - lines.m if x.sum() > lines.B else lines.M - x
        x = x + (lines.B - x.sum()) * free / (free.sum() or 1.0)
        return x, float(values[k]), multipliers[:count]

    def bound(self, lines: LinesInDraws, multipliers: Floats) -> float:
        """The worst regret that no sizes are below: the paths weighted by any shares, and of that
        sum the least over sizes in [m, M], a fractional knapsack.
        """
        total = float(multipliers.sum())
        if not total > 0.0:
            return -1.0
        shares = multipliers / total
        w = np.sort(shares @ self.weight)
        k = len(w)
        filled = np.clip(
            lines.B - k * lines.m - (lines.M - lines.m) * np.arange(k), 0.0, lines.M - lines.m
        )
        value = float(shares @ self.constant) + lines.m * float(w.sum()) + float(filled @ w)
        return value * (1.0 - 1e-12) - 1.0  # what the sums may be wrong by
