"""A fit as parts: what was understood, the parameters that were found, what to beware of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from app.text.notices import notice_lines
from app.text.numbers import format_count, format_counted, format_figure, format_percent
from app.text.units import printable
from app.ui.parts import Cell, Column, Facts, Grid, Marked, Part
from domain.units import format_bytes

if TYPE_CHECKING:
    from contract.fit import EstimateOut, FitOut, LineFitOut, LogGPFitOut, StageFitOut

_INTERVALS_FROM_WIDTH = 110
_MARKS = {"weak": "weak", "unsupported": "not determined"}
LOGP = (
    ("send_overhead_us", "o_s, to send"),
    ("receive_overhead_us", "o_r, to receive"),
    ("message_gap_us", "g, between messages"),
    ("wire_latency_us", "L, on the wire"),
    ("round_trip_us", "round trip"),
)


def fit_parts(fit: FitOut, *, width: int) -> Iterator[Part]:
    """Yield a fit in this many columns: what was understood, each stage's line with standard
    errors, the warnings.
    """
    from app.schemas.base import notice_of

    yield understood(fit)
    yield ""
    if fit.loggp is not None:
        yield logp_table(fit.loggp)
    if fit.loggp is not None and fit.fitted_stages:
        yield ""
    if fit.fitted_stages:
        yield fit_table(fit.fitted_stages, width=width)
    for line in notice_lines(notice_of(notice) for notice in fit.warnings):
        yield f"note: {printable(line)}"


def fit_summary_parts(fit: FitOut, *, width: int) -> Iterator[Part]:
    """Yield a fit above the answer that it gave: its lines, and the number of its warnings."""
    yield fit_table(fit.fitted_stages, width=width)
    codes = [warning.code for warning in fit.warnings]
    if codes:
        names = ", ".join(dict.fromkeys(codes))
        many = format_counted(len(codes), "warning")
        yield f"note: the fit has {many} ({names}); sluice fit tells them"


def understood(fit: FitOut) -> Facts:
    """Return how the files were understood."""
    stated = fit.understood.items()
    return Facts(tuple((name.replace("_", " "), printable(value)) for name, value in stated))


def logp_table(loggp: LogGPFitOut) -> Grid:
    """Return LogP's parameters of each message size in µs, with their 95 % intervals."""
    rows = [
        (format_bytes(size.message_bytes) if not place else "", words, *_estimate(size, name))
        for size in loggp.sizes
        for place, (name, words) in enumerate(LOGP)
    ]
    columns = (
        Column("size", is_joined=True),
        Column("parameter", is_number=False),
        Column("value, µs"),
        Column("95 %"),
    )
    return Grid(columns, tuple(rows), "LogP parameters by message size, with intervals")


def _estimate(size: object, name: str) -> tuple[str, str]:
    """A value and its interval; nothing where the measurements do not give it."""
    found: EstimateOut | None = getattr(size, name)
    if found is None:
        return "not measured", ""
    low, high = found.interval
    return f"{found.value:.4g}", f"{low:.4g} to {high:.4g}"


def fit_table(stages: Sequence[StageFitOut], *, width: int) -> Grid:
    """Return estimates ± standard errors, a row for each range; 95 % intervals where they fit."""
    is_wide = width >= _INTERVALS_FROM_WIDTH
    has_ranges = any(len(stage.ranges) > 1 for stage in stages)
    columns = [Column("stage", is_number=False)] + [Column("up to")] * has_ranges
    columns += [Column("overhead µs ± s.e.")] + [Column("95 %")] * is_wide
    columns += [Column("ns per byte ± s.e.")] + [Column("95 %")] * is_wide
    columns += [Column("spread"), Column("misfit")]
    rows = [
        _fit_row(stage, place, is_wide=is_wide, has_ranges=has_ranges)
        for stage in stages
        for place in range(len(stage.ranges))
    ]
    return Grid(tuple(columns), tuple(rows))


def _fit_row(stage: StageFitOut, place: int, *, is_wide: bool, has_ranges: bool) -> tuple[str, ...]:
    line, row = stage.ranges[place], [printable(stage.name) if place == 0 else ""]
    if has_ranges:
        end = line.up_to_bytes
        row.append(format_bytes(end) if end else "larger" if place else "any")
    for value, error, (low, high), digits in (
        (line.overhead_us, line.overhead_std_error_us, line.overhead_us_interval, 3),
        (line.ns_per_byte, line.ns_per_byte_std_error, line.ns_per_byte_interval, 4),
    ):
        row.append(f"{value:.{digits}f} ± {error:.{digits}f}")
        if is_wide:
            row.append(f"{low:.{digits - 1}f} … {high:.{digits - 1}f}")
    return (*row, *(_of_stage(stage, place)))


def _of_stage(stage: StageFitOut, place: int) -> tuple[str, str]:
    """Spread and misfit, beside the first line of a stage alone."""
    known = (stage.relative_residual_std, stage.misfit) if place == 0 else (None, None)
    spread, misfit = ("" if share is None else format_percent(share) for share in known)
    return spread, misfit


def parameters_table(stages: Sequence[StageFitOut]) -> Grid:
    """Return estimates with intervals, how far to trust them, and the samples behind them: for
    where there is room.
    """
    columns = (
        Column("stage", is_number=False, is_joined=True),
        Column("fragments", is_number=False),
        Column("overhead, µs"),
        Column("interval, µs", is_number=False),
        Column("cost, ns/byte"),
        Column("interval, ns/byte", is_number=False),
        Column("samples"),
        Column("outliers", is_joined=True),
        Column("spread", is_joined=True),
        Column("misfit", is_joined=True),
    )
    rows = tuple(
        _parameters_row(stage, place) for stage in stages for place in range(len(stage.ranges))
    )
    return Grid(columns, rows, "Parameters of every stage, with intervals")


def _parameters_row(stage: StageFitOut, place: int) -> tuple[Cell, ...]:
    line, is_first = stage.ranges[place], place == 0
    return (
        printable(stage.name) if is_first else "",
        _reach(line) if len(stage.ranges) > 1 else "all",
        format_figure(line.overhead_us),
        _interval(line.overhead_us_interval, line.overhead_verdict),
        format_figure(line.ns_per_byte),
        _interval(line.ns_per_byte_interval, line.ns_per_byte_verdict),
        format_count(line.num_samples),
        format_count(stage.outliers) if is_first else "",
        *_of_stage(stage, place),
    )


def _reach(line: LineFitOut) -> str:
    end = line.up_to_bytes
    return f"up to {format_bytes(end)}" if end else f"from {format_bytes(line.from_bytes)}"


def _interval(ends: tuple[float, float], verdict: str) -> Cell:
    text = f"{format_figure(ends[0])} to {format_figure(ends[1])}"
    mark = _MARKS.get(verdict)
    return text if mark is None else Marked(text, mark, is_bad=verdict == "unsupported")
