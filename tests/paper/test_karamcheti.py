"""Karamcheti94: every printed number of Tables 1 to 3 and Fig. 8, and the stages that follow."""

from __future__ import annotations

from fractions import Fraction

import pytest

from analysis.layer_cost import LayerSums, Work, overhead_share, packet_curve, work_of
from analysis.layer_stages import LayerStages, StageMapping, StageQuestion, layer_stages
from analysis.published_layers import Disagreement, disagreements, shipped_layers
from domain.instruction_counts import CycleModel, InstructionCounts
from domain.messaging_layer import End, MessageUnits, MessagingLayer, NetworkFeature, Service
from domain.problem import Problem
from domain.schedule import latency_us
from papers.karamcheti94 import published
from solvers import solve

PUBLISHED = published()
LAYERS = shipped_layers()
FINITE, INDEFINITE, SINGLE = (LAYERS[f"cmam-{name}"] for name in ("finite", "indefinite", "single"))
CYCLES = CycleModel(FINITE.cycles)
US = CycleModel(FINITE.cycles, clock_mhz=1.0)
CLASSES = ("reg", "mem", "dev")
MESSAGE = 4096


def service_of(row: dict[str, object]) -> Service | None:
    """The service of a printed row, None for the total."""
    return None if row["service"] == "total" else Service(str(row["service"]))


def by_class(counts: InstructionCounts) -> list[Fraction]:
    """In the order of the printed columns."""
    return [counts.in_class(name) for name in CLASSES]


def every(work: Work, service: Service | None) -> list[Fraction]:
    """Source, destination and total of a printed row."""
    return [*(work.of(service, end).total for end in End), work.of(service).total]


# --- Tables 1 to 3 and Figure 8 -------------------------------------------------------------------


def test_table_1() -> None:
    """A single packet takes 20 + 27 instructions, and 87 cycles."""
    work = work_of(SINGLE, 16)
    *rows, total = PUBLISHED["table_1"]
    assert [sum(row[end] for row in rows) for end in End] == [total[end] for end in End]
    assert every(work, None) == [total["source"], total["destination"], 47]
    assert [by_class(work.of(end=end)) for end in End] == [[14, 1, 5], [22, 0, 5]]
    assert [CYCLES.cycles_of(work.of(end=end)) for end in End] == [40, 47]


@pytest.mark.parametrize("row", PUBLISHED["table_2"], ids=str)
def test_table_2(row: dict[str, object]) -> None:
    """Instructions by service and end."""
    work = work_of(LAYERS[str(row["layer"])], 4 * int(str(row["words"])))
    assert every(work, service_of(row)) == [row["source"], row["destination"], row["total"]]


@pytest.mark.parametrize("row", PUBLISHED["table_3"], ids=str)
def test_table_3(row: dict[str, object]) -> None:
    """The same by class."""
    work = work_of(LAYERS[str(row["layer"])], 4 * int(str(row["words"])))
    for end in End:
        assert by_class(work.of(service_of(row), end)) == row[end]


def test_all_180_entries_are_there() -> None:
    """Of Tables 2 and 3."""
    rows = len(PUBLISHED["table_2"]), len(PUBLISHED["table_3"])
    assert 3 * rows[0] + 6 * rows[1] == 180


def formula_rows() -> list[tuple[str, str, str, list[float]]]:
    """Each printed formula of Figure 8: layer, service, column, coefficients of 1, p and n p."""
    return [
        (row["layer"], row["service"], column, row[column])
        for row in PUBLISHED["figure_8"]
        for column in ("source", "destination", "total")
    ]


@pytest.mark.parametrize(("layer", "service", "column", "terms"), formula_rows())
def test_figure_8(layer: str, service: str, column: str, terms: list[float]) -> None:
    """Each of the 30 formulas, at every packet size of 1 to 64 words and beyond."""
    once, packet, word = map(Fraction, terms)
    own = None if service == "total" else Service(service)
    end = None if column == "total" else End(column)
    for n in (*range(1, 65), 100, 128, 255, 256):
        for p in (1, 2, 3, 4, 8, 16, 32, 256, 1000):
            units = MessageUnits.of(LAYERS[layer], 4 * n * p, n)
            assert units.packets == p
            found = LayerSums.of(LAYERS[layer]).work(units).of(own, end).total
            assert found == once + packet * p + word * n * p


