"""Thresholds and pulse sizes over a grid: each priced, the best of each message, the best for all.

Source    Yocum97 sec. 4.1 and 4.2: latency by pulse size and by threshold, both stages varied. The
          best single choice for a mix of messages is our own.
Notation  a choice: one size for each stage that varies; m: messages; c: choices.
Cost      m c deliveries, each O(pulses), largest sizes first; the deadline leaves out the
          smallest, and a notice says so.
Exact     each latency is the evaluator's on whole bytes. The best is the best of the grid alone:
          latencies are not monotone in thresholds (theory sec. 20), so nothing is interpolated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from math import prod
from time import monotonic

from contract.limits import MAX_EVALUATIONS
from domain.delivery import (
    Delivery,
    DeliveryRule,
    deliver,
    ideal_us,
    store_and_forward_us,
)
from domain.errors import InconsistentInput, Infeasible, InvalidInput, StrategyDeclined
from domain.nested import nested_latency_us
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits, Problem
from domain.profile import ProfileRevision
from domain.schedule import serial_us
from domain.solution import Notice
from domain.structure import KnownOverlap
from solvers.nested.bound import nested_lower_bound_us
from solvers.nested.on_line import rules_of

_REPORTED = 64  # evaluations between two reports
_PULSES_PER_S = 100_000.0  # of one stage that are delivered and evaluated, on a slow machine
_FEW = 64  # pulses of a stage that are tried however little time is left

Choice = tuple[int, ...]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdQuestion:
    """What to price: one rule, the stages that vary, and the sizes each of them takes, in bytes.

    Without `stages` all stages have the same size; those named vary independently, and the others
    take whatever has arrived. The first stage, which has all of the message at once, moves it whole
    where it hands bytes on, unless it varies; else in pulses of its size. Without `sizes` they are
    the powers of two up to the largest message. `said` is what is known of the costs, `overlap` of
    the overlap of the stages.
    Raises InvalidInput, InconsistentInput for too many evaluations, and StrategyDeclined for a
    single stage.
    """

    pipeline: Pipeline
    message_bytes: tuple[int, ...]
    rule: DeliveryRule
    stages: tuple[int, ...] | None = None
    sizes: tuple[int, ...] | None = None
    max_pulses: int
    time_limit_s: float
    profile: ProfileRevision | None = None
    said: tuple[Notice, ...] = ()
    overlap: KnownOverlap = field(default_factory=KnownOverlap)

    def __post_init__(self) -> None:
        if self.rule not in (DeliveryRule.STATIC, DeliveryRule.EAGER):
            raise InvalidInput("expected static or eager", field="rule")
        count = len(self.pipeline)
        if count < 2:
            raise StrategyDeclined("thresholds need at least two stages", field="pipeline")
        for place, stage in enumerate(self.stages or ()):
            if not 0 <= stage < count:
                raise InconsistentInput(
                    f"expected a stage from 0 to {count - 1}", field=f"stages.{place}"
                )
        if self.stages is not None and len(set(self.stages)) != len(self.stages):
            raise InconsistentInput("expected different stages", field="stages")
        evaluations = len(self.message_bytes) * len(self.grid) ** self.varied
        if evaluations > MAX_EVALUATIONS:
            raise InconsistentInput(
                f"expected messages x choices <= {MAX_EVALUATIONS}, got {evaluations}: name fewer "
                "stages, sizes or messages",
                field="sizes",
            )

    @property
    def varied(self) -> int:
        """How many sizes a choice has."""
        return 1 if self.stages is None else len(self.stages)

    @property
    def grid(self) -> tuple[int, ...]:
        """The sizes that each stage takes, ascending."""
        if self.sizes is not None:
            return tuple(sorted(set(self.sizes)))
        return tuple(2**power for power in range((max(self.message_bytes) - 1).bit_length() + 1))

    @property
    def choices(self) -> tuple[Choice, ...]:
        """All of them, the last stage's size changing first."""
        return tuple(product(self.grid, repeat=self.varied))

    def rules(self, choice: Choice, message_bytes: int) -> tuple[Delivery, ...]:
        """Return the rule of each stage."""
        if self.stages is None:
            sizes = choice * len(self.pipeline)
            return rules_of(self.pipeline, message_bytes, self.rule, sizes)
        chosen = dict(zip(self.stages, choice, strict=True))
        rules = []
        for stage in range(len(self.pipeline)):
            size = chosen.get(stage)
            if stage == 0 or (size is not None and self.rule is DeliveryRule.STATIC):
                rules.append(_static(size or message_bytes))
            else:
                rules.append(_eager(size))
        return tuple(rules)


