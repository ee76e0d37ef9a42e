"""An answer about hiding as parts: bars, figures, the table of counts, notices; and as pictures."""

from __future__ import annotations

from collections.abc import Iterator

from app.plots.models_svg import CountTimes, Picture, gain_svg, run_time_svg, speedup_svg
from app.schemas.items import cap_facts
from app.text.numbers import (
    format_count,
    format_counted,
    format_figure,
    format_percent,
    format_sizes,
)
from app.text.units import PROVEN_BOUND, format_proven, format_time
from app.ui.parts import Bars, Column, Facts, Grid, Part, failures, noted, others
from contract.hide import HideOut, ItemsHideOut
from domain.errors import InconsistentInput, InvalidInput
from domain.hiding import BestProcesses, Overlap, ProcessPoint

_REGIMES = {
    "fully_hidden": "the message is hidden wholly",
    "communication_bound": "the message ends after the calculation",
    "loss": "hiding loses",
}
_COUNTS = ("fragments", "latency", "processor", "run time", "at least")
PICTURES = {
    Picture.RUN_TIME: "Run time by number of fragments",
    Picture.GAIN: "Gain by calculation over communication",
    Picture.SPEEDUP: "Speed-up by number of processes",
}


def parts(found: HideOut) -> Iterator[Part]:
    """Yield two bars, the figures, the table of the counts, and the notices."""
    yield from failures(found.warnings)
    if isinstance(found, ItemsHideOut):
        yield found.set_items.sentence
        yield ""
    yield from figures(found)
    yield ""
    if found.counts:
        yield "By number of fragments:"
        yield counts(found)
        yield ""
    yield from noted(others(found.warnings))


def figures(found: HideOut) -> Iterator[Part]:
    """Yield two bars where there is a pipeline, and the figures."""
    if found.with_us is not None and not isinstance(found, ItemsHideOut):
        yield _bars(found, found.with_us)
        yield ""
    yield Facts(tuple(facts(found)))


def facts(found: HideOut) -> Iterator[tuple[str, str]]:
    """Yield labels and values."""
    if isinstance(found, ItemsHideOut):
        yield from _items_facts(found)
        return
    if found.with_us is not None and found.without_us is not None:
        assert found.lower_bound_us is not None
        took, bound = format_proven(found.with_us, found.lower_bound_us)
        yield "with hiding", f"{took}, {PROVEN_BOUND} {bound}"
        yield "without", format_time(found.without_us)
    yield "gain", f"{_gain(found)}: {_REGIMES[found.regime]}"
    if found.gamma is not None:
        yield "c / T", f"{format_figure(found.gamma)}, calculation over communication"
    if found.min_gain is not None:
        yield f"gain {format_figure(found.min_gain)}", _window(found)
    if found.fragment_bytes is not None:
        yield "fragments", f"{len(found.fragment_bytes)}: {format_sizes(found.fragment_bytes)}"
    if other := found.latency_optimal:
        more = format_percent(other.more_by)
        took = format_time(other.with_us)
        yield "least latency", f"{format_count(other.fragments)} fragments: {took}, {more} more"
    if found.calculation_for_full_hiding_us is not None:
        yield "hidden wholly", f"from {format_time(found.calculation_for_full_hiding_us)} on"
    if best := found.best_processes:
        without, hidden, gain = map(format_count, (best.without, best.hidden, best.gain))
        yield "best processes", f"{without} without, {hidden} with hiding; greatest gain {gain}"


def _items_facts(found: ItemsHideOut) -> Iterator[tuple[str, str]]:
    took, bound = format_proven(found.with_us or 0.0, found.lower_bound_us or 0.0)
    yield "run time", f"{took}, {PROVEN_BOUND} {bound}"
    yield "calculation", f"{format_time(found.calculation_us or 0.0)}, {_direction(found)}"
    sent = format_time(found.communication_us)
    if found.hidden_share is None:
        yield "communication", sent
    else:
        share = format_percent(max(0.0, found.hidden_share))
        beyond = format_time(max(0.0, found.exposed_us))
        yield "communication", f"{sent} by itself, {share} of it hidden; {beyond} are not"
    yield "without hiding", f"{format_time(found.without_us or 0.0)}, gain {_gain(found)}"
    count = format_count(found.fragments or 0)
    yield "fragments", f"{count}: {format_sizes(found.fragment_bytes or ())} bytes"
    yield from cap_facts(found.best_cap, found.current)
    if (other := found.latency_optimal) and other.more_by > 0.0:
        more, took = format_percent(other.more_by), format_time(other.with_us)
        noun = format_counted(other.fragments, "fragment")
        yield "least latency", f"{noun}: {took}, {more} more"
    yield "what limits", found.limit.sentence


