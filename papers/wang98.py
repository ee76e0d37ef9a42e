"""Wang et al. 1998, Towards a Theory of Optimal Communication Pipelines: tables, disk study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.pipeline import Pipeline, pipeline_of_lines
from domain.problem import Problem
from domain.timeline import timeline_of
from papers.disk_study import Study, disk_study
from papers.items import Curve, Figure, Item, ItemSpec, Paper, Plot, PlotAxis, Run, Scale
from solvers import solve

_KIB = 1000.0 / 1024.0  # ns per byte in one µs per KB of 1024 bytes
_TABLE_1 = ((7.2, 7.2), (5.2, 24.9), (7.5, 24.9), (7.4, 7.9))  # µs, µs per KB
_TABLE_3 = ((2.1, 25.6), (4.0, 60.1), (2.1, 25.6), (92.8, 26.2))
_POINTS = 0.15  # percentage points: the study's regressions are not printed
_MEASURED = 1.0  # percentage points: 51 % is printed in whole ones, and was measured
_MAX_COUNT = 16
_FLOATS = 1e-9
_DISK_MS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # overheads of the disk


def _pipeline(costs: tuple[tuple[float, float], ...]) -> Pipeline:
    lines = enumerate(costs)
    return pipeline_of_lines(
        [(f"stage {j}", overhead_us, per_kb * _KIB) for j, (overhead_us, per_kb) in lines]
    )


def _equal(pipeline: Pipeline, message_bytes: int) -> Curve:
    counts = range(1, _MAX_COUNT + 1)
    points = tuple(
        (float(count), pipeline.equal_us(message_bytes / count, count)) for count in counts
    )
    return Curve("equal fragments", points)


def _best(curve: Curve) -> tuple[float, float]:
    return min(curve.points, key=lambda point: point[1])


def _myrinet() -> Item:
    pipeline = _pipeline(_TABLE_1)
    curve = _equal(pipeline, 4096)
    count, best_us = _best(curve)
    one_us = curve.points[0][1]
    exact = solve(Problem(pipeline, 4096), "exact")
    return Item(
        "table-1",
        "Myrinet with GAM, 4 KiB",
        "Table 1, Figures 8 and 9: five fragments, measured 51 % better than one piece",
        (
            Figure(
                "gain over one piece",
                "%",
                100.0 * (one_us / best_us - 1.0),
                51.0,
                tolerance=_MEASURED,
            ),
            Figure("one piece", "µs", one_us),
            Figure("best number of equal fragments", "", count, 5.0),
            Figure("best equal fragments", "µs", best_us),
            Figure("best whole bytes found", "µs", exact.latency_us),
            Figure("proven lower bound of this model", "µs", exact.lower_bound_us),
        ),
        (curve,),
    )


def _gms() -> Item:
    pipeline = _pipeline(_TABLE_3)
    curve = _equal(pipeline, 8192)
    count, best_us = _best(curve)
    exact = solve(Problem(pipeline, 8192), "exact")
    return Item(
        "table-3",
        "Global memory system, 8 KiB",
        "Table 3; by its text 3 or 4 equal fragments are best",
        (
            Figure("best number of equal fragments", "", count, 3.0, 4.0),
            Figure("best equal fragments", "µs", best_us),
            Figure("best whole bytes found", "µs", exact.latency_us),
            Figure("proven lower bound of this model", "µs", exact.lower_bound_us),
        ),
        (curve,),
    )


def _disk() -> Item:
    # A disk of 4 ms and 5e6 bytes a second.
    network = _network()
    disk = ("disk", 4000.0, 200.0)
    one = disk_study(pipeline_of_lines([*network, disk]), len(network), 65_536)
    two = disk_study(pipeline_of_lines([*network, disk, *network]), len(network), 65_536)
    return Item(
        "disk-study",
        "A disk behind a network, and between two, 64 KiB",
        "Sec. 5.5 and Figure 14; by the paper's convention, in real sizes",
        (
            Figure(
                "one network, B over A", "%", 100.0 * one.hierarchy_gain, 21.3, tolerance=_POINTS
            ),
            Figure("one network, C over B", "%", 100.0 * one.ramp_gain, 9.2, tolerance=_POINTS),
            Figure(
                "two networks, B over A", "%", 100.0 * two.hierarchy_gain, 25.8, tolerance=_POINTS
            ),
            Figure("two networks, C' over B", "%", 100.0 * two.ramp_gain, 6.4, tolerance=_POINTS),
        ),
    )


def _two_parameters() -> Item:
    overheads, per_kb = zip(*_TABLE_1, strict=True)
    bottleneck = max(range(len(_TABLE_1)), key=lambda j: (per_kb[j], overheads[j]))
    others = sum(cost for j, cost in enumerate(per_kb) if j != bottleneck)
    return Item(
        "table-2",
        "What fixed-sized fragmentation needs to know",
        "Table 2, direct: from Table 1. Its indirect row, 7.6 and 37.8, was measured",
        (
            Figure("overhead of the bottleneck", "µs", overheads[bottleneck], 7.5),
            Figure("cost of the other stages", "µs/KB", others, 40.0, tolerance=_FLOATS),
        ),
    )


def _signatures() -> Item:
    plots = tuple(
        Plot(
            name,
            f"{title} by number of equal fragments",
            PlotAxis("fragments", Scale.COUNT),
            PlotAxis("latency", Scale.TIME_US),
            (_equal(_pipeline(costs), size),),
        )
        for name, title, costs, size in (
            ("one-bottleneck", "Table 1, 4 KiB", _TABLE_1, 4096),
            ("two-bottlenecks", "Table 3, 8 KiB", _TABLE_3, 8192),
        )
    )
    best = [_best(plot.curves[0])[0] for plot in plots]
    return Item(
        "figure-2",
        "One bottleneck, and one that moves",
        "Figure 2: curves of k, 1/k and a constant, with the stages of Tables 1 and 3",
        (Figure("best number, one bottleneck", "", best[0]), Figure("two", "", best[1])),
        plots=plots,
    )


def _back_to_back() -> Item:
    pipeline = _pipeline(_TABLE_1)
    timeline = timeline_of(pipeline, (4096, 4096))
    return Item(
        "figure-7",
        "Two fragments of 4 KB, one after the other",
        "Figure 7, with the stages of Table 1: three DMAs are one stage of it",
        (Figure("until the second one is received", "µs", timeline.latency_us),),
        runs=(Run("two fragments of 4 KiB", timeline),),
    )


def _static() -> Item:
    pipeline, sizes = _pipeline(_TABLE_1), [2**power for power in range(7, 17)]
    sizes += [3 * 2**power for power in range(6, 15)]
    rules = {"FM, 128 bytes": 128, "GAM, 4 KiB": 4096}
    curves = [
        Curve(
            name,
            tuple((float(size), repeated_us(pipeline, size, cut)) for size in sorted(sizes)),
        )
        for name, cut in rules.items()
    ]
    fixed = tuple((float(size), _best(_equal(pipeline, size))[1]) for size in sorted(sizes))
    curves.append(Curve("equal fragments, the best number of them", fixed))
    gains = {
        size: whole / best - 1.0
        for (size, best), (_, whole) in zip(fixed, curves[1].points, strict=True)
    }
    best_at = max(gains, key=lambda size: gains[size])
    return Item(
        "figure-9",
        "Equal fragments against static sizes",
        "Figure 9: 51 % over GAM at most, at 4 KB, as measured",
        (
            Figure("greatest gain over GAM", "%", 100.0 * gains[best_at], 51.0, tolerance=1.0),
            Figure("at", "bytes", best_at, 4096.0),
        ),
        plots=(
            Plot(
                "by-message",
                "Latency by message",
                PlotAxis("message", Scale.BYTES),
                PlotAxis("latency", Scale.TIME_US),
                tuple(curves),
            ),
        ),
    )


def repeated_us(pipeline: Pipeline, size: int, cut: int) -> float:
    """Return the latency of a message in fragments of one size and a rest, µs."""
    full, rest = divmod(size, cut)
    return pipeline.latency_us([cut] * full + [rest] * (rest > 0))


def _disks() -> Item:
    """Figures 10 and 11: by the disk's bandwidth, a curve for each of its overheads."""
    rates = tuple(2.0 ** (step / 2.0) for step in range(10))  # 1 to 22.6 MB/s
    gains = {
        overhead_ms: [_disk_study(overhead_ms, rate, 65_536) for rate in rates if rate <= 20.0]
        for overhead_ms in _DISK_MS
    }
    return _swept(
        "figures-10-11",
        "Hierarchical fragmentation and ramps by the disk's bandwidth, 64 KiB",
        "Figures 10 and 11; by the text C never gains more than 10 % over B",
        PlotAxis("bandwidth of the disk, MB/s", Scale.NUMBER),
        tuple(rate for rate in rates if rate <= 20.0),
        gains,
        most=10.0,
    )


