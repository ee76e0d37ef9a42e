"""What errors of the costs leave of an answer: intervals, regrets, good sizes, and the decision.

What `analysis.uncertainty` and `analysis.settings_in_draws` return. Shares are of 1: 0.05 is 5 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from domain.structure import KnownOverlap
from domain.uncertainty import NamedCut, Parameter, Source

WORTH_LISTING = 1e-3  # of the latency: what a measurement must be able to save


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The 5 %, 50 % and 95 % quantiles over the draws."""

    p05: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Against:
    """The subject against another cut, on the same draws.

    `probability_faster` is the share of draws in which it takes less; `saves` is 1 - T/T_other.
    """

    name: str
    size_bytes: int | None
    probability_faster: float
    saves: Quantiles


@dataclass(frozen=True, slots=True)
class RegretFigures:
    """What a cut costs over the best repeated size of each draw: T/min T - 1.

    Below 0 where an uneven cut, or a size that was not measured, is faster than every one of these.
    """

    mean: float
    p95: float
    worst_drawn: float


@dataclass(frozen=True, slots=True)
class GoodSizes:
    """Repeated sizes within this share of the best of a draw, in this share of the draws at least.

    `intervals` are (low, high) in bytes, inclusive and ascending: just below B/k there is one more,
    tiny fragment, so that the sizes form several. The low ends are sharp.
    """

    within: float
    in_draws: float
    intervals: tuple[tuple[int, int], ...]


class RoundRule(StrEnum):
    """What makes a size round, the roundest first."""

    WHOLE = "whole message"
    POWER_OF_TWO = "power of two"
    THREE_POWERS = "2^k or 3*2^k"
    MEBIBYTE = "multiple of 1 MiB"
    PAGE = "multiple of 4 KiB"
    ALIGNMENT = "multiple of the alignment"
    MTU = "multiple of the MTU"


@dataclass(frozen=True, slots=True)
class RoundSize:
    """The size of a rule with the least expected regret, and its regret over the draws."""

    size_bytes: int
    rule: RoundRule
    regret_mean: float
    regret_p95: float


@dataclass(frozen=True, slots=True)
class RestsOn:
    """A parameter that the data do not determine, and that the latency rests on.

    `range_index` counts the stage's ranges from 0. In `share_of_draws` of the draws it makes more
    of the latency than the margin of the decision.
    """

    stage: str
    range_index: int
    parameter: Parameter
    share_of_draws: float


class MeasurementKind(StrEnum):
    """What is measured: one stage at one size, or whole messages, cut in two ways in turns."""

    STAGE = "stage"
    WHOLE_MESSAGES = "whole messages"


@dataclass(frozen=True, slots=True)
class Measurement:
    """Something to measure, and by how much it lowers the latency to expect (µs a message).

    Of a stage, `fragment_bytes` is the size; of whole messages, `cuts` are the two ways to cut
    them. Worth one digit: the estimate is a regression over the draws.
    """

    kind: MeasurementKind
    repetitions: int
    saves_us: float
    stage: str | None = None
    fragment_bytes: int | None = None
    cuts: tuple[NamedCut, NamedCut] | None = None


class DecisionCode(StrEnum):
    """What to do.

    set_it              the advised cut is faster than the setting in use by more than the margin
    keep_yours          the user's setting is near enough to the best
    no_gain_provable    no cut is certain enough to be faster: leave it
    measure_first       the choice matters, and a measurement would settle it
    """

    SET_IT = "set_it"
    KEEP_YOURS = "keep_yours"
    NO_GAIN_PROVABLE = "no_gain_provable"
    MEASURE_FIRST = "measure_first"


class Reason(StrEnum):
    """Why it was decided so.

    faster             the gain exceeds the margin in enough draws
    file_faster        the file's own times gain more than 2 % in enough redrawn files
    never_slower       it is slower than the user's setting in no draw, and faster in some
    near_best          the user's setting is within the regret that is admitted
    cut_not_faster     the best cut is faster than one piece in too few draws
    within_misfit      its gain may lie within what the model is known to be wrong by
    one_piece_is_best  of all repeated sizes one piece is expected to take least
    file_not_faster    in the draws it is faster, and by the file's own times it is not
    not_measured       it is faster by the lines alone: its size was not measured
    only_in_bursts     its size costs little, and what is sent beyond it costs four times as much
    falls_with_size    a stage's times fall from its least size on, as no fragment's do
    undecided          the gain is not certain, and a measurement is worth its time
    does_not_matter    the gain is not certain, and no measurement is worth its time
    premise            the gain rests on something that nobody has confirmed: see the warnings
    transferred        measured transfers of this message decide it, not the model
    does_not_hold      transfers have contradicted the model: it sets no size
    structure          begins of the stages show no pipeline: what was found prices no message
    either_way         it is faster whether the stages overlap or work one after another
    one_at_a_time      the same, if no stage handles several fragments at once: nobody has said
    several_at_once    a stage does, so that its durations alone price no message
    if_overlapping     it is so if the stages overlap, and not if they work one after another
    """

    FASTER = "faster"
    FILE_FASTER = "file_faster"
    NEVER_SLOWER = "never_slower"
    NEAR_BEST = "near_best"
    CUT_NOT_FASTER = "cut_not_faster"
    WITHIN_MISFIT = "within_misfit"
    ONE_PIECE_IS_BEST = "one_piece_is_best"
    FILE_NOT_FASTER = "file_not_faster"
    NOT_MEASURED = "not_measured"
    ONLY_IN_BURSTS = "only_in_bursts"
    FALLS_WITH_SIZE = "falls_with_size"
    UNDECIDED = "undecided"
    DOES_NOT_MATTER = "does_not_matter"
    PREMISE = "premise"
    TRANSFERRED = "transferred"
    DOES_NOT_HOLD = "does_not_hold"
    STRUCTURE = "structure"
    EITHER_WAY = "either_way"
    ONE_AT_A_TIME = "one_at_a_time"
    SEVERAL_AT_ONCE = "several_at_once"
    IF_OVERLAPPING = "if_overlapping"


