"""What a cap in use costs over the best cut of items, and what to set instead.

Source    docs/theory.md, "Items" and "The regret of a setting".
Notation  a sequence: the items of one message; shares: how often each is sent; the regret of a
          sequence is (T - T*) / T*, T of the cap's layout and T* of the best cut.
Cost      a solve a sequence, and the walk over the layouts of one cap: of several sequences
          together, every layout of each is priced.
Exact     latencies are the evaluator's. Regrets are intervals: over the best cut that was found,
          and over the proven bound.
Traps     the best cap of several sequences changes wherever the layout of any of them does. With
          `before` a cap below the largest item is no setting.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from analysis.audit import WORTH_SAYING, Reference, RegretVerdict, is_kept_by, verdict
from analysis.items import CAPS_S, ItemsQuestion, ItemsSolved, solve_items_question
from analysis.setting_price import Span
from contract.limits import DEFAULT_RELATIVE_GAP
from domain.items import CapChoice, FillRule, ItemProblem, layout
from domain.regret import Objective
from solvers.contract import Deadline

_ALL_CAPS_S = 10.0  # that the walks of all sequences may take


class ItemAdvice(StrEnum):
    """What would take less time than the cap in use, in the order of how easily it is set."""

    KEEP = "keep"  # nothing gains WORTH_SAYING
    ONE_CAP = "one_cap"  # another cap
    LIST = "list"  # the best cut itself


@dataclass(frozen=True, slots=True)
class ItemAuditQuestion:
    """What is audited: a cap, None for all items in one fragment, over sequences that are sent so
    often each, by weights. Picklable.
    """

    problems: tuple[ItemProblem, ...]
    weights: tuple[float, ...]
    cap_bytes: int | None
    fill: FillRule
    objective: Objective = Objective.TIME
    max_regret: float | None = None
    reference: Reference = Reference.BEST
    time_limit_s: float = 30.0

    def cap_of(self, problem: ItemProblem) -> int:
        """Return the cap in use, in bytes, as this sequence sees it."""
        return problem.sequence.total_bytes if self.cap_bytes is None else self.cap_bytes


@dataclass(frozen=True, slots=True)
class Regrets:
    """The regret of a cap: of the total time of all sequences, in the mean, and the worst."""

    time: Span
    mean: Span
    worst: Span

    def value(self, objective: Objective) -> Span:
        """Return the one that the objective speaks of."""
        by = {Objective.TIME: self.time, Objective.MEAN: self.mean, Objective.WORST: self.worst}
        return by[objective]


@dataclass(frozen=True, slots=True)
class PricedCaps:
    """Caps in bytes that cut every sequence alike, from the first to the last, None: any greater
    one, and what they cost. `is_complete`: all caps were looked at.
    """

    from_bytes: int
    to_bytes: int | None
    regrets: Regrets
    layouts: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class ItemAudit:
    """What an audit of a cap found. `sequences` are in the order of the question."""

    question: ItemAuditQuestion
    sequences: tuple[ItemsSolved, ...]
    regrets: Regrets
    best_cap: PricedCaps | None
    verdict: RegretVerdict | None
    changes: tuple[ItemAdvice, ...]
    audit_ms: float

    @property
    def is_kept(self) -> bool:
        """Whether the limit, if there is one, is kept by the reference that decides."""
        return is_kept_by(self.verdict, self.question.reference)

    @property
    def span(self) -> Span:
        """What is held against the limit."""
        return self.regrets.value(self.question.objective)


def audit_cap(question: ItemAuditQuestion) -> ItemAudit:
    """Price the cap in use and what may stand in its place. Raises Infeasible."""
    started_s = time.perf_counter()
    share_s = question.time_limit_s / len(question.problems)
    solved = tuple(
        solve_items_question(
            ItemsQuestion(
                problem,
                question.fill,
                DEFAULT_RELATIVE_GAP,
                share_s,
                question.cap_of(problem),
                caps_s=min(CAPS_S, _ALL_CAPS_S / len(question.problems)),
            )
        )
        for problem in question.problems
    )
    regrets = _regrets(question, solved, [_current_us(one) for one in solved])
    best = _best_cap(question, solved)
    return ItemAudit(
        question,
        solved,
        regrets,
        best,
        verdict(regrets.value(question.objective), question.max_regret),
        _changes(question, regrets, best),
        (time.perf_counter() - started_s) * 1e3,
    )


def _current_us(solved: ItemsSolved) -> float:
    assert solved.current is not None, "an audit has a cap in use"
    return solved.current.latency_us


def _changes(
    question: ItemAuditQuestion, regrets: Regrets, best: PricedCaps | None
) -> tuple[ItemAdvice, ...]:
    now = regrets.value(question.objective).at_least
    by_cap = now if best is None else best.regrets.value(question.objective).at_least
    found = []
    if now - by_cap >= WORTH_SAYING:
        found.append(ItemAdvice.ONE_CAP)
    if min(now, by_cap) >= WORTH_SAYING:
        found.append(ItemAdvice.LIST)
    return tuple(found) or (ItemAdvice.KEEP,)


def _regrets(
    question: ItemAuditQuestion, solved: Sequence[ItemsSolved], taken_us: Sequence[float]
) -> Regrets:
    """The regrets of these latencies, one a sequence, in µs."""
    rows = [
        (weight, us, one.best_us, one.solution.lower_bound_us)
        for one, us, weight in zip(solved, taken_us, question.weights, strict=True)
        if weight > 0.0
    ]
    total = sum(weight for weight, *_ in rows)
    spans = [(weight, excess_span(us, best, bound)) for weight, us, best, bound in rows]
    taken, best, bound = (sum(row[0] * row[place] for row in rows) / total for place in range(1, 4))
    return Regrets(
        excess_span(taken, best, bound),
        Span(
            sum(weight * span.at_least for weight, span in spans) / total,
            sum(weight * span.at_most for weight, span in spans) / total,
        ),
        Span(max(span.at_least for _, span in spans), max(span.at_most for _, span in spans)),
    )


def excess_span(latency_us: float, best_us: float, bound_us: float) -> Span:
    """Return by which shares a latency is above the best and above the bound; infinite over one of
    no time.
    """
    return Span(_excess(latency_us, best_us), _excess(latency_us, bound_us))


def _excess(latency_us: float, reference_us: float) -> float:
    if latency_us <= reference_us:
        return 0.0
    return latency_us / reference_us - 1.0 if reference_us > 0.0 else inf


# --- the best cap ---------------------------------------------------------------------------------


def _best_cap(question: ItemAuditQuestion, solved: Sequence[ItemsSolved]) -> PricedCaps | None:
    if len(solved) == 1:
        return _of_one(question, solved, solved[0].best_cap)
    tables = [_Layouts.of(problem, question.fill, len(solved)) for problem in question.problems]
    caps = sorted({cap for table in tables for cap in table.from_bytes})
    first = max(table.from_bytes[0] for table in tables)
    last = min(table.known_bytes for table in tables)
    best: tuple[float, int, int] | None = None
    looked_at = 0
    for place, cap in enumerate(caps):
        if not first <= cap <= last:
            continue
        looked_at += 1
        times = [table.latency_us(cap) for table in tables]
        if inf in times:
            continue
        value = _regrets(question, solved, times).value(question.objective).at_least
        if best is None or value < best[0]:
            best = value, cap, place
    if best is None:
        return None
    _, cap, place = best
    layouts = [layout(one.sequence, cap, question.fill) for one in question.problems]
    times = [
        problem.latency_us(cut) for problem, cut in zip(question.problems, layouts, strict=True)
    ]
    to_bytes = caps[place + 1] - 1 if place + 1 < len(caps) else None
    is_complete = all(table.known_bytes == inf for table in tables)
    regrets = _regrets(question, solved, times)
    return PricedCaps(cap, to_bytes, regrets, looked_at, is_complete)


def _of_one(
    question: ItemAuditQuestion, solved: Sequence[ItemsSolved], found: CapChoice | None
) -> PricedCaps | None:
    if found is None:
        return None
    regrets = _regrets(question, solved, [found.latency_us])
    return PricedCaps(found.from_bytes, found.to_bytes, regrets, found.layouts, found.is_complete)


@dataclass(frozen=True, slots=True)
class _Layouts:
    """Every layout that one cap gives of a sequence: from which cap on, and what it takes, in µs;
    infinite where the limits do not admit it. Caps above `known_bytes` were not looked at.
    """

    from_bytes: tuple[int, ...]
    latencies_us: tuple[float, ...]
    known_bytes: float

    @classmethod
    def of(cls, problem: ItemProblem, fill: FillRule, share: int) -> _Layouts:
        """Price them all, within a share of the time that caps may take."""
        from solvers.items.arrays import arrays_of, item_kernels
        from solvers.items.caps import layouts

        arrays, kernels, deadline = (
            arrays_of(problem),
            item_kernels(),
            Deadline.after(CAPS_S / share),
        )
        delay_us = problem.pipeline.delay_us
        starts, times, known = list[int](), list[float](), inf
        for one in layouts(problem, fill):
            is_admitted = problem.admits(one.cut)
            starts.append(one.from_bytes)
            times.append(kernels.latency_us(arrays, one.cut) + delay_us if is_admitted else inf)
            if deadline.passed and one.to_bytes is not None:
                known = one.to_bytes
                break
        return cls(tuple(starts), tuple(times), known)

    def latency_us(self, cap_bytes: int) -> float:
        """Return what the layout of this cap takes."""
        return self.latencies_us[bisect_right(self.from_bytes, cap_bytes) - 1]
