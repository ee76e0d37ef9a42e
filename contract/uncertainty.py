"""How sure an answer is: what is asked about it, and what is said."""

from __future__ import annotations

from typing import Annotated, Literal

from .declare import Input, Output, asked, by_type, one_of, output, rule, sent
from .limits import (
    DEFAULT_DRAWS,
    MAX_DRAWS,
    MAX_INTERVALS,
    MAX_RELATIVE,
    MIN_DRAWS,
    MIN_RELATIVE,
)
from .rules import Bytes, Count, Seed


class RepeatIn(Input):
    """One size is repeated."""

    repeat: Bytes = asked("the size, bytes")


CurrentIn = Annotated[
    RepeatIn | Literal["whole"],
    one_of(by_type(str, "whole", "static"), static=RepeatIn, whole=Literal["whole"]),
]
Pair = tuple[float, float]


class StatedIntervalIn(Input):
    """95 % intervals, [low, high], of what a stage costs in one of its ranges, counted from 0."""

    stage: Annotated[str, rule(min_length=1)] = asked("the stage by its name")
    range: Count = asked("its range, counted from 0", default=0)
    overhead_us: Pair | None = asked("[low, high], µs per fragment", default=None)
    ns_per_byte: Pair | None = asked("[low, high], ns per byte", default=None)


class DrawsIn(Input):
    """Over how many draws of the costs an answer is looked at, each cost drawn by its error.

    The errors are those of the fit, or `relative`, one standard deviation of every cost, and
    `intervals` of single ones, without `relative` the only ones that are not known exactly.
    """

    draws: Annotated[int, rule(ge=MIN_DRAWS, le=MAX_DRAWS, is_whole=True)] = asked(
        "the number of draws", default=DEFAULT_DRAWS
    )
    seed: Seed | None = asked(
        "where the draws begin, in decimal digits; null: by the question", default=None
    )
    relative: Annotated[float, rule(ge=MIN_RELATIVE, le=MAX_RELATIVE)] | None = asked(
        "one standard deviation of every cost, a share: 0.1 is 10 %",
        help="deviation of every cost, as 10%",
        default=None,
        unit="share",
        option="--relative",
        metavar="SHARE",
        label="Costs known to ±",
        hint="as fitted, or 10 %",
    )
    intervals: Annotated[tuple[StatedIntervalIn, ...], rule(max_length=MAX_INTERVALS)] = asked(
        "95 % intervals of single costs", default=()
    )


class UncertaintyIn(DrawsIn):
    """How sure the answer is, over draws of the costs.

    `current` is the setting in use, `mtu_bytes` a size whose multiples are round; `robust` asks for
    the cut whose greatest regret over the draws is least. `ready_relative` goes with items, whose
    ready times are multiplied by one factor in each draw.
    """

    current: CurrentIn | None = asked(
        "the setting in use: a size that is repeated, or that messages are sent whole",
        help="the size in use today, or whole",
        default=None,
        unit="size_or_whole",
        option="--current",
        metavar="SIZE",
        label="Your setting now",
        hint="64 KiB, or whole",
    )
    mtu_bytes: Bytes | None = asked("a size whose multiples are round, bytes", default=None)
    robust: bool = asked(
        "whether to look for the cut whose greatest regret over the draws is least",
        help="seek the cut whose greatest regret over draws of the costs is least",
        default=False,
        option="--robust",
        mark=True,
    )
    ready_relative: Annotated[float, rule(ge=MIN_RELATIVE, le=MAX_RELATIVE)] | None = asked(
        "with items: one standard deviation of how fast a calculation is, a share; null: known",
        help="with --items: deviation from one calculation to the next, as 3%",
        default=None,
        unit="share",
        option="--ready-relative",
        metavar="SHARE",
    )


@output
class QuantilesOut(Output):
    """Quantiles over the draws; null where nothing can be divided by."""

    p05: float | None = sent("the 5 % quantile; null where nothing can be divided by")
    p50: float | None = sent("the median; null where nothing can be divided by")
    p95: float | None = sent("the 95 % quantile; null where nothing can be divided by")