def test_there_are_30_formulas() -> None:
    """Two protocols, five rows, three columns."""
    assert len(formula_rows()) == 30


CURVES = {
    "cmam-finite": (
        (11737, 7001, 4633, 3449, 2857, 2561),
        (12.576, 11.941, 11.137, 10.322, 9.660, 9.215),
    ),
    "cmam-indefinite": (
        (29965, 15757, 8653, 5101, 3325, 2437),
        (70.909, 69.049, 65.827, 60.851, 54.376, 47.600),
    ),
}


@pytest.mark.parametrize("name", CURVES)
def test_figure_8_right(name: str) -> None:
    """Overhead of 1024 words by packet size, and the limits without end of p at 4 words."""
    points = packet_curve(LayerSums.of(LAYERS[name]), 4096, (4, 8, 16, 32, 64, 128))
    instructions, shares = CURVES[name]
    assert tuple(point.counts.total for point in points) == instructions
    found = tuple(round(float(100 * overhead_share(point)), 3) for point in points)
    assert found == shares
    limit = {"cmam-finite": Fraction(5, 45), "cmam-indefinite": Fraction(83, 117)}[name]
    (endless,) = packet_curve(LayerSums.of(LAYERS[name]), 2**40, (4,))
    assert abs(overhead_share(endless) - limit) < Fraction(1, 10**6)


# --- totals, shares, savings ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "words", "ends", "cycles", "overhead"),
    [
        (FINITE, 16, (173, 224), (313, 352), 54.4081),
        (FINITE, 1024, (6221, 5516), (11401, 9676), 12.5756),
        (INDEFINITE, 16, (216, 265), (376, 413), 69.0229),
        (INDEFINITE, 1024, (13824, 16141), (24064, 25361), 70.9094),
    ],
)
def test_totals(
    layer: MessagingLayer,
    words: int,
    ends: tuple[int, int],
    cycles: tuple[int, int],
    overhead: float,
) -> None:
    """Instructions and cycles of both ends, and the overhead's share of the instructions."""
    work = work_of(layer, 4 * words)
    assert tuple(work.of(end=end).total for end in End) == ends
    assert tuple(CYCLES.cycles_of(work.of(end=end)) for end in End) == cycles
    assert float(100 * overhead_share(work)) == pytest.approx(overhead, abs=5e-5)


@pytest.mark.parametrize(
    ("layer", "words", "share"),
    [
        (FINITE, 16, 50.53),
        (FINITE, 1024, 7.57),
        (INDEFINITE, 16, 62.36),
        (INDEFINITE, 1024, 63.71),
    ],
)
def test_overhead_in_cycles(layer: MessagingLayer, words: int, share: float) -> None:
    """It is another share than that of instructions."""
    found = overhead_share(work_of(layer, 4 * words), CYCLES)
    assert float(100 * found) == pytest.approx(share, abs=5e-3)


@pytest.mark.parametrize(
    ("every", "total"), [(1, 29965), (2, 23949), (4, 20941), (16, 18685), (256, 17980)]
)
def test_group_acknowledgements(every: int, total: int) -> None:
    """Of 1024 words by the indefinite protocol: the copy at the source is kept."""
    assert work_of(acknowledging(every), 4096).counts.total == total


def acknowledging(every: int) -> MessagingLayer:
    """The indefinite protocol, where this many packets share an acknowledgement."""
    return MessagingLayer(
        name="group",
        source="",
        word_bytes=4,
        packet_words=4,
        components=INDEFINITE.components,
        acknowledge_every=every,
    )


@pytest.mark.parametrize(("layer", "saved", "total"), [(FINITE, 216, 397), (INDEFINITE, 332, 481)])
def test_all_features_leave_the_base(layer: MessagingLayer, saved: int, total: int) -> None:
    """Figure 6's right bars; savings of several features add up."""
    work = work_of(layer, 64)
    assert work.counts.total == total
    assert work.removed_by(NetworkFeature).total == saved
    assert sum(work.removed_by([one]).total for one in NetworkFeature) == saved
    left = work_of(layer.with_features(NetworkFeature), 64)
    assert left.counts == work.of(Service.BASE)


