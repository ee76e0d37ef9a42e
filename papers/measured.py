"""What Strumpen94 measured, measured on this machine by the reference mover.

Source    V. Strumpen, Communication Latency Hiding, ETH report 216, 1994: Tables 1 and 2, Figures
          10 to 13, 15, 16 and 18 to 23.
Traps     the paper prints no points of its curves: nothing of them here has a published number.
          Without a limited link the processors themselves carry the bytes, and hiding has little
          to gain. The Internet is emulated: a process keeps the bytes for a while.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from measuring.moving import Way, activities, calibrate, exchange, primitives
from papers.items import Curve, Figure, Item, ItemSpec, Plot, PlotAxis, Scale

_BYTES = 800_000  # of a boundary: 100 000 doubles, sec. 4.2
_FRAGMENT_BYTES = 32 << 10
_SMALL, _LARGE = 64 << 10, 4 << 20  # buffers below and above the message
_SHARES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the calculation over the communication
_MIN_US = 1.0
_INTERNET_US = 20_000.0  # one way
_INTERNET_BUFFER = 4608  # bytes: about the least that Linux has, and half of it for contents
_INTERNET_SHARES = (0.5, 1.0, 2.0)
_DOUBLES = {"a": 500, "b": 5000}
_INTERNET_TIMES = {"a": 12, "b": 4}  # iterations there: of b each takes tenths of a second
_SIZES = (8, 64, 512, 4096, 16_384, 65_536, 262_144)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)
_PIPES_OF_HIDING = 4  # messages of Table 1 for one of Table 2

_BYTES_AXIS = PlotAxis("message, bytes", Scale.BYTES)
_TIME_AXIS = PlotAxis("time", Scale.TIME_US)
_SHARE_AXIS = PlotAxis("calculation over communication", Scale.NUMBER)

_Row = tuple[str, str, float]  # name, unit, value


def measured_items(
    between: str | None, repetitions: int = 20, internet_us: float = _INTERNET_US
) -> tuple[ItemSpec, ...]:
    """Return the items, over loopback or between two namespaces (near/far/address).

    `internet_us` is one way of the emulated Internet.
    """
    here = _Machine(Way(between), repetitions, internet_us)
    items: dict[str, Callable[[_Machine], Item]] = {
        "table-1": _synchronisation,
        "table-2": _protocol,
        "fig-10": _copies,
        "fig-11": _fragments,
        "fig-12": lambda on: _diagram(on, "12"),
        "fig-13": lambda on: _diagram(on, "13"),
        "fig-15": lambda on: _diagram(on, "15"),
        "fig-16": _pipes,
        "fig-18": _ping_pong,
        "fig-19": _penalty,
        "fig-20": _both_at_once,
        "fig-21": _buffers,
        "fig-22": _internet_gains,
        "fig-23": _gains,
        "not": _not_measured,
    }
    return tuple(
        ItemSpec(f"{name}-measured", partial(compute, here)) for name, compute in items.items()
    )


@dataclass(frozen=True)
class _Machine:
    """Where it is measured, and what several items need, measured once."""

    way: Way
    repetitions: int
    internet_us: float

    @cached_property
    def communication_us(self) -> float:
        """Of both directions at once."""
        return self.fastest(_BYTES, 0.0)["simultaneous"]

    @cached_property
    def messages(self) -> Mapping[tuple[str, int], float]:
        """One way, directly and by the mover."""
        return primitives("messages", _SIZES, repetitions=self.repetitions, way=self.way)

    @cached_property
    def internet(self) -> Way:
        """A long way, with buffers that are below larger messages."""
        return Way(delay_us=self.internet_us, buffer_bytes=_INTERNET_BUFFER)

    @cached_property
    def internet_messages(self) -> Mapping[tuple[str, int], float]:
        """The same by a long way with large buffers."""
        far, times = Way(delay_us=self.internet_us), min(4, self.repetitions)
        return primitives("messages", _SIZES, repetitions=times, way=far)

    @cached_property
    def internet_times(self) -> Mapping[tuple[str, float], Mapping[str, float]]:
        """µs an iteration of each variant, by message and calculation over communication."""
        found = {}
        for name, doubles in _DOUBLES.items():
            times = min(_INTERNET_TIMES[name], self.repetitions)
            alone_us = self._mean(8 * doubles, 0.0, times)["hiding"]
            for share in _INTERNET_SHARES:
                found[name, share] = self._mean(8 * doubles, share * alone_us, times)
        return found

    def _mean(self, message_bytes: int, calculation_us: float, times: int) -> dict[str, float]:
        """Iterations follow each other: an early one makes the next one late."""
        found = exchange(
            self.internet,
            message_bytes,
            calculation_us=calculation_us,
            repetitions=times,
            fragment_bytes=4096,
        )
        return {name: sum(row) / len(row) for name, row in found.items()}

    def fastest(
        self,
        message_bytes: int,
        calculation_us: float,
        buffer_bytes: int = 0,
        timeline: Path | None = None,
    ) -> dict[str, float]:
        """The least µs of an iteration of each variant."""
        found = exchange(
            replace(self.way, buffer_bytes=buffer_bytes),
            message_bytes,
            calculation_us=calculation_us,
            repetitions=self.repetitions,
            fragment_bytes=_FRAGMENT_BYTES,
            timeline=timeline,
        )
        return {name: max(_MIN_US, min(row)) for name, row in found.items()}

    def item(
        self,
        number: str,
        title: str,
        rows: Iterable[_Row],
        said: str,
        plots: tuple[Plot, ...] = (),
        *,
        more: Sequence[str] = (),
        has_way: bool = True,
    ) -> Item:
        """An item with the machine, the rate and the paper's words."""
        machine = f"here: {platform.machine()}, {os.cpu_count()} processors"
        if has_way:
            between = self.way.between
            machine += ", loopback" if between is None else f", between namespaces {between}"
            machine += f", {_BYTES / self.communication_us:.4g} B/µs each way"
        facts = (machine, f"load: {os.getloadavg()[0]:.1f} in the last minute")
        kind, _, of = number.partition("-")
        return Item(
            f"{number}-measured",
            title,
            f"{'Table' if kind == 'table' else 'Fig.'} {of}",
            tuple(Figure(*row, is_measured=True) for row in rows),
            remarks=(said, *more, *facts),
            plots=plots,
        )