@output
class AgainstOut(Output):
    """The answer against another cut on the same draws; `saves` is 1 - T/T_other."""

    name: str = sent("the other cut by its name")
    size_bytes: int | None = sent("the size that it repeats, bytes; null: another cut")
    probability_faster: float = sent("the share of draws in which the answer is faster")
    saves: QuantilesOut = sent("what the answer saves of its time, 1 - T/T_other, over the draws")


@output
class RegretOut(Output):
    """What the answer takes over the best repeated size of each draw, as a share of that."""

    mean: float | None = sent("its mean over the draws, a share; null: without end")
    p95: float | None = sent("its 95 % quantile over the draws, a share; null: without end")
    worst_drawn: float | None = sent("the greatest of the draws, a share; null: without end")
    basis: str = sent("what it is a share over, in words", default="best repeated size")


@output
class GoodSizesOut(Output):
    """Sizes, low to high in bytes, within this share of the best in this share of the draws."""

    within: float = sent("how far above the best they are at most, a share")
    in_draws: float = sent("in which share of the draws")
    intervals: tuple[tuple[int, int], ...] = sent(
        "intervals of such sizes, [low, high] in bytes, ascending"
    )


@output
class RoundSizeOut(Output):
    """The best size that keeps a rule, and its regret."""

    size_bytes: int = sent("the size, bytes")
    rule: str = sent("the rule that it keeps, in words")
    regret_mean: float | None = sent("its mean regret over the draws, a share; null: without end")
    regret_p95: float | None = sent("the 95 % quantile of its regret, a share; null: without end")


@output
class MeasureOut(Output):
    """What to measure: a stage at a size, or whole messages cut by `cuts_bytes` in turns.

    `saves_us` is by how much that lowers the latency to expect, worth one digit.
    """

    kind: str = sent("stage, one stage at one size, or whole messages, cut in two ways in turns")
    repetitions: int = sent("how often to measure it")
    saves_us: float = sent("by how much that lowers the latency to expect, µs, worth one digit")
    stage: str | None = sent("the stage by its name; null of whole messages")
    fragment_bytes: int | None = sent(
        "the size at which to measure the stage, bytes; null of whole messages"
    )
    cuts_bytes: tuple[int | None, ...] | None = sent(
        "the two sizes that cut whole messages, bytes, null for unequal fragments; null of a stage"
    )


@output
class RestsOnOut(Output):
    """A cost that the measurements do not determine, and that matters in this share of draws."""

    stage: str = sent("the stage by its name")
    range: int = sent("its range, counted from 0")
    parameter: str = sent("which of its costs")
    verdict: str = sent("unsupported: the measurements do not determine it")
    share_of_draws: float = sent("the share of draws in which it matters")


@output
class RobustOut(Output):
    """The cut, and the repeated size, whose greatest regret over the first draws is least.

    Regret is T/T* - 1, T* that of the best cut into as many fragments or of the best repeated size,
    whichever is less. No cut into as many fragments has less than `lower_bound` in these draws. Of
    stages with ranges T* is that of the best cut that was tried, and the bound 0. The figures of
    the other draws, null without any, have not chosen it; `answer_` are the answer's.
    `is_best_size`: of all admitted sizes, not of some.
    """

    fragment_bytes: tuple[int, ...] = sent("the fragments of the cut in their order, bytes")
    draws: int = sent("in how many draws its greatest regret is least")
    worst_regret: float = sent("that regret, a share")
    lower_bound: float = sent("no cut into as many fragments has less, a share")
    is_proven: bool = sent("whether that is proven")
    answer_worst_regret: float = sent("the greatest regret of the answer in these draws, a share")
    other_draws: RegretOut | None = sent("its regret in the other draws; null: there are none")
    answer_in_other_draws: RegretOut | None = sent(
        "the answer's regret in the other draws; null: there are none"
    )
    size_bytes: int = sent("the repeated size whose greatest regret is least, bytes")
    size_worst_regret: float = sent("that regret, a share")
    is_best_size: bool = sent("whether that is the best of all admitted sizes, not of some")


