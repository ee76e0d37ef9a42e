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
    CycleModel,
    End,
    Exact,
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


@dataclass(frozen=True, slots=True)
class LayerSums:
    """A layer's counts for one of each unit, by service and end: what work is reckoned from."""

    layer: MessagingLayer
    sums: tuple[tuple[Service, End, tuple[tuple[Per, InstructionCounts], ...]], ...]

    @classmethod
    def of(cls, layer: MessagingLayer) -> LayerSums:
        """Return the sums of a layer's components."""
        parts: dict[tuple[Service, End], dict[Per, list[InstructionCounts]]] = {
            place: {} for place in product(layer.services, End)
        }
        for one in layer.components:
            parts[one.service, one.end].setdefault(one.per, []).append(one.counts)
        return cls(
            layer,
            tuple(
                (service, end, tuple((per, sum_of(counts)) for per, counts in units.items()))
                for (service, end), units in parts.items()
            ),
        )

    def work(self, units: MessageUnits) -> Work:
        """Return the instructions of a message of these units.

        Counts(service, end) = Σ over components of counts · (1 | p | W | acknowledgements), where W
        are the message's words (Karamcheti94 Fig. 8 has W = n·p: `MessageUnits.filled`).
        """
        return Work(
            units,
            tuple(
                WorkCell(
                    service,
                    end,
                    sum_of(counts.times(units.number_of(per)) for per, counts in parts),
                )
                for service, end, parts in self.sums
            ),
        )


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


# --- other packet sizes ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PacketPoint:
    """The work of a message in packets of one size: all instructions, and the overhead's share.

    `cycles` and their share are None without costs.
    """

    units: MessageUnits
    instructions: Exact
    overhead_of_instructions: Fraction
    cycles: Exact | None
    overhead_of_cycles: Fraction | None


def packet_curve(
    sums: LayerSums,
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
    points = []
    for words in packet_words:
        work = sums.work(MessageUnits.of(sums.layer, message_bytes, words))
        points.append(
            PacketPoint(
                work.units,
                work.counts.total,
                overhead_share(work),
                costs.cycles_of(work.counts) if costs else None,
                overhead_share(work, costs) if costs else None,
            )
        )
    return tuple(points)


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
