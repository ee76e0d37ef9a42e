"""LogGOPSim: the arguments -L -o -g -G -O -S of a simulation, from a pipeline.

Notation  x: the message size that is asked for, bytes; T(x) and b(x): an unpipelined message's
          latency and the slowest stage's time, of the pipeline; L, o, g, G, O, S: LogGOPSim's
          parameters (Hoefler10), whole numbers of its time unit.
Source    spcl/LogGOPSim 76451de, src/LogGOPSim/loggopsim_cmdline.ggo and LogGOPSim.cpp; and
          spcl/atlahs 7026039, sim/LogGOPSim/simulator.ggo and LogGOPSim.cpp.
Exact     with O = 0 one message takes T = L + 2 o + (x-1) G there (ATLAHS adds g at the receiver),
          and k back to back T + (k-1) (g + (x-1) G). Both are the pipeline's at x within one time
          unit for each parameter: g is b(x) - (x-1) G, and L is what is left. For sender, network
          and receiver and x = 1 that is domain.loggp's conversion backwards, L = delay + g. At
          other sizes they are not: a pipeline of stages has one slope for T and another for b,
          LogGOPS has one for both.
Traps     all but ATLAHS's G are read as int; G is rounded down, and g takes up the rest at x.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from contract.limits import MAX_MESSAGE_BYTES
from domain.errors import InvalidInput
from domain.pipeline import Pipeline
from exports.targets.commentary import commentary
from exports.targets.target import ExportInput, Takes, Target, TargetOption

_MAX_INT = 2**31 - 1
_PER_US = {"ns": 1_000, "ps": 1_000_000}
_WHOLE, _DECIMAL = "loggopsim", "atlahs"


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The parameters in the time unit; `per_byte` is a decimal where the simulator takes one."""

    latency: int
    overhead: int
    interval: int
    per_byte: Fraction
    eager_bytes: int


def render(given: ExportInput) -> str:
    """The arguments on one line. Raises InvalidInput for what does not fit their type."""
    found = _arguments(given)
    notes = (
        f"times in {given.options['unit']}, also those of the schedule that is simulated",
        f"exact for messages of {given.options['message_bytes']} bytes: one alone, and the "
        "interval between them",
    )
    head = commentary(given, TARGET) + "".join(f"# {note}\n" for note in notes)
    line = (
        f"-L {found.latency} -o {found.overhead} -g {found.interval} "
        f"-G {_format_cost(found.per_byte)} "
        f"-O 0 -S {found.eager_bytes}"
    )
    return f"{head}{line}\n"


def _arguments(given: ExportInput) -> _Arguments:
    options, pipeline = given.options, given.pipeline
    size, is_decimal = int(options["message_bytes"]), options["simulator"] == _DECIMAL
    if not 1 <= size <= MAX_MESSAGE_BYTES:
        raise InvalidInput(f"expected 1 <= message_bytes <= {MAX_MESSAGE_BYTES}", field="options")
    unit = _PER_US[options["unit"]]
    slowest = pipeline.stages[pipeline.bottleneck_at(size)].range_at(size)
    per_byte = Fraction(slowest.ns_per_byte) * unit / 1000
    per_byte = Fraction(repr(float(per_byte))) if is_decimal else Fraction(int(per_byte))
    bytes_time = int(per_byte * (size - 1))  # as both programs cut it off
    slowest_time = round(Fraction(max(_times_us(pipeline, size))) * unit)
    interval = max(0, slowest_time - bytes_time)
    whole = Fraction(pipeline.delay_us) + sum(map(Fraction, _times_us(pipeline, size)))
    room = round(whole * unit) - bytes_time - (interval if is_decimal else 0)
    maximum = bytes_time if is_decimal else interval  # so that no processor is slower than b(x)
    overhead = max(0, min(_end_overhead(pipeline, size, unit), maximum, room // 2))
    return _checked(
        _Arguments(
            latency=max(0, room - 2 * overhead),
            overhead=overhead,
            interval=interval,
            per_byte=per_byte,
            eager_bytes=int(options["eager_bytes"]),
        )
    )


def _times_us(pipeline: Pipeline, size: int) -> list[float]:
    return [stage.time_us(size) for stage in pipeline.stages]


def _end_overhead(pipeline: Pipeline, size: int, unit: int) -> int:
    """LogGOPS has one overhead for both ends: the mean of the first and the last stage's.

    Of a pipeline of one stage it is half of the stage's.
    """
    ends = {0, len(pipeline) - 1}
    overheads = (pipeline.stages[at].range_at(size).overhead_us for at in ends)
    return round(sum(map(Fraction, overheads)) * unit / 2)


def _checked(found: _Arguments) -> _Arguments:
    maximum = max(found.latency, found.overhead, found.interval, found.eager_bytes)
    if max(Fraction(maximum), found.per_byte) > _MAX_INT:
        raise InvalidInput(
            f"the parameters do not fit LogGOPSim's int, at most {_MAX_INT}: take unit ns, or a "
            "smaller message_bytes or eager_bytes",
            field="options",
        )
    return found


def _format_cost(per_byte: Fraction) -> str:
    return str(per_byte.numerator) if per_byte.denominator == 1 else repr(float(per_byte))


TARGET = Target(
    name="loggopsim",
    title="LogGOPSim: arguments of a simulation",
    takes=Takes.COSTS,
    render=render,
    suffix="args",
    grammar="spcl/LogGOPSim 76451de, src/LogGOPSim/loggopsim_cmdline.ggo",
    options=(
        TargetOption(
            "simulator",
            _WHOLE,
            "the program: LogGOPSim, whose G is whole, or the one of ATLAHS, whose G is a decimal",
            choices=(_WHOLE, _DECIMAL),
        ),
        TargetOption("unit", "ns", "the time unit", choices=("ns", "ps")),
        TargetOption(
            "message_bytes",
            "4096",
            "the size of the messages that are simulated, where the parameters are exact",
            pattern="[0-9]{1,15}",
        ),
        TargetOption(
            "eager_bytes",
            str(_MAX_INT),
            "-S: messages above it begin with a rendezvous, which no pipeline knows of",
            pattern="[0-9]{1,10}",
        ),
    ),
)