# --- what a message layer is made of --------------------------------------------------------------


def _synchronisation(on: _Machine) -> Item:
    found = primitives("signals", (8,), repetitions=on.repetitions)
    return on.item(
        "table-1",
        "One synchronisation of two processes",
        [(name, "µs", found[name, 8]) for name in ("semaphore", "pipe", "eventfd")],
        "the paper, in ms, semaphore and pipe: HP9000 .09 and .18, RS6000 .053 and .050, Crimson "
        ".222 and .222, SPARC1+ .5 and .38, SPARC10 .19 and .11",
        has_way=False,
    )


def _protocol(on: _Machine) -> Item:
    pipe_us = primitives("signals", (8,), repetitions=on.repetitions)["pipe", 8]
    direct_us, hidden_us = on.messages["direct", 8], on.messages["mover", 8]
    overhead_us = _PIPES_OF_HIDING * pipe_us
    return on.item(
        "table-2",
        "A message of 8 bytes, directly and by the layer that hides",
        [
            ("overhead, four pipe messages", "µs", overhead_us),
            ("direct", "µs", direct_us),
            ("with hiding", "µs", hidden_us),
            ("sum over with hiding", "", (overhead_us + direct_us) / hidden_us),
            ("penalty, with hiding over direct", "", hidden_us / direct_us),
        ],
        "the paper, in ms, overhead, direct and with hiding: RS6000/590 .2, .596, .977; SPARC1+ "
        "1.52, .962, 2.489; SPARC10 .44, .442, .996; the sum of the first two matches fairly well",
        more=("the mover has an eventfd and a condition variable in place of the four pipes",),
    )