# --- what the text says, and what its tables give -------------------------------------------------


def per_cent(share: Fraction) -> float:
    """Of a share, as it is printed."""
    return round(float(100 * share), 2)


def computed(one: Disagreement) -> tuple[float, ...]:
    """The figures beside a statement, of the model and of Table 1."""
    small, large = work_of(LAYERS[one.layer], 64), work_of(LAYERS[one.layer], 4096)
    match one.says:
        case says if "buffer management" in says:
            share = small.of(Service.BUFFERING).total / small.counts.total
            return per_cent(share), per_cent(overhead_share(small))
        case says if "34 of 47" in says:
            rows = PUBLISHED["table_1"]
            own = sum(row["source"] + row["destination"] for row in rows if "NI" in row["row"])
            flow = next(row for row in rows if row["row"] == "control flow")
            return own, own + flow["source"] + flow["destination"]
        case says if "285 and 481" in says:
            other = work_of(INDEFINITE, 64)
            assert other.counts.total == 481
            assert other.counts.total - other.of(Service.RELIABILITY).total == 285
            return (float(small.counts.total),)
        case says if "9 to 11" in says:
            curve = packet_curve(LayerSums.of(FINITE), 4096, (4, 8, 16, 32, 64, 128))
            shares = [per_cent(overhead_share(point)) for point in curve]
            assert shares == [12.58, 11.94, 11.14, 10.32, 9.66, 9.22]
            return min(shares), max(shares)
        case says if "about 10 %" in says:
            return (per_cent(overhead_share(large)),)
        case says if "group" in says:
            once = [overhead_share(work_of(acknowledging(2**20), size)) for size in (4096, 64)]
            free = INDEFINITE.with_features([NetworkFeature.RELIABLE_DELIVERY])
            without = [per_cent(overhead_share(work_of(free, size))) for size in (4096, 64)]
            assert without == [49.96, 47.72]
            return per_cent(once[0]), per_cent(once[1])
    return tuple(sorted((per_cent(overhead_share(small)), per_cent(overhead_share(large)))))


@pytest.mark.parametrize("one", disagreements(), ids=lambda one: one.says)
def test_the_text_and_the_tables_differ(one: Disagreement) -> None:
    """By the figures that are told of both."""
    assert computed(one) == one.computed
    assert one.stated != one.computed


# --- stages ---------------------------------------------------------------------------------------


def stages_of(
    layer: MessagingLayer, mapping: StageMapping, *, software: bool = True
) -> LayerStages:
    """At 1 MHz, so that µs are cycles; on a network with all features where not `software`."""
    kept = layer if software else layer.with_features(NetworkFeature)
    found = layer_stages(kept, US, StageQuestion(mapping=mapping))
    assert found is not None
    return found


PACKET, TRANSFER = StageMapping.PACKET, StageMapping.TRANSFER
CASES = {
    "finite packet": (FINITE, PACKET, True, (32, 750, 25, 750), (11301, 3737, 456, 3721)),
    "finite packet, features": (
        FINITE,
        PACKET,
        False,
        (30, 750, 22, 750),
        (10786, 3718, 416, 3698),
    ),
    "indefinite packet": (INDEFINITE, PACKET, True, (82, 750, 89, 625), (25438, 4137, 848, 4020)),
    "indefinite packet, features": (
        *(INDEFINITE, PACKET, False, (30, 625, 20, 625)),
        (10270, 3140, 456, 3130),
    ),
    "finite transfer": (
        FINITE,
        TRANSFER,
        True,
        (137, 2750, 204, 2312.5),
        (None, 13748, 464, 13673),
    ),
    "finite transfer, features": (FINITE, TRANSFER, False, (3, 2625, 22, 2125), None),
}
AUTO = {
    "finite packet": (10, 3696.0, 3692.69),
    "finite packet, features": (11, 3666.0, None),
    "indefinite packet": (6, 3926.0, 3924.65),
    "indefinite packet, features": (9, 3095.0, None),
    "finite transfer": (8, 13352.0, 13336.87),
    "finite transfer, features": (24, 10955.0, None),
}