def _messages() -> Item:
    """Figures 12 and 13: by the message, a curve for each of the disk's overheads."""
    sizes = tuple(2**power for power in range(12, 23))
    gains = {
        overhead_ms: [_disk_study(overhead_ms, 5.0, size) for size in sizes]
        for overhead_ms in _DISK_MS
    }
    return _swept(
        "figures-12-13",
        "Hierarchical fragmentation and ramps by the message, a disk of 5 MB/s",
        "Figures 12 and 13; by the text C never gains more than 11 % over B",
        PlotAxis("message", Scale.BYTES),
        tuple(map(float, sizes)),
        gains,
        most=11.0,
    )


def _swept(
    name: str,
    title: str,
    source: str,
    across: PlotAxis,
    values: tuple[float, ...],
    gains: Mapping[float, Sequence[Study]],
    *,
    most: float,
) -> Item:
    upwards = PlotAxis("latency before over after", Scale.NUMBER)
    plots = tuple(
        Plot(
            short,
            words,
            across,
            upwards,
            tuple(
                Curve(
                    f"{overhead_ms:g} ms",
                    tuple(
                        (x, 1.0 + getattr(study, gain))
                        for x, study in zip(values, studies, strict=True)
                    ),
                )
                for overhead_ms, studies in gains.items()
            ),
        )
        for short, words, gain in (
            ("b-over-a", "B over A, by the disk's overhead", "hierarchy_gain"),
            ("c-over-b", "C over B, by the disk's overhead", "ramp_gain"),
        )
    )
    every = [study for studies in gains.values() for study in studies]
    return Item(
        name,
        title,
        source,
        (
            Figure("C over B, at most", "%", 100.0 * max(one.ramp_gain for one in every), 0, most),
            Figure("B over A, at most", "%", 100.0 * max(one.hierarchy_gain for one in every)),
        ),
        plots=plots,
    )


def _disk_study(overhead_ms: float, mb_per_s: float, message_bytes: int) -> Study:
    disk = ("disk", 1000.0 * overhead_ms, 1000.0 / mb_per_s)
    return disk_study(pipeline_of_lines([*_network(), disk]), len(_TABLE_1), message_bytes)


def _network() -> list[tuple[str, float, float]]:
    """Table 1 five times slower (KB of 1000 bytes)."""
    costs = enumerate(_TABLE_1)
    return [(f"net {j}", 5.0 * overhead_us, 5.0 * per_kb) for j, (overhead_us, per_kb) in costs]


PAPER = Paper(
    "wang98",
    "Wang, Krishnamurthy, Martin, Anderson and Culler: Towards a Theory of Optimal Communication "
    "Pipelines, 1998",
    (
        ItemSpec("table-1", _myrinet),
        ItemSpec("table-2", _two_parameters),
        ItemSpec("table-3", _gms),
        ItemSpec("figure-2", _signatures),
        ItemSpec("figure-7", _back_to_back),
        ItemSpec("figure-9", _static),
        ItemSpec("figures-10-11", _disks),
        ItemSpec("figures-12-13", _messages),
        ItemSpec("disk-study", _disk),
    ),
)
