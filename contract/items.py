"""A message that may be cut only between its items: tensors, layers, files; in and out."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .declare import Input, Output, Sparse, asked, by_member, one_of, output, rule, sent
from .limits import MAX_ITEMS, MAX_NAME_LENGTH, MAX_OVERHEAD_US
from .rules import Bytes, Name, PlainBytes

ItemUs = Annotated[float, rule(ge=0.0, le=MAX_OVERHEAD_US)]
_COLUMN = rule(min_length=1, max_length=MAX_ITEMS, fail_fast=True)
ItemSizes = Annotated[
    list[PlainBytes], rule(min_length=1, max_length=MAX_ITEMS, fail_fast=True, is_whole=True)
]
ItemTimes = Annotated[list[ItemUs], _COLUMN]
ItemNames = Annotated[list[Name], _COLUMN]
FillName: TypeAlias = Literal["until", "before"]
FILL_MEANS = (
    "until: a fragment ends with the item that reaches the cap; before: before the item that would "
    "exceed it"
)


class ListedItemsIn(Input):
    """Items by their sizes, in the order in which they are sent; columns are of one length."""

    bytes: ItemSizes = asked("size of each item, bytes")
    ready_us: ItemTimes | None = asked(
        "when each item is ready, µs; null: all are at once", default=None
    )
    names: ItemNames | None = asked(
        f"what each item is called, {MAX_NAME_LENGTH} characters at most; null: by its place",
        default=None,
    )
    stage_us: dict[Name, ItemTimes] | None = asked(
        "by the name of a stage: what each item takes there besides the stage's own cost, µs",
        default=None,
    )


class RepeatedItemsIn(Input):
    """Items that are alike: the n-th is ready at n times `ready_every_us`."""

    repeat: Annotated[int, rule(ge=1, le=MAX_ITEMS, is_whole=True)] = asked("number of items")
    bytes: Bytes = asked("size of each item, bytes")
    ready_every_us: ItemUs | None = asked(
        "the time from one item to the next, µs; null: all are ready at once", default=None
    )
    stage_us: dict[Name, ItemUs] | None = asked(
        "by the name of a stage: what each item takes there besides the stage's own cost, µs",
        default=None,
    )


ItemsIn = Annotated[
    ListedItemsIn | RepeatedItemsIn,
    one_of(by_member("listed", repeat="repeated"), listed=ListedItemsIn, repeated=RepeatedItemsIn),
]


class FillIn(Input):
    """How a program fills fragments up to a cap."""

    rule: FillName | None = asked(f"{FILL_MEANS}; null with nothing else: until", default=None)
    first_bytes: Bytes | None = asked(
        "with a rule: a cap of its own for the first fragment, bytes; null: the same", default=None
    )


@output
class ItemsOut(Output):
    """Items in the form that requests have."""

    bytes: tuple[int, ...] = sent("size of each item, bytes")
    ready_us: tuple[float, ...] | None = sent("when each item is ready, µs; null: all are at once")
    names: tuple[str, ...] | None = sent("what each item is called; null: by its place")
    stage_us: dict[str, tuple[float, ...]] = sent(
        "by the name of a stage: what each item takes there besides the stage's own cost, µs"
    )


@output
class FillOut(Output):
    """How a program fills fragments up to a cap."""

    rule: FillName = sent(FILL_MEANS)
    first_bytes: int | None = sent("the cap of the first fragment, bytes; null: as the others")


@output
class SlotsOut(Output):
    """The slots of one size that a window holds, for the fragments of a cut."""

    window: int = sent("the window by its place, from 0")
    slots: int = sent("how many buffers to have: so many of the cut's greatest fragment fit")
    slot_bytes: int = sent(
        "the bytes of each: as many as the window has for it, else those of the greatest fragment"
    )
    used: int = sent("how many are in use at once, at most; one is until it is free again")
    enough: int = sent("the fewest with which this cut takes no longer")
    costs_us: float = sent("how much less the cut takes without the window, µs")


@output
class SetItemsOut(Sparse):
    """What to set, in MiB as `bucket_cap_mb` takes it; a list's entries make the cut exactly."""

    sentence: str = sent(
        "what to set, and how much faster that is than the cap in use; where `uncertainty` is "
        "known, what that decides"
    )
    caps_mb: tuple[float, ...] = sent("a cap for each fragment, MiB")
    cap_mb: float | None = sent("one cap for all, MiB; null: the limits admit none")
    slots: tuple[SlotsOut, ...] = sent("of each window: how many buffers, of what size", default=())


@output
class BestCapOut(Sparse):
    """The layout of least latency that one cap gives, and all caps that give it.

    `layouts` is how many were looked at; where they are not all, the time limit ended the search.
    """

    rule: FillName = sent(FILL_MEANS)
    from_bytes: int = sent("the least cap, bytes")
    to_bytes: int | None = sent("the greatest cap, bytes; null: any greater one does")
    fragments: int = sent("number of fragments")
    latency_us: float = sent("latency of the message, µs")
    loss: float = sent("how far that is above the cut's latency, as a share of that")
    layouts: int = sent("number of layouts that were looked at")
    is_complete: bool = sent("whether these are all that one cap can give")
    slots: tuple[int, ...] = sent("how many buffers of it each window holds", default=())


@output
class CurrentCapOut(Sparse):
    """What the cap in use takes, filled by the same rule."""

    cap_bytes: int = sent("the cap, bytes")
    fragments: int = sent("number of fragments that it makes")
    latency_us: float = sent("latency of the message, µs")
    loss: float = sent("how far that is above the cut's latency, as a share of that")
    slots: tuple[int, ...] = sent("how many buffers of it each window holds", default=())


@output
class ItemsLimitOut(Sparse):
    """What most of the latency is, along the path of steps that wait for each other.

    The times and the pipeline's delay sum to the latency.
    """

    kind: Literal["calculation", "bytes", "overheads", "return"] = sent(
        "calculation: the time until items are ready; bytes: what stages take a byte and an item; "
        "overheads: what they take a fragment; return: the time until places of windows are free"
    )
    stage: int | None = sent(
        "the stage that takes most of it, by its place from 0; null of the calculation and of "
        "places"
    )
    calculation_us: float = sent("until the first fragment of the path is ready, µs")
    bytes_us: float = sent("what stages take a byte and an item, µs")
    overheads_us: float = sent("what stages take a fragment, µs")
    sentence: str = sent("the same in a sentence")
    return_us: float = sent("until places of windows are free again, µs", default=0.0)
