"""Strumpen 1994, Communication Latency Hiding: speed-ups of many processes, and where it errs.

Source  eq. (2) to (6), sec. 4.3, Figures 9.1 to 9.3 and 24; the model is `domain.hiding`. Tables,
        examples and two processes are in `papers.hiding_gains`.
Terms   λ: p γ_s / γ_h; q: messages of a process one after the other; f and Ω: see there.
Traps   no points of the figures are printed, nor the values of λ: those drawn are chosen here,
        but for Figure 24, whose λ follows from its printed optima. Curves are the model's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from analysis.hiding import Exchange, Hidden, HideQuestion, HostStages, hide
from domain.hiding import (
    CountRange,
    Overlap,
    ProcessPoint,
    Scaling,
    SpeedupReference,
    conjugate_gradients,
)
from domain.pipeline import pipeline_of_lines
from domain.problem import Problem
from papers.hiding_gains import TABLES_AND_GAINS
from papers.items import (
    Curve,
    Disagreement,
    Figure,
    Item,
    ItemSpec,
    Paper,
    Plot,
    PlotAxis,
    Scale,
)

_EXACT = 1e-12
_COUNTS = CountRange(1, 10_000)
_DRAWN = CountRange(1, 1000)
_CG_DRAWN = CountRange(1, 2000)
_POINTS = 121
_LAMBDAS = (100.0, 1000.0, 10_000.0)
_LAMBDA = 1000.0
_VOLUMES = (("2", 2.0, 0.0), ("√p", 1.0, 0.5), ("p", 1.0, 1.0))  # q: name, at p = 1, exponent
_HIDEABLE = (0.0, 0.25, 0.5, 0.75, 1.0)
_HIDEABLE_ROWS = (0.0, 0.25, 0.5, 2 / 3, 0.75, 0.9, 1.0)
# 4 KiB through Table 1 of Wang et al. 1998
_MYRINET = Problem(
    pipeline_of_lines(
        [
            ("sender copy", 7.2, 7.03125),
            ("sender host DMA", 5.2, 24.31640625),
            ("network DMAs and receiver host DMA", 7.5, 24.31640625),
            ("receiver copy", 7.4, 7.71484375),
        ]
    ),
    4096,
)
_CALCULATIONS_US = (0.0, 50.0, 100.0, 120.0, 150.0, 200.0, 300.0)
_STREAMED_US = (20.0, 50.0, 100.0, 200.0, 400.0)

_GAIN = PlotAxis("gain", Scale.NUMBER)
_SPEEDUP = PlotAxis("speed-up", Scale.NUMBER)
_PROCESSES = PlotAxis("processes", Scale.COUNT)


def _curve(
    name: str, points: Iterable[ProcessPoint], value: Callable[[ProcessPoint], float]
) -> Curve:
    return Curve(name, tuple((float(one.processes), value(one)) for one in points))


def _hidden(one: ProcessPoint) -> float:
    return one.hidden_speedup


def _unhidden(one: ProcessPoint) -> float:
    return one.speedup


def _gain(one: ProcessPoint) -> float:
    return one.gain


def _scaling_plots(named: Iterable[tuple[str, Scaling]]) -> tuple[Plot, Plot]:
    points = [(name, one.curve(_DRAWN, _POINTS)) for name, one in named]
    speedups = (
        curve
        for name, found in points
        for curve in (
            _curve(f"{name}, with hiding", found, _hidden),
            _curve(f"{name}, without", found, _unhidden),
        )
    )
    gained = tuple(_curve(name, found, _gain) for name, found in points)
    return (
        Plot("a", "Speed-up by processes", _PROCESSES, _SPEEDUP, tuple(speedups)),
        Plot("b", "Gain by processes", _PROCESSES, _GAIN, gained),
    )


def _by_lambda() -> Item:
    square = Scaling(1e-4, 1.0)
    best = Scaling(1.0 / _LAMBDA, 1.0).best(_COUNTS)
    return Item(
        "fig-9-1",
        "Speed-up and gain by processes, for several λ",
        "Sec. 2.3.2 and Figure 9.1: all to all (q = p), f = 1, Ω = 0; gain 2 where λ = p²",
        (
            Figure("gain, p = 100, λ = 10 000", "", square.gain(100), 2.0, tolerance=_EXACT),
            Figure(
                "best p with hiding less p of the greatest gain, λ = 1000",
                "",
                float(best.hidden - best.gain),
                0.0,
            ),
            Figure("best p with hiding, λ = 1000", "", float(best.hidden)),
            Figure("best p without, λ = 1000", "", float(best.without)),
        ),
        plots=_scaling_plots((f"λ = {one:g}", Scaling(1.0 / one, 1.0)) for one in _LAMBDAS),
        remarks=("The paper does not print its values of λ: those drawn are chosen here.",),
    )


def _by_volume() -> Item:
    scalings = [(f"q = {name}", Scaling(at / _LAMBDA, power)) for name, at, power in _VOLUMES]
    constant = scalings[0][1]
    rows = [
        Figure(
            "S_lh of a million processes over that of 500, q = 2",
            "",
            constant.hidden_speedup(10**6) / constant.hidden_speedup(500),
            1.0,
            tolerance=_EXACT,
        )
    ]
    for name, scaling in scalings[1:]:
        best = scaling.best(_COUNTS)
        rows += [
            Figure(f"best p with hiding, {name}", "", float(best.hidden)),
            Figure(f"its speed-up, {name}", "", scaling.hidden_speedup(best.hidden)),
        ]
    return Item(
        "fig-9-2",
        "Speed-up and gain by processes, for several numbers of messages q",
        "Sec. 2.3.2 and Figure 9.2: λ = 1000 (chosen here), f = 1, Ω = 0; constant q never falls",
        tuple(rows),
        plots=_scaling_plots(scalings),
    )


def _by_fraction() -> Item:
    scalings = [(share, Scaling(1.0 / _LAMBDA, 0.5, Overlap(share))) for share in _HIDEABLE]
    rows: list[Figure] = []
    for volume, exponent, shares in (("√p", 0.5, _HIDEABLE_ROWS), ("p", 1.0, _HIDEABLE)):
        for share in shares:
            scaling = Scaling(1.0 / _LAMBDA, exponent, Overlap(share))
            count = scaling.best(_COUNTS).hidden
            of = f"q = {volume}, f = {share:.3g}"
            rows += [
                Figure(f"best p, {of}", "", float(count)),
                Figure(f"speed-up there, {of}", "", scaling.hidden_speedup(count)),
            ]
    found = [(share, one.curve(_DRAWN, _POINTS)) for share, one in scalings]
    bests = ((one.best(_COUNTS).hidden, one) for _, one in scalings)
    optima = sorted((float(best), one.hidden_speedup(best)) for best, one in bests)
    return Item(
        "fig-9-3",
        "Speed-up and gain by processes, for several shares f of the calculation",
        "Sec. 2.3.2 and Figure 9.3: q = √p, Ω = 0; λ = 1000 is chosen here",
        tuple(rows),
        remarks=(
            "The text has a fixed overhead and the figure none: it is drawn without. The best "
            "number of processes falls with f only up to f = 2/3, and rises again beyond.",
        ),
        plots=(
            Plot(
                "a",
                "Speed-up by processes",
                _PROCESSES,
                _SPEEDUP,
                (
                    *(_curve(f"f = {share:g}", points, _hidden) for share, points in found),
                    Curve("best p", tuple(optima), is_mark=True),
                ),
            ),
            Plot(
                "b",
                "Gain by processes",
                _PROCESSES,
                _GAIN,
                tuple(_curve(f"f = {share:g}", points, _gain) for share, points in found[1:]),
            ),
        ),
    )


# λ is not printed: the printed optima 601, 453 and 229 and speed-ups leave 7357.8 to 7360.4 of it,
# and n_z = 5, the five-point stencil.
_CG = conjugate_gradients(7360.0, 5.0)
_DIGIT = 0.0501  # half of the last digit printed of a speed-up, and what floats add


def _conjugate_gradients() -> Item:
    best = _CG.best(_COUNTS)
    points = {count: _CG.point(count, SpeedupReference.OWN) for count in (229, 453, 601)}
    at_229 = points[229]
    curve = _CG.curve(_CG_DRAWN, _POINTS, SpeedupReference.OWN)
    return Item(
        "fig-24",
        "Conjugate gradients with and without hiding",
        "Sec. 4.3 and Figure 24: each version's speed-up by its own run time of one process; "
        "λ = 7360 and n_z = 5",
        (
            Figure("best p without hiding", "", float(best.without), 601.0),
            Figure("speed-up there", "", points[601].speedup, 200.2, tolerance=_DIGIT),
            Figure("best p with hiding", "", float(best.hidden), 453.0),
            Figure(
                "speed-up with hiding there",
                "",
                points[453].hidden_speedup,
                230.6,
                tolerance=_DIGIT,
            ),
            Figure("p of the greatest gain", "", float(best.gain), 229.0),
            Figure("speed-up there, without hiding", "", at_229.speedup, 155.7, tolerance=_DIGIT),
            Figure(
                "speed-up there, with hiding", "", at_229.hidden_speedup, 203.5, tolerance=_DIGIT
            ),
            Figure(
                "ratio of these two",
                "",
                at_229.hidden_speedup / at_229.speedup,
                1.307,
                tolerance=0.000501,
            ),
            Figure("gain by the run times, p = 229", "", at_229.gain, 1.307, tolerance=None),
            Figure("gain, p = 16", "", _CG.gain(16)),
            Figure("gain, p = 15", "", _CG.gain(15)),
        ),
        remarks=(
            "λ and n_z are not printed. λ from 7357.8 to 7360.4 with n_z = 5, the five-point "
            "stencil, gives every number printed; 7360 is drawn.",
            "The gain by the run times is not compared: the printed 1.307 is the ratio of "
            "speed-ups with different references.",
        ),
        plots=(
            Plot(
                "a",
                "Speed-up by processes",
                _PROCESSES,
                _SPEEDUP,
                (
                    _curve("with hiding", curve, _hidden),
                    _curve("without", curve, _unhidden),
                    Curve("best with hiding", ((453.0, points[453].hidden_speedup),), is_mark=True),
                    Curve("best without", ((601.0, points[601].speedup),), is_mark=True),
                ),
            ),
            Plot(
                "b",
                "Gain by processes, of the run times",
                _PROCESSES,
                _GAIN,
                (
                    _curve("gain", curve, _gain),
                    Curve("greatest gain", ((229.0, at_229.gain),), is_mark=True),
                ),
            ),
        ),
    )


def _hidden_message(calculation_us: float) -> Hidden:
    """Both ways on one processor, which calculates and makes both copies."""
    hosts = HostStages((0,), (3,))
    return hide(HideQuestion(_MYRINET, calculation_us, hosts=hosts, exchange=Exchange.BOTH_WAYS))


def _fragments() -> Item:
    rows: list[Figure] = []
    for calculation_us in _CALCULATIONS_US:
        found, of = _hidden_message(calculation_us), f"behind {calculation_us:g} µs"
        rows += [
            Figure(f"best number of fragments {of}", "", float(len(found.cut.fragment_bytes))),
            Figure(f"run time {of}", "µs", found.with_us),
            Figure(f"proven lower bound {of}", "µs", found.lower_bound_us),
            Figure(f"by the fragments of least latency {of}", "µs", found.latency_optimal.with_us),
            Figure(f"without hiding, {of}", "µs", found.without_us),
        ]
    for calculation_us in _STREAMED_US:
        question = HideQuestion(_MYRINET, calculation_us, hideable_fraction=0.0, streamed=True)
        rows.append(
            Figure(f"sent while {calculation_us:g} µs calculate it", "µs", hide(question).with_us)
        )
    drawn = [(20.0 * step, _hidden_message(20.0 * step)) for step in range(1, 21)]
    values: tuple[tuple[str, Callable[[Hidden], float]], ...] = (
        ("best fragments", lambda found: found.with_us),
        ("fragments of least latency", lambda found: found.latency_optimal.with_us),
        ("without hiding", lambda found: found.without_us),
    )
    return Item(
        "fragments",
        "Beyond the paper: which fragments hide best",
        "4 KiB through Table 1 of Wang et al. 1998, both ways, both copies on the processor that "
        "calculates; the paper always takes 4 KiB for a fragment",
        tuple(rows),
        remarks=(
            "Both copies interrupt the calculation. That both directions delay each other on one "
            "processor is not in the model: a machine takes no less.",
        ),
        plots=(
            Plot(
                "run-time",
                "Run time by calculation",
                PlotAxis("calculation, µs", Scale.NUMBER),
                PlotAxis("run time", Scale.TIME_US),
                tuple(
                    Curve(name, tuple((place, value(found)) for place, found in drawn))
                    for name, value in values
                ),
            ),
        ),
    )


PAPER = Paper(
    "strumpen94",
    "Strumpen: Communication Latency Hiding: Model and Implementation in High-Latency Computer "
    "Networks, ETH Zürich, report 216, 1994",
    (
        *TABLES_AND_GAINS,
        ItemSpec("fig-9-1", _by_lambda),
        ItemSpec("fig-9-2", _by_volume),
        ItemSpec("fig-9-3", _by_fraction),
        ItemSpec("fig-24", _conjugate_gradients),
        ItemSpec("fragments", _fragments),
    ),
    (
        Disagreement(
            "Example 2",
            "H3 = (10, 1) is said to gain for all γ_s in [2, 10]. At 10 its gain is exactly 1, and "
            "the paper's own condition γ_h / γ_s > Ω fails.",
        ),
        Disagreement(
            "Sec. 4.3 and Figure 24",
            "The greatest gain is 1.307, which is S_lh(229) / S(229), each by its own run time of "
            "one process. The paper's equality gain = T(p) / T_lh(p) gives 1.306.",
        ),
        Disagreement(
            "Sec. 2.3.2 and Figure 9.3, best p",
            "The best number of processes is said to fall with f. For q = √p and Ω = 0 it does up "
            "to f = 2/3 and then rises: 77 there and 100 at f = 1, for λ = 1000.",
        ),
        Disagreement(
            "Sec. 2.3.2 and Figure 9.3, maxima",
            "The greatest speed-up and the greatest gain are said not to coincide. For f from 2/3 "
            "on they do.",
        ),
        Disagreement(
            "Figure 9.3 and its text",
            "The figure has Ω = 0, its text a fixed overhead.",
        ),
        Disagreement(
            "Figure 9.3 and eq. (4)",
            "The curve of f = 0 is said to be the version without hiding. With Ω > 0 it is not: "
            "its run time of 1 + max(Ω, r) is above 1 + r wherever r < Ω.",
        ),
        Disagreement(
            "Sec. 2.1 and Figure 2",
            "t_seq is the run time of the sequential program, and then that of calculating and "
            "communicating one after the other.",
        ),
        Disagreement(
            "Sec. 2.2 and 4.2",
            "γ_s is instructions per unit of communication, and in Figures 21 to 23 a normalised "
            "size: γ_s = 1 is 5 grid points along x in Figures 21 and 22, 3 times 100,000 in 23.",
        ),
        Disagreement(
            "Eq. (4) and sec. 4.3",
            "Ω is relative to the calculation and constant, and then ω p / a: a constant time.",
        ),
    ),
)