def _copies(on: _Machine) -> Item:
    sizes = [size for size in _SIZES if size >= 512]
    found = primitives("copies", sizes, repetitions=on.repetitions)
    rows = [
        (f"{name} over transmission, {size} bytes", "", us / on.messages["direct", size])
        for (name, size), us in sorted(found.items(), key=lambda row: row[0][1])
    ]
    curves = [
        _by_size(name, {size: found[kind, size] for size in sizes})
        for name, kind in (("by a loop", "loop"), ("by memcpy", "copy"))
    ]
    curves.append(_by_size("transmission", {size: on.messages["direct", size] for size in sizes}))
    return on.item(
        "fig-10",
        "What preparing a message takes beside sending it",
        rows,
        "the paper: by a loop a SPARC1+ takes more than 3 times the transmission, a SPARC10 a "
        "negligible part of it",
        (Plot("time", "Time by message", _BYTES_AXIS, _TIME_AXIS, tuple(curves)),),
        more=("the loop changes the order of bytes of numbers of 8",),
    )


def _pipes(on: _Machine) -> Item:
    sizes = (8, 64, 512, 1024, 4096)
    found = primitives("signals", sizes, repetitions=on.repetitions)
    semaphore_us = found["semaphore", 8]
    pipes = {size: found["pipe", size] for size in sizes}
    level = dict.fromkeys(sizes, semaphore_us)
    curves = (_by_size("pipe", pipes), _by_size("semaphore", level))
    return on.item(
        "fig-16",
        "Messages by a pipe, beside a semaphore",
        [("semaphore", "µs", semaphore_us), *_times("pipe", pipes)],
        "the paper: 512 bytes by a pipe take about as long as one semaphore on a SPARC1+",
        (Plot("time", "Time by message", _BYTES_AXIS, _TIME_AXIS, curves),),
        has_way=False,
    )


