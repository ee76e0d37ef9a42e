"""Stored answers to optimize: pages of them, and what one is called."""

from __future__ import annotations

from typing import Annotated

from .declare import Input, Output, asked, output, rule, sent
from .limits import MAX_ANSWER_NAME, MAX_NOTE
from .profile import ProfileRevisionOut
from .rules import STATUS_MEANS, Status, Strategy

# No NUL, and none of the characters at which a text has another line.
_ONE_LINE = r"^[^\u0000\n\r\u000b\u000c\u001c-\u001e\u0085\u2028\u2029]*$"


class DescriptionIn(Input):
    """What a stored answer is called, and a note about it; empty for none. What is left out stays
    as it is.
    """

    name: Annotated[str, rule(max_length=MAX_ANSWER_NAME, pattern=_ONE_LINE)] | None = asked(
        "what the answer is called, in one line; empty: nothing; null: it stays as it is",
        help='of one line; "" for none',
        default=None,
        metavar="NAME",
        label="Name",
    )
    note: Annotated[str, rule(max_length=MAX_NOTE, pattern=r"^[^\u0000]*$")] | None = asked(
        "a note about it; empty: none; null: it stays as it is",
        help='about it; "" for none',
        default=None,
        option="--note",
        metavar="TEXT",
        label="Note",
    )


@output
class SummaryOut(Output):
    """What a page shows of a stored answer; GET /optimizations/{id} gives all of it."""

    id: str = sent("the answer's identifier")
    created_at: str = sent("when it was stored, RFC 3339 in UTC")
    strategy: Strategy = sent("the algorithm that chose the cut")
    message_bytes: int = sent("size of the message, bytes")
    fragments: int = sent("how many fragments it is cut into")
    latency_us: float = sent("latency of the cut, µs")
    lower_bound_us: float = sent("what no cut beats, proven of this model, µs")
    relative_gap: float = sent("the gap between both, as a share of the bound")
    status: Status = sent(STATUS_MEANS)
    profile: ProfileRevisionOut | None = sent("the revision that it is of; null: of no profile")
    name: str | None = sent("what it is called; null: nothing")
    note: str | None = sent("a note about it; null: none")


@output
class OptimizationsOut(Output):
    """A page of stored answers, newest first; `next_cursor` is null at the end."""

    items: tuple[SummaryOut, ...] = sent("the answers, newest first")
    next_cursor: str | None = sent("the `cursor` of the next page; null: this is the last one")
