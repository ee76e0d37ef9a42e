"""What a messaging layer does for a message: instructions and cycles by service, end and class.

    layer = shipped_layers()["cmam-finite"]
    work_of(layer, 64).counts.total  # 397 instructions, of which 181 are base: Table 2

Everything here is exact: counts are fractions, and shares are taken of them (Karamcheti94 Tables 2
and 3, Fig. 8). Stages and latencies follow in `analysis.layer_stages`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from domain.errors import InvalidInput, NotPublished
from domain.messaging_layer import (
    Component,
    CycleModel,
    End,
    InstructionCounts,
    MessageUnits,
    MessagingLayer,
    NetworkFeature,
    Per,
    Service,
    layer_of_document,
    sum_of,
)

FeatureSet: TypeAlias = tuple[NetworkFeature, ...]

MAX_PACKET_SIZES = 200
_FOLDER = Path(__file__).with_name("layers")
_DISAGREEMENTS = "disagreements.json"


@dataclass(frozen=True, slots=True)
class WorkCell:
    """The instructions of one service at one end."""

    service: Service
    end: End
    counts: InstructionCounts


@dataclass(frozen=True, slots=True)
class Work:
    """The instructions of one message, a cell for each service of the layer and each end."""

    units: MessageUnits
    cells: tuple[WorkCell, ...]

    @property
    def counts(self) -> InstructionCounts:
        """All instructions."""
        return self.of()

    def of(self, service: Service | None = None, end: End | None = None) -> InstructionCounts:
        """Return the instructions of one service, of one end, or of both; None stands for all."""
        return sum_of(
            cell.counts
            for cell in self.cells
            if service in (None, cell.service) and end in (None, cell.end)
        )

    def removed_by(self, features: Iterable[NetworkFeature]) -> InstructionCounts:
        """Return what a network with these features saves (Karamcheti94 sec. 4): the instructions
        of the services that they remove. Savings add up: no feature changes another's service.
        """
        removed = {feature.removes for feature in features}
        return sum_of(cell.counts for cell in self.cells if cell.service in removed)


def work_of(layer: MessagingLayer, message_bytes: int, *, packet_words: int | None = None) -> Work:
    """Return the instructions of a message, in packets of the layer's size or of this one.

    Counts(service, end) = Σ over components of counts · (1 | p | W | acknowledgements), where W are
    the message's words (Karamcheti94 Fig. 8 has W = n·p). Raises InvalidInput.
    """
    return work_in_units(
        layer, MessageUnits.of(layer, message_bytes, packet_words or layer.packet_words)
    )


def work_in_units(layer: MessagingLayer, units: MessageUnits) -> Work:
    """Return the instructions of a message of these units."""
    return Work(
        units,
        tuple(
            WorkCell(service, end, counted(layer.components, units, service=service, end=end))
            for service, end in product(layer.services, End)
        ),
    )


def counted(
    components: Sequence[Component],
    units: MessageUnits,
    *,
    service: Service | None = None,
    end: End | None = None,
) -> InstructionCounts:
    """Return the instructions of those components that are of this service and end."""
    return sum_of(
        one.counts.times(units.number_of(one.per))
        for one in components
        if service in (None, one.service) and end in (None, one.end)
    )


def share_of(part: Fraction, whole: Fraction) -> Fraction:
    """Return a share of a total, 0 of nothing."""
    return part / whole if whole else Fraction()


def overhead_share(work: Work, costs: CycleModel | None = None) -> Fraction:
    """Return the share of all services but the base: of instructions, or of cycles at these costs.

    The two differ: an instruction on a device takes several cycles.
    """
    every, base = work.counts, work.of(Service.BASE)
    if costs is None:
        return 1 - share_of(base.total, every.total)
    return 1 - share_of(costs.cycles_of(base), costs.cycles_of(every))


def feature_sets(features: Sequence[NetworkFeature]) -> tuple[FeatureSet, ...]:
    """Return each feature alone, then all of them where they are several."""
    alone = tuple((feature,) for feature in features)
    return alone if len(features) < 2 else (*alone, tuple(features))


# --- other packet sizes ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PacketPoint:
    """The work of a message in packets of one size: all instructions, and the overhead's share.

    `cycles` and their share are None without costs.
    """

    units: MessageUnits
    instructions: Fraction
    overhead_of_instructions: Fraction
    cycles: Fraction | None
    overhead_of_cycles: Fraction | None


def packet_curve(
    layer: MessagingLayer,
    message_bytes: int,
    packet_words: Sequence[int],
    costs: CycleModel | None = None,
) -> tuple[PacketPoint, ...]:
    """Return the work at each packet size (Karamcheti94 Fig. 8, right). Raises InvalidInput.

    Work falls with n without end, so that this names no best packet: latency does.
    """
    if len(packet_words) > MAX_PACKET_SIZES:
        raise InvalidInput(
            f"expected at most {MAX_PACKET_SIZES} packet sizes", field="packet_words"
        )
    every = _sums_by_unit(layer.components)
    base = _sums_by_unit([one for one in layer.components if one.service is Service.BASE])
    points = []
    for words in packet_words:
        units = MessageUnits.of(layer, message_bytes, words)
        total, own = _evaluated(every, units), _evaluated(base, units)
        cycles = costs.cycles_of(total) if costs else None
        points.append(
            PacketPoint(
                units,
                total.total,
                1 - share_of(own.total, total.total),
                cycles,
                1 - share_of(costs.cycles_of(own), cycles)
                if costs and cycles is not None
                else None,
            )
        )
    return tuple(points)


def _sums_by_unit(components: Iterable[Component]) -> dict[Per, InstructionCounts]:
    components = tuple(components)
    return {per: sum_of(one.counts for one in components if one.per is per) for per in Per}


def _evaluated(sums: Mapping[Per, InstructionCounts], units: MessageUnits) -> InstructionCounts:
    return sum_of(counts.times(units.number_of(per)) for per, counts in sums.items())


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


# --- published layers -----------------------------------------------------------------------------


@cache
def shipped_layers() -> Mapping[str, MessagingLayer]:
    """Return the published layers by name: CMAM on the CM-5 (Karamcheti94), each protocol."""
    names = sorted(path.name for path in _FOLDER.glob("*.json") if path.name != _DISAGREEMENTS)
    layers = [layer_of_document(_read(name)) for name in names]
    return MappingProxyType({layer.name: layer for layer in layers})


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Where a publication's text and its own tables differ: what it says, in which section, and
    what its tables give.
    """

    layer: str
    section: str
    says: str
    stated: tuple[float, ...]
    computed: tuple[float, ...]
    how: str


@cache
def disagreements() -> tuple[Disagreement, ...]:
    """Return where the text of Karamcheti94 and its tables differ; neither is mended here."""
    rows: list[dict[str, Any]] = _read(_DISAGREEMENTS)["disagreements"]
    return tuple(
        Disagreement(
            row["layer"],
            row["section"],
            row["says"],
            tuple(row["stated"]),
            tuple(row["computed"]),
            row["how"],
        )
        for row in rows
    )


def _read(name: str) -> Any:
    return json.loads(_FOLDER.joinpath(name).read_text(encoding="utf-8"))
