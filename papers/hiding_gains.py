"""Tables, examples and Figures 3 to 8 of Strumpen 1994: hiding with two processes.

Source  eq. (1) and (5), Tables 1 and 2, Examples 1 and 2; the model is `domain.hiding`.
Terms   ratio: communication over calculation, r = γ_h / γ_s; f: the share of the calculation that
        can hide communication; Ω: what hiding costs, relative to the calculation.
Traps   no points of the figures are printed, nor most of their parameters: the values of f, Ω and
        of the granularities that are drawn are chosen here, and the curves are the model's own.
"""

from __future__ import annotations

from collections.abc import Callable

from domain.hiding import Overlap, gains
from papers.items import Curve, Figure, Item, ItemSpec, Plot, PlotAxis, Scale

_EXACT = 1e-12
_SPREAD = tuple(10.0 ** (step / 40.0) for step in range(-40, 81))  # 0.1 to 100
_GRANULARITIES = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
_SHARES = (0.0, 0.2, 0.5, 1.0)
# ms: by a semaphore, by 8 bytes through a pipe
_TABLE_1 = (
    ("HP9000", 0.09, 0.18),
    ("IBM RS6000", 0.053, 0.050),
    ("SGI Crimson", 0.222, 0.222),
    ("Sun SPARCstation1+", 0.5, 0.38),
    ("Sun SPARCstation10", 0.19, 0.11),
)
_PIPE_MS = {name: pipe_ms for name, _, pipe_ms in _TABLE_1}
# ms of 8 bytes: overhead, direct, with the protocol that hides; the RS6000/590 as the RS6000
_TABLE_2 = (
    ("IBM RS6000", 0.2, 0.596, 0.977),
    ("Sun SPARCstation1+", 1.52, 0.962, 2.489),
    ("Sun SPARCstation10", 0.44, 0.442, 0.996),
)
_BUFFER_BYTES = 4096  # of either socket, by default
_DOUBLE_BYTES = 8
_PIPE_MESSAGES = 4  # of a hidden message: send, its wait, receive, its wait

_SOFTWARE = PlotAxis("software granularity γ_s", Scale.NUMBER)
_HARDWARE = PlotAxis("hardware granularity γ_h", Scale.NUMBER)
_RATIO = PlotAxis("granularity γ: calculation over communication", Scale.NUMBER)
_GAIN = PlotAxis("gain", Scale.NUMBER)


def _places(*kinks: float) -> tuple[float, ...]:
    return tuple(sorted({*_SPREAD, *(kink for kink in kinks if 0.1 <= kink <= 100.0)}))


def _by_ratio(name: str, overlap: Overlap) -> Curve:
    places = _places(1.0 / overlap.full_at) if overlap.full_at > 0.0 else _places()
    return Curve(
        name, tuple(zip(places, gains(places, hardware=1.0, overlap=overlap), strict=True))
    )


def _share_of_processes(name: str, relative_us: Callable[[float], float], *kinks: float) -> Curve:
    """S / p by γ."""
    return Curve(name, tuple((place, 1.0 / relative_us(1.0 / place)) for place in _places(*kinks)))


# --- tables ---------------------------------------------------------------------------------------


def _synchronisation() -> Item:
    differences = [(name, pipe_ms - semaphore_ms) for name, semaphore_ms, pipe_ms in _TABLE_1]
    return Item(
        "table-1",
        "One synchronisation, by a semaphore and by a message through a pipe",
        "Table 1 and its text: the pipe is faster on the SPARCstations and the RS6000, the "
        "semaphore only on the HP9000",
        (
            Figure(
                "machines with a faster pipe", "", sum(one < 0.0 for _, one in differences), 3.0
            ),
            Figure(
                "machines with a faster semaphore",
                "",
                sum(one > 0.0 for _, one in differences),
                1.0,
            ),
            *(Figure(f"{name}, pipe less semaphore", "ms", one) for name, one in differences),
        ),
    )


def _protocol() -> Item:
    rows: list[Figure] = []
    for name, overhead_ms, direct_ms, hidden_ms in _TABLE_2:
        pipes_ms = _PIPE_MESSAGES * _PIPE_MS[name]
        total_ms = pipes_ms + direct_ms
        rows += [
            Figure(
                f"{name}, four messages of Table 1", "ms", pipes_ms, overhead_ms, tolerance=_EXACT
            ),
            Figure(f"{name}, with the direct message", "ms", total_ms, hidden_ms, tolerance=None),
            Figure(f"{name}, less than measured", "%", 100.0 * (1.0 - total_ms / hidden_ms)),
            Figure(f"{name}, penalty factor", "", hidden_ms / direct_ms),
        ]
    return Item(
        "table-2",
        "A message of 8 bytes, directly and with the protocol that hides",
        "Table 2: overhead, direct and lathide, whose sum matches fairly well by the text",
        tuple(rows),
        remarks=(
            "The sums are not compared: the paper does not say how well they are to match.",
            "Table 1 has an RS6000 and Table 2 an RS6000/590: taken for one.",
        ),
    )