@output
class FileVoteOut(Output):
    """The advised cut and what it is compared with by the times of the measured sizes, no line
    between them; `off_lines` is by which share the message is above the lines so. `replaces_lines`:
    the answer says these latencies, since the lines are more than 25 % beside them.
    """

    latency_us: float = sent("what the advised cut takes by the measured times, µs")
    compared_us: float = sent("what it is compared with takes by them, µs")
    gain_by_medians: float = sent("the gain by medians of these times, a share")
    gain_by_means: float = sent("the gain by their means, a share")
    off_lines: float = sent("by which share the message is above the lines so")
    compared_off_lines: float = sent("the same of what it is compared with")
    replaces_lines: bool = sent("whether the answer says these latencies in place of the lines'")


@output
class UncertaintyOut(Output):
    """How sure the answer is, and what to do: `decision`, and `sentence` in words.

    `advised_bytes` is the size to repeat, null for the answer's own fragments; it gains `gain` over
    `compared_with`, more than `margin` in `probability` of the draws. `one_piece_measured_us` is
    what this message in one piece was measured to take, null where it was not. `robust` is null
    where it was not asked for, and for stages that hand bytes on as they move. `of_means`:
    latencies are of mean times, else of medians. Of items sizes are caps in bytes, and regrets are
    over the best cap of each draw.
    """

    source: str = sent(
        "where the errors come from: fit, relative or intervals; ready: ready times of items alone"
    )
    draws: int = sent("the number of draws")
    seed: str = sent("where the draws begin, in decimal digits")
    decision: str = sent("what to do: set_it, keep_yours, no_gain_provable or measure_first")
    reason: str = sent("why it was decided so, as a name")
    sentence: str = sent("what to do, in words")
    advised_bytes: int | None = sent("the size to repeat, bytes; null: the answer's own fragments")
    compared_with: str = sent("the setting that it gains over, by its name")
    gain: QuantilesOut = sent("what it gains, 1 - T/T_other, over the draws")
    probability: float = sent("the share of draws in which it gains more than `margin`")
    margin: float = sent("the gain below which nothing is to be changed, a share")
    latency_us: QuantilesOut = sent("latency over the draws, µs")
    one_piece_measured_us: float | None = sent(
        "what this message in one piece was measured to take, µs; null: it was not"
    )
    against: tuple[AgainstOut, ...] = sent("the answer against other cuts")
    regret: RegretOut = sent("what the answer takes over the best repeated size of each draw")
    good_sizes: tuple[GoodSizesOut, ...] = sent("sizes that are near the best in many draws")
    round: tuple[RoundSizeOut, ...] = sent(
        "the best sizes of rules that make sizes round, the roundest first"
    )
    evpi_us: float = sent("what to know the costs exactly would save, µs a message")
    measure_next: tuple[MeasureOut, ...] = sent("what to measure, the most worth first")
    rests_on: tuple[RestsOnOut, ...] = sent(
        "costs that the measurements do not determine, and that matter"
    )
    robust: RobustOut | None = sent(
        "the cut whose greatest regret is least; null: not asked for, or not known", default=None
    )
    file: FileVoteOut | None = sent(
        "the decision by the measured times; null: of costs without measured sizes", default=None
    )
    of_means: bool = sent("whether latencies are of mean times, else of medians", default=False)


@output
class RangeSizeOut(Output):
    """The power of two that is best as the one size of messages of a range, of those that were
    measured and at the costs as they stand; `sentence` says it.
    """

    min_message_bytes: int = sent("the smallest message of the range, bytes")
    max_message_bytes: int = sent("the largest message of the range, bytes")
    size_bytes: int = sent("the power of two that is best for all of them, bytes")
    sentence: str = sent("the same in words")


@output
class SetThisOut(Output):
    """The size to set where a library repeats one, with its latency in µs; `sentence` says it.

    `keeps_current`: it is the one that is repeated today, which nothing gains enough over. `over`
    is what would be set for shorter messages too, null where costs were not measured.
    `by_transfers`: measured transfers say so, or have contradicted the model.
    """

    size_bytes: int = sent("the size to set, bytes")
    fragments: int = sent("number of fragments that it makes")
    latency_us: float = sent("latency of the message cut by it, µs")
    keeps_current: bool = sent("whether it is the one in use, which nothing gains enough over")
    sentence: str = sent("what to set, in words")
    over: RangeSizeOut | None = sent(
        "what would be set for shorter messages too; null: costs were not measured", default=None
    )
    by_transfers: bool = sent(
        "whether measured transfers say so, or have contradicted the model", default=False
    )
