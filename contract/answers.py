"""Stored answers to optimize: pages of them, what one is called, and why it takes so long."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .declare import Input, Output, asked, output, rule, sent
from .limits import MAX_ANSWER_NAME, MAX_NOTE
from .profile import ProfileRevisionOut
from .rules import STATUS_MEANS, Status, Strategy

Cost: TypeAlias = Literal["overhead", "per_byte"]

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


# --- why it takes so long -------------------------------------------------------------------------


@output
class PathShareOut(Output):
    """What one stage contributes to the critical path; µs. `share` is of the time in stages.

    `is_binding`: more than one of its fragments is on the path, so that it holds the message up.
    """

    stage: int = sent("the stage by its place, from 0")
    name: str = sent("its name")
    fragments: int = sent("how many of its fragments are on the path")
    overhead_us: float = sent("what they take per fragment, in all, µs")
    bytes_us: float = sent("what they take for their bytes, in all, µs")
    share: float = sent("both, as a share of the time in stages")
    is_binding: bool = sent("whether more than one of its fragments is on the path")


@output
class SavingOut(Output):
    """What one cost of one stage, made cheaper, would take off the latency; µs.

    `same_cut_us`: with the schedule as it is. `best_cut_us`: with the best schedule of the cheaper
    pipeline, null where it was not solved.
    """

    stage: int = sent("the stage by its place, from 0")
    name: str = sent("its name")
    cost: Cost = sent("which of its costs is cheaper: that per fragment, or per byte")
    same_cut_us: float = sent("what that saves with the schedule as it is, µs")
    best_cut_us: float | None = sent(
        "what that saves with the best schedule of the cheaper pipeline, µs; null: not solved"
    )


@output
class ExplanationOut(Output):
    """Why an answer takes as long as it does, and what would make it faster."""

    id: str = sent("the stored answer that is explained")
    latency_us: float = sent("its latency, µs")
    delay_us: float = sent("the constant delay in it, which occupies no stage, µs")
    path: tuple[PathShareOut, ...] = sent("what each stage contributes to the critical path")
    cheaper_by: float = sent("by which share a cost is made cheaper in `savings`")
    savings: tuple[SavingOut, ...] = sent("what each cost of each stage, made cheaper, would save")
