"""POST /crossover: two paths of a message in; the sizes at which one overtakes the other out."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .declare import Input, Output, asked, echoed, output, rule, sent
from .limits import DEFAULT_CROSSOVER_BYTES, MAX_NAME_LENGTH, MAX_TARGET_LENGTH
from .notices import NoticeOut
from .pipeline import AggregateOut, PipelineOut
from .profile import ProfileRevisionOut
from .rules import Bytes
from .source import SourceIn

Faster: TypeAlias = Literal["a", "b", "neither"]
Basis: TypeAlias = Literal["measured", "model"]
CrossoverVerdict: TypeAlias = Literal["one", "several", "none", "not_provable"]
PathThresholdName: TypeAlias = Literal[
    "ucx-rndv-thresh", "openmpi-eager-limit", "mpich-eager-limit", "s3-multipart-threshold"
]
PathName = Annotated[str, rule(max_length=MAX_NAME_LENGTH)]
Word = Annotated[str, rule(max_length=MAX_TARGET_LENGTH, pattern="^[A-Za-z0-9_]+$")]


class CrossoverIn(Input):
    """Two ways to send a message, and the messages in question.

    Each path is a source of costs as other requests have it; of measurements latencies alone are
    enough, since a message takes either path in one piece. What both files measured at the same
    sizes decides between these sizes, whatever the lines say.
    """

    a: SourceIn = asked(
        "the path of messages below the threshold: where its costs come from",
        unit="stored",
        is_source=True,
        is_required=True,
        label="Below the threshold: a stored profile",
        hint="name or name@2",
    )
    b: SourceIn = asked(
        "the path of messages from the threshold on: where its costs come from",
        unit="stored",
        is_source=True,
        is_required=True,
        label="From the threshold on: a stored profile",
        hint="name or name@2",
    )
    a_name: PathName = asked(
        "what the first path is called in the answer; empty: its profile, or `path A`", default=""
    )
    b_name: PathName = asked(
        "what the second path is called in the answer; empty: its profile, or `path B`", default=""
    )
    current_bytes: Bytes | None = asked(
        "today's threshold: the least message that takes the second path, bytes",
        help="today's threshold: the first size on B",
        default=None,
        unit="bytes",
        option="--current",
        metavar="SIZE",
        page="current",
        label="Today's threshold",
        hint="256 KiB",
    )
    min_message_bytes: Bytes = asked(
        "the smallest message in question, bytes",
        help="smallest message (1 B)",
        default=1,
        unit="bytes",
        option="--min-message",
        metavar="SIZE",
        page="min_message",
        label="Messages from",
        hint="1 B",
    )
    max_message_bytes: Bytes = asked(
        "the largest message in question, bytes",
        help="largest (1 GiB)",
        default=DEFAULT_CROSSOVER_BYTES,
        unit="bytes",
        option="--max-message",
        metavar="SIZE",
        page="max_message",
        label="to",
        hint="1 GiB",
    )
    target: PathThresholdName | None = asked(
        "the program whose setting is written; null: none",
        help="write the setting of a program, alone",
        default=None,
        option="--target",
        metavar="NAME",
        label="Setting",
        choices=(
            ("", "none"),
            ("ucx-rndv-thresh", "UCX_RNDV_THRESH"),
            ("openmpi-eager-limit", "Open MPI: eager limit"),
            ("mpich-eager-limit", "MPICH: eager limit"),
            ("s3-multipart-threshold", "S3: multipart_threshold"),
        ),
    )
    form: Word | None = asked(
        "how the setting is written: conf or shell, of Open MPI file or shell, of MPICH env or "
        "shell, of S3 aws or boto3; null: the first of these",
        help="conf, file, env, aws; shell, boto3",
        default=None,
        option="--form",
        metavar="NAME",
        label="Written as",
        hint="conf, file, env, aws; shell, boto3",
    )
    parameter: Word | None = asked(
        "which of the target's parameters is set, as btl_vader_eager_limit; null: the first",
        help="as btl_vader_eager_limit",
        default=None,
        option="--parameter",
        metavar="NAME",
        label="Parameter",
        hint="btl_vader_eager_limit",
    )


@output
class CrossoverPathOut(Output):
    """One of the two paths. `measured_bytes` are the least and the greatest size that its costs
    were measured at.
    """

    name: str = sent("what it is called")
    pipeline: PipelineOut | None = sent("its stages; null: they are not told apart")
    aggregate: AggregateOut | None = sent(
        "all stages and the slowest of them; null: see `pipeline`"
    )
    profile: ProfileRevisionOut | None = sent(
        "the revision of the profile that holds these costs; null where none does"
    )
    measured_bytes: tuple[int, int] | None = sent(
        "the least and the greatest size that the costs were measured at, bytes; null: not measured"
    )


@output
class FasterRunOut(Output):
    """Neighbouring sizes at which the same path is faster."""

    from_bytes: int = sent("the first size, bytes")
    up_to_bytes: int = sent("the last size, bytes")
    faster: Faster = sent("the faster path; neither: they differ by rounding alone")
    is_sure: bool | None = sent(
        "whether at one of these sizes at least both files' times, or 97.5 % of the draws of the "
        "costs, say so; null: neither is known"
    )


@output
class CrossoverAtOut(Output):
    """One change of the faster path. An end of `between_bytes` is null where on that side no size
    in question is certain.
    """

    at_bytes: int = sent("the first size at which `after` is faster, bytes")
    before: Faster = sent("the path that is faster below")
    after: Faster = sent("the path that is faster from there on")
    a_us: float = sent("what the first path takes there by its costs, µs")
    b_us: float = sent("what the second path takes there by its costs, µs")
    basis: Basis = sent(
        "measured: it lies between two sizes that both files measured; model: the costs say so"
    )
    between_bytes: tuple[int | None, int | None] | None = sent(
        "the sizes between which it lies with 95 % of certainty, bytes; null: not known"
    )


@output
class ThresholdPriceOut(Output):
    """What a threshold costs where it has messages take the slower path."""

    threshold_bytes: int | None = sent(
        "the least message on the second path, bytes; 0: all are; null: none is"
    )
    wrong: tuple[tuple[int, int], ...] = sent(
        "the sizes that take the slower path, first and last of each range, bytes"
    )
    worst_bytes: int | None = sent("the message that loses most, bytes; null: none loses")
    taken_us: float = sent("what it takes, µs")
    faster_us: float = sent("what it would take on the other path, µs")
    more_by: float | None = sent("by which share that is more; null: without a bound")
    basis: Basis = sent("whether both times are measured, or of the costs")
    more_by_within: tuple[float | None, float | None] | None = sent(
        "the share in 95 % of the draws of the costs; null: not known"
    )


@output
class TimedByBothOut(Output):
    """A message that both files timed."""

    message_bytes: int = sent("the size of the message, bytes")
    a_us: float = sent("the median of the first path's times, µs")
    b_us: float = sent("the median of the second path's times, µs")
    faster: Faster = sent("the faster path; neither: their errors leave it open")


@output
class PathSettingOut(Output):
    """The threshold in a program's own words."""

    target: str = sent("the program, as requests call it")
    file_name: str = sent("what a file of it is called")
    text: str = sent("the setting, in the target's own syntax")


