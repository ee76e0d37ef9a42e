"""Karamcheti and Chien 1994, Software Overhead in Messaging Layers: work of CMAM by service.

Source  Tables 1 to 3, Figures 6 and 8; counts by `analysis.layer_cost`, stages by
        `analysis.layer_stages`. Printed numbers are in karamcheti94.json beside this module.
Traps   the paper counts instructions and never times them: latencies, and what tuning leaves of a
        saving, are the model's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

from analysis.layer_cost import LayerSums, Work, overhead_share, packet_curve, work_of
from analysis.layer_stages import StageMapping, StageQuestion, layer_stages
from analysis.published_layers import disagreements, shipped_layers
from domain.instruction_counts import CycleModel
from domain.messaging_layer import End, MessageUnits, MessagingLayer, NetworkFeature, Service
from domain.problem import Problem
from domain.schedule import latency_us
from papers.items import Curve, Disagreement, Figure, Item, ItemSpec, Paper, Plot, PlotAxis, Scale
from solvers import solve

_CLASSES = ("reg", "mem", "dev")
_WORD = 4  # bytes
_LONG = 4096  # bytes: the paper's 1024 words
_PACKETS = (4, 8, 16, 32, 64, 128)  # words: the sizes of Figure 8's curve
_NAMES = MappingProxyType({"cmam-finite": "finite", "cmam-indefinite": "indefinite"})
_CLOCK_MHZ = 1.0  # so that µs are cycles: the paper has no clock


def published() -> Mapping[str, Any]:
    """Return the printed numbers by table, as the file has them."""
    text = Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


def _layer(name: str) -> MessagingLayer:
    return shipped_layers()[name]


def _service(row: Mapping[str, Any]) -> Service | None:
    return None if row["service"] == "total" else Service(row["service"])


def _single() -> Item:
    work = work_of(_layer("cmam-single"), 4 * _WORD)
    total = next(row for row in published()["table_1"] if row["row"] == "total")
    figures = [
        Figure(end.value, "instructions", float(work.of(end=end).total), float(total[end.value]))
        for end in End
    ]
    both = float(total["source"] + total["destination"])
    figures.append(Figure("total", "instructions", float(work.counts.total), both))
    return Item("table-1", "One packet of 4 words", "Table 1: its last row", tuple(figures))


def _features() -> Item:
    rows = published()["table_2"]
    return Item(
        "table-2",
        "Instructions of multi-packet delivery, by service and end",
        "Table 2: 60 entries, packets of 4 words",
        tuple(figure for row in rows for figure in _by_end(row)),
    )


def _by_end(row: Mapping[str, Any]) -> Iterator[Figure]:
    work, service = work_of(_layer(row["layer"]), _WORD * row["words"]), _service(row)
    name = f"{_NAMES[row['layer']]}, {row['words']} words, {row['service']}"
    for end in End:
        counted = float(work.of(service, end).total)
        yield Figure(f"{name}, {end.value}", "instructions", counted, float(row[end.value]))
    yield Figure(f"{name}, both", "instructions", float(work.of(service).total), row["total"])


def _classes() -> Item:
    rows = published()["table_3"]
    return Item(
        "table-3",
        "The same by class: registers, memory, device",
        "Table 3: 120 entries",
        tuple(figure for row in rows for figure in _by_class(row)),
    )


def _by_class(row: Mapping[str, Any]) -> Iterator[Figure]:
    work, service = work_of(_layer(row["layer"]), _WORD * row["words"]), _service(row)
    for end in End:
        counts = work.of(service, end)
        for place, name in enumerate(_CLASSES):
            yield Figure(
                f"{_NAMES[row['layer']]}, {row['words']} words, {row['service']}, {end.value}, "
                f"{name}",
                "instructions",
                float(counts.in_class(name)),
                float(row[end.value][place]),
            )


def _bars() -> Item:
    figures: list[Figure] = []
    totals = {
        (row["layer"], row["words"], row["service"]): float(row["total"])
        for row in published()["table_2"]
    }
    for name, words in _NAMES.items():
        for size in (16, 1024):
            work = work_of(_layer(name), _WORD * size)
            kept = work_of(_layer(name).with_features(NetworkFeature), _WORD * size)
            printed, base = totals[name, size, "total"], totals[name, size, "base"]
            left = 100.0 * float(1 - kept.counts.total / work.counts.total)
            figures += [
                Figure(f"{words}, {size} words, CMAM", "instructions", _total(work), printed),
                Figure(f"{words}, {size} words, features", "instructions", _total(kept), base),
                Figure(f"{words}, {size} words, saved", "%", left, 100.0 * (1.0 - base / printed)),
            ]
    indefinite = [one.computed for one in figures if one.name.startswith("indefinite, 16")][-1]
    figures.append(
        Figure("indefinite, saved, as the text has it", "%", indefinite, 70.0, tolerance=1.0)
    )
    return Item(
        "figure-6",
        "What a network with in-order, flow-controlled, reliable delivery saves",
        "Figure 6 and sec. 4: its bars are rows of Table 2; by the text about 70 %",
        tuple(_close(figure) for figure in figures),
        remarks=(
            "The right bars of the finite protocol are said to be slightly lower at the "
            "destination than its base; that number is not printed.",
        ),
    )


def _close(figure: Figure) -> Figure:
    """Shares of whole counts differ by the rounding of floats alone."""
    if figure.unit != "%" or figure.tolerance:
        return figure
    return Figure(figure.name, figure.unit, figure.computed, figure.published, tolerance=1e-9)


def _total(work: Work) -> float:
    return float(work.counts.total)


def _formulas() -> Item:
    figures: list[Figure] = []
    for row in published()["figure_8"]:
        for column in ("source", "destination", "total"):
            terms = _terms(row["layer"], _service(row), column)
            for term, computed, printed in zip(("1", "p", "np"), terms, row[column], strict=True):
                name = f"{_NAMES[row['layer']]}, {row['service']}, {column}: times {term}"
                figures.append(Figure(name, "instructions", float(computed), float(printed)))
    return Item(
        "figure-8-formulas",
        "Instructions of p packets of n words",
        "Figure 8, left: 30 formulas of three terms each",
        tuple(figures),
    )


def _terms(layer: str, service: Service | None, column: str) -> tuple[Fraction, Fraction, Fraction]:
    """The terms of 1, p and n p, from the model at three sizes; tests try many others."""
    end = None if column == "total" else End(column)
    sums = LayerSums.of(_layer(layer))

    def counted(packets: int, words: int) -> Fraction:
        units = MessageUnits.of(_layer(layer), _WORD * words * packets, words)
        return Fraction(sums.work(units).of(service, end).total)

    word = (counted(2, 8) - counted(2, 4)) / 8
    packet = (counted(4, 4) - counted(2, 4)) / 2 - 4 * word
    return counted(2, 4) - 2 * packet - 8 * word, packet, word


def _packets() -> Item:
    curves, figures = [], []
    for name, words in _NAMES.items():
        points = packet_curve(LayerSums.of(_layer(name)), _LONG, _PACKETS)
        shares = [100.0 * float(overhead_share(point)) for point in points]
        pairs = zip(map(float, _PACKETS), shares, strict=True)
        curves.append(Curve(words, tuple(pairs)))
        for size, share in zip(_PACKETS, shares, strict=True):
            low, high = (9.0, 11.0) if name == "cmam-finite" else (None, None)
            row = f"{words}, packets of {size} words"
            figures.append(Figure(row, "%", share, low, high, tolerance=None))
    plot = Plot(
        "by-packet",
        "Overhead of 1024 words by the size of packets",
        PlotAxis("words in a packet", Scale.COUNT),
        PlotAxis("overhead, % of the instructions", Scale.NUMBER),
        tuple(curves),
    )
    return Item(
        "figure-8-curve",
        "Overhead of 1024 words by the size of packets",
        "Figure 8, right; by the text 9 to 11 % for the finite protocol",
        tuple(figures),
        plots=(plot,),
        remarks=("The printed 9 to 11 % are contradicted by Figure 8's own formulas.",),
    )


def _tuned() -> Item:
    figures: list[Figure] = []
    for name, words in _NAMES.items():
        both = [_problem(_layer(name), with_features=one) for one in (False, True)]
        for size in (4, 128):
            cut = [_WORD * size] * (_LONG // (_WORD * size))
            old, new = (latency_us(one.pipeline, cut) - one.pipeline.delay_us for one in both)
            figures.append(_own(f"{words}, packets of {size} words, saved", 1.0 - new / old))
        old, new = (solve(one).latency_us - one.pipeline.delay_us for one in both)
        figures.append(_own(f"{words}, both cut anew, saved", 1.0 - new / old))
    return Item(
        "tuned-savings",
        "What the features save of the latency of 4 KiB, cut in today's packets and cut anew",
        "not in the paper: its counts as stages, at 1, 1 and 5 cycles an instruction",
        tuple(figures),
        remarks=(
            "Most of what a network feature saves is what a badly chosen packet size costs. "
            "Latencies leave out what is once before the data.",
        ),
    )


def _own(name: str, share: float) -> Figure:
    return Figure(name, "%", 100.0 * share)


def _problem(layer: MessagingLayer, *, with_features: bool) -> Problem:
    kept = layer.with_features(NetworkFeature) if with_features else layer
    question = StageQuestion(mapping=StageMapping.PACKET)
    found = layer_stages(kept, CycleModel(layer.cycles, clock_mhz=_CLOCK_MHZ), question)
    assert found is not None, "a clock was given, and packets do not wait for each other"
    return Problem(found.pipeline, _LONG, found.limits)


def _disagreements() -> tuple[Disagreement, ...]:
    return tuple(
        Disagreement(
            f"Section {one.section}",
            f"It says: {one.says} ({_numbers(one.stated)}); its tables give "
            f"{_numbers(one.computed)}: {one.how}.",
        )
        for one in disagreements()
    )


def _numbers(values: tuple[float, ...]) -> str:
    return " to ".join(f"{value:g}" for value in values)


PAPER = Paper(
    "karamcheti94",
    "Karamcheti and Chien: Software Overhead in Messaging Layers: Where Does the Time Go?, "
    "ASPLOS VI, 1994",
    (
        ItemSpec("table-1", _single),
        ItemSpec("table-2", _features),
        ItemSpec("table-3", _classes),
        ItemSpec("figure-6", _bars),
        ItemSpec("figure-8-formulas", _formulas),
        ItemSpec("figure-8-curve", _packets),
        ItemSpec("tuned-savings", _tuned),
    ),
    _disagreements(),
)
