"""Culler et al. 1996, Assessing Fast Network Interfaces: LogP of three machines, by simulation.

Source  Tables 3 and 4 and the derivation of the Paragon's o_r from its signature;
        events by `domain.logp_machine`.
"""

from __future__ import annotations

from domain.logp_machine import LogPMachine, many_to_one_us
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

_PARAGON_TEXT = LogPMachine(1.4, 2.2, 7.6, 6.3)
# Table 4: o_s, o_r, g and L; Table 3: the shortest and longest round trip. All in µs.
_MACHINES = (
    ("Paragon", LogPMachine(1.4, 2.2, 7.6, 7.5), 19.9, 20.1),
    ("Meiko CS-2", LogPMachine(1.7, 1.6, 13.6, 7.5), 20.3, 21.6),
    ("Myrinet", LogPMachine(2.0, 2.6, 12.4, 11.1), 30.6, 31.5),
)
_DIGIT = 0.0501  # µs: half of the last digit printed, and what floats add to a sum
_LONG_BURST = 4096


def _wire() -> Item:
    rows: list[Figure] = []
    for name, machine, shortest, longest in _MACHINES:
        ends = machine.send_us + machine.receive_us
        # The Paragon's printed 7.5 contradicts Table 3; its text has 6.3 (see the disagreements).
        printed = _PARAGON_TEXT.wire_us if name == "Paragon" else machine.wire_us
        of_shortest, of_longest = shortest / 2.0 - ends, longest / 2.0 - ends
        if name == "Paragon":
            rows.append(
                Figure(
                    f"{name}, shortest; L of the text", "µs", of_shortest, printed, tolerance=_DIGIT
                )
            )
            rows.append(Figure(f"{name}, longest", "µs", of_longest))
        else:
            rows.append(Figure(f"{name}, shortest", "µs", of_shortest))
            rows.append(Figure(f"{name}, longest", "µs", of_longest, printed, tolerance=_DIGIT))
    return Item(
        "table-4-latency",
        "Wire latency L from the round trips of Table 3",
        "Tables 3 and 4: L = RTT/2 - o_s - o_r",
        tuple(rows),
    )


def _signature() -> Item:
    long_us = _PARAGON_TEXT.burst_us(_LONG_BURST, 16.0) / _LONG_BURST
    steady_us = _PARAGON_TEXT.burst_us(_LONG_BURST, 0.0) / _LONG_BURST
    return Item(
        "paragon-signature",
        "Signature of the Paragon, simulated event by event",
        "Table 4 and the derivation of o_r at D = 16 µs; L = 6.3 µs, bursts of 4096",
        (
            Figure(
                "one message, D = 0: o_s",
                "µs",
                _PARAGON_TEXT.burst_us(1, 0.0),
                1.4,
                tolerance=_DIGIT,
            ),
            Figure("long burst, D = 0: g", "µs", steady_us, 7.6, tolerance=_DIGIT),
            Figure("long burst, D = 16: g'", "µs", long_us, 19.6, tolerance=_DIGIT),
            Figure("o_r = g' - o_s - D", "µs", long_us - 1.4 - 16.0, 2.2, tolerance=_DIGIT),
        ),
        remarks=("The interface holds 4 messages: an assumption of the simulation.",),
    )


def _signatures() -> Item:
    bursts = tuple(2**power for power in range(11))
    computations_us = (0.0, 4.0, 16.0, 40.0)
    plots, figures = [], []
    for name, machine in _SIGNED:
        curves = tuple(
            Curve(
                f"D = {computation_us:g} µs",
                tuple((float(m), machine.burst_us(m, computation_us) / m) for m in bursts),
            )
            for computation_us in computations_us
        )
        short = name.split()[0].lower()
        words = "mean cost, µs"
        plots.append(Plot(short, f"Signature of {name}", _MESSAGES, _axis(words), curves))
        steady_us = machine.burst_us(_LONG_BURST, 0.0) / _LONG_BURST
        one_us = machine.burst_us(1, 0.0)
        figures += [
            Figure(f"{name}, one message: o_s", "µs", one_us, machine.send_us, tolerance=_DIGIT),
            Figure(f"{name}, long burst: g", "µs", steady_us, machine.gap_us, tolerance=_DIGIT),
        ]
    bulk = LogPMachine(2.0, 2.6, 18.0, 11.1)
    bulk_us = bulk.burst_us(_LONG_BURST, 0.0) / _LONG_BURST
    figures.append(Figure("Myrinet, 8 bytes in bulk: g", "µs", bulk_us, 18.0, tolerance=_DIGIT))
    return Item(
        "figures-4-5-8",
        "Signatures of three machines, simulated from Table 4",
        "Figures 4, 5 and 8, whose points are not printed; ends by Table 4 and the text",
        tuple(figures),
        plots=tuple(plots),
    )