def _direction(found: ItemsHideOut) -> str:
    words = "which takes the items" if found.loading else "which makes the items"
    if found.fragment_overhead_us > 0.0:
        words += f", and {format_time(found.fragment_overhead_us)} a fragment"
    return words


def _gain(found: HideOut) -> str:
    at_most = found.gain_at_most
    limit = "" if at_most is None else f", at most {format_figure(at_most)}"
    return f"{format_figure(found.gain)}{limit}"


def _window(found: HideOut) -> str:
    if found.window is None:
        return "at no ratio of calculation to communication"
    high = found.window.high
    end = "" if high is None else f" to {format_figure(high)}"
    return f"where c / T is from {format_figure(found.window.low)}{end}"


def counts(found: HideOut) -> Grid:
    """Return the times by number of fragments."""
    rows = tuple(
        (
            format_count(row.fragments),
            format_time(row.latency_us),
            format_time(row.host_us),
            format_time(row.with_us),
            format_proven(row.with_us, row.bound_us)[1],
        )
        for row in found.counts
    )
    return Grid(tuple(map(Column, _COUNTS)), rows, "Times by number of fragments")


def _bars(found: HideOut, end_us: float) -> Bars:
    """The calculation above the communication, with hiding, on one scale."""
    assert found.calculation_us is not None
    assert found.latency_us is not None
    begins_us = 0.0 if found.streamed else (1.0 - found.hideable_fraction) * found.calculation_us
    sent_us = (begins_us, min(end_us, begins_us + found.latency_us))
    calculated_us = (0.0, min(end_us, found.calculation_us))
    return Bars((("calculation", (calculated_us,)), ("communication", (sent_us,))), end_us)


# --- pictures -------------------------------------------------------------------------------------


def pictures(found: HideOut) -> Iterator[tuple[str, bytes]]:
    """Yield every picture that the answer has something of, with its title."""
    for picture, words in PICTURES.items():
        try:
            yield words, drawing(found, picture).encode()
        except InvalidInput:
            continue


def drawing(found: HideOut, picture: str | None) -> str:
    """Return the picture asked for as SVG; by itself that of the run times, or of the gain.

    Raises InconsistentInput where the answer has nothing of it.
    """
    if isinstance(found, ItemsHideOut):
        raise InconsistentInput(
            "pictures are of a message that may be cut at any byte", field="picture"
        )
    wanted = Picture(picture or (Picture.RUN_TIME if found.counts else Picture.GAIN))
    if wanted is Picture.RUN_TIME:
        return _run_times(found)
    if wanted is Picture.SPEEDUP:
        return _speedups(found)
    if found.overhead is None:
        raise InconsistentInput("the gain is drawn of a calculation, not streamed", field="picture")
    window = found.window
    ends = None if window is None or window.high is None else (window.low, window.high)
    point = None if not found.gamma else (found.gamma, found.gain)
    return gain_svg(Overlap(found.hideable_fraction, found.overhead), point=point, window=ends)


def _run_times(found: HideOut) -> str:
    if not found.counts or found.fragments is None or found.latency_optimal is None:
        raise InconsistentInput("run times need a pipeline", field="picture")
    times = [
        CountTimes(row.fragments, row.latency_us, row.host_us, row.with_us) for row in found.counts
    ]
    optimal = found.latency_optimal.fragments
    return run_time_svg(times, hidden=found.fragments, latency_optimal=optimal)


def _speedups(found: HideOut) -> str:
    best = found.best_processes
    if best is None:
        raise InconsistentInput("speed-ups need --processes", field="picture")
    points = [
        ProcessPoint(point.processes, point.speedup, point.hidden_speedup, point.gain)
        for point in found.curve
    ]
    return speedup_svg(points, BestProcesses(best.without, best.hidden, best.gain))
