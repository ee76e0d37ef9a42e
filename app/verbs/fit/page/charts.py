"""What the charts of a fit draw, and the same samples as rows of tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.text.numbers import format_count, format_figure, format_signed_percent
from app.text.units import format_given_time, format_time
from app.ui.fit_parts import LOGP
from domain.fit import ExcludedSample
from domain.fit_plot import FitPlot, PlotPoints, PlotRole, SignaturePlot, StagePlot
from domain.loggp import Estimate, LogGPFit
from domain.units import format_bytes

ROWS_A_PAGE = 50
_DECADES = 20.0  # a column that spans more is drawn on a log axis
_RESIDUAL_ROOM = 1.25
_MIN_RESIDUAL = 0.02


@dataclass(frozen=True, slots=True)
class SampleRow:
    """Equal samples, `count` of them: `value` is how a form names them, `state` what they are."""

    value: str
    size: str
    time_us: float
    residual: float | None
    state: str
    count: int

    @property
    def time_text(self) -> str:
        """The time in µs; all of a column in one unit, so that they compare."""
        return format_figure(self.time_us)


@dataclass(frozen=True, slots=True)
class ChartView:
    """One stage's chart; `rows` are the first of `num_rows` of its table, farthest off first.

    `caption` says how many rows there are, and of how many samples.
    """

    number: int
    name: str
    words: str
    remark: str
    beyond: str
    caption: str
    num_outliers: int
    can_exclude: bool
    data: dict[str, Any]
    rows: tuple[SampleRow, ...]
    num_rows: int


@dataclass(frozen=True, slots=True)
class SignatureView:
    """A signature's chart, and its table: a row a burst, a column for each computation."""

    number: int
    size: str
    words: str
    data: dict[str, Any]
    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[float | None, ...]], ...]


def chart_views(plot: FitPlot) -> tuple[ChartView, ...]:
    """Return the charts of a fit's stages; a stage without a line has none."""
    shown = (stage for stage in plot.stages if stage.fit.lines)
    return tuple(_chart(number, stage) for number, stage in enumerate(shown))


def sample_value(sample: ExcludedSample) -> str:
    """Return how a form names a sample."""
    return f"{sample.message_bytes}|{sample.time_us!r}|{sample.stage}"


def _chart(number: int, stage: StagePlot) -> ChartView:
    rows = sorted(_rows(stage), key=lambda one: -abs(one.residual or 0.0))
    return ChartView(
        number=number,
        name=stage.name,
        words=_words(stage),
        remark=_remark(stage),
        beyond=_beyond(stage.points),
        caption=_caption(len(rows), len(stage.points)),
        num_outliers=stage.fit.outliers,
        can_exclude=not stage.shows_medians,
        data=_data(stage),
        rows=tuple(rows[:ROWS_A_PAGE]),
        num_rows=len(rows),
    )


def _words(stage: StagePlot) -> str:
    points = stage.points
    sizes, times = points.message_bytes, points.time_us
    return (
        f"{stage.name}: time against message size, {len(points)} samples from "
        f"{format_bytes(min(sizes))} to {format_bytes(max(sizes))} and from "
        f"{format_time(min(times))} to {format_time(max(times))}, {len(stage.pieces)} fitted "
        "lines with their 95 % band; below, relative residuals. The table below has the samples"
    )


def _remark(stage: StagePlot) -> str:
    if stage.shows_medians:
        return "Medians of sizes: the single samples are not at hand."
    if len(stage.points) < stage.num_samples:
        return (
            f"{format_count(len(stage.points))} of {format_count(stage.num_samples)} samples are "
            "drawn and listed, the extreme ones among them; the fit uses all."
        )
    return ""


def _beyond(points: PlotPoints) -> str:
    """Return which samples the axis of residuals has no place for; "" for none."""
    end = _residual_end(points)
    off = [one for one in points.relative_residual if one is not None and abs(one) > end]
    if not off:
        return ""
    farthest = format_signed_percent(max(off, key=abs))
    which = (
        f"1 sample lies farther off its line, by {farthest}: an arrow marks it"
        if len(off) == 1
        else f"{format_count(len(off))} samples lie farther off their line, the farthest by "
        f"{farthest}: arrows mark them"
    )
    return f"The axis of residuals ends at ±{100.0 * end:g} %; {which}."


def _caption(num_rows: int, num_samples: int) -> str:
    if num_rows == num_samples:
        return f"{format_count(num_rows)}"
    return (
        f"{format_count(num_rows)} different samples ({format_count(num_samples)} with equal ones)"
    )