def _fragments(on: _Machine) -> Item:
    size = 262_144
    way = replace(on.way, buffer_bytes=_LARGE)
    found = calibrate(way, (), repetitions=on.repetitions, message_bytes=size, counts=_COUNTS)
    times = {-(-size // one.fragments): one.measured_us for one in reversed(found.messages)}
    axis = PlotAxis("fragment, bytes", Scale.BYTES)
    return on.item(
        "fig-11",
        "Fragments above TCP: 256 KiB in fragments of several sizes",
        [*_times("fragments of", times), ("longest over shortest", "", _spread(times))],
        "the paper: a local minimum at 4 KiB, of mbufs and their pages; above 16 KiB messages "
        "uncut are slightly faster, and unsafe",
        (Plot("time", "Time by fragment", axis, _TIME_AXIS, (_by_size("256 KiB", times),)),),
    )


def _times(name: str, times: Mapping[int, float]) -> list[_Row]:
    return [(f"{name} {size} bytes", "µs", us) for size, us in times.items()]


def _spread(times: Mapping[int, float]) -> float:
    return max(times.values()) / min(times.values())


def _by_size(name: str, times: Mapping[int, float]) -> Curve:
    return Curve(name, tuple((float(size), us) for size, us in sorted(times.items())))


# --- orders of calculating and exchanging ---------------------------------------------------------

_DIAGRAMS = {
    "12": (
        "simultaneous",
        "Calculated, then exchanged (I.1)",
        "the paper: who calculates does not communicate",
    ),
    "13": (
        "boundary_first",
        "Sent before the calculation by a blocking write (I.2)",
        "the paper: blocking times may make it slower than I.1",
    ),
    "15": (
        "hiding",
        "By a process of its own beside the calculation (I.3)",
        "the paper: a separate process writes and reads meanwhile",
    ),
}


def _diagram(on: _Machine, number: str) -> Item:
    variant, title, said = _DIAGRAMS[number]
    with tempfile.TemporaryDirectory(prefix="sluice-measured-") as folder:
        file = Path(folder) / "timeline.csv"
        times = on.fastest(_BYTES, on.communication_us, _SMALL, file)
        drawn = [one for one in activities(file.read_text()) if one.variant == variant]
    made = on.item(
        f"fig-{number}",
        title,
        [
            ("communication", "µs", on.communication_us),
            ("calculation", "µs", on.communication_us),
            ("iteration", "µs", times[variant]),
        ],
        said,
        more=(f"socket buffers of {_SMALL >> 10} KiB, drawn from the trace of one iteration",),
    )
    return replace(made, activities=tuple(drawn))


def _ping_pong(on: _Machine) -> Item:
    rows, plots = [], []
    for name, found in (("this way", on.messages), ("Internet", on.internet_messages)):
        curves = []
        for kind, words in (("direct", "directly"), ("mover", "with hiding")):
            times = {size: found[kind, size] for size in _SIZES}
            rows += _times(f"{name}, {words},", times)
            curves.append(_by_size(words, times))
        title = f"One way by message, {name}"
        label = name.replace(" ", "-").lower()
        plots.append(Plot(label, title, _BYTES_AXIS, _TIME_AXIS, tuple(curves)))
    return on.item(
        "fig-18",
        "There and back, directly and by the layer that hides",
        rows,
        "the paper: on Ethernet, FDDI and the Internet, without printed points; the Internet "
        "takes about 50 ms to begin, beside about 1 ms of the layer's",
        tuple(plots),
        more=(_on_internet(on), "FDDI: there is none here"),
    )


def _on_internet(on: _Machine) -> str:
    """What stands for the Internet."""
    return f"Internet: emulated, a process keeps all bytes for {on.internet_us / 1e3:g} ms each way"


def _penalty(on: _Machine) -> Item:
    rows, curves = [], []
    for name, found in (("this way", on.messages), ("Internet", on.internet_messages)):
        ratios = {size: found["mover", size] / found["direct", size] for size in _SIZES}
        rows += [(f"{name}, {size} bytes", "", ratio) for size, ratio in ratios.items()]
        curves.append(_by_size(name, ratios))
    axis = PlotAxis("with hiding over direct", Scale.NUMBER)
    return on.item(
        "fig-19",
        "The penalty: a message with hiding over a direct one",
        rows,
        "the paper: negligible on the Internet, and on Ethernet above about 4 KiB",
        (Plot("penalty", "Penalty by message", _BYTES_AXIS, axis, tuple(curves)),),
        more=(_on_internet(on),),
    )


def _both_at_once(on: _Machine) -> Item:
    rows = []
    for size in (4096, 65_536, _BYTES):
        fastest = on.fastest(size, 0.0)
        ratio = fastest["ping_pong"] / fastest["simultaneous"]
        rows.append((f"ping-pong over simultaneous, {size} bytes", "", ratio))
    sized = {
        kib: on.fastest(_BYTES, 0.0, kib << 10)["simultaneous"] / on.communication_us
        for kib in (4, 16, 64)
    }
    rows += [
        (f"buffers of {kib} KiB over the system's own", "", ratio) for kib, ratio in sized.items()
    ]
    return on.item(
        "fig-20",
        "Both send at once, against one after the other",
        rows,
        'the paper: both at once are "about 50 % faster" for large messages, on an Ethernet of '
        "one direction at a time; where both directions are free, 2 is the limit; buffers above "
        "16 KiB are hardly better",
    )


def _buffers(on: _Machine) -> Item:
    rows = [("calculation", "µs", on.communication_us)]
    for name, buffer_bytes in (("4 MiB", _LARGE), ("64 KiB", _SMALL)):
        fastest = on.fastest(_BYTES, on.communication_us, buffer_bytes)
        ratio = fastest["boundary_first"] / fastest["hiding"]
        rows.append((f"boundary first over hiding, buffers of {name}", "", ratio))
    for (name, share), times in on.internet_times.items():
        for variant in ("simultaneous", "boundary_first", "hiding"):
            words = f"Internet ({name}), c / T = {share:g}, {variant.replace('_', ' ')}"
            rows.append((words, "ms", times[variant] / 1e3))
    return on.item(
        "fig-21",
        "What the buffers hold, and what only an agent hides",
        rows,
        "the paper: (a) 500 doubles, below the buffers: I.2 as fast as I.3; (b) 1000, above them: "
        "only I.3 gains",
        more=(_on_internet(on), _OF_DOUBLES),
    )


_OF_DOUBLES = (
    f"(a) has {_DOUBLES['a']} doubles and (b) {_DOUBLES['b']}: the least buffers of today hold "
    "more than the 8000 bytes of the paper's (b)"
)


def _internet_gains(on: _Machine) -> Item:
    rows, curves = [], []
    for name in _DOUBLES:
        for variant in ("boundary_first", "hiding"):
            gains = {
                share: times["simultaneous"] / times[variant]
                for (of, share), times in on.internet_times.items()
                if of == name
            }
            words = f"({name}) {variant.replace('_', ' ')}"
            rows += [(f"{words}, c / T = {share:g}", "", gain) for share, gain in gains.items()]
            curves.append(Curve(words, tuple(sorted(gains.items()))))
    axis = PlotAxis("gain", Scale.NUMBER)
    return on.item(
        "fig-22",
        "What is gained over the Internet by the calculation over the communication",
        rows,
        "the paper: by granularity from 1 to 120, 5 to 600 points a process, without printed "
        "points; with 1000 doubles only I.3 gains",
        (Plot("gain", "Gain over I.1", _SHARE_AXIS, axis, tuple(curves)),),
        more=(_on_internet(on), _OF_DOUBLES),
    )


def _gains(on: _Machine) -> Item:
    rows = [("communication", "µs", on.communication_us)]
    gains, over = [], []
    for share in _SHARES:
        fastest = on.fastest(_BYTES, share * on.communication_us, _FRAGMENT_BYTES)
        gains.append((share, fastest["simultaneous"] / fastest["hiding"]))
        over.append((share, fastest["ping_pong"] / fastest["hiding"]))
    rows += [(f"gain at c / T = {share:g}", "", gain) for share, gain in gains]
    rows += [(f"gain over ping-pong at c / T = {share:g}", "", gain) for share, gain in over]
    axis = PlotAxis("gain", Scale.NUMBER)
    curves = (Curve("over simultaneous", tuple(gains)), Curve("over ping-pong", tuple(over)))
    return on.item(
        "fig-23",
        "What hiding gains by the calculation over the communication",
        rows,
        "the paper: ping-pong, simultaneous and hiding by granularity, buffers of 32 KiB, without "
        "printed points; by its model the gain is greatest, 2, where both take the same time",
        (Plot("gain", "Gain of hiding", _SHARE_AXIS, axis, curves),),
        more=("the calculation sleeps, as for another device",),
    )


def _not_measured(on: _Machine) -> Item:
    return Item(
        "not-measured",
        "What is not measured, and why",
        "All others",
        (),
        remarks=(
            "Figures 1, 2, 14 and 17 are drawings: of the grid, two orders, and the processes",
            "Figures 3 to 9.3 and 24 are curves of the model: they come without --measure",
            "no point of a measured curve is printed: nothing here is compared with one",
            "the networks of 1994 are not here: this way stands for the Ethernet of Figures 18 to "
            f"20 and 23. {_on_internet(on)} (Figures 18, 19, 21, 22). FDDI is left out (18)",
        ),
    )
