"""POST /compose: stages that were measured each by itself, and how to fit them; a fit comes out."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .declare import Input, asked, rule
from .fit_options import (
    EXCLUDED_HELP,
    EXCLUDED_MEANS,
    MAX_RANGES_HELP,
    MAX_RANGES_MEANS,
    METHOD_HELP,
    METHOD_MEANS,
    METHODS,
    RUN_MEANS,
    SHAPES,
    TEST_MEANS,
    WHERE_MEANS,
    Columns,
    Excluded,
    MaxRanges,
    Method,
    Run,
    TestName,
    Where,
)
from .limits import DEFAULT_MAX_RANGES, MAX_STAGES
from .measurements import MeasurementsIn
from .rules import Name, ProfileName

ComposedShape: TypeAlias = Literal["ranges", "line"]


class ComposedStageIn(Input):
    """A stage that was measured by itself.

    `step` is the column to take of a file with several steps. Stages of one `processor`, neighbours
    in the pipeline, work one after the other and count as one. `columns` are those of its tables;
    `test`, `run` and `where` say which test, run and condition of its files is meant.
    """

    name: Name = asked("what the stage is called", label="Name", hint="copy")
    measurements: MeasurementsIn = asked(
        "the file that times it, or several",
        help="a stage and the files that time it; repeated, in the order of the pipeline",
        option="--stage",
        metavar="NAME=FILE[,FILE]",
        is_repeated=True,
        page="trace",
        label="Its measurements: paste them, or drop a file here",
        hint="message_bytes,copy_us",
    )
    step: Name | None = asked(
        "the column to take of a file with several steps; null: it has one",
        help="of a stage whose file has several steps: which one; may be repeated",
        default=None,
        option="--step",
        metavar="NAME=COLUMN",
        is_repeated=True,
        label="Step, of a file with several",
        hint="the only one",
    )
    processor: Name | None = asked(
        "the processor that it shares with neighbours, which then work one after the other and "
        "count as one stage; null: its own",
        help="stages that share a processor or an engine; may be repeated",
        default=None,
        option="--processor",
        metavar="NAME=STAGE,STAGE",
        is_repeated=True,
        label="Shares a processor, by name",
        hint="its own",
    )
    columns: Columns | None = asked(
        "which columns of its tables hold what, as size=bytes,time=copy:ms",
        help="of a stage whose files are tables: NAME=size=COLUMN,time=COLUMN:us; may be repeated",
        default=None,
        option="--columns",
        metavar="NAME=COLUMNS",
        is_repeated=True,
    )
    test: TestName | None = asked(
        TEST_MEANS,
        help="of a stage whose files do not name their test: NAME=TEST; may be repeated",
        default=None,
        option="--test",
        metavar="NAME=TEST",
        is_repeated=True,
    )
    run: Run | None = asked(
        RUN_MEANS,
        help="of a stage whose files have several runs: NAME=NUMBER; may be repeated",
        default=None,
        option="--run",
        metavar="NAME=NUMBER",
        is_repeated=True,
    )
    where: Where | None = asked(
        WHERE_MEANS,
        help="of a stage whose files have several conditions: NAME=CONDITION=VALUE; may be "
        "repeated",
        default=None,
        option="--where",
        metavar="NAME=CONDITION=VALUE",
        is_repeated=True,
    )


class ComposeIn(Input):
    """Stages of a pipeline in their order, each of files of its own, and how to fit them."""

    stages: Annotated[list[ComposedStageIn], rule(min_length=1, max_length=MAX_STAGES)] = asked(
        "the stages, in the order in which a fragment passes them"
    )
    method: Method = asked(
        METHOD_MEANS,
        default="robust",
        help=METHOD_HELP,
        option="--method",
        metavar="NAME",
        label="Method",
        choices=METHODS,
    )
    shape: ComposedShape = asked(
        "ranges: as many lines as the data support; line: one",
        default="ranges",
        help="one of ranges, line (default ranges)",
        option="--shape",
        metavar="NAME",
        label="Shape",
        choices=SHAPES,
    )
    max_ranges: MaxRanges = asked(
        MAX_RANGES_MEANS,
        default=DEFAULT_MAX_RANGES,
        help=MAX_RANGES_HELP,
        unit="whole",
        option="--max-ranges",
        metavar="COUNT",
    )
    excluded: Excluded = asked(
        EXCLUDED_MEANS,
        default=(),
        help=EXCLUDED_HELP,
        option="--exclude",
        metavar="SAMPLE",
        is_repeated=True,
    )
    save_as: ProfileName | None = asked(
        "the profile that the pipeline is stored as; null: it is not stored",
        default=None,
        help="store traces, fit and stages",
        option="--save-as",
        metavar="PROFILE",
    )
    plot: bool = asked("whether the answer has what a plot of the fit shows", default=False)
