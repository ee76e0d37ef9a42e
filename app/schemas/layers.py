"""Messaging layers as documents: given, published, and counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Discriminator, FailFast, Field, Tag
from pydantic.config import JsonValue

from analysis.layer_cost import Disagreement, shipped_layers
from app.schemas.base import (
    GIVEN,
    NAMED,
    Input,
    NoticeOut,
    Output,
    dump_json,
    notices_out,
    same_named,
    whole,
)
from app.schemas.stages import Name
from domain.errors import InvalidInput, NotFound
from domain.messaging_layer import (
    CLASS_RULE,
    MAX_CLASSES,
    MAX_CLOCK_MHZ,
    MAX_COMPONENTS,
    MAX_COUNT,
    MAX_CROSSINGS,
    MAX_CYCLES,
    MAX_PACKET_WORDS,
    MAX_PACKETS,
    MAX_SOURCE_LENGTH,
    MAX_WORD_BYTES,
    End,
    InstructionCounts,
    MessagingLayer,
    NetworkFeature,
    Per,
    Service,
    When,
    layer_document,
    layer_of_document,
)

if TYPE_CHECKING:
    from measuring.count import CountedCall, CountedLibrary, CountPlan
    from measuring.counted_layer import CountChange, CountedLayer

MAX_DOCUMENT_BYTES = 2**20

Count = Annotated[float, Field(ge=0.0, le=MAX_COUNT, description="instructions")]
_NO_OTHER: dict[str, JsonValue] = {"additionalProperties": False}  # names of another form
ClassName = Annotated[str, Field(pattern=f"^{CLASS_RULE}$")]
Cycles = Annotated[
    dict[ClassName, Annotated[float, Field(ge=0.0, le=MAX_CYCLES)]],
    Field(
        max_length=MAX_CLASSES,
        description="cycles of an instruction, by class",
        json_schema_extra=_NO_OTHER,
    ),
]
ClockMhz = Annotated[float, Field(gt=0.0, le=MAX_CLOCK_MHZ, description="MHz")]
PacketWords = Annotated[
    int, Field(ge=1, le=MAX_PACKET_WORDS, description="words"), BeforeValidator(whole)
]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class ComponentIn(Input):
    """Instructions that one end executes for each of something, in the name of one service."""

    name: Name
    service: Service
    end: End
    per: Per
    when: When = When.DURING
    counts: Annotated[
        dict[ClassName, Count], Field(max_length=MAX_CLASSES, json_schema_extra=_NO_OTHER)
    ]


class LayerIn(Input):
    """A messaging layer's software, as counted. `cycles` and `out_of_order` are its own figures."""

    name: Name
    source: Annotated[str, Field(max_length=MAX_SOURCE_LENGTH, pattern=r"^[^\u0000]*$")] = ""
    word_bytes: Annotated[int, Field(ge=1, le=MAX_WORD_BYTES), BeforeValidator(whole)]
    packet_words: PacketWords
    acknowledge_every: Annotated[int, Field(ge=1, le=MAX_PACKETS), BeforeValidator(whole)] = 1
    crossings_before: Annotated[int, Field(ge=0, le=MAX_CROSSINGS), BeforeValidator(whole)] = 0
    cycles: Cycles = {}  # noqa: RUF012
    out_of_order: Share | None = None
    components: Annotated[
        list[ComponentIn], FailFast(), Field(min_length=1, max_length=MAX_COMPONENTS)
    ]

    def to_domain(self) -> MessagingLayer:
        """Return the domain's layer. Raises InvalidInput naming the field inside `layer`."""
        document = self.model_dump()
        if len(dump_json(document)) > MAX_DOCUMENT_BYTES:
            raise InvalidInput(
                f"expected a layer of at most {MAX_DOCUMENT_BYTES} bytes of JSON", field="layer"
            )
        try:
            return layer_of_document(document)
        except InvalidInput as refusal:
            raise InvalidInput(refusal.detail, field=f"layer.{refusal.field}") from None


def _branch(value: Any) -> str:
    return NAMED if isinstance(value, str) else GIVEN


LayerGiven = Annotated[
    Annotated[Annotated[str, Field(max_length=100)], Tag(NAMED)] | Annotated[LayerIn, Tag(GIVEN)],
    Discriminator(_branch),
]


def layer_named(name: str) -> MessagingLayer:
    """Return a published layer. Raises NotFound with the names there are."""
    found = shipped_layers().get(name)
    if found is None:
        names = ", ".join(shipped_layers())
        raise NotFound(f"expected a published layer: {names}", field="layer", subject=name)
    return found


# --- layers, out ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ComponentOut(Output):
    """Instructions that one end executes for each of something, in the name of one service."""

    name: str
    service: Service
    end: End
    per: Per
    when: When
    counts: dict[str, float]


