"""What the service answers about messaging layers: what their software costs."""

from __future__ import annotations

from dataclasses import dataclass

from sluice_client.fit_answers import Notice, ProfileRevision
from sluice_client.shapes import Constraints, Pipeline


@dataclass(frozen=True, slots=True)
class LayerComponent:
    """Instructions that one end executes for each of something, in the name of one service."""

    name: str
    service: str
    end: str
    per: str
    when: str
    counts: dict[str, float]


@dataclass(frozen=True, slots=True)
class Layer:
    """A messaging layer in the form that requests have."""

    name: str
    source: str
    word_bytes: int
    packet_words: int
    acknowledge_every: int
    crossings_before: int
    cycles: dict[str, float]
    out_of_order: float | None
    components: tuple[LayerComponent, ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Where a publication's text and its own tables differ: what is stated, and what they give."""

    section: str
    says: str
    stated: tuple[float, ...]
    computed: tuple[float, ...]
    how: str


@dataclass(frozen=True, slots=True)
class PublishedLayer:
    """A published layer, and where the text of its publication differs from its own tables."""

    layer: Layer
    disagreements: tuple[Disagreement, ...]


@dataclass(frozen=True, slots=True)
class LayerSummary:
    """A published layer in a list: the services that it provides, the features that remove some."""

    name: str
    source: str
    word_bytes: int
    packet_words: int
    services: tuple[str, ...]
    features: tuple[str, ...]
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LayerStages:
    """The stages of the layer as it is, for POST /optimize with these constraints.

    `last_fragment_us_at_most` bounds by how much the software of the last fragment, at both ends
    together, may take longer than the stages say, µs.
    """

    pipeline: Pipeline
    constraints: Constraints
    last_fragment_us_at_most: float


@dataclass(frozen=True, slots=True)
class FeatureStages:
    """The stages on a network that has these features."""

    features: tuple[str, ...]
    pipeline: Pipeline
    constraints: Constraints


@dataclass(frozen=True, slots=True)
class ServiceCost:
    """What one service does at one end for a message; its shares of all instructions and cycles."""

    service: str
    end: str
    counts: dict[str, float]
    instructions: float
    cycles: float | None
    us: float | None
    share_of_instructions: float
    share_of_cycles: float | None


@dataclass(frozen=True, slots=True)
class FullPackets:
    """The work of a message whose packets are all full, as the formulas of the paper count."""

    words: int
    instructions: float
    cycles: float | None


@dataclass(frozen=True, slots=True)
class PacketSize:
    """The work of a message in packets of this many words; the overhead is all but the base."""

    packet_words: int
    packets: int
    instructions: float
    cycles: float | None
    overhead_of_instructions: float
    overhead_of_cycles: float | None


@dataclass(frozen=True, slots=True)
class BestCut:
    """The best cut of a message with its bound, µs; `declined` says why there is none."""

    latency_us: float | None
    lower_bound_us: float | None
    relative_gap: float | None
    fragments: int | None
    largest_fragment_bytes: int | None
    status: str | None
    declined: str | None


@dataclass(frozen=True, slots=True)
class FeatureSaving:
    """What a network with these features saves of a message: work, and latency in µs.

    Work is `instructions`, `cycles` and `us`, and their shares of all. `old_cut_us` is the latency
    of the cut that is best without them, `best` the best cut with them; the differences to the best
    latency without are `saved_at_old_cut_us` and `saved_us`. All None where nothing was tuned.
    """

    features: tuple[str, ...]
    instructions: float
    cycles: float | None
    us: float | None
    share_of_instructions: float
    share_of_cycles: float | None
    old_cut_us: float | None
    best: BestCut | None
    saved_at_old_cut_us: float | None
    saved_us: float | None


@dataclass(frozen=True, slots=True)
class MessageCosts:
    """One message: its units, its work by service and end, savings, and its best cut.

    `full_packets` is there where its last packet is not full (`partial_packet`).
    """

    message_bytes: int
    words: int
    packets: int
    acknowledgements: int
    partial_packet: bool
    counts: dict[str, float]
    instructions: float
    cycles: float | None
    us: float | None
    overhead_of_instructions: float
    overhead_of_cycles: float | None
    services: tuple[ServiceCost, ...]
    full_packets: FullPackets | None
    packet_sizes: tuple[PacketSize, ...]
    best: BestCut | None
    savings: tuple[FeatureSaving, ...]


@dataclass(frozen=True, slots=True)
class LayerCosts:
    """What a messaging layer costs. `stages` is None without a clock, or where there is no
    pipeline; `profile` is where they were stored.
    """

    layer: Layer
    cycles: dict[str, float] | None
    clock_mhz: float | None
    mapping: str
    handshake: str
    stages: LayerStages | None
    with_features: tuple[FeatureStages, ...]
    messages: tuple[MessageCosts, ...]
    assumptions: tuple[str, ...]
    profile: ProfileRevision | None
    warnings: tuple[Notice, ...]
