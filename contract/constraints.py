"""What every cut must respect, in and out."""

from __future__ import annotations

from .declare import Input, Sparse, asked, output, sent
from .rules import Bytes


class ConstraintsIn(Input):
    """What every cut must respect; the last fragment may be smaller, and no multiple."""

    min_fragment_bytes: Bytes = asked(
        "the least size of a fragment, bytes",
        help="least size of a fragment",
        default=1,
        unit="bytes",
        option="--min-fragment-bytes",
        metavar="SIZE",
        page="min",
        label="At least",
        hint="1 B",
    )
    max_fragment_bytes: Bytes | None = asked(
        "the greatest size of a fragment, bytes; null: no limit",
        help="greatest size of a fragment",
        default=None,
        unit="bytes",
        option="--max-fragment-bytes",
        metavar="SIZE",
        page="max",
        label="At most",
        hint="no limit",
    )
    alignment_bytes: Bytes = asked(
        "all fragments but the last are multiples of it, bytes",
        help="all fragments but the last are multiples",
        default=1,
        unit="bytes",
        option="--alignment-bytes",
        metavar="SIZE",
        page="align",
        label="Multiples of",
        hint="1 B",
    )
    max_fragments: Bytes | None = asked(
        "the greatest number of fragments; null: no limit but the service's",
        help="most fragments",
        default=None,
        unit="whole",
        option="--max-fragments",
        metavar="COUNT",
        label="Most fragments",
        hint="no limit",
    )
    max_fragment_items: Bytes | None = asked(
        "with items: how many of them a fragment has at most; null: no limit", default=None
    )


@output
class ConstraintsOut(Sparse):
    """The limits that an answer respects."""

    min_fragment_bytes: int = sent("the least size of a fragment, bytes")
    max_fragment_bytes: int | None = sent("the greatest size of a fragment, bytes; null: no limit")
    alignment_bytes: int = sent("all fragments but the last are multiples of it, bytes")
    max_fragments: int | None = sent(
        "the greatest number of fragments; null: no limit but the service's"
    )
    max_fragment_items: int | None = sent(
        "how many items a fragment has at most; null: no limit", default=None
    )
