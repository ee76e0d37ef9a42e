"""What a lookup is answered out of a compiled table: the schedule of one message."""

from __future__ import annotations

from typing import Literal

from .constraints import ConstraintsOut
from .declare import Output, output, sent
from .notices import NoticeOut
from .optimize import BestFixedOut
from .profile import ProfileRevisionOut


@output
class TableScheduleOut(Output):
    """A schedule out of the profile's active compiled table. Times in µs, sizes in whole bytes.

    Its fields mean what they do in the answer of an optimisation; `table` is the digest of the
    table file.
    """

    strategy: Literal["table"] = sent("table: it was looked up in a compiled table")
    message_bytes: int = sent("size of the message, bytes")
    fragment_bytes: tuple[int, ...] = sent("sizes of the fragments, bytes, in the order sent")
    fragments: int = sent("how many fragments there are")
    latency_us: float = sent("latency of the cut, µs")
    lower_bound_us: float = sent("what no cut beats, proven of this model, µs")
    relative_gap: float = sent("the gap between both, as a share of the bound")
    status: Literal["proven_gap"] = sent("proven_gap: the gap stated is true of this model")
    best_fixed: BestFixedOut | None = sent(
        "the best repeated size; null: no size can be repeated within the limits"
    )
    constraints: ConstraintsOut = sent("the limits that the table was compiled with")
    profile: ProfileRevisionOut | None = sent("the revision that the table is of")
    table: str = sent("SHA-256 of the table's file")
    warnings: tuple[NoticeOut, ...] = sent("what to beware of")