# A grid of thousands of choices asks for the same few rules again and again.
@lru_cache(maxsize=1024)
def _static(pulse_bytes: int) -> Delivery:
    return Delivery(DeliveryRule.STATIC, pulse_bytes=pulse_bytes)


@lru_cache(maxsize=1024)
def _eager(threshold_bytes: int | None) -> Delivery:
    return Delivery(DeliveryRule.EAGER, threshold_bytes=threshold_bytes)


@dataclass(frozen=True, slots=True)
class MessageThresholds:
    """One message: µs of each choice, None where it was not priced, and what to compare them with.

    `ideal_us` is the fluid limit of cut-through, each byte passed on as it comes (Yocum97 sec.
    4.4); `lower_bound_us` is proven of this model, for every cut of every stage. `serial_us` is
    what the best choice takes if stages work one after another, None where that is known.
    """

    message_bytes: int
    latencies_us: tuple[float | None, ...]
    store_and_forward_us: float
    ideal_us: float
    lower_bound_us: float
    serial_us: float | None = None

    @property
    def best(self) -> int | None:
        """The place of the best choice; of equal ones the last, which makes the fewest pulses."""
        priced = [us for us in self.latencies_us if us is not None]
        if not priced:
            return None
        limit_us = min(priced) * (1.0 + 1e-12)
        return max(i for i, us in enumerate(self.latencies_us) if us is not None and us <= limit_us)


@dataclass(frozen=True, slots=True)
class OneChoice:
    """The choice of least mean regret over the messages. Regrets are shares above their best."""

    place: int
    mean_regret: float
    max_regret: float
    worst_message_bytes: int


@dataclass(frozen=True, slots=True)
class Thresholds:
    """All prices; `one` is None where no choice was priced for every message."""

    question: ThresholdQuestion
    messages: tuple[MessageThresholds, ...]
    one: OneChoice | None
    cut_off: bool
    notices: tuple[Notice, ...] = field(default=())


def price_thresholds(
    question: ThresholdQuestion,
    on_progress: Progress = lambda done, total: None,
    on_best: Callable[[Thresholds], None] = lambda found: None,
) -> Thresholds:
    """Price every choice on every message, until the question's time limit.

    `on_best` is called once, with what is priced after half of that time, where it is not all.
    """
    return _Pricing(question, on_progress, on_best).found()


