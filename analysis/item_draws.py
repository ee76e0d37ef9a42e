"""How sure a cut of items is, over draws of the costs and of the ready times.

Source    docs/theory.md, "Items", draws. What can be set is the answer's cut and the layouts that
          one cap gives: all of them are priced on the same draws.
Notation  m items, n stages, d draws.
Cost      fragments times stages times draws; beyond `_CELLS` the layouts of least latency at the
          estimates alone are priced.
Traps     what items take by themselves in a stage counts as known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from analysis.decision import (
    Choices,
    PricedCut,
    advise,
    decide,
    gain_of,
    quantiles,
    savings_of,
    thresholds_of,
)
from analysis.draw_costs import mean_of, quantiles_of, regrets_over
from analysis.draws import Draws, draw, normals, uniforms
from analysis.items import ItemsQuestion, ItemsSolved, solve_items_question
from analysis.measure_next import REPETITIONS, measurements, saved_by_knowing_us
from analysis.overlap import Ways, held_to_overlap
from analysis.premise import held_back
from analysis.repeated_sizes import GOOD_IN_DRAWS, GOOD_WITHIN, good_in_draws
from analysis.rests_on import rests_on
from analysis.uncertainty import MANY_FRAGMENTS, MAX_MEASUREMENTS
from domain.default_sizes import CURRENT, ONE_PIECE
from domain.fit import cut_sizes
from domain.items import FillRule, ItemCut, ItemProblem, layout
from domain.uncertain_answer import (
    WORTH_LISTING,
    Against,
    Decision,
    DecisionCode,
    GoodSizes,
    Measurement,
    MeasurementKind,
    Reason,
    RegretFigures,
    Uncertainty,
)
from domain.uncertain_items import ItemErrors, SureItems
from domain.uncertainty import ANSWER, NamedCut, UncertainModel, seed_of, source_of
from solvers.items.arrays import arrays_of, item_kernels
from solvers.items.caps import LayoutList, list_layouts
from solvers.kernels.item_draws import ItemDraws
from solvers.kernels.items import PlainItems

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[np.intp]

BEST_CAP = "best cap"
LARGEST_CAP = "largest cap"
_READY_STREAM = 2**34  # beyond those of the stages, of means and of measurements' noise
_WALK, _ROOM = 4_000_000, 65_536  # fragments that are made, layouts that are listed
_CELLS, _PLAIN_CELLS = 100_000_000, 4_000_000  # fragments times stages times draws
_KEPT = 2_000_000  # latencies: layouts times draws
_LEADING = 64  # layouts among which one is chosen after a measurement


@dataclass(frozen=True, slots=True, eq=False)
class _Priced:
    """Layouts that were priced, by rising caps: their places in the list, (layouts,), and what they
    take in µs, (layouts, draws).
    """

    listed: LayoutList
    places: Places
    latency_us: Floats

    @property
    def caps(self) -> Ints:
        """The least cap of each, in bytes."""
        return self.listed.layouts.from_bytes[self.places]

    def row(self, at: int, name: str, total_bytes: int) -> PricedCut:
        """A layout by its cap; where it is one fragment, by the bytes of all items."""
        is_whole = self.listed.layouts.fragments[self.places[at]] == 1
        size = total_bytes if is_whole else int(self.caps[at])
        return PricedCut(NamedCut(ONE_PIECE if is_whole else name, size), self.latency_us[at])


def solve_in_draws(question: ItemsQuestion) -> ItemsSolved:
    """Solve, and say how sure that is. Raises Infeasible."""
    solved = solve_items_question(question)
    if question.errors is None:
        return solved
    cut, errors = solved.solution.cut, question.errors
    asked = question.problem, question.fill, cut, question.current_bytes
    return replace(solved, sure=assess_items(*asked, errors))


def assess_items(
    problem: ItemProblem,
    fill: FillRule,
    cut: ItemCut,
    current_bytes: int | None,
    errors: ItemErrors,
) -> SureItems | None:
    """Return how sure this cut is, beside every layout that a cap gives and the one in use; None
    where the limits admit no such layout. Raises Infeasible.
    """
    return _Assessed(problem, fill, cut, current_bytes, errors).found()


class _Assessed:
    """One answer in draws."""

    def __init__(
        self,
        problem: ItemProblem,
        fill: FillRule,
        cut: ItemCut,
        current_bytes: int | None,
        errors: ItemErrors,
    ) -> None:
        known = errors.known
        self._problem, self._fill, self._errors = problem, fill, errors
        self._model: UncertainModel = known.model
        self._seed = seed_of(known.model) if known.seed is None else known.seed
        sums_many = len(cut) >= MANY_FRAGMENTS
        self._draws = draw(known.model, known.draws, self._seed, sums_many=sums_many)
        self._factors = ready_factors(errors.ready_relative, known.draws, self._seed)
        self._thresholds = thresholds_of(known.misfit)
        self._cut, self._current_cut = (
            cut,
            None if current_bytes is None else self._layout(current_bytes),
        )
        self._current_bytes = current_bytes
        self._total = problem.sequence.total_bytes

    def _layout(self, cap_bytes: int) -> ItemCut:
        return layout(self._problem.sequence, cap_bytes, self._fill)

    def found(self) -> SureItems | None:
        """All that is said of it."""
        is_bare = self._errors.known.overlap.is_bare
        listed = list_layouts(self._problem, self._fill, work=_WALK, room=_ROOM)
        places, is_complete = self._chosen(listed, 2 if is_bare else 1)
        if not len(places):
            return None
        priced = _Priced(listed, places, self._layouts_us(listed, places))
        answer = PricedCut(self._named(ANSWER, self._cut), self._cuts_us([self._cut])[0])
        choices = self._choices(priced, answer)
        decision, to_measure, evpi_us = self._decided(priced, choices, answer)
        decision, both_ways = held_to_overlap(
            decision,
            self._errors.known.overlap,
            choices,
            self._draws,
            partial(self._both_ways, priced, choices),
            self._total,
            refused=self._refused,
        )
        regret = regrets_over(answer.latency_us, priced.latency_us.min(axis=0))
        others = [one for one in (choices.whole, choices.current) if one is not None]
        if choices.best.cut.name == BEST_CAP:
            others.append(choices.best)
        uncertainty = Uncertainty(
            source=source_of(self._model),
            draws=self._draws.count,
            seed=self._seed,
            decision=held_back(decision, self._model.model),
            subject=answer.cut,
            latency_us=quantiles(answer.latency_us),
            against=_against(answer, others),
            regret=RegretFigures(mean_of(regret), *quantiles_of(regret, (0.95, 1.0))),
            best_size_bytes=choices.best.cut.size_bytes or self._total,
            good_sizes=self._good_caps(priced),
            round_sizes=(),
            evpi_us=evpi_us,
            measure_next=to_measure,
            rests_on=rests_on(
                self._model,
                self._draws,
                self._total,
                answer,
                self._thresholds,
                lambda raised: self._price([self._cut], raised)[0],
            ),
            are_means=self._draws.are_means,
            overlap=self._errors.known.overlap,
            both_ways=both_ways,
        )
        return SureItems(
            uncertainty,
            self._errors.ready_relative,
            len(listed.layouts.from_bytes),
            len(places),
            is_complete and listed.is_complete,
            self._one_cap(priced, decision, uncertainty.best_size_bytes),
        )

    # --- prices -----------------------------------------------------------------------------------

    def _chosen(self, listed: LayoutList, ways: int) -> tuple[Places, bool]:
        """The admitted layouts that are priced, by rising caps: all that may be good in some draw;
        where these are too many, those of least latency at the estimates, and then False. Where
        there are such, those alone whose sizes were measured.
        """
        latency_us, fragments = listed.layouts.latency_us, listed.layouts.fragments
        order = np.argsort(latency_us, kind="stable")
        order = order[: int(np.isfinite(latency_us).sum())]
        order = self._measured(listed, order)
        if len(order):
            may_be_good = fragments[order] <= self._most_fragments(listed, order[:1])
            order = order[may_be_good | (np.arange(len(order)) == 0)]
        is_plain = isinstance(item_kernels(), PlainItems)
        cells = (_PLAIN_CELLS if is_plain else _CELLS) // ways
        each = len(self._problem.pipeline) * self._draws.count
        most = int(np.searchsorted(np.cumsum(fragments[order]) * each, cells, side="right"))
        most = min(max(most, 1), max(1, _KEPT // self._draws.count))
        return np.sort(order[:most]), most >= len(order)

    def _measured(self, listed: LayoutList, places: Places) -> Places:
        """Those of these layouts whose sizes, but for a remainder, were all measured; all of them
        where none is so.
        """
        between = self._errors.measured_bytes
        if between is None or not len(places):
            return places
        fragments = listed.layouts.fragments[places]
        last = np.cumsum(fragments) - 1
        first = last + 1 - fragments
        ends_bytes = arrays_of(self._problem).ends_bytes[listed.ends(places)]
        sizes = np.diff(ends_bytes, prepend=0)
        sizes[first] = ends_bytes[first]
        is_remainder = (fragments > 1) & (sizes[last] < sizes[last - 1])
        is_beside = (sizes < between[0]) | (sizes > between[1])
        is_beside[last] &= ~is_remainder
        beside: NDArray[np.bool_] = np.logical_or.reduceat(is_beside, first)
        return places if beside.all() else places[~beside]

    def _most_fragments(self, listed: LayoutList, known: Places) -> int:
        """Into how many fragments a layout may be cut at most that is near the best in some draw:
        with more, what some stage spends on them is more than 5 % above a known layout's latency.
        """
        draws, total = self._draws, self._total / 1000.0
        limit_us = (1.0 + GOOD_WITHIN[-1]) * self._layouts_us(listed, known)[0] - draws.delay_us
        most = np.full(draws.count, np.inf)
        for stage in range(draws.stages):
            ranges = slice(0, len(self._problem.pipeline.stages[stage].ranges))
            overhead_us = draws.overhead_us[stage, ranges].min(axis=0)
            bytes_us = draws.ns_per_byte[stage, ranges].min(axis=0) * total
            left_us = np.maximum(limit_us - bytes_us, 0.0)
            many = np.full(draws.count, np.inf)
            np.divide(left_us, overhead_us, out=many, where=overhead_us > 0.0)
            most = np.minimum(most, many)
        return int(min(most.max() + 1.0, float(len(self._problem.sequence))))

    def _layouts_us(self, listed: LayoutList, places: Places, *, is_serial: bool = False) -> Floats:
        of = self._item_draws(self._draws, is_serial=is_serial)
        return item_kernels().in_draws_us(of, listed.layouts.fragments[places], listed.ends(places))

    def _cuts_us(self, cuts: Sequence[ItemCut], *, is_serial: bool = False) -> Floats:
        return self._price(cuts, self._draws, is_serial=is_serial)

    def _price(self, cuts: Sequence[ItemCut], draws: Draws, *, is_serial: bool = False) -> Floats:
        """What these cuts take in these draws, (cuts, draws)."""
        of = self._item_draws(draws, is_serial=is_serial)
        fragments = np.array([len(cut) for cut in cuts])
        return item_kernels().in_draws_us(of, fragments, np.concatenate(cuts).astype(np.int64))

    def _item_draws(self, draws: Draws, *, is_serial: bool) -> ItemDraws:
        arrays = arrays_of(self._problem)
        own_us = np.zeros_like(arrays.spent_us)
        for stage, column in enumerate(self._problem.item_us):
            if column is not None:
                own_us[stage, 1:] = np.cumsum(column)
        return ItemDraws(
            draws.overhead_us,
            draws.ns_per_byte,
            draws.ends_bytes,
            draws.delay_us,
            arrays.ready_us,
            self._factors[: draws.count],
            arrays.ends_bytes,
            own_us,
            is_serial,
        )

    # --- what is chosen among ---------------------------------------------------------------------

    def _named(self, name: str, cut: ItemCut) -> NamedCut:
        return NamedCut.of_fragments(name, self._problem.sequence.fragment_bytes(cut))

    def _choices(self, priced: _Priced, answer: PricedCut) -> Choices:
        """The best cap is expected to take least; the answer's cut is advised in its place where it
        gains 1 % over it in 95 % of the draws.
        """
        means_us = priced.latency_us.mean(axis=1)
        best = priced.row(int(means_us.argmin()), BEST_CAP, self._total)
        fragments = priced.listed.layouts.fragments[priced.places]
        several = np.flatnonzero(fragments > 1)
        cut = None
        if len(several):
            fastest = several[means_us[several].argmin()]
            cut = priced.row(int(fastest), BEST_CAP, self._total)
        gain = gain_of(answer.latency_us, best.latency_us)
        is_better = cut is None or gain.p05 >= self._thresholds.uneven_gain
        if len(self._cut) > 1 and is_better and (cut is None or not self._beside(answer.cut)):
            cut = answer
        one = (len(self._problem.sequence),)
        whole = None
        if self._problem.admits(one):
            whole = PricedCut(NamedCut(ONE_PIECE, self._total), self._cuts_us([one])[0])
        largest = priced.row(len(priced.places) - 1, LARGEST_CAP, self._total)
        return Choices(best, cut, whole, self._current(), largest)

    def _current(self) -> PricedCut | None:
        """The cap in use; None where there is none, and where the limits forbid it."""
        cut = self._current_cut
        if cut is None or not self._problem.admits(cut):
            return None
        size = self._total if len(cut) == 1 else self._current_bytes
        return PricedCut(NamedCut(CURRENT, size), self._cuts_us([cut])[0])

    # --- what is decided --------------------------------------------------------------------------

    def _decided(
        self, priced: _Priced, choices: Choices, answer: PricedCut
    ) -> tuple[Decision, tuple[Measurement, ...], float]:
        thresholds, best_us = self._thresholds, priced.latency_us.min(axis=0)
        advice = advise(choices, thresholds)
        mean_us = min(mean_of(choices.best.latency_us), mean_of(answer.latency_us))
        evpi_us = saved_by_knowing_us(mean_us, np.minimum(best_us, answer.latency_us))
        to_measure: tuple[Measurement, ...] = ()
        if evpi_us > WORTH_LISTING * mean_of(best_us):
            to_measure = self._measurements(priced, choices, answer)
        decision = decide(
            choices,
            advice,
            best_us=np.minimum(best_us, advice.advised.latency_us),
            evpi_us=evpi_us,
            measurement=next(iter(to_measure), None),
            thresholds=thresholds,
        )
        if decision.code is DecisionCode.SET_IT:
            decision = self._refused(decision, decision.advised) or decision
        first = [] if decision.measure is None else [decision.measure]
        listed = (*first, *(one for one in to_measure if one not in first))[:MAX_MEASUREMENTS]
        return decision, listed, evpi_us

    def _measurements(
        self, priced: _Priced, choices: Choices, answer: PricedCut
    ) -> tuple[Measurement, ...]:
        """Stages at sizes that were not measured, and whole messages in two ways by turns."""
        leading = np.argsort(priced.latency_us.mean(axis=1), kind="stable")[:_LEADING]
        among = np.concatenate([priced.latency_us[leading], answer.latency_us[None]])
        pairs = [] if choices.best.cut == answer.cut else [(answer, choices.best)]
        others = [one for one in (choices.whole, choices.current) if one is not None]
        if choices.cut is not None:
            pairs += [(choices.cut, other) for other in others if other.cut != choices.cut.cut]
        return measurements(
            self._model.stages,
            self._draws,
            among,
            pairs,
            largest_bytes=max(self._problem.sequence.fragment_bytes(self._cut)),
            seed=self._seed,
        )

    def _refused(self, decision: Decision, cut: NamedCut) -> Decision | None:
        """That sizes of a cut are to be measured first, None where they were or nothing was."""
        beside = self._beside(cut)
        if not beside:
            return None
        names = self._draws.names
        one = Measurement(MeasurementKind.STAGE, REPETITIONS, 0.0, names[0], max(beside))
        return replace(
            decision, code=DecisionCode.MEASURE_FIRST, reason=Reason.NOT_MEASURED, measure=one
        )

    def _beside(self, cut: NamedCut) -> list[int]:
        """The sizes of a cut that were not measured."""
        if self._errors.measured_bytes is None:
            return []
        low, high = self._errors.measured_bytes
        return [size for size in cut_sizes(self._sizes(cut)) if not low <= size <= high]

    def _sizes(self, cut: NamedCut) -> tuple[int, ...]:
        if cut.schedule is not None:
            return cut.schedule.stage_bytes[0]
        ends = self._layout(cut.size_bytes or self._total)
        return self._problem.sequence.fragment_bytes(ends)

    def _both_ways(self, priced: _Priced, choices: Choices) -> Ways:
        """Layouts if stages overlap, and if they work one after another."""
        baseline = choices.baseline
        ends = self._current_cut if choices.current else self._layout(baseline.cut.size_bytes or 1)
        assert ends is not None
        return Ways(
            priced.caps,
            priced.latency_us,
            self._layouts_us(priced.listed, priced.places, is_serial=True),
            baseline.latency_us,
            self._cuts_us([ends], is_serial=True)[0],
        )

    # --- caps -------------------------------------------------------------------------------------

    def _good_caps(self, priced: _Priced) -> tuple[GoodSizes, ...]:
        """Caps within 1, 2 and 5 % of the best cap of a draw in 90 % of the draws: a layout that
        was not priced counts as not good.
        """
        best_us = priced.latency_us.min(axis=0)
        found = []
        for within in GOOD_WITHIN:
            good = priced.places[good_in_draws(priced.latency_us, (1.0 + within) * best_us)]
            intervals = [self._bounds(priced, place) for place in good.tolist()]
            found.append(GoodSizes(within, GOOD_IN_DRAWS, _joined(intervals)))
        return tuple(found)

    def _bounds(self, priced: _Priced, place: int) -> tuple[int, int]:
        low, high = int(priced.listed.layouts.from_bytes[place]), priced.listed.to_bytes(place)
        return low, max(low, self._total) if high is None else high

    def _one_cap(
        self, priced: _Priced, decision: Decision, best_bytes: int
    ) -> tuple[int, int | None]:
        """The caps of the layout that is advised, or where the cap in use or no cap is, of the best
        one.
        """
        advised = decision.advised
        is_other = advised.size_bytes is not None and advised.name != CURRENT
        cap_bytes = advised.size_bytes if is_other else best_bytes
        caps = priced.listed.layouts.from_bytes
        place = max(0, int(np.searchsorted(caps, cap_bytes or 1, side="right")) - 1)
        return int(caps[place]), priced.listed.to_bytes(place)


def ready_factors(relative: float, count: int, seed: int) -> Floats:
    """Return by what all ready times of each draw are multiplied, (draws,): lognormal with this
    deviation, of which the first is 1.
    """
    scores = normals(uniforms(seed, _READY_STREAM, count, 2))[0]
    factors: Floats = np.exp(relative * scores)
    factors[0] = 1.0
    return factors


def _against(subject: PricedCut, others: Sequence[PricedCut]) -> tuple[Against, ...]:
    if not others:
        return ()
    found = savings_of(subject.latency_us, np.array([one.latency_us for one in others]))
    return tuple(
        Against(other.cut.name, other.cut.size_bytes, probability, saves)
        for other, (probability, saves) in zip(others, found, strict=True)
    )


def _joined(intervals: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Intervals that ascend, those that touch as one."""
    found: list[tuple[int, int]] = []
    for low, high in intervals:
        if found and found[-1][1] + 1 >= low:
            found[-1] = found[-1][0], high
        else:
            found.append((low, high))
    return tuple(found)