# Why that is to be measured first which depends on what of the stages overlaps.
BY_OVERLAP = (
    Reason.STRUCTURE,
    Reason.ONE_AT_A_TIME,
    Reason.SEVERAL_AT_ONCE,
    Reason.IF_OVERLAPPING,
)
# Why what the draws would set is to be measured first.
REFUSED = (
    Reason.FILE_NOT_FASTER,
    Reason.NOT_MEASURED,
    Reason.ONLY_IN_BURSTS,
    Reason.FALLS_WITH_SIZE,
    Reason.PREMISE,
    *BY_OVERLAP,
)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The limits of the rules that decide; `margin` is the larger of 1 % and the known misfit.

    `probability` is asked of a gain, and that it loses no more than `max_loss` in 95 %;
    `regret_p95` of the user's setting, `worth_measuring` of what a measurement saves, as a share of
    the latency, and `uneven_gain` of the 5 % quantile of what an uneven cut gains over the best
    repeated size. `file_gain` is asked of a size that the file's own times propose, and that it
    gains in a share of redrawn files of `file_probability`.
    """

    margin: float = 0.01
    probability: float = 0.9
    regret_p95: float = 0.02
    worth_measuring: float = 0.005
    uneven_gain: float = 0.01
    max_loss: float = 0.05
    file_gain: float = 0.02
    file_probability: float = 0.95


def round_or_best(rounds: Sequence[RoundSize], best_bytes: int) -> int:
    """Return the first of round sizes; the best of all sizes where that one's mean regret is above
    2 %, or there is none.
    """
    near = [one.size_bytes for one in rounds[:1] if one.regret_mean <= Thresholds().regret_p95]
    return next(iter(near), best_bytes)


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, why, and the figures that say so.

    `advised` is the cut to use, one piece where no cut is certain enough; `against` names what it
    is compared with: the user's setting, else one piece, else the largest size that the limits
    admit. `probability` is the share of draws in which its `gain` over that, 1 - T/T_against,
    exceeds the margin. `cut` is the best cut into more than one fragment, None where the limits
    admit none, with the share of draws in which it is faster than one piece and its gain over it;
    these two are None too where the limits forbid one piece. `measure` is what to measure, where
    that is worth its time.
    """

    code: DecisionCode
    reason: Reason
    advised: NamedCut
    against: str
    probability: float
    gain: Quantiles
    cut: NamedCut | None
    cut_probability_faster: float | None
    cut_gain: Quantiles | None
    measure: Measurement | None
    thresholds: Thresholds


SAID_FROM = 0.1  # of a gain: what bears on it is in the sentence from here on
MAX_OFF = 0.25  # of a latency: from here on the file's own is told, not the lines'


@dataclass(frozen=True, slots=True)
class FileVote:
    """What the file's own times say of the advised cut and of what it is compared with.

    Pairs are by medians and by means, latencies in µs: each at most for the advised cut, at least
    for the other one. `off` and `against_off` are by which share the file's medians are above the
    lines, for the message in the fragments of the one and of the other.
    """

    latency_us: tuple[float, float]
    against_us: tuple[float, float]
    off: float
    against_off: float

    @property
    def gains(self) -> tuple[float, float]:
        """1 - T/T_against by medians and by means; 0 where the other takes no time."""
        both = zip(self.latency_us, self.against_us, strict=True)
        by_medians, by_means = (1.0 - one / other if other > 0.0 else 0.0 for one, other in both)
        return by_medians, by_means

    @property
    def bears_on_gain(self) -> float:
        """By which share the two latencies' quotient is beside that of the lines; all of it, 1,
        where by the file the other takes no time.
        """
        if self.against_off <= -1.0:
            return 1.0
        return abs((1.0 + self.off) / (1.0 + self.against_off) - 1.0)

    @property
    def replaces_lines(self) -> bool:
        """Whether the file is so far off the lines that its own latencies are told."""
        return max(abs(self.off), abs(self.against_off)) > MAX_OFF


