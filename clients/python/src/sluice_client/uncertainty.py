"""How sure an answer is: over which draws of the costs to look, and what the service says of it.

Shares are of 1: 0.05 is 5 %. Names that may grow (decisions, reasons, sources) are strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

# --- what requests say ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CostInterval:
    """95 % intervals, (low, high), of what a typed stage costs in one of its ranges; None: of the
    other cost alone.
    """

    stage: str
    range: int = 0
    overhead_us: tuple[float, float] | None = None
    ns_per_byte: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Draws:
    """Over how many draws of the costs to look, each cost drawn by its error.

    `relative` is one standard deviation of every cost, in the place of the errors of the fit,
    `intervals` those of single costs; the same `seed` gives the same draws. None leaves them to the
    service.
    """

    draws: int = 400
    seed: int | str | None = None
    relative: float | None = None
    intervals: Sequence[CostInterval] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as requests have it."""
        return _draws_json(self.draws, self.seed, self.relative, self.intervals)


@dataclass(frozen=True, slots=True)
class UncertaintyOptions:
    """The same, and the setting in use: a size to repeat, or "whole"; None: one piece.

    Multiples of `mtu_bytes` are round sizes too. With `robust` the answer has the cut whose
    greatest regret over the draws is least.
    """

    draws: int = 400
    seed: int | str | None = None
    relative: float | None = None
    current: int | Literal["whole"] | None = None
    mtu_bytes: int | None = None
    robust: bool = False
    intervals: Sequence[CostInterval] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as requests have it."""
        is_size = self.current is not None and self.current != "whole"
        return {
            **_draws_json(self.draws, self.seed, self.relative, self.intervals),
            "current": {"repeat": self.current} if is_size else self.current,
            "mtu_bytes": self.mtu_bytes,
            "robust": self.robust,
        }


def _draws_json(
    draws: int, seed: int | str | None, relative: float | None, intervals: Sequence[CostInterval]
) -> dict[str, Any]:
    # As text, since a seed may be larger than numbers of JSON are exact.
    return {
        "draws": draws,
        "seed": None if seed is None else str(seed),
        "relative": relative,
        "intervals": [asdict(one) for one in intervals],
    }


# --- what answers say -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Quantiles over the draws; None where nothing can be divided by."""

    p05: float | None
    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Against:
    """The answer against another cut on the same draws; `saves` is 1 - T/T_other."""

    name: str
    size_bytes: int | None
    probability_faster: float
    saves: Quantiles


@dataclass(frozen=True, slots=True)
class RegretInDraws:
    """What a cut takes over the best repeated size of each draw, as a share of that."""

    mean: float | None
    p95: float | None
    worst_drawn: float | None
    basis: str


@dataclass(frozen=True, slots=True)
class GoodSizes:
    """Sizes, low to high in bytes, within this share of the best in this share of the draws."""

    within: float
    in_draws: float
    intervals: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RoundSize:
    """The best size that keeps a rule, and its regret."""

    size_bytes: int
    rule: str
    regret_mean: float | None
    regret_p95: float | None


@dataclass(frozen=True, slots=True)
class WorthMeasuring:
    """What to measure: a stage at a size, or whole messages cut by `cuts_bytes` in turns.

    `saves_us` is by how much that lowers the latency to expect, worth one digit.
    """

    kind: str
    repetitions: int
    saves_us: float
    stage: str | None
    fragment_bytes: int | None
    cuts_bytes: tuple[int | None, ...] | None


@dataclass(frozen=True, slots=True)
class RestsOn:
    """A cost that the measurements do not determine, and that matters in this share of draws."""

    stage: str
    range: int
    parameter: str
    verdict: str
    share_of_draws: float


@dataclass(frozen=True, slots=True)
class Robust:
    """The cut, and the repeated size, whose greatest regret over the first draws is least.

    Regret is T/T* - 1, T* that of the best cut into as many fragments or of the best repeated size,
    whichever is less. No cut into as many fragments has less than `lower_bound` in these draws. Of
    stages with ranges T* is that of the best cut that was tried, and the bound 0. The figures of
    the other draws, None without any, have not chosen it; `answer_` are the answer's.
    `is_best_size`: of all admitted sizes, not of some.
    """

    fragment_bytes: tuple[int, ...]
    draws: int
    worst_regret: float
    lower_bound: float
    is_proven: bool
    answer_worst_regret: float
    other_draws: RegretInDraws | None
    answer_in_other_draws: RegretInDraws | None
    size_bytes: int
    size_worst_regret: float
    is_best_size: bool