def _buffers() -> Item:
    """A blocking send returns once what it leaves over is in both buffers, if no one reads."""
    fitting = 2 * _BUFFER_BYTES
    messages = [(points, _DOUBLE_BYTES * points) for points in (500, 1000)]
    return Item(
        "buffers",
        "Messages that both ends can send before they read, by the default buffers",
        "Sec. 3.1.1 and 4.2: 4 KiB to send and 4 to receive; messages of more than 8 KiB deadlock, "
        "those of 500 doubles fit into the send buffer and those of 1000 do not",
        (
            Figure("largest that does not deadlock", "bytes", float(fitting), 8192.0),
            *(
                Figure(f"{points} doubles", "bytes", float(size), published)
                for (points, size), published in zip(messages, (4000.0, 8000.0), strict=True)
            ),
            *(
                Figure(f"{points} doubles, beyond the send buffer", "bytes", float(beyond))
                for points, size in messages
                for beyond in (max(0, size - _BUFFER_BYTES),)
            ),
            *(
                Figure(f"{points} doubles, beyond both buffers", "bytes", float(beyond))
                for points, size in messages
                for beyond in (max(0, size - fitting),)
            ),
        ),
        remarks=("Arithmetic on printed sizes alone, no model.",),
    )


# --- two processes --------------------------------------------------------------------------------


def _ideal() -> Item:
    ideal = Overlap()
    return Item(
        "fig-3",
        "Ideal hiding: gain and speed-up by granularity",
        "Eq. (1) and Figure 3: gain 2 at γ = 1, 1 + γ below, 1 + 1/γ above",
        (
            Figure("greatest gain", "", ideal.peak_gain, 2.0, tolerance=_EXACT),
            Figure("granularity of the greatest gain", "", 1.0 / ideal.full_at, 1.0),
            Figure("gain at γ = 1/2", "", ideal.gain(2.0), 1.5, tolerance=_EXACT),
            Figure("gain at γ = 2", "", ideal.gain(0.5), 1.5, tolerance=_EXACT),
        ),
        plots=(
            Plot(
                "speedup",
                "Speed-up over the number of processes",
                _RATIO,
                PlotAxis("speed-up over p", Scale.NUMBER),
                (
                    _share_of_processes("without hiding", lambda ratio: 1.0 + ratio, 1.0),
                    _share_of_processes("with hiding", ideal.relative_us, 1.0),
                ),
            ),
            Plot("gain", "Gain", _RATIO, _GAIN, (_by_ratio("gain", ideal),)),
        ),
    )


def _partial() -> Item:
    half = Overlap(0.5)
    overlaps = [(f"f = {share:g}", Overlap(share)) for share in _SHARES]
    return Item(
        "fig-4",
        "A part f of the calculation hides: gain and speed-up by granularity",
        "Sec. 2.1 and Figure 4: the gain is at most 1 + f, at γ = 1/f",
        (
            Figure("greatest gain, f = 0.5", "", half.gain(half.full_at), 1.5, tolerance=_EXACT),
            Figure("its granularity, f = 0.5", "", 1.0 / half.full_at, 2.0, tolerance=_EXACT),
            Figure(
                "speed-up over p there, f = 0.5",
                "",
                1.0 / half.relative_us(half.full_at),
                1.0,
                tolerance=_EXACT,
            ),
        ),
        plots=(
            Plot(
                "speedup",
                "Speed-up over the number of processes, without overhead",
                _RATIO,
                PlotAxis("speed-up over p", Scale.NUMBER),
                tuple(
                    _share_of_processes(name, one.relative_us, 1.0 / (one.full_at or 1.0))
                    for name, one in overlaps
                ),
            ),
            Plot(
                "gain",
                "Gain, without overhead",
                _RATIO,
                _GAIN,
                tuple(_by_ratio(name, one) for name, one in overlaps),
            ),
        ),
    )


def _families(overlap: Overlap) -> tuple[Plot, Plot]:
    """Parts (a) and (b) of a figure: gains by either granularity, for several of the other."""
    peak, suffix = overlap.full_at, f"Ω = {overlap.overhead:g}"
    by_software = tuple(
        Curve(
            f"γ_h = {fixed:g}",
            tuple(zip(places, gains(places, hardware=fixed, overlap=overlap), strict=True)),
        )
        for fixed in _GRANULARITIES
        for places in (_places(fixed / peak),)
    )
    by_hardware = tuple(
        Curve(
            f"γ_s = {fixed:g}",
            tuple((place, overlap.gain(place / fixed)) for place in _places(fixed * peak)),
        )
        for fixed in _GRANULARITIES
    )
    return (
        Plot("a", f"Gain by software granularity, {suffix}", _SOFTWARE, _GAIN, by_software),
        Plot("b", f"Gain by hardware granularity, {suffix}", _HARDWARE, _GAIN, by_hardware),
    )


def _peak(overlap: Overlap) -> Figure:
    """The gain where γ_h / γ_s = 1 + Ω, beside the paper's 2 - Ω / (1 + Ω)."""
    overhead = overlap.overhead
    published = 2.0 - overhead / (1.0 + overhead)
    found = overlap.gain(1.0 + overhead)
    return Figure(f"greatest gain, Ω = {overhead:g}", "", found, published, tolerance=_EXACT)