def _data(stage: StagePlot) -> dict[str, Any]:
    points = stage.points
    return {
        "stage": _key(stage),
        "logSize": _is_wide(points.message_bytes),
        "logTime": _is_wide(points.time_us),
        "residualEnd": _residual_end(points),
        "canExclude": not stage.shows_medians,
        "points": [
            [size, time_us, residual, state] for size, time_us, residual, state in _samples(points)
        ],
        "pieces": [
            {
                "size": piece.message_bytes,
                "time": piece.time_us,
                "low": piece.low_us,
                "high": piece.high_us,
                "upTo": piece.up_to_bytes,
            }
            for piece in stage.pieces
        ],
    }


def _samples(points: PlotPoints) -> Iterator[tuple[int, float, float | None, int]]:
    """Yield size, time, residual, and 0 used, 1 an outlier, 2 outside the fitted sizes."""
    states = zip(points.is_outlier, points.is_used, strict=True)
    for size, time_us, residual, (is_outlier, is_used) in zip(
        points.message_bytes, points.time_us, points.relative_residual, states, strict=True
    ):
        yield size, time_us, residual, 1 if is_outlier else 0 if is_used else 2


_STATES = ("", "outlier", "not fitted to")


def _rows(stage: StagePlot) -> Iterator[SampleRow]:
    """Yield each size and time once."""
    counts: dict[tuple[int, float], int] = {}
    last: dict[tuple[int, float], tuple[float | None, int]] = {}
    for size, time_us, residual, state in _samples(stage.points):
        counts[size, time_us] = counts.get((size, time_us), 0) + 1
        last[size, time_us] = (residual, state)
    for (size, time_us), (residual, state) in last.items():
        value = sample_value(ExcludedSample(_key(stage), size, time_us))
        count = counts[size, time_us]
        yield SampleRow(value, format_bytes(size), time_us, residual, _STATES[state], count)


def _is_wide(values: Iterable[float]) -> bool:
    positive = [value for value in values if value > 0.0]
    return bool(positive) and max(positive) > _DECADES * min(positive)


def _residual_end(points: PlotPoints) -> float:
    """Return how far the axis of residuals extends: what lies beyond is drawn at its edge."""
    default = [
        abs(residual)
        for residual, is_outlier in zip(points.relative_residual, points.is_outlier, strict=True)
        if residual is not None and not is_outlier
    ]
    return float(f"{max(_RESIDUAL_ROOM * max(default, default=0.0), _MIN_RESIDUAL):.2g}")


def _key(stage: StagePlot) -> str:
    """Return how samples name the stage that they are of."""
    return stage.name if stage.role is PlotRole.STAGE else str(stage.role)


# --- LogP -----------------------------------------------------------------------------------------


def signature_views(plot: FitPlot, fit: LogGPFit | None) -> tuple[SignatureView, ...]:
    """Return the charts of an end point's signatures, with the levels that were found in them."""
    found = {size.message_bytes: size for size in fit.sizes} if fit else {}
    shown = [signature for signature in plot.signatures if signature.curves]
    return tuple(
        _signature(number, one, found.get(one.message_bytes)) for number, one in enumerate(shown)
    )


def parameters_data(fit: LogGPFit) -> list[dict[str, Any]]:
    """Return the series of LogP parameters over message size: [bytes, µs, low, high] each."""
    return [
        {
            "name": words,
            "points": [
                [size.message_bytes, estimate.value, *estimate.interval]
                for size in fit.sizes
                if (estimate := getattr(size, name)) is not None
            ],
        }
        for name, words in LOGP
    ]


def _signature(number: int, plot: SignaturePlot, found: object) -> SignatureView:
    size = format_bytes(plot.message_bytes)
    costs: list[Mapping[int, float]] = [
        dict(zip(curve.bursts, curve.cost_us, strict=True)) for curve in plot.curves
    ]
    bursts = sorted(set().union(*costs))
    return SignatureView(
        number=number,
        size=size,
        words=f"Signature of {size} messages: mean cost of a message against the messages in a "
        f"burst, {len(plot.curves)} curves by computation between two of them, both axes "
        "logarithmic. The table below has the numbers",
        data={
            "curves": [
                {
                    "name": _between(curve.computation_us),
                    "points": list(zip(curve.bursts, curve.cost_us, strict=True)),
                }
                for curve in plot.curves
            ],
            "levels": _levels(found),
        },
        columns=tuple(_between(curve.computation_us) for curve in plot.curves),
        rows=tuple((burst, tuple(cost.get(burst) for cost in costs)) for burst in bursts),
    )


def _between(computation_us: float) -> str:
    return f"{format_given_time(computation_us)} between" if computation_us else "no computation"


def _levels(found: object) -> list[tuple[str, float]]:
    """Send overhead and the time between messages, as lines across the signature."""
    levels = []
    for name, words in LOGP[:3:2]:
        estimate: Estimate | None = getattr(found, name, None)
        if estimate is not None and estimate.value > 0.0:
            levels.append((words, estimate.value))
    return levels
