"""What a messaging layer does for a message: instructions and cycles by service, end and class.

    layer = shipped_layers()["cmam-finite"]  # analysis.published_layers
    work_of(layer, 64).counts.total  # 397 instructions, of which 181 are base: Table 2

Everything here is exact: counts are fractions, and shares are taken of them (Karamcheti94 Tables 2
and 3, Fig. 8). Stages and latencies follow in `analysis.layer_stages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import lcm
from typing import NamedTuple, TypeAlias

import numpy as np

from contract.limits import MAX_PACKET_SIZES
from domain.errors import InvalidInput, NotPublished
from domain.instruction_counts import CycleModel, Exact, InstructionCounts, exact, in_order, sum_of
from domain.messaging_layer import (
    End,
    MessageUnits,
    MessagingLayer,
    NetworkFeature,
    Per,
    Service,
    Terms,
)

FeatureSet: TypeAlias = tuple[NetworkFeature, ...]

_EXACT = 2**53  # whole numbers up to it are doubles
_UNITS = {per: place for place, per in enumerate(Per)}


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """What some components cost for one of each unit: instructions by class, all of them, cycles.

    Whole numbers over the denominators of their `LayerSums`, so that sums and shares are exact
    without fractions; `cycles` are 0 without prices.
    """

    classes: tuple[str, ...]
    counts: tuple[Terms, ...]
    instructions: Terms
    cycles: Terms

    @classmethod
    def sum_of(cls, parts: Sequence[UnitCosts]) -> UnitCosts:
        """Return the costs of all parts together."""
        found: dict[str, list[Terms]] = {}
        for one in parts:
            for name, terms in zip(one.classes, one.counts, strict=True):
                found.setdefault(name, []).append(terms)
        classes = in_order(found)
        return cls(
            classes,
            tuple(_added(found[name]) for name in classes),
            _added([one.instructions for one in parts]),
            _added([one.cycles for one in parts]),
        )


def _added(many: Sequence[Terms]) -> Terms:
    transfers, packets, words, acknowledgements = zip((0, 0, 0, 0), *many, strict=True)
    return sum(transfers), sum(packets), sum(words), sum(acknowledgements)


@dataclass(frozen=True, slots=True)
class WorkCell:
    """The instructions of one service at one end."""

    service: Service
    end: End
    counts: InstructionCounts


class PartCost(NamedTuple):
    """What a part of a message's work costs, and its shares of all of it; each rounded once.

    `cycles` and their share are None without costs, `us` without a clock.
    """

    instructions: float
    cycles: float | None
    us: float | None
    share_of_instructions: float
    share_of_cycles: float | None


@dataclass(frozen=True, slots=True)
class Work:
    """The instructions of one message, by service of the layer and end."""

    units: MessageUnits
    sums: LayerSums

    @property
    def cells(self) -> tuple[WorkCell, ...]:
        """A cell for each service and each end."""
        return tuple(
            WorkCell(service, end, self.counts_of(costs))
            for service, end, costs in self.sums.services
        )

    @property
    def counts(self) -> InstructionCounts:
        """All instructions."""
        return self.counts_of(self.sums.every)

    @property
    def is_whole(self) -> bool:
        """Whether each service executes whole numbers of instructions at each end."""
        values = self.units.values(self.sums.fractional)
        return not any(value % self.sums.denominator for value in values)

    def of(self, service: Service | None = None, end: End | None = None) -> InstructionCounts:
        """Return the instructions of one service, of one end, or of both; None stands for all."""
        return self.counts_of(self.sums.of_parts(service, end))

    def removed_by(self, features: Iterable[NetworkFeature]) -> InstructionCounts:
        """Return what a network with these features saves (Karamcheti94 sec. 4): the instructions
        of the services that they remove. Savings add up: no feature changes another's service.
        """
        return self.counts_of(self.sums.removed_by(features))

    def counts_of(self, costs: UnitCosts) -> InstructionCounts:
        """Return the instructions of the components with these costs."""
        parts, values = self.sums.denominator, self.units.values(costs.counts)
        counts = [exact(Fraction(value, parts)) for value in values]
        return InstructionCounts(tuple(zip(costs.classes, counts, strict=True)))

    def class_counts(self, costs: Sequence[UnitCosts]) -> tuple[dict[str, float], ...]:
        """Return the instructions of each of these parts by class, as floats."""
        parts, terms = self.sums.denominator, [one for part in costs for one in part.counts]
        values = iter([value / parts for value in self.units.values(terms)])
        # Each part takes as many of the values as it has classes.
        return tuple(dict(zip(part.classes, values, strict=False)) for part in costs)

    def cost_of(self, costs: Sequence[UnitCosts]) -> tuple[PartCost, ...]:
        """Return what each of these parts costs, with its shares of all of this work."""
        sums, units = self.sums, self.units
        parts, many = sums.denominator, [sums.every, *costs]
        every, *counts = units.values([one.instructions for one in many])
        every = every or 1
        instructions = [one / parts for one in counts]
        shares = [one / every for one in counts]
        unknown = [None] * len(counts)
        # Columns, and rows of them: as many objects as rows, which is what this takes its time for.
        if sums.costs is None:
            rows = zip(instructions, unknown, unknown, shares, unknown, strict=True)
            return tuple(map(PartCost._make, rows))
        every_cycles, *cycles = units.values([one.cycles for one in many])
        every_cycles, cycle_parts = every_cycles or 1, sums.cycle_denominator
        times: Sequence[float | None] = unknown
        if sums.clock is not None:
            over, by = cycle_parts * sums.clock[0], sums.clock[1]
            times = [one * by / over for one in cycles]
        own = [one / cycle_parts for one in cycles]
        own_shares = [one / every_cycles for one in cycles]
        timed = zip(instructions, own, times, shares, own_shares, strict=True)
        return tuple(map(PartCost._make, timed))


def costs_of_each(works: Sequence[Work], costs: Sequence[UnitCosts]) -> list[tuple[PartCost, ...]]:
    """Return `cost_of` of each of these works, all of one layer's sums: the same bits.

    Quotients of whole numbers that doubles hold exactly are rounded once by a double's division
    too; works with greater numbers are reckoned one by one.
    """
    sums, units = works[0].sums, [work.units for work in works]
    clock_over, clock_by = (1, 1) if sums.clock is None else sums.clock
    many = [sums.every, *costs]
    found = [[part.instructions for part in many]]
    if sums.costs is not None:
        found.append([part.cycles for part in many])
    each = [(1, one.packets, one.words, one.acknowledgements) for one in units]
    largest = sum(map(max, zip(*each, strict=True))) * max(
        value for terms in found for part in terms for value in part
    )
    divisors = (sums.denominator, sums.cycle_denominator * clock_over)
    if max(largest * clock_by, clock_by, *divisors) > _EXACT:
        return [work.cost_of(costs) for work in works]
    counted = np.array(each, dtype=np.int64)
    columns: list[list[list[float]] | None] = [None] * 5
    for place, terms in enumerate(found):
        values = counted @ np.array(terms, dtype=np.int64).T  # (works, parts), the first all of it
        parts, every = values[:, 1:], np.maximum(values[:, :1], 1)
        columns[place] = (parts / (sums.cycle_denominator if place else sums.denominator)).tolist()
        columns[place + 3] = (parts / every).tolist()
        if place and sums.clock is not None:
            columns[2] = (parts * clock_by / divisors[1]).tolist()
    unknown = [[None] * len(costs)] * len(works)
    rows = zip(*(column or unknown for column in columns), strict=True)
    return [tuple(map(PartCost._make, zip(*row, strict=True))) for row in rows]


@dataclass(frozen=True, slots=True)
class LayerSums:
    """A layer's costs for one of each unit, by service and end: what work is reckoned from.

    `LayerSums.of` makes them. Instructions are whole numbers over `denominator`, cycles over
    `cycle_denominator`; `clock` is in MHz, as a ratio of whole numbers.
    """

    layer: MessagingLayer
    costs: CycleModel | None
    denominator: int
    cycle_denominator: int
    clock: tuple[int, int] | None
    services: tuple[tuple[Service, End, UnitCosts], ...]
    fractional: tuple[Terms, ...]
    every: UnitCosts
    overhead: UnitCosts

    @classmethod
    def of(cls, layer: MessagingLayer, costs: CycleModel | None = None) -> LayerSums:
        """Return the sums of a layer's components, with cycles where costs are given.

        Raises MissingClassCost.
        """
        counts: dict[tuple[Service, End], dict[str, list[Exact]]] = {
            place: {} for place in product(layer.services, End)
        }
        cycles: dict[tuple[Service, End], list[Exact]] = {place: [0] * len(Per) for place in counts}
        for one in layer.components:
            place, unit = (one.service, one.end), _UNITS[one.per]
            for name, count in one.counts.by_class:
                counts[place].setdefault(name, [0] * len(Per))[unit] += count
            if costs is not None:
                cycles[place][unit] += costs.cycles_of(one.counts)
        rows = [row for by_class in counts.values() for row in by_class.values()]
        parts = lcm(*(value.denominator for row in rows for value in row))
        cycle_parts = lcm(*(value.denominator for row in cycles.values() for value in row))
        services = tuple(
            (*place, _unit_costs(by_class, parts, _whole(cycles[place], cycle_parts)))
            for place, by_class in counts.items()
        )
        clock = costs.clock_mhz if costs else None
        return cls(
            layer,
            costs,
            parts,
            cycle_parts,
            None if clock is None else clock.as_integer_ratio(),
            services,
            tuple(
                terms
                for _, _, one in services
                for terms in one.counts
                if any(value % parts for value in terms)
            ),
            UnitCosts.sum_of([one for _, _, one in services]),
            UnitCosts.sum_of([one for service, _, one in services if service != Service.BASE]),
        )

    def of_parts(self, service: Service | None, end: End | None) -> UnitCosts:
        """Return the costs of one service, of one end, or of both; None stands for all."""
        return UnitCosts.sum_of(
            [
                costs
                for own, at, costs in self.services
                if service in (None, own) and end in (None, at)
            ]
        )

    def removed_by(self, features: Iterable[NetworkFeature]) -> UnitCosts:
        """Return the costs of the services that these features remove."""
        removed = {feature.removes for feature in features}
        return UnitCosts.sum_of([costs for own, _, costs in self.services if own in removed])

    def work(self, units: MessageUnits) -> Work:
        """Return the instructions of a message of these units.

        Counts(service, end) = Σ over components of counts · (1 | p | W | acknowledgements), where W
        are the message's words (Karamcheti94 Fig. 8 has W = n·p: `MessageUnits.filled`).
        """
        return Work(units, self)


def _unit_costs(by_class: Mapping[str, Sequence[Exact]], parts: int, cycles: Terms) -> UnitCosts:
    classes = in_order(by_class)
    counts = tuple(_whole(by_class[name], parts) for name in classes)
    return UnitCosts(classes, counts, _added(counts), cycles)


def _whole(row: Sequence[Exact], parts: int) -> Terms:
    """Return numbers for one of each unit as whole numbers over a denominator that they share."""
    transfers, packets, words, acknowledgements = (int(value * parts) for value in row)
    return transfers, packets, words, acknowledgements


def work_of(layer: MessagingLayer, message_bytes: int, *, packet_words: int | None = None) -> Work:
    """Return the instructions of a message, in packets of the layer's size or of this one.

    Raises InvalidInput.
    """
    units = MessageUnits.of(layer, message_bytes, packet_words or layer.packet_words)
    return LayerSums.of(layer).work(units)


def share_of(part: Exact, whole: Exact) -> Fraction:
    """Return a share of a total, 0 of nothing."""
    return Fraction(part) / whole if whole else Fraction()


def overhead_share(work: Work, costs: CycleModel | None = None) -> Fraction:
    """Return the share of all services but the base: of instructions, or of cycles at these costs.

    The two differ: an instruction on a device takes several cycles. 0 of no instructions.
    """
    every, base = work.counts, work.of(Service.BASE)
    if costs is None:
        return share_of(every.total - base.total, every.total)
    all_cycles = costs.cycles_of(every)
    return share_of(all_cycles - costs.cycles_of(base), all_cycles)


def feature_sets(features: Sequence[NetworkFeature]) -> tuple[FeatureSet, ...]:
    """Return each feature alone, then all of them where they are several."""
    alone = tuple((feature,) for feature in features)
    return alone if len(features) < 2 else (*alone, tuple(features))


def packet_curve(
    sums: LayerSums, message_bytes: int, packet_words: Sequence[int]
) -> tuple[Work, ...]:
    """Return the work at each packet size (Karamcheti94 Fig. 8, right). Raises InvalidInput.

    Work falls with n without end, so that this names no best packet: latency does.
    """
    if len(packet_words) > MAX_PACKET_SIZES:
        raise InvalidInput(
            f"expected at most {MAX_PACKET_SIZES} packet sizes", field="packet_words"
        )
    return tuple(
        sums.work(MessageUnits.of(sums.layer, message_bytes, words)) for words in packet_words
    )


def check_out_of_order(layer: MessagingLayer, out_of_order: float | None) -> None:
    """Raise NotPublished where ordering is asked for at another share out of order than counted.

    One share was measured, so the cost of a packet in order and that of one out of order are one
    equation with two unknowns.
    """
    if out_of_order is None or out_of_order == layer.out_of_order:
        return
    if layer.out_of_order is None:
        raise NotPublished(
            "the counts of this layer do not tell how they depend on packets out of order",
            field="out_of_order",
        )
    each = sum_of(
        one.counts
        for one in layer.components
        if one.service is Service.ORDERING and one.end is End.DESTINATION and one.per is Per.PACKET
    ).times(1 / Fraction(layer.out_of_order) if layer.out_of_order else 0)
    both = ", ".join(f"{float(count):g} {name}" for name, count in each.by_class)
    raise NotPublished(
        f"ordering was counted with {layer.out_of_order:g} of the packets out of order, and at no "
        f"other share; if it is linear, the costs of a packet in order and of one out of order "
        f"sum to {both} at the destination",
        field="out_of_order",
    )