@dataclass(frozen=True)
class LayerOut(Output):
    """A messaging layer in the form that requests have."""

    name: str
    source: str
    word_bytes: int
    packet_words: int
    acknowledge_every: int
    crossings_before: int
    cycles: dict[str, float]
    out_of_order: float | None
    components: tuple[ComponentOut, ...]

    @classmethod
    def of(cls, layer: MessagingLayer) -> LayerOut:
        """Return a layer as it is sent."""
        document = layer_document(layer)
        parts = tuple(
            ComponentOut(
                name=one.name,
                service=one.service,
                end=one.end,
                per=one.per,
                when=one.when,
                counts=counts_out(one.counts),
            )
            for one in layer.components
        )
        return cls(**{**document, "components": parts})


@dataclass(frozen=True)
class DisagreementOut(Output):
    """Where a publication's text and its own tables differ: what is stated, and what they give."""

    section: str
    says: str
    stated: tuple[float, ...]
    computed: tuple[float, ...]
    how: str


@dataclass(frozen=True)
class PublishedLayerOut(Output):
    """A published layer, and where the text of its publication differs from its own tables."""

    layer: LayerOut
    disagreements: tuple[DisagreementOut, ...]

    @classmethod
    def of(cls, layer: MessagingLayer, known: tuple[Disagreement, ...]) -> PublishedLayerOut:
        """Return a published layer as it is sent."""
        own = (one for one in known if one.layer == layer.name)
        return cls(LayerOut.of(layer), tuple(same_named(DisagreementOut, one) for one in own))


@dataclass(frozen=True)
class LayerSummaryOut(Output):
    """A published layer in a list: the services that it provides, the features that remove some."""

    name: str
    source: str
    word_bytes: int
    packet_words: int
    services: tuple[Service, ...]
    features: tuple[NetworkFeature, ...]
    classes: tuple[str, ...]


@dataclass(frozen=True)
class LayersOut(Output):
    """The published layers by name."""

    items: tuple[LayerSummaryOut, ...]

    @classmethod
    def of(cls, layers: Iterator[MessagingLayer]) -> LayersOut:
        """Return the layers as they are sent."""
        return cls(tuple(same_named(LayerSummaryOut, layer) for layer in layers))


def counts_out(counts: InstructionCounts) -> dict[str, float]:
    """Return instructions by class as they are sent."""
    return {name: float(count) for name, count in counts.by_class}


# --- counts of an installed library ---------------------------------------------------------------


@dataclass(frozen=True)
class CountedCallOut(Output):
    """One send or receive: the least of its repetitions, and how many are identical to it.

    It is not `countable` where the middle of them is more than 1 % above the least: the call
    waited. `services` are instructions, by the names of functions alone.
    """

    end: End
    message_bytes: int
    instructions: int
    data: int
    identical: int
    repetitions: int
    middle: float
    countable: bool
    services: dict[str, int]

    @classmethod
    def of(cls, call: CountedCall) -> CountedCallOut:
        """Return a call as it is written."""
        return cls(
            end=call.end,
            message_bytes=call.message_bytes,
            instructions=call.instructions,
            data=call.data,
            identical=call.identical,
            repetitions=call.repetitions,
            middle=call.middle,
            countable=call.is_countable,
            services={service.value: both[0] for service, both in call.by_service().items()},
        )


@dataclass(frozen=True)
class CountedLayerOut(Output):
    """The file that `sluice layer count` writes: the layer, and the counts that it is made of."""

    layer: LayerOut
    mpicc: str
    launcher: str
    version: str
    compiler: str
    valgrind: str
    tunables: str
    calls: tuple[CountedCallOut, ...]
    warnings: tuple[NoticeOut, ...]

    @classmethod
    def of(cls, plan: CountPlan, counted: CountedLibrary, made: CountedLayer) -> CountedLayerOut:
        """Return counts as they are written."""
        return cls(
            layer=LayerOut.of(made.layer),
            mpicc=plan.mpicc,
            launcher=plan.mpi.starts_with,
            version=counted.version,
            compiler=counted.compiler,
            valgrind=counted.valgrind,
            tunables=counted.tunables,
            calls=tuple(map(CountedCallOut.of, counted.calls)),
            warnings=notices_out(made.notices),
        )

    def counts(self) -> dict[tuple[End, int], int]:
        """Return the instructions of each call that is countable, by end and size."""
        return {
            (call.end, call.message_bytes): call.instructions
            for call in self.calls
            if call.countable
        }


@dataclass(frozen=True)
class CountChangeOut(Output):
    """A call that was counted before, and now; `now` is null where it waited."""

    end: End
    message_bytes: int
    before: int
    now: int | None
    share: float | None


@dataclass(frozen=True)
class CountChecksOut(Output):
    """Counts beside those of a baseline. `is_kept`: none takes more than `max_more` above it, and
    each can be counted.
    """

    version: str
    max_more: float
    is_kept: bool
    calls: tuple[CountChangeOut, ...]

    @classmethod
    def of(cls, version: str, found: tuple[CountChange, ...], max_more: float) -> CountChecksOut:
        """Return a check as it is written."""
        is_kept = all(one.share is not None and one.share <= max_more for one in found)
        calls = tuple(same_named(CountChangeOut, one) for one in found)
        return cls(version, max_more, is_kept, calls)
