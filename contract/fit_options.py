"""How measurements are fitted."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .declare import Input, asked, documented, rule
from .limits import (
    DEFAULT_MAX_RANGES,
    MAX_COLUMNS_LENGTH,
    MAX_EXCLUDED,
    MAX_FIT_RANGES,
    MAX_RUN,
    MAX_STAGES,
    MAX_TEST_LENGTH,
    MAX_TIME_US,
    MAX_WHERE_LENGTH,
)
from .rules import Bytes, Name

Method: TypeAlias = Literal["robust", "weighted", "ordinary"]
Shape: TypeAlias = Literal["ranges", "line", "narrowed"]
Combined: TypeAlias = Literal["overlap", "sequence"]
YES_OR_NO = (("yes", "yes"), ("no", "no"))
METHODS = (
    ("robust", "robust: outliers weigh little"),
    ("weighted", "weighted least squares"),
    ("ordinary", "ordinary least squares"),
)
SHAPES = (("ranges", "as many lines as the data support"), ("line", "one line over all sizes"))
NARROWED = ("narrowed", "one line over the sizes in use")
MaxRanges = Annotated[int, rule(ge=1, le=MAX_FIT_RANGES, is_whole=True)]

# What a JSON Schema can say of columns, the size first: ASCII names without , : and =, or places #1
# to #999. Every text that matches is understood.
_NAMED = r"(#[1-9][0-9]{0,2}|[!-\"$-+\--9;<>-~]([ -+\--9;<>-~]*[!-+\--9;<>-~])?)"
_TIMED = rf"{_NAMED}(:(ns|us|ms|s))?"
_OTHER = rf"(,interarrival={_TIMED}|,rate={_NAMED}(:([GM]i?B|TB|[GM]b)/s)?)"
COLUMNS_PATTERN = rf"^size={_NAMED}(:([KMG]i?)?B)?(,time={_TIMED}{_OTHER}?|{_OTHER})$"
# Which columns of a table hold what: role=column:unit,...
Columns = Annotated[
    str, rule(min_length=1, max_length=MAX_COLUMNS_LENGTH), documented(pattern=COLUMNS_PATTERN)
]

# Which rows of a file are taken: name=value,... of ASCII without , and =.
_WORD = r"[!-+\--<>-~]([ -+\--<>-~]*[!-+\--<>-~])?"
Where = Annotated[
    str,
    rule(min_length=3, max_length=MAX_WHERE_LENGTH),
    documented(pattern=f"^{_WORD}={_WORD}(,{_WORD}={_WORD})*$"),
]
Run = Annotated[int, rule(ge=1, le=MAX_RUN, is_whole=True)]
TestName = Annotated[
    str, rule(min_length=1, max_length=MAX_TEST_LENGTH), documented(pattern="^[!-~]+$")
]
TEST_MEANS = "the test of what a file does not name, as sendrecv_perf; null: as the file says"
RUN_MEANS = "the run to take of a file of several, from 1; null: they agree"
WHERE_MEANS = (
    "the rows to take of a file of several conditions, as connections=1,threads=2; null: they agree"
)
METHOD_MEANS = (
    "robust: outliers weigh less; weighted: relative residuals; ordinary: least squares in µs"
)
METHOD_HELP = "robust (default), weighted or ordinary"
MAX_RANGES_MEANS = "the greatest number of lines of a stage"
MAX_RANGES_HELP = "most a stage (12)"
EXCLUDED_MEANS = "samples that are left out by hand"
EXCLUDED_HELP = "bytes:µs:stage, a sample to leave out; may be repeated"


class ExcludedSampleIn(Input):
    """A sample to leave out: every one of this stage with this size and this time."""

    stage: Name = asked("the stage that was measured, as the trace names it")
    message_bytes: Bytes = asked("the size of the message, bytes")
    time_us: Annotated[float, rule(ge=0.0, le=MAX_TIME_US)] = asked(
        "its time to the last digit, µs"
    )


class StepGroupIn(Input):
    """Measured steps, neighbours in the trace, that form one stage."""

    name: Name = asked("what the stage is called")
    steps: Annotated[list[Name], rule(min_length=2, max_length=MAX_STAGES)] = asked(
        "the steps as the trace names them, in its order"
    )
    combine: Combined = asked(
        "overlap: they run at the same time and the larger counts; sequence: their sum counts"
    )


Excluded = Annotated[tuple[ExcludedSampleIn, ...], rule(max_length=MAX_EXCLUDED)]


class FitOptionsIn(Input):
    """How to fit measurements; `groups` are for direct traces, `excluded` is left out by hand.

    `as_stage` says that times of whole messages are those of one stage, and names it; `columns`
    which columns of tables hold what; `total_is_uncut` that nothing cut the messages whose
    latencies were measured; `test`, `run` and `where` which test, run and condition of a file is
    meant; `several_at_once` whether a stage handles several fragments at once,
    and `stages_overlap` whether stages work on different fragments at the same time, null where
    that is not known.
    """

    method: Method = asked(
        METHOD_MEANS,
        help=METHOD_HELP,
        default="robust",
        option="--method",
        metavar="NAME",
        label="Method",
        choices=METHODS,
    )
    shape: Shape = asked(
        "ranges: as many lines as the data support; line: one; narrowed: one, over the fragment "
        "sizes that the schedules use",
        help="one of ranges, line, narrowed (default ranges)",
        default="ranges",
        option="--shape",
        metavar="NAME",
        label="Shape",
        choices=(*SHAPES, NARROWED),
    )
    max_ranges: MaxRanges = asked(
        MAX_RANGES_MEANS,
        help=MAX_RANGES_HELP,
        default=DEFAULT_MAX_RANGES,
        unit="whole",
        option="--max-ranges",
        metavar="COUNT",
        label="Most fit ranges a stage",
    )
    groups: Annotated[tuple[StepGroupIn, ...], rule(max_length=MAX_STAGES)] = asked(
        "steps of a direct trace that form one stage",
        help="name:overlap:step,step or name:sequence:step,step; may be repeated",
        default=(),
        option="--group",
        metavar="GROUP",
        is_repeated=True,
    )
    excluded: Excluded = asked(
        EXCLUDED_MEANS,
        help=EXCLUDED_HELP,
        default=(),
        option="--exclude",
        metavar="SAMPLE",
        is_repeated=True,
    )
    as_stage: Name | None = asked(
        "times of whole messages are those of one stage, which is called so",
        help="times of whole messages are those of this one stage",
        default=None,
        option="--as-stage",
        also="--stage",
        metavar="NAME",
        label="Times of one stage, called",
        hint="no, of messages",
    )
    columns: Columns | None = asked(
        "which columns of tables hold what, as size=bytes,time=copy:ms",
        help="of any table: size=COLUMN,time=COLUMN:us or rate=COLUMN:GB/s; #2 is the second one",
        default=None,
        option="--columns",
        metavar="COLUMNS",
    )
    test: TestName | None = asked(
        TEST_MEANS,
        help="the test of what a file does not name, as sendrecv_perf",
        default=None,
        option="--test",
        metavar="NAME",
    )
    run: Run | None = asked(
        RUN_MEANS,
        help="of a file of several runs: the one to take",
        default=None,
        unit="whole",
        option="--run",
        metavar="NUMBER",
    )
    where: Where | None = asked(
        WHERE_MEANS,
        help="of a file of several conditions: those rows, as connections=1; may be repeated",
        default=None,
        unit="condition",
        option="--where",
        metavar="NAME=VALUE",
        is_repeated=True,
    )
    total_is_uncut: bool = asked(
        "whether nothing cut the messages whose latencies were measured",
        help="nothing cut the messages whose latencies were measured: no library pipelines inside",
        default=False,
        option="--uncut",
        mark=True,
        label="Nothing cut the messages whose latencies were measured: no library pipelines inside",
    )
    several_at_once: bool | None = asked(
        "whether a stage handles several fragments at once; null: not known",
        help="whether a stage handles several fragments at once, by connections or threads",
        default=None,
        unit="yes_or_no",
        option="--several-at-once",
        choices=YES_OR_NO,
    )
    stages_overlap: bool | None = asked(
        "whether stages work on different fragments at the same time; null: not known",
        help="whether stages work on different fragments at the same time, as threads of their own",
        default=None,
        unit="yes_or_no",
        option="--stages-overlap",
        choices=YES_OR_NO,
    )