class _Pricing:
    def __init__(
        self,
        question: ThresholdQuestion,
        on_progress: Progress,
        on_best: Callable[[Thresholds], None],
    ) -> None:
        self._question, self._on_progress, self._on_best = question, on_progress, on_best
        self._choices = question.choices
        self._ends_at = monotonic() + question.time_limit_s
        self._left_s = question.time_limit_s
        self._done = 0
        self.unpriced, self._too_many = 0, 0

    def found(self) -> Thresholds:
        """Price the choices of fewest pulses of all messages first: time ends with the others."""
        question, choices = self._question, self._choices
        bounds = [self._bound_us(total) for total in question.message_bytes]
        order = sorted(range(len(choices)), key=lambda i: prod(choices[i]), reverse=True)
        priced: list[list[float | None]] = [[None] * len(choices) for _ in question.message_bytes]
        is_reported = False
        for place, i in enumerate(order):
            for row, total in zip(priced, question.message_bytes, strict=True):
                row[i] = self._price(choices[i], total)
            left = len(choices) - 1 - place
            if left and not is_reported and 0.0 < self._left_s <= 0.5 * question.time_limit_s:
                is_reported = True
                self._on_best(self._priced(priced, bounds, left * len(priced)))
        return self._priced(priced, bounds, 0)

    def _priced(
        self, priced: Sequence[Sequence[float | None]], bounds: Sequence[float], left: int
    ) -> Thresholds:
        """What is known where so many evaluations are left."""
        question, unpriced = self._question, self.unpriced + left
        rows = zip(priced, question.message_bytes, bounds, strict=True)
        messages = tuple(
            _with_serial(question, _message(question.pipeline, total, tuple(row), bound_us))
            for row, total, bound_us in rows
        )
        notices = (*question.said, *self._notices(unpriced))
        return Thresholds(question, messages, _one(messages), unpriced > 0, notices)

    def _bound_us(self, total: int) -> float:
        """The bound of all cuts; without time for it what the slowest stage's bytes take alone."""
        pipeline = self._question.pipeline
        if monotonic() < self._ends_at:
            return nested_lower_bound_us(Problem(pipeline, total, FragmentLimits()))
        slowest = max(min(part.ns_per_byte for part in one.ranges) for one in pipeline.stages)
        return pipeline.delay_us + total * slowest / 1000.0

    def _price(self, choice: Choice, total: int) -> float | None:
        self._done += 1
        if self._done % _REPORTED == 0:
            evaluations = len(self._choices) * len(self._question.message_bytes)
            self._on_progress(self._done, evaluations)
        left_s = self._left_s = self._ends_at - monotonic()
        if left_s <= 0.0:
            self.unpriced += 1
            return None
        pipeline = self._question.pipeline
        cap = min(self._question.max_pulses, _FEW + int(left_s * _PULSES_PER_S / len(pipeline)))
        rules = self._question.rules(choice, total)
        try:
            return nested_latency_us(pipeline, deliver(pipeline, total, rules, max_pulses=cap))
        except Infeasible:
            if cap < self._question.max_pulses:  # it may be possible, but not in time
                self.unpriced += 1
            else:
                self._too_many += 1
            return None

    def _notices(self, unpriced: int) -> Iterator[Notice]:
        if self._too_many:
            yield Notice(
                "too_many_pulses",
                f"{self._too_many} of the evaluations would make more than "
                f"{self._question.max_pulses} pulses in a stage and were left out",
                values=(("evaluations", self._too_many),),
            )
        if unpriced:
            yield Notice(
                "time_limit",
                f"time ended before {unpriced} of the evaluations, those of the smallest "
                "sizes: the best are the best of the others",
                values=(("evaluations", unpriced),),
            )


def _message(
    pipeline: Pipeline, total: int, latencies_us: tuple[float | None, ...], bound_us: float
) -> MessageThresholds:
    return MessageThresholds(
        total,
        latencies_us,
        store_and_forward_us=store_and_forward_us(pipeline, total),
        ideal_us=ideal_us(pipeline, total),
        lower_bound_us=bound_us,
    )


def _with_serial(question: ThresholdQuestion, found: MessageThresholds) -> MessageThresholds:
    pipeline, total = question.pipeline, found.message_bytes
    if not question.overlap.is_unsaid(len(pipeline)) or (best := found.best) is None:
        return found
    rules = question.rules(question.choices[best], total)
    cut = deliver(pipeline, total, rules, max_pulses=question.max_pulses)
    return replace(found, serial_us=serial_us(pipeline, cut.stage_bytes))


def _one(messages: tuple[MessageThresholds, ...]) -> OneChoice | None:
    found: list[tuple[float, int, float, int]] = []
    bests = [message.best for message in messages]  # each looks at all choices
    for place in range(len(messages[0].latencies_us)):
        regrets: list[tuple[float, int]] = []
        for message, best in zip(messages, bests, strict=True):
            us = message.latencies_us[place]
            if us is None or best is None:
                break
            best_us = message.latencies_us[best]
            assert best_us is not None
            regrets.append((us / best_us - 1.0 if best_us > 0.0 else 0.0, message.message_bytes))
        else:
            worst, at = max(regrets)
            found.append((sum(one for one, _ in regrets) / len(regrets), -place, worst, at))
    if not found:
        return None
    mean, place, worst, at = min(found)
    return OneChoice(-place, mean, worst, at)
