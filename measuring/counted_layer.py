"""Counts of an installed library as a messaging layer, and against counts made before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from contract.limits import MAX_LAYER_SOURCE
from domain.errors import NotMeasurable
from domain.instruction_counts import InstructionCounts
from domain.messaging_layer import Component, End, MessagingLayer, Per, Service
from domain.solution import Notice
from measuring.count import CountedCall, CountedLibrary

STRING_SLOPE = Fraction(1, 2)  # instructions a byte from which copies are by string instructions
_MAX_MISFIT = 0.01  # of a count between the ends of the line, before it is told
_PACKET_WORDS = 1  # where the library cuts messages is not seen: nothing is counted for a packet


@dataclass(frozen=True, slots=True)
class CountedLayer:
    """A layer of one transfer a message, a line in bytes for each service, end and class."""

    layer: MessagingLayer
    notices: tuple[Notice, ...]


def layer_of(counted: CountedLibrary) -> CountedLayer:
    """Return the counts as a layer: for each service, end and class the line through the counts of
    the smallest and of the largest size that are countable. Raises NotMeasurable where none is.

    Counts are exact, so lines are drawn through them and not fitted. Where a count falls from the
    one size to the other, the smaller size's stands for both.
    """
    calls = [call for call in counted.calls if call.is_countable]
    if {call.end for call in calls} != set(End):
        raise NotMeasurable("every send, or every receive, waited: nothing of it can be counted")
    components: list[Component] = []
    notices = [*_waited(counted)]
    for end in End:
        own = [call for call in calls if call.end is end]
        lines = _lines(own)
        components += _components(lines, end)
        notices += _checked(own, lines)
    layer = MessagingLayer(
        name=" ".join(counted.version.replace("Version:", "").split(",")[0].split())[:100],
        source=_source(counted),
        word_bytes=1,
        packet_words=_PACKET_WORDS,
        components=tuple(components),
    )
    return CountedLayer(layer, tuple(notices))


def _source(counted: CountedLibrary) -> str:
    tunables = f"; GLIBC_TUNABLES {counted.tunables}" if counted.tunables else ""
    text = (
        f"user instructions of one MPI_Send and one MPI_Recv: {counted.version}; "
        f"{counted.compiler}; {counted.valgrind}{tunables}; services by function names"
    )
    return text[:MAX_LAYER_SOURCE]


_Lines = dict[tuple[Service, str], tuple[Fraction, Fraction]]  # once, and a byte


def _lines(calls: Sequence[CountedCall]) -> _Lines:
    first, last = calls[0], calls[-1]
    lines: _Lines = {}
    for service in Service:
        for name in ("reg", "mem"):
            low, high = (Fraction(_classes(call).get((service, name), 0)) for call in (first, last))
            span = last.message_bytes - first.message_bytes
            slope = (high - low) / span if span and high > low else Fraction()
            once = low - slope * first.message_bytes
            if once < 0:  # through 0 and the larger count: none of it is there without bytes
                once, slope = Fraction(), high / last.message_bytes
            if once or slope:
                lines[service, name] = once, slope
    return lines


def _classes(call: CountedCall) -> Mapping[tuple[Service, str], int]:
    found = {}
    for service, (instructions, data) in call.by_service().items():
        found[service, "mem"] = data
        found[service, "reg"] = max(0, instructions - data)
    return found


def _components(lines: _Lines, end: End) -> Iterator[Component]:
    verb = "send" if end is End.SOURCE else "receive"
    for service in Service:
        own = {name: line for (of, name), line in lines.items() if of is service}
        once = InstructionCounts.of({name: line[0] for name, line in own.items()})
        word = InstructionCounts.of({name: line[1] for name, line in own.items()})
        if once.by_class:
            yield Component(f"{verb}: {service}", service, end, Per.TRANSFER, once)
        if word.by_class:
            yield Component(f"{verb}: {service}, bytes", service, end, Per.WORD, word)


def _waited(counted: CountedLibrary) -> Iterator[Notice]:
    for size in counted.rendezvous:
        yield Notice(
            "not_countable",
            f"{size} B: the send waits for its receive, and waiting would be counted",
            values=(("message_bytes", float(size)),),
        )
    for call in counted.calls:
        if not call.is_countable:
            yield Notice(
                "not_countable",
                f"{call.end} {call.message_bytes} B: the middle of {call.repetitions} counts is "
                f"{call.middle:g}, the least {call.instructions}: the call waited, and is left out",
                values=(
                    ("message_bytes", float(call.message_bytes)),
                    ("least", float(call.instructions)),
                    ("middle", call.middle),
                ),
            )


def _checked(calls: Sequence[CountedCall], lines: _Lines) -> Iterator[Notice]:
    slope = sum((line[1] for line in lines.values()), Fraction())
    end = calls[0].end
    if slope >= STRING_SLOPE:
        yield Notice(
            "string_instruction",
            f"{end}: {float(slope):.3g} instructions a byte, as where bytes are copied by an "
            "instruction that is counted once a byte, or where the sizes lie on both sides of a "
            "change of protocol",
            values=(("instructions_per_byte", float(slope)),),
        )
    worst = max(calls, key=lambda call: _misfit(call, lines))
    if _misfit(worst, lines) > _MAX_MISFIT:
        yield Notice(
            "not_linear",
            f"{end}: the line through the smallest and the largest size gives "
            f"{float(_on(lines, worst.message_bytes)):.6g} instructions at "
            f"{worst.message_bytes} B, and {worst.instructions} are counted",
            values=(
                ("message_bytes", float(worst.message_bytes)),
                ("counted", float(worst.instructions)),
                ("on_the_line", float(_on(lines, worst.message_bytes))),
            ),
        )


def _on(lines: _Lines, message_bytes: int) -> Fraction:
    return sum((once + word * message_bytes for once, word in lines.values()), Fraction())


def _misfit(call: CountedCall, lines: _Lines) -> float:
    return abs(float(_on(lines, call.message_bytes)) / call.instructions - 1.0)


# --- against counts made before -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CountChange:
    """What a call took before and takes now; `share` is how much more of it, negative for less.

    `now` None: it waited, and cannot be counted.
    """

    end: End
    message_bytes: int
    before: int
    now: int | None

    @property
    def share(self) -> float | None:
        """The rise over the count before."""
        return None if self.now is None else self.now / self.before - 1.0


def changes(
    before: Mapping[tuple[End, int], int], calls: Iterable[CountedCall]
) -> tuple[CountChange, ...]:
    """Return each call that was counted before, beside the same call now."""
    now = {(call.end, call.message_bytes): call.instructions for call in calls if call.is_countable}
    return tuple(
        CountChange(end, size, instructions, now.get((end, size)))
        for (end, size), instructions in before.items()
    )