@pytest.mark.parametrize("name", CASES)
def test_stages(name: str) -> None:
    """Overheads and per-byte costs, and what sizes of 16 and 512 B and the best one take, without
    the delay.
    """
    layer, mapping, software, costs, latencies = CASES[name]
    stages = stages_of(layer, mapping, software=software)
    pipeline, delay = stages.pipeline, stages.pipeline.delay_us
    lines = [stage.ranges[0] for stage in pipeline.stages]
    found = [cost for line in lines for cost in (line.overhead_us, line.ns_per_byte)]
    assert found == pytest.approx(costs, rel=1e-9)
    assert stages.limits.alignment_bytes == (8 if mapping is PACKET else 16)
    if latencies is None:
        return
    small, middle, best_size, best = latencies
    if small is not None:
        assert latency_us(pipeline, [16] * 256) - delay == pytest.approx(small)
    assert latency_us(pipeline, [512] * 8) - delay == pytest.approx(middle)
    repeated = solve(Problem(pipeline, MESSAGE, stages.limits), "repeat")
    assert repeated.schedule.fragment_bytes[0] == best_size
    assert repeated.latency_us - delay == pytest.approx(best)


@pytest.mark.parametrize("name", AUTO)
def test_best_cuts(name: str) -> None:
    """Fragments, latency and bound, the delay left out."""
    layer, mapping, software, _, _ = CASES[name]
    stages = stages_of(layer, mapping, software=software)
    fragments, latency, bound = AUTO[name]
    found = solve(Problem(stages.pipeline, MESSAGE, stages.limits))
    delay = stages.pipeline.delay_us
    assert found.schedule.fragments == fragments
    assert found.latency_us - delay == pytest.approx(latency, rel=1e-9)
    assert found.lower_bound_us <= found.latency_us
    if bound is not None:
        assert found.lower_bound_us - delay >= bound


@pytest.mark.parametrize(
    ("layer", "software", "one_fragment"),
    [(FINITE, True, 21077), (FINITE, False, 19481), (INDEFINITE, True, 49425)],
)
def test_one_transfer_takes_all_cycles(
    layer: MessagingLayer, software: bool, one_fragment: int
) -> None:
    """The latency of one fragment of whole packets is the total of both ends."""
    kept = layer if software else layer.with_features(NetworkFeature)
    stages = stages_of(layer, TRANSFER, software=software)
    assert stages.pipeline.delay_us == 0.0
    assert latency_us(stages.pipeline, [4096]) == pytest.approx(one_fragment, rel=1e-12)
    assert CYCLES.cycles_of(work_of(kept, 4096).counts) == one_fragment


def test_one_packet_takes_422_cycles() -> None:
    """By the finite protocol."""
    assert latency_us(stages_of(FINITE, TRANSFER).pipeline, [16]) == pytest.approx(422, rel=1e-12)


def test_delay_of_the_finite_protocol() -> None:
    """What is once before the data, at both ends; the trips of the handshake take no wire here."""
    assert stages_of(FINITE, PACKET).pipeline.delay_us == 254.0
    assert stages_of(FINITE, PACKET, software=False).pipeline.delay_us == 25.0
    waiting = layer_stages(FINITE, US, StageQuestion(wire_us=10.0))
    assert waiting is not None
    assert waiting.pipeline.delay_us == 274.0


def test_a_feature_saves_less_of_large_packets() -> None:
    """Of 4 KiB by the indefinite protocol: 60 % in packets of 4 words, 24 % in those of 128."""
    software = stages_of(INDEFINITE, PACKET)
    hardware = stages_of(INDEFINITE, PACKET, software=False)

    def saved(size: int) -> float:
        cut = [size] * (MESSAGE // size)
        old, new = (
            latency_us(one.pipeline, cut) - one.pipeline.delay_us for one in (software, hardware)
        )
        return 1.0 - new / old

    assert saved(16) == pytest.approx(0.596, abs=1e-3)
    assert saved(512) == pytest.approx(0.241, abs=1e-3)