def _without_overhead() -> Item:
    overlap = Overlap()
    window = overlap.window(1.5)
    assert window is not None  # 1.5 is below the greatest gain, 2
    ends = (
        (f"{side} γ_s of a gain of 1.5, γ_h = {hardware:g}", hardware / ratio, published)
        for hardware, published_ends in ((1.0, (0.5, 2.0)), (10.0, (5.0, 20.0)))
        for side, ratio, published in zip(
            ("smallest", "largest"), (window.high, window.low), published_ends, strict=True
        )
    )
    return Item(
        "fig-5",
        "Gain without overhead, by both granularities",
        "Sec. 2.3.1 and Figure 5: gains of 1.5 for γ_s in [0.5, 2] at γ_h = 1, in [5, 20] at 10",
        (
            _peak(overlap),
            *(
                Figure(name, "", computed, published, tolerance=_EXACT * published)
                for name, computed, published in ends
            ),
        ),
        plots=_families(overlap),
    )


def _by_overhead() -> Item:
    overlaps = [Overlap(1.0, overhead) for overhead in _SHARES]
    return Item(
        "fig-6",
        "Gain by overhead",
        "Sec. 2.3.1 and Figure 6: 2 - Ω / (1 + Ω) at γ_h / γ_s = 1 + Ω, a loss below Ω",
        (
            *map(_peak, overlaps),
            *(
                Figure(
                    f"gain at γ_h / γ_s = Ω = {one.overhead:g}",
                    "",
                    one.gain(one.overhead),
                    1.0,
                    tolerance=_EXACT,
                )
                for one in overlaps
            ),
        ),
        plots=(
            Plot(
                "gain",
                "Gain by granularity, by overhead",
                PlotAxis("γ_s over γ_h", Scale.NUMBER),
                _GAIN,
                tuple(_by_ratio(f"Ω = {one.overhead:g}", one) for one in overlaps),
            ),
        ),
    )


def _with_overhead(name: str, number: str, overhead: float) -> ItemSpec:
    overlap = Overlap(1.0, overhead)

    def compute() -> Item:
        return Item(
            name,
            f"Gain with an overhead of {overhead:g}, by both granularities",
            f"Sec. 2.3.1 and Figure {number}",
            (
                _peak(overlap),
                Figure("γ_s of the greatest gain, γ_h = 10", "", 10.0 / overlap.full_at),
            ),
            plots=_families(overlap),
        )

    return ItemSpec(name, compute)


def _example_1() -> Item:
    machines = (
        ("H1 = (1, 1)", 1.0, 1.0, 3 / 5),
        ("H2 = (5, 0.2)", 5.0, 0.2, 5 / 3),
        ("H3 = (10, 0)", 10.0, 0.0, 3 / 2),
    )
    return Item(
        "example-1",
        "Three machines (γ_h, Ω) for a program of γ_s = 5",
        "Example 1: gains of 3/5, 5/3 and 3/2",
        tuple(
            Figure(
                f"gain of {name}",
                "",
                gains((5.0,), hardware=hardware, overlap=Overlap(1.0, overhead))[0],
                published,
                tolerance=_EXACT,
            )
            for name, hardware, overhead, published in machines
        ),
    )


def _example_2() -> Item:
    machines = (
        ("H1 = (5, 0)", 5.0, 0.0),
        ("H2 = (1, 0.2)", 1.0, 0.2),
        ("H3 = (10, 1)", 10.0, 1.0),
    )
    # The gain rises and then falls with γ_s, so that it is smallest at an end of the range.
    smallest = {
        name: min(gains((2.0, 10.0), hardware=hardware, overlap=Overlap(1.0, overhead)))
        for name, hardware, overhead in machines
    }
    return Item(
        "example-2",
        "Which machines (γ_h, Ω) gain for all γ_s in [2, 10]",
        "Example 2: H1 and H3 do and H2 does not, by the text",
        (
            Figure(
                "machines that gain everywhere",
                "",
                sum(one > 1.0 for one in smallest.values()),
                2.0,
                tolerance=None,
            ),
            *(Figure(f"smallest gain of {name}", "", one) for name, one in smallest.items()),
        ),
        remarks=(
            "H3 has a gain of exactly 1 at γ_s = 10, where the paper's own condition "
            "γ_h / γ_s > Ω fails: it gains on [2, 10) only, and the count is not compared.",
        ),
    )


TABLES_AND_GAINS = (
    ItemSpec("table-1", _synchronisation),
    ItemSpec("table-2", _protocol),
    ItemSpec("buffers", _buffers),
    ItemSpec("fig-3", _ideal),
    ItemSpec("fig-4", _partial),
    ItemSpec("fig-5", _without_overhead),
    ItemSpec("fig-6", _by_overhead),
    _with_overhead("fig-7", "7", 0.2),
    _with_overhead("fig-8", "8", 1.0),
    ItemSpec("example-1", _example_1),
    ItemSpec("example-2", _example_2),
)
