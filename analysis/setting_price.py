"""What a setting costs on a workload: its total time, its mean and its worst regret.

Every figure is an interval: at least what the best schedules found gain, at most what proven bounds
leave open.

Derivation of the total time: with shares w, any schedules take T* >= L on each message, so that
sum(w T*) >= sum(w L), and sum(w T) / sum(w T*) - 1 <= sum(w T) / sum(w L) - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import solvers
from domain.fragment_setting import FragmentSetting
from domain.model import CostModel
from domain.regret import BestKnown, Objective, Regret, share_over
from domain.workload import Workload


@dataclass(frozen=True, slots=True)
class Span:
    """A regret as far as it is known: over the best found, and over the proven bound. Shares."""

    at_least: float
    at_most: float


@dataclass(frozen=True, slots=True)
class Averages:
    """By how much messages take longer than the best: `time` is that of the total time of all of
    them, `mean` the mean of each message's regret.
    """

    time: Span
    mean: Span

    def value(self, objective: Objective) -> Span:
        """Return the one that the objective speaks of; of the worst regret the mean."""
        return self.time if objective is Objective.TIME else self.mean


@dataclass(frozen=True, slots=True)
class Priced:
    """A setting, what it costs over the workload, and the message where its regret is worst.

    No message that was looked at has a regret above `worst_at_most`.
    """

    setting: FragmentSetting
    averages: Averages
    worst: Regret
    worst_at_most: float

    @property
    def time(self) -> Span:
        """The regret of the total time."""
        return self.averages.time

    @property
    def mean(self) -> Span:
        """The mean regret."""
        return self.averages.mean

    @property
    def worst_span(self) -> Span:
        """The worst regret over the best found, and the worst of any message over its bound."""
        return Span(self.worst.over_best, self.worst_at_most)

    def value(self, objective: Objective) -> Span:
        """Return the span that the objective speaks of."""
        if objective is Objective.WORST:
            return self.worst_span
        return self.averages.value(objective)


def price(
    model: CostModel,
    setting: FragmentSetting,
    best: Sequence[BestKnown],
    workload: Workload,
    *,
    also: Sequence[int] = (),
) -> Priced:
    """Return what a setting costs over a workload, and the worst in it or at the sizes `also`.

    Messages without a share do not count.
    """
    counted = [size.message_bytes for size in workload.sizes if size.share > 0.0]
    found = solvers.regrets(model, setting, of_sizes(best, counted))
    looked_at = (*found, *solvers.regrets(model, setting, of_sizes(best, also)))
    worst = max(looked_at, key=lambda one: one.over_best)
    worst_at_most = max(one.at_most for one in looked_at)
    return Priced(setting, averages_of(found, workload), worst, worst_at_most)


def averages_of(regrets: Sequence[Regret], workload: Workload) -> Averages:
    """Return what messages cost over a workload; those without a share in it do not count."""
    known = {one.message_bytes: one for one in regrets}
    counted = [
        (size.share, known[size.message_bytes]) for size in workload.sizes if size.share > 0.0
    ]
    taken_us, best_us, bound_us = (
        sum(share * us for share, us in column)
        for column in (
            [(share, one.latency_us) for share, one in counted],
            [(share, one.best.latency_us) for share, one in counted],
            [(share, one.best.lower_bound_us) for share, one in counted],
        )
    )
    time = share_over(taken_us, best_us)
    mean = sum(share * one.over_best for share, one in counted)
    at_most = sum(share * one.at_most for share, one in counted)
    return Averages(
        Span(time, max(time, share_over(taken_us, bound_us))), Span(mean, max(mean, at_most))
    )


def of_sizes(best: Sequence[BestKnown], sizes: Sequence[int]) -> tuple[BestKnown, ...]:
    """Return the best known of these messages, in their order."""
    known = {one.message_bytes: one for one in best}
    return tuple(known[size] for size in sizes)


def span_of(regret: Regret) -> Span:
    """Return one message's regret as far as it is known."""
    return Span(regret.over_best, regret.at_most)
