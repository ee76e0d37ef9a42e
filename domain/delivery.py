"""Cuts that stages choose while a message arrives: store and forward, static and eager pulses.

Source    Yocum et al. 1997 (Trapeze), sec. 3 and 4: an outgoing DMA is a series of pulses; a static
          one has the size of its threshold, an eager one takes all that is there when it starts,
          a threshold at least.
Notation  M: the greatest pulse; m: the threshold; F: when the stage is free; sent: bytes that it
          has taken up.
Rule      a pulse starts when its predecessor in the stage has ended and its own last byte is there,
          as in `domain.nested`. An eager one needs min(m, rest) bytes, starts at S = max(F, when
          these are there), and takes min(M, what is there at S). The tail, less than the threshold,
          goes as soon as its last byte is there (the paper is silent).
Cost      O(pulses), whatever the number of bytes.
Exact     the pulses are what is returned; their times are for `domain.nested` to say. What has
          arrived is counted with a tolerance of 1e-9 of the time, which moves no latency by more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from contract.limits import MAX_MESSAGE_BYTES
from domain.errors import InconsistentInput, Infeasible, InvalidInput
from domain.nested import NestedSchedule, Passed, Pulses, nested_latency_us
from domain.pipeline import Pipeline, Stage

_SAME = 1e-9  # of a time: bytes that arrive so little later count as there
_FIELD = "delivery"


class DeliveryRule(StrEnum):
    """How a stage cuts what arrives.

    store_and_forward  the whole message, once all of it is there
    static             pulses of one size
    eager              whatever is there, a threshold at least
    planned            a list of sizes
    same               the cut of the stage before
    flow               not at all: each byte is passed on as it comes, the overhead is paid once
    """

    STORE_AND_FORWARD = "store_and_forward"
    STATIC = "static"
    EAGER = "eager"
    PLANNED = "planned"
    SAME = "same"
    FLOW = "flow"


@dataclass(frozen=True, slots=True)
class Delivery:
    """The rule of one stage with its sizes in bytes, each given where the rule has it.

    `pulse_bytes` goes with static, `threshold_bytes` (1 where not given) and `max_pulse_bytes` with
    eager, `planned_bytes` with planned. Raises InvalidInput, and InconsistentInput for sizes that
    do not go with the rule or with each other.
    """

    rule: DeliveryRule
    pulse_bytes: int | None = None
    threshold_bytes: int | None = None
    max_pulse_bytes: int | None = None
    planned_bytes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        given = {
            "pulse_bytes": (self.pulse_bytes, DeliveryRule.STATIC, True),
            "threshold_bytes": (self.threshold_bytes, DeliveryRule.EAGER, False),
            "max_pulse_bytes": (self.max_pulse_bytes, DeliveryRule.EAGER, False),
            "planned_bytes": (self.planned_bytes, DeliveryRule.PLANNED, True),
        }
        for name, (value, rule, is_needed) in given.items():
            if value is not None and self.rule is not rule:
                raise InconsistentInput(f"the rule {self.rule} has no {name}", field=name)
            if value is None and is_needed and self.rule is rule:
                raise InconsistentInput(f"the rule {self.rule} needs {name}", field=name)
            sizes = value if isinstance(value, tuple) else () if value is None else (value,)
            if any(not 1 <= size <= MAX_MESSAGE_BYTES for size in sizes):
                raise InvalidInput(f"expected 1 <= {name} <= {MAX_MESSAGE_BYTES}", field=name)
        largest = self.max_pulse_bytes
        if largest is not None and self.threshold > largest:
            raise InconsistentInput(
                f"the threshold of {self.threshold} bytes is above the greatest pulse, {largest}",
                field="threshold_bytes",
            )

    @property
    def threshold(self) -> int:
        """The bytes that an eager pulse waits for."""
        return self.threshold_bytes or 1


def deliver(
    pipeline: Pipeline, message_bytes: int, rules: Sequence[Delivery], *, max_pulses: int
) -> NestedSchedule:
    """Return the pulses of every stage, in O(pulses).

    Raises InconsistentInput unless there is one rule a stage and planned sizes sum to the message,
    and Infeasible where a stage would make more than `max_pulses`.
    """
    if len(rules) != len(pipeline):
        raise InconsistentInput(
            f"expected {len(pipeline)} rules, one per stage, got {len(rules)}", field=_FIELD
        )
    before: _Handed | None = None
    for stage, rule in zip(pipeline.stages, rules, strict=True):
        handed = _Handed(stage, message_bytes, before)
        if rule.rule is DeliveryRule.FLOW:
            handed.flow()
        else:
            _cut(handed, rule, max_pulses)
        before = handed
    assert before is not None
    return NestedSchedule(tuple(before.cuts()), flows_of(rules))


def flows_of(rules: Sequence[Delivery]) -> frozenset[int]:
    """Return the stages that pass bytes on as they come."""
    return frozenset(j for j, rule in enumerate(rules) if rule.rule is DeliveryRule.FLOW)


@dataclass(slots=True)
class _Handed:
    """The pulses of one stage so far, and what it hands on by when; `before` hands to it."""

    stage: Stage
    message_bytes: int
    before: _Handed | None
    sizes: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)  # bytes after each pulse
    starts_us: list[float] = field(default_factory=list)
    exits_us: list[float] = field(default_factory=list)
    sent: int = 0
    free_us: float = 0.0
    passed: Passed | None = None  # where it passes bytes on as they come
    _counted: int = 0  # pulses that had ended when arrivals were last counted: times only grow

    @property
    def rest(self) -> int:
        return self.message_bytes - self.sent

    def start_us(self, pulse_bytes: int) -> float:
        """When a pulse of this size could start."""
        there_us = self.before.visible_us(self.sent + pulse_bytes) if self.before else 0.0
        return max(self.free_us, there_us)

    def take(self, pulse_bytes: int) -> None:
        """Take up the next pulse."""
        start_us = self.start_us(pulse_bytes)
        self.sent += pulse_bytes
        self.free_us = start_us + self.stage.time_us(pulse_bytes)
        self.sizes.append(pulse_bytes)
        self.ends.append(self.sent)
        self.starts_us.append(start_us)
        self.exits_us.append(self.free_us)

    def flow(self) -> None:
        """Pass on what the stage before hands on."""
        source: Pulses | Passed | None = None
        if self.before is not None:
            cut = self.before
            source = cut.passed or Pulses(cut.stage, cut.sizes, cut.starts_us, cut.exits_us)
        self.passed = Passed.of(self.stage, self.message_bytes, source)
        self.sizes, self.ends = [self.message_bytes], [self.message_bytes]
        self.starts_us = [self.passed.start_us]
        self.exits_us = [self.passed.visible_us(self.message_bytes)]
        self.sent, self.free_us = self.message_bytes, self.exits_us[0]

    def visible_us(self, byte: int) -> float:
        """When the next stage may have this byte of the message, counted from 1."""
        if self.passed is not None:
            return self.passed.visible_us(byte)
        at = bisect_left(self.ends, byte)
        size = self.sizes[at]
        if byte == self.ends[at]:
            return self.exits_us[at]
        seen_us = self.stage.visible_us(size, size - (self.ends[at] - byte))
        return min(self.exits_us[at], self.starts_us[at] + seen_us)

    def arrived(self, at_us: float) -> int:
        """How many bytes the next stage may have then; it is asked of times that do not fall."""
        until_us = at_us * (1.0 + _SAME)
        if self.passed is not None:
            return self.passed.arrived(until_us)
        while self._counted < len(self.sizes) and self.exits_us[self._counted] <= until_us:
            self._counted += 1
        at = self._counted
        whole = self.ends[at - 1] if at else 0
        grain = self.stage.handoff_bytes
        if at == len(self.sizes) or grain is None:
            return whole
        size = self.sizes[at]
        part = self.stage.range_at(size)
        moved_us = until_us - self.starts_us[at] - part.overhead_us
        if moved_us < 0.0:
            return whole
        moved = size - 1
        if part.ns_per_byte > 0.0:
            moved = min(moved, int(moved_us * 1000.0 / part.ns_per_byte * (1.0 + _SAME)))
        return whole + moved // grain * grain

    def cuts(self) -> list[tuple[int, ...]]:
        """The sizes of this stage and of all before it, in order."""
        return [*(self.before.cuts() if self.before else []), tuple(self.sizes)]


def _cut(stage: _Handed, rule: Delivery, max_pulses: int) -> None:
    if rule.rule is DeliveryRule.SAME or rule.rule is DeliveryRule.PLANNED:
        for size in _listed(stage, rule):
            stage.take(size)
        return
    while stage.sent < stage.message_bytes:
        if len(stage.sizes) == max_pulses:
            fits = -(-stage.message_bytes // max_pulses)
            name = "pulse_bytes" if rule.rule is DeliveryRule.STATIC else "threshold_bytes"
            raise Infeasible(
                f"stage {stage.stage.name} makes more than {max_pulses} pulses; {name} of {fits} "
                "and more makes fewer",
                field=_FIELD,
            )
        stage.take(_next_bytes(stage, rule))


def _next_bytes(stage: _Handed, rule: Delivery) -> int:
    if rule.rule is DeliveryRule.STORE_AND_FORWARD:
        return stage.rest
    if rule.rule is DeliveryRule.STATIC:
        return min(rule.pulse_bytes or stage.rest, stage.rest)
    rest = stage.rest
    largest = min(rule.max_pulse_bytes or rest, rest)
    if stage.before is None:
        return largest
    needed = min(rule.threshold, rest)
    there = stage.before.arrived(stage.start_us(needed)) - stage.sent
    return max(needed, min(largest, there))


def _listed(stage: _Handed, rule: Delivery) -> Sequence[int]:
    """The planned sizes, or those of the stage before; the first stage takes the message whole."""
    if rule.rule is DeliveryRule.SAME:
        return stage.before.sizes if stage.before else (stage.message_bytes,)
    sizes = rule.planned_bytes or ()
    if sum(sizes) != stage.message_bytes:
        raise InconsistentInput(
            f"the planned sizes sum to {sum(sizes)} bytes and not to {stage.message_bytes}",
            field=_FIELD,
        )
    return sizes


# --- what deliveries are compared with ------------------------------------------------------------


def ideal_us(pipeline: Pipeline, message_bytes: int) -> float:
    """Return the fluid limit of cut-through, µs: each overhead once, the slowest stage's bytes.

    Source: Yocum97 sec. 4.4. Stages with ranges have the costs of the whole message.
    """
    lines = [stage.range_at(message_bytes) for stage in pipeline.stages]
    slowest = max(line.ns_per_byte for line in lines)
    overheads = sum(line.overhead_us for line in lines)
    return pipeline.delay_us + overheads + message_bytes * slowest / 1000.0


def store_and_forward_us(pipeline: Pipeline, message_bytes: int) -> float:
    """Return the latency in µs where each stage moves the message whole, once it has it."""
    whole = NestedSchedule(((message_bytes,),) * len(pipeline))
    return nested_latency_us(pipeline, whole)


def busy_us(pipeline: Pipeline, pulses: Sequence[Sequence[int]]) -> tuple[float, ...]:
    """Return how long these pulses, bytes by stage, occupy each stage, µs."""
    return tuple(
        sum(map(stage.time_us, cut)) for stage, cut in zip(pipeline.stages, pulses, strict=True)
    )


def sustained_mb_per_s(pipeline: Pipeline, pulses: Sequence[Sequence[int]]) -> float | None:
    """Return what back-to-back messages with these pulses reach at most, 10^6 bytes a second.

    Source: the busiest stage carries one message in its busy time, so that no rate is above
    B / max_j (k_j g_j + B G_j). None where no stage takes any time.
    """
    slowest_us = max(busy_us(pipeline, pulses))
    return sum(pulses[0]) / slowest_us if slowest_us > 0.0 else None