@output
class CrossoverOut(Output):
    """Where one path overtakes the other. `runs` cover all sizes in question, ascending.

    `advised` is the threshold whose worst loss is least: the crossover itself where there is one
    alone; null where the errors of the costs tell at no size which path is faster.
    """

    verdict: CrossoverVerdict = sent(
        "one, several or no crossover; not_provable: the errors of the costs tell at no size which "
        "path is faster"
    )
    a: CrossoverPathOut = sent("the path of messages below the threshold")
    b: CrossoverPathOut = sent("the path of messages from the threshold on")
    min_message_bytes: int = echoed("the smallest message in question, bytes")
    max_message_bytes: int = echoed("the largest message in question, bytes")
    runs: tuple[FasterRunOut, ...] = sent("which path is faster, by size")
    crossovers: tuple[CrossoverAtOut, ...] = sent("every change of the faster path")
    advised: ThresholdPriceOut | None = sent("the threshold whose worst loss is least")
    current: ThresholdPriceOut | None = sent("what today's threshold costs; null: not given")
    timed_by_both: tuple[TimedByBothOut, ...] = sent("the messages that both files timed")
    setting: PathSettingOut | None = sent("the setting of the target; null: none was asked for")
    warnings: tuple[NoticeOut, ...] = sent("what a user must see beside the answer")
