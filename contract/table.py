"""Compiled plan tables: what to compile, and what is sent of one, of many, and of a list."""

from __future__ import annotations

from typing import Annotated, Literal

from .constraints import ConstraintsIn, ConstraintsOut
from .declare import Input, Output, asked, documented, echoed, output, rule, sent
from .limits import (
    DEFAULT_TABLE_GAP,
    DEFAULT_TABLE_MESSAGE_BYTES,
    DIGEST_RULE,
    MAX_COMPILE_S,
    MIN_TABLE_GAP,
)
from .notices import NoticeOut
from .pipeline import PipelineOut
from .profile import ProfileRevisionOut
from .rules import Bytes
from .settings_in_draws import SettingsInDrawsOut

TableTimeLimitS = Annotated[
    float,
    rule(gt=0.0, le=MAX_COMPILE_S),
    documented(description="from then on gaps are as reached"),
]
TableGap = Annotated[float, rule(ge=MIN_TABLE_GAP, le=1.0), documented(description="the tolerance")]
Digest = Annotated[str, rule(pattern=f"^{DIGEST_RULE}$"), documented(description="of its file")]


class TableIn(Input):
    """What to compile: a range of message sizes, inclusive, a tolerance, and the constraints."""

    min_message_bytes: Bytes = asked(
        "the smallest message, bytes",
        help="smallest message (1 B)",
        default=1,
        unit="bytes",
        option="--min-message",
        also="--from",
        metavar="SIZE",
        page="min_message",
        label="Messages from",
        begins_with="1 B",
    )
    max_message_bytes: Bytes = asked(
        "the largest message, bytes, inclusive",
        help="largest message (16 MiB)",
        default=DEFAULT_TABLE_MESSAGE_BYTES,
        unit="bytes",
        option="--max-message",
        also="--to",
        metavar="SIZE",
        page="max_message",
        label="to",
        begins_with="16 MiB",
    )
    relative_gap: TableGap = asked(
        "the tolerance: how far above the optimum a schedule may be, as a share",
        help="tolerance, as 0.1% (default)",
        default=DEFAULT_TABLE_GAP,
        unit="share",
        option="--relative-gap",
        also="--gap",
        metavar="GAP",
        page="tolerance",
        label="Tolerance, as 0.1 % or 0.001",
        hint="0.1 %",
        begins_with="0.1 %",
    )
    constraints: ConstraintsIn = asked(
        "limits of fragments", default=ConstraintsIn(), block=ConstraintsIn
    )
    time_limit_s: TableTimeLimitS = asked(
        "time limit of the compilation, s; from then on gaps are as reached",
        help="default 100",
        default=MAX_COMPILE_S,
        unit="number",
        option="--time-limit",
        metavar="SECONDS",
    )
    activate: bool | None = asked(
        "lookups answer from it; null: if the revision has no active table",
        help="have the profile's lookups answer from it",
        default=None,
        option="--activate",
        mark=True,
        label="Have lookups answer from it at once, instead of the active one, even where less is "
        "proven of the model than was asked for",
    )


class ActivateIn(Input):
    """Which compiled table the lookups of its revision answer from."""

    digest: Digest = asked("SHA-256 of the table's file, 64 hexadecimal digits")


@output
class GapRangeOut(Output):
    """Message sizes, inclusive, and the greatest relative gap certified of the model for them."""

    from_bytes: int = sent("the smallest message, bytes")
    to_bytes: int = sent("the largest message, bytes")
    relative_gap: float = sent("the greatest gap that is proven of the model, as a share")


@output
class CountRunOut(Output):
    """Message sizes, inclusive, whose cut has this number of fragments."""

    from_bytes: int = sent("the smallest message, bytes")
    to_bytes: int = sent("the largest message, bytes")
    fragments: int = sent("how many fragments each is cut into")


