"""What a decision by a pipeline's model is worth where nobody knows whether the stages overlap.

Source    docs/theory.md, "What overlaps". Of a mover that never idles and has no stage with several
          fragments at once a message takes no less than the chain's time, and no more than the sum
          of its fragments' times in all stages: what is faster by both is faster.
Traps     the bounds do not hold where a stage handles several fragments at once, which is asked.
          Where durations are of a mover whose structure is known, that decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.both_ways import LESS, alone, is_slower_by_file, serial_us
from analysis.decision import Choices, gains_over, is_certain, quantiles, share_of
from analysis.draw_costs import PricedSizes, repeated_us
from analysis.draws import Draws
from analysis.measure_next import REPETITIONS
from domain.default_sizes import ONE_PIECE
from domain.measured_times import MeasuredTimes
from domain.pipeline import Pipeline
from domain.structure import KnownOverlap, Structure
from domain.uncertain_answer import (
    BothWays,
    Decision,
    DecisionCode,
    Measurement,
    MeasurementKind,
    Quantiles,
    Reason,
    Thresholds,
)
from domain.uncertainty import NamedCut

Floats = NDArray[np.float64]
Refused = Callable[[Decision, NamedCut], Decision | None]

EITHER_WAY = "either way"  # the name of a size that is faster whether stages overlap or not
_NEARLY_AS_GOOD = 1.02  # of the best equal fragments' time, in the mean: a rounder size is told
_AS_GOOD = 1.01  # of the smallest quotient: a rounder size is as good


@dataclass(frozen=True, slots=True, eq=False)
class Ways:
    """Latencies in µs of sizes, (sizes, draws), and of the setting in use, (draws,), both ways."""

    sizes: NDArray[np.int64]
    chain_us: Floats
    serial_us: Floats
    now_chain_us: Floats
    now_serial_us: Floats

    def gains(self, place: int) -> tuple[Floats, Floats]:
        """What a size gains over the setting in use, 1 - T/T_other, (draws,), both ways."""
        return (
            gains_over(self.chain_us[place], self.now_chain_us),
            gains_over(self.serial_us[place], self.now_serial_us),
        )

    def both_ways(self, place: int, serial_place: int) -> BothWays:
        """The figures of a size if stages overlap, and of one if they do not."""
        return BothWays(
            int(self.sizes[place]),
            float(np.median(self.chain_us[place])),
            float(np.median(self.gains(place)[0])),
            int(self.sizes[serial_place]),
            float(np.median(self.serial_us[serial_place])),
            float(np.median(self.gains(serial_place)[1])),
        )


def held_to_overlap(
    decision: Decision,
    overlap: KnownOverlap,
    choices: Choices,
    draws: Draws,
    ways: Callable[[], Ways],
    message_bytes: int,
    *,
    rounder: Iterable[int] = (),
    refused: Refused = lambda _decision, _cut: None,
    knows: Callable[[NamedCut], bool] = lambda _cut: True,
) -> tuple[Decision, BothWays | None]:
    """Return the decision that is left where stages may not overlap, and the figures it rests on.

    `ways` prices what may be set both ways, where that is asked; `rounder` are sizes in bytes that
    are taken where they are as good, the roundest first; `refused` says what is to be measured
    before a cut is set, None where it may be; `knows` whether a cut's sizes were measured.
    """
    if draws.machine is not None:  # which says itself what overlaps
        return decision, None
    if overlap.structure is not None:
        return _held_to_structure(decision, overlap.structure, choices, draws, knows), None
    if not overlap.is_bare or draws.kind != Pipeline.kind:
        return decision, None
    if overlap.several_at_once:
        return _first(decision, Reason.SEVERAL_AT_ONCE), None
    if draws.stages < 2:
        return decision, None
    priced = ways()
    place = _best_either_way(priced, rounder)
    if place is not None:
        return _set_either_way(decision, overlap, choices, priced, place, message_bytes, refused)
    return _if_overlapping(decision, choices, priced, rounder)


def _held_to_structure(
    decision: Decision,
    structure: Structure,
    choices: Choices,
    draws: Draws,
    knows: Callable[[NamedCut], bool],
) -> Decision:
    """What was found is known of the traced sizes alone: a setting beside them is not kept for it,
    unless all stages are one, of which fewer fragments are never slower.
    """
    if not structure.is_priced:
        return _first(decision, Reason.STRUCTURE)
    current = choices.current
    is_kept = decision.code is DecisionCode.KEEP_YOURS and current is not None
    if not is_kept or draws.stages < 2 or current is None or knows(current.cut):
        return decision
    size = current.cut.size_bytes
    one = Measurement(MeasurementKind.STAGE, REPETITIONS, 0.0, draws.names[0], size)
    return replace(_first(decision, Reason.NOT_MEASURED), measure=one)


def slower_by_file(
    decision: Decision,
    choices: Choices,
    cut: NamedCut,
    times: MeasuredTimes | None,
    message_bytes: int,
) -> Decision | None:
    """Return that a cut is to be timed where by the file's own times it is no faster than the
    setting in use, one way or the other; None where it is, or there are no times.
    """
    other = choices.baseline.cut
    if not is_slower_by_file(cut, other, times, message_bytes):
        return None
    both = Measurement(MeasurementKind.WHOLE_MESSAGES, REPETITIONS, 0.0, cuts=(cut, other))
    return replace(_first(decision, Reason.UNDECIDED), measure=both)


def priced_both_ways(
    choices: Choices, draws: Draws, priced: PricedSizes, message_bytes: int
) -> Ways:
    """Return repeated sizes priced both ways."""
    taken_us = [
        repeated_us(alone(draws, stage), message_bytes, priced.sizes)
        for stage in range(draws.stages)
    ]
    baseline = choices.baseline
    return Ways(
        priced.sizes,
        priced.latency_us,
        np.sum(taken_us, axis=0) + draws.delay_us,
        baseline.latency_us,
        serial_us(draws, message_bytes, baseline.cut),
    )


def _best_either_way(ways: Ways, rounder: Iterable[int]) -> int | None:
    """The size whose worse quotient of the two is smallest; None where that gains too little."""
    quotient = np.maximum(
        ways.chain_us.mean(axis=1) / max(float(ways.now_chain_us.mean()), 1e-9),
        ways.serial_us.mean(axis=1) / max(float(ways.now_serial_us.mean()), 1e-9),
    )
    smallest = float(quotient.min())
    if smallest >= LESS:
        return None
    places = dict(zip(ways.sizes.tolist(), range(len(ways.sizes)), strict=True))
    limit = min(_AS_GOOD * smallest, LESS)
    as_good = (places[size] for size in rounder if size in places)
    return next((at for at in as_good if quotient[at] <= limit), int(quotient.argmin()))


def _set_either_way(
    decision: Decision,
    overlap: KnownOverlap,
    choices: Choices,
    ways: Ways,
    place: int,
    message_bytes: int,
    refused: Refused,
) -> tuple[Decision, BothWays]:
    gains = ways.gains(place)
    both = ways.both_ways(place, place)
    size = int(ways.sizes[place])
    cut = NamedCut(ONE_PIECE if size >= message_bytes else EITHER_WAY, size)
    thresholds = Thresholds(margin=decision.thresholds.margin)
    if not all(is_certain(one, thresholds) for one in gains):
        return _if_overlapping(decision, choices, ways)[0], both
    found = replace(
        decision,
        code=DecisionCode.SET_IT,
        reason=Reason.EITHER_WAY,
        advised=cut,
        against=choices.baseline.cut.name,
        probability=min(share_of(one > thresholds.margin) for one in gains),
        gain=min((quantiles(one) for one in gains), key=lambda one: one.p50),
        measure=None,
    )
    stopped = refused(found, cut)
    if stopped is not None:
        return stopped, both
    if overlap.several_at_once is None:
        return _first(found, Reason.ONE_AT_A_TIME), both
    return found, both


def _if_overlapping(
    decision: Decision, choices: Choices, ways: Ways, rounder: Iterable[int] = ()
) -> tuple[Decision, BothWays | None]:
    """What a pipeline's model sets is so only if stages overlap; so is a setting that it keeps,
    where one after another another size is faster.
    """
    if decision.code is DecisionCode.SET_IT:
        place = _place_of(decision.advised.size_bytes, choices, ways, rounder)
        return _first(decision, Reason.IF_OVERLAPPING), ways.both_ways(place, place)
    kept = choices.current
    if decision.code is not DecisionCode.KEEP_YOURS or kept is None or kept.cut.size_bytes is None:
        return decision, None
    best = int(ways.serial_us.mean(axis=1).argmin())
    gain = float(np.median(ways.gains(best)[1]))
    if gain <= 1.0 - LESS:
        return decision, None
    both = replace(
        ways.both_ways(best, best),
        size_bytes=kept.cut.size_bytes,
        latency_us=float(np.median(ways.now_chain_us)),
        gain=0.0,
    )
    found = replace(decision, advised=kept.cut, gain=Quantiles(0.0, 0.0, 0.0), probability=0.0)
    return _first(found, Reason.IF_OVERLAPPING), both


def _place_of(advised: int | None, choices: Choices, ways: Ways, rounder: Iterable[int]) -> int:
    """Where the advised size is; of uneven fragments the best equal ones, or round ones as good."""
    if advised is None:
        advised = choices.best.cut.size_bytes or 1
        places = dict(zip(ways.sizes.tolist(), range(len(ways.sizes)), strict=True))
        means_us = ways.chain_us.mean(axis=1)
        limit_us = _NEARLY_AS_GOOD * means_us[places[advised]] if advised in places else 0.0
        near = (one for one in rounder if one in places and means_us[places[one]] <= limit_us)
        advised = next(near, advised)
    return int(np.searchsorted(ways.sizes, min(advised, int(ways.sizes[-1]))))


def _first(decision: Decision, reason: Reason) -> Decision:
    return replace(decision, code=DecisionCode.MEASURE_FIRST, reason=reason, measure=None)