@dataclass(frozen=True, slots=True)
class BothWays:
    """What a message takes if its stages overlap, and if they work one after another.

    `gain` and `serial_gain` are those of `size_bytes` over the setting in use, in the median. Where
    that stays if they overlap, `serial_bytes` is the best size if they do not, with its gain.
    Latencies are in µs.
    """

    size_bytes: int
    latency_us: float
    gain: float
    serial_bytes: int
    serial_us: float
    serial_gain: float


@dataclass(frozen=True, slots=True)
class RobustChoice:
    """The cut, and the repeated size, whose greatest regret over the first draws is least.

    Regret is T/T* - 1, T* that of the best real-valued cut into as many fragments or of the best
    repeated size, whichever is less. `worst_regret` is that of the whole bytes over `draws` draws;
    no cut into as many fragments has less than `lower_bound` there, which `is_proven` to be near
    what real sizes reach. The figures of the other draws, None without any, have not chosen it;
    `answer_` are those of the answer's cut. `is_best_size`: of all admitted sizes, not of some. Of
    stages with ranges the cut is one of a pool, T* the best of the pool in a draw, the bound 0.
    """

    fragment_bytes: tuple[int, ...]
    draws: int
    worst_regret: float
    lower_bound: float
    is_proven: bool
    answer_worst_regret: float
    other_draws: RegretFigures | None
    answer_in_other_draws: RegretFigures | None
    size_bytes: int
    size_worst_regret: float
    is_best_size: bool


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """What is known of an answer, over draws of the costs.

    `latency_us`, `against`, `regret` and `rests_on` are those of `subject`: the answer, where there
    is one, else the advised cut. `best_size_bytes` is the repeated size that takes least in the
    mean; `round_sizes` has one entry a rule, the recommended one first. `evpi_us` is what knowing
    the costs exactly would save, in µs a message; `measure_next` what to measure, the best first:
    nothing where that is less than 0.1 % of the latency. `robust` is None where it was not
    asked for. `file` is what the measured sizes say by themselves of the advised cut, and
    `file_of_repeated` of the size to repeat, None where costs are of none. `are_means`: every draw
    is of mean times, not of medians. `overlap` is what is known of the stages' overlap, `both_ways`
    what follows where that is nothing.
    """

    source: Source
    draws: int
    seed: int
    decision: Decision
    subject: NamedCut
    latency_us: Quantiles
    against: tuple[Against, ...]
    regret: RegretFigures
    best_size_bytes: int
    good_sizes: tuple[GoodSizes, ...]
    round_sizes: tuple[RoundSize, ...]
    evpi_us: float
    measure_next: tuple[Measurement, ...]
    rests_on: tuple[RestsOn, ...]
    robust: RobustChoice | None = None
    file: FileVote | None = None
    file_of_repeated: FileVote | None = None
    are_means: bool = False
    overlap: KnownOverlap = field(default_factory=KnownOverlap)
    both_ways: BothWays | None = None

    @property
    def repeats_bytes(self) -> int:
        """The size to repeat: the advised one; of uneven fragments a round one or the best."""
        advised = self.decision.advised.size_bytes
        return advised or round_or_best(self.round_sizes, self.best_size_bytes)

    @property
    def tells_file(self) -> bool:
        """Whether latencies and gains are told of the measured times, not of the lines."""
        is_replaced = self.file is not None and self.file.replaces_lines
        return is_replaced or self.decision.reason is Reason.FILE_FASTER

    @property
    def is_refused(self) -> bool:
        """Whether what the draws would set is to be measured first."""
        return self.decision.reason in REFUSED


@dataclass(frozen=True, slots=True)
class SettingInDraws:
    """What a setting costs over the best repeated size of each message and draw.

    `regret` is of the mean over the messages in each draw, or of their total time; `good` the share
    of draws in which that is 2 % at most. `kept` is the share in which a limit is kept, None
    without one.
    """

    name: str
    regret: RegretFigures
    good: float
    kept: float | None


@dataclass(frozen=True, slots=True)
class SettingsInDraws:
    """Settings for many messages over draws of the costs; the one in question is the first.

    `advised` names the one to use: the first itself, or the other of which more is gained, 1 -
    T/T_first in the mean over the messages, or where it `is_of_time` of their total time: `gain`,
    more than the margin in `probability` of the draws. `code` is None where there is no other.
    `messages` is how many were priced. `reason` says why what the draws would set is to be measured
    first, or that it is faster `either_way`, None elsewhere; `unmeasured_bytes` is the size that
    was not measured, where that is why.
    """

    source: Source
    draws: int
    seed: int
    messages: int
    settings: tuple[SettingInDraws, ...]
    code: DecisionCode | None
    advised: str
    gain: Quantiles
    probability: float
    thresholds: Thresholds
    is_of_time: bool = False
    reason: Reason | None = None
    unmeasured_bytes: int | None = None

    @property
    def is_gain_certain(self) -> bool:
        """Whether the costs say that there is one: a premise of the model aside."""
        return self.probability >= self.thresholds.probability