def _ends_first() -> Item:
    machine = LogPMachine(60.0, 40.0, 30.0, 10.0)
    slopes = [
        (machine.burst_us(2000, one) - machine.burst_us(1000, one)) / 1000.0 - one
        for one in (0.0, 20.0, 80.0)
    ]
    return Item(
        "figure-11",
        "Where both ends are slower than the interface, the gap cannot be seen",
        "Figure 11 and its text: g = o_s + o_r; o_s = 60, o_r = 40, g = 30 µs are our example",
        tuple(
            Figure(f"long burst, D = {one:g} µs, less D", "µs", slope)
            for one, slope in zip((0.0, 20.0, 80.0), slopes, strict=True)
        ),
        remarks=("o_s + o_r of the example are 100 µs.",),
    )


def _many_to_one() -> Item:
    machine = _MACHINES[2][1]
    alone_us = many_to_one_us(machine, 1, _LONG_BURST)
    return Item(
        "table-5",
        "Cost of a message where K ends send to one, over that of one to one",
        "Table 5; Myrinet's parameters, simulated without replies",
        tuple(
            Figure(
                f"K = {ends}",
                "",
                many_to_one_us(machine, ends, _LONG_BURST) / alone_us,
                said,
                tolerance=None,
            )
            for ends, said in ((3, 3.0), (7, 6.0), (15, 16.8))
        ),
        remarks=("An interface that takes one message every gap has a ratio of K.",),
    )


def _messages_in_all() -> Item:
    machine = _PARAGON_TEXT
    rows = tuple(
        Figure(
            f"{count} messages",
            "µs",
            machine.send_us + (count - 1) * machine.gap_us + machine.wire_us + machine.receive_us,
        )
        for count in (1, 10, 100)
    )
    took_us, busy_us, size = 298.0, 143.0, 4096
    return Item(
        "uses-of-the-model",
        "What the parameters are good for",
        "Sec. 2: o + (n-1) g + L + o; and 4 KB on Myrinet, o = 143 µs of 298 µs",
        (
            *rows,
            Figure("Myrinet, 4 KB: bandwidth", "B/µs", size / took_us),
            Figure("Myrinet, 4 KB: left for calculation", "%", 100.0 * (1.0 - busy_us / took_us)),
        ),
    )


def _axis(words: str) -> PlotAxis:
    return PlotAxis(words, Scale.NUMBER)


_MESSAGES = PlotAxis("messages in a burst", Scale.COUNT)
_SIGNED = (("Paragon", _PARAGON_TEXT), *((name, one) for name, one, _, _ in _MACHINES[1:]))

PAPER = Paper(
    "culler96",
    "Culler, Liu, Martin and Yoshikawa: Assessing Fast Network Interfaces, IEEE Micro, 1996",
    (
        ItemSpec("table-4-latency", _wire),
        ItemSpec("paragon-signature", _signature),
        ItemSpec("figures-4-5-8", _signatures),
        ItemSpec("figure-11", _ends_first),
        ItemSpec("table-5", _many_to_one),
        ItemSpec("uses-of-the-model", _messages_in_all),
    ),
    (
        Disagreement(
            "Table 4 and the discussion",
            "The Paragon's L is 7.5 µs in Table 4 and 6.3 µs in the discussion; Table 3's round "
            "trips give 6.35 to 6.45 µs.",
        ),
        Disagreement(
            "Tables 3 and 4",
            "The printed L of Meiko CS-2 and Myrinet follow from the longest round trip, not the "
            "shortest, which gives 6.85 and 10.70 µs.",
        ),
        Disagreement(
            "Table 5",
            "Its ratios are said to fit K closely, and are 1.00 K, 0.86 K and 1.12 K for K of 3, 7 "
            "and 15.",
        ),
    ),
)