@dataclass(frozen=True, slots=True)
class FileVote:
    """The advised cut and what it is compared with by the times of the measured sizes, no line
    between them; `off_lines` is by which share the message is above the lines so. `replaces_lines`:
    the answer says these latencies, since the lines are more than 25 % beside them.
    """

    latency_us: float
    compared_us: float
    gain_by_medians: float
    gain_by_means: float
    off_lines: float
    compared_off_lines: float
    replaces_lines: bool


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """How sure an answer is, and what to do: `decision`, and `sentence` in words.

    `advised_bytes` is the size to repeat, None for the answer's own fragments; it gains `gain` over
    `compared_with`, more than `margin` in `probability` of the draws. `one_piece_measured_us` is
    what this message in one piece was measured to take, None where it was not. `of_means`:
    latencies are of mean times, else of medians.
    """

    source: str
    draws: int
    seed: str
    decision: str
    reason: str
    sentence: str
    advised_bytes: int | None
    compared_with: str
    gain: Quantiles
    probability: float
    margin: float
    latency_us: Quantiles
    one_piece_measured_us: float | None
    against: tuple[Against, ...]
    regret: RegretInDraws
    good_sizes: tuple[GoodSizes, ...]
    round: tuple[RoundSize, ...]
    evpi_us: float
    measure_next: tuple[WorthMeasuring, ...]
    rests_on: tuple[RestsOn, ...]
    robust: Robust | None = None
    file: FileVote | None = None
    of_means: bool = False


@dataclass(frozen=True, slots=True)
class SettingInDraws:
    """What a setting costs over the best repeated sizes, in the mean over the messages of a draw.

    In `good` of the draws that is 2 % at most; `kept` is the share in which `max_regret` is kept.
    """

    name: str
    regret: RegretInDraws
    good: float
    kept: float | None


@dataclass(frozen=True, slots=True)
class SettingsInDraws:
    """Settings over draws of the costs, and what to do: `decision`, and `sentence` in words.

    `advised` names one of `settings`; the best of the others gains `gain` over the first, in the
    mean over the messages or of their total time, as was asked, more than `margin` in `probability`
    of the draws. Where there is one setting alone `decision` is None. `reason` says why it is to be
    measured first, None elsewhere.
    """

    source: str
    draws: int
    seed: str
    messages: int
    decision: str | None
    sentence: str
    advised: str
    gain: Quantiles
    probability: float
    margin: float
    settings: tuple[SettingInDraws, ...]
    reason: str | None = None


# --- how the latency moves ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slope:
    """The derivatives on both sides: they differ at a kink; None where a side is not there."""

    falling: float | None
    rising: float | None


@dataclass(frozen=True, slots=True)
class CostChange:
    """What both costs of a stage, changed by this share, do to the latency, µs.

    `same_cut_us` is what the answer's cut takes then, `best_us` the best real-valued cut into as
    many fragments, of which `lower_bound_us` is proven; None where they were not solved.
    """

    by: float
    same_cut_us: float
    best_us: float | None
    lower_bound_us: float | None


@dataclass(frozen=True, slots=True)
class StageSensitivity:
    """How the latency moves with a stage's overhead (µs per µs) and cost (µs per ns/byte)."""

    name: str
    by_overhead: Slope
    by_ns_per_byte: Slope
    changes: tuple[CostChange, ...]


@dataclass(frozen=True, slots=True)
class Sensitivities:
    """How the latency moves with the costs, and with the message (µs per byte).

    `basis` is "optimum", the best real-valued cut into as many fragments, or "cut", the answer's
    own cut as it is, of which nothing is said by the message.
    """

    basis: str
    sentence: str
    by_message_byte: Slope
    stages: tuple[StageSensitivity, ...]