@output
class TableOut(Output):
    """A compiled plan table as it was told when it was compiled. Sizes in bytes.

    Of long lists the first are here, and how many there are.
    """

    digest: str = sent("SHA-256 of the table's file, by which it is found again")
    created_at: str = sent("when it was compiled, RFC 3339 in UTC")
    profile: ProfileRevisionOut | None = sent("the revision that it is of; null: of no profile")
    min_message_bytes: int = echoed("the smallest message, bytes")
    max_message_bytes: int = echoed("the largest message, bytes, inclusive")
    relative_gap: float = echoed("the tolerance that was asked for, as a share")
    constraints: ConstraintsOut = sent("the limits that every schedule respects")
    fragment_cap: int = sent("the most fragments that the service cuts a message into")
    pipeline: PipelineOut = sent("the stages that it was compiled for")
    file_bytes: int = sent("size of the table's file, bytes")
    cut_entries: int = sent("entries of the file with a schedule")
    repeat_entries: int = sent("entries of the file with a repeated size")
    worst: GapRangeOut = sent("where the gap of the schedules is greatest")
    worst_repeat: GapRangeOut = sent("where the gap of the repeated sizes is greatest")
    missed: tuple[GapRangeOut, ...] = sent("the first ranges where the tolerance is missed")
    missed_total: int = sent("how many such ranges there are")
    missed_bytes: int = sent("how many message sizes they have")
    unrepeatable_bytes: int = sent("for how many message sizes no size can be repeated")
    counts: tuple[CountRunOut, ...] = sent("the first runs of messages with as many fragments each")
    counts_total: int = sent("how many such runs there are")
    compile_ms: float = sent("how long the compilation took, ms")
    warnings: tuple[NoticeOut, ...] = sent("what to beware of")
    # null in tables of earlier versions
    uncertainty: SettingsInDrawsOut | None = sent(
        "how sure the repeated sizes are; null: the errors of the costs are not known",
        default=None,
    )


@output
class TableSummaryOut(Output):
    """What a page shows of a compiled table; GET /tables/{digest} gives all of it."""

    digest: str = sent("SHA-256 of the table's file, by which it is found again")
    created_at: str = sent("when it was compiled, RFC 3339 in UTC")
    profile: ProfileRevisionOut = sent("the revision that it is of")
    min_message_bytes: int = sent("the smallest message, bytes")
    max_message_bytes: int = sent("the largest message, bytes, inclusive")
    relative_gap: float = sent("the tolerance that was asked for, as a share")
    constraints: ConstraintsOut = sent("the limits that every schedule respects")
    fragment_cap: int = sent("the most fragments that the service cuts a message into")
    worst_relative_gap: float = sent("the greatest gap of its schedules, proven of the model")
    file_bytes: int = sent("size of the table's file, bytes")
    active: bool = sent("whether lookups of its revision answer from it")
    warnings: tuple[NoticeOut, ...] = sent("what was measured against its revision until now")


@output
class TablesOut(Output):
    """A page of a profile's compiled tables, newest first; `next_cursor` is null at the end."""

    items: tuple[TableSummaryOut, ...] = sent("the tables, newest first")
    next_cursor: str | None = sent("the `cursor` of the next page; null: this is the last one")


# --- many tables ----------------------------------------------------------------------------------


@output
class FleetItemOut(Output):
    """What became of one profile: `compiled`, `stored` where its table was there, or `failed`.

    `profile` has the revision that the table is of, where there is one; `relative_gap` is the
    greatest that its certificate has, of the model.
    """

    profile: str = sent("the profile, with the revision that the table is of")
    outcome: Literal["compiled", "stored", "failed"] = sent(
        "compiled; stored: its table was there; or failed"
    )
    digest: str | None = sent("SHA-256 of the table's file", default=None)
    relative_gap: float | None = sent(
        "the greatest gap of its schedules, proven of the model", default=None
    )
    error: str | None = sent("why it failed", default=None)


@output
class FleetOut(Output):
    """The tables of many profiles, in the order of their names."""

    profiles: int = sent("how many profiles were asked for")
    compiled: int = sent("how many tables were compiled")
    stored: int = sent("how many tables were there before")
    failed: int = sent("how many have no table")
    items: tuple[FleetItemOut, ...] = sent("each profile, in the order of their names")
