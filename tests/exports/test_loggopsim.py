"""The LogGOPSim export: the simulators' own rules on its arguments give the pipeline's times."""

from __future__ import annotations

import random
import shlex
from dataclasses import dataclass

import pytest

from domain.errors import InvalidInput
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.schedule import latency_us
from exports.targets.loggopsim import TARGET
from tests.exports.given import given_for

UNITS = {"ns": 1e-3, "ps": 1e-6}  # in µs


@dataclass(slots=True)
class Simulated:
    """Two hosts of the simulators, with the two clocks of each; all times whole."""

    latency: int
    overhead: int
    interval: int
    per_byte: float
    is_atlahs: bool

    @classmethod
    def of(cls, line: str, *, is_atlahs: bool) -> Simulated:
        """From the exported arguments, by the types of each simulator's grammar."""
        words = shlex.split(line)
        given = dict(zip(words[::2], words[1::2], strict=True))
        assert set(given) == {"-L", "-o", "-g", "-G", "-O", "-S"}
        assert given["-O"] == "0"
        assert all(0 <= int(given[name]) < 2**31 for name in ("-L", "-o", "-g", "-S"))
        if not is_atlahs:
            assert given["-G"].isdigit()
        per_byte = float(given["-G"])
        return cls(int(given["-L"]), int(given["-o"]), int(given["-g"]), per_byte, is_atlahs)

    def end_of(self, messages: int, size: int) -> int:
        """When the last of so many messages, sent from time 0 on, has been received.

        Derivation: the events OP_SEND and OP_MSG of the programs' LogGOPSim.cpp with -O 0.
        """
        bytes_time = int((size - 1) * self.per_byte)
        sender, nic_out, receiver, nic_in = 0, 0, 0, 0
        for _ in range(messages):
            at = max(sender, nic_out)
            sender, nic_out = at + self.overhead, at + self.interval + bytes_time
            arrives = at + self.overhead + self.latency + (bytes_time if self.is_atlahs else 0)
            at = max(arrives, receiver, nic_in)
            if self.is_atlahs:
                nic_in = at + self.interval
                receiver = nic_in + self.overhead
            else:
                nic_in = at + self.interval + bytes_time
                receiver = at + self.overhead + bytes_time
        return receiver


def simulated(pipeline: Pipeline, size: int, *, simulator: str, unit: str) -> Simulated:
    """The simulators as this export sets them."""
    options = {"simulator": simulator, "unit": unit, "message_bytes": str(size)}
    text = TARGET.render(given_for(TARGET, options, pipeline=pipeline))
    return Simulated.of(text.splitlines()[-1], is_atlahs=simulator == "atlahs")


def a_pipeline(rng: random.Random) -> Pipeline:
    """One to six stages with ranges, and sometimes a delay."""
    stages = []
    for number in range(rng.randint(1, 6)):
        ends = [*sorted(rng.sample(range(1, 2**17), rng.randint(0, 3))), None]
        costs = [(rng.choice((0.0, rng.uniform(0, 40))), 10 ** rng.uniform(-3, 1.5)) for _ in ends]
        ranges = tuple(FitRange(*cost, end) for cost, end in zip(costs, ends, strict=True))
        stages.append(Stage(f"stage {number}", ranges))
    return Pipeline(tuple(stages), rng.choice((0.0, rng.uniform(0, 100))))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("simulator", ["loggopsim", "atlahs"])
def test_messages_take_what_fragments_take(simulator: str, unit: str) -> None:
    """One alone, and several back to back, within a time unit for each parameter."""
    rng = random.Random(f"{simulator} {unit}")
    for _ in range(200):
        pipeline, size = a_pipeline(rng), rng.choice((1, 2, 1000, 4096, rng.randint(1, 2**16)))
        machine = simulated(pipeline, size, simulator=simulator, unit=unit)
        for messages in (1, 2, 7):
            expected_us = latency_us(pipeline, (size,) * messages)
            found_us = machine.end_of(messages, size) * UNITS[unit]
            assert found_us == pytest.approx(expected_us, abs=(messages + 1) * UNITS[unit])


def test_small_messages_are_converted_as_the_fits_of_logp_are() -> None:
    """Backwards: sender, network and receiver with a delay of the latency less the interval."""
    latency_us, overhead_us, interval_us = 12.0, 1.5, 4.25
    costs = [("send", overhead_us, 0.0), ("network", interval_us, 0.0), ("recv", overhead_us, 0.0)]
    fitted = pipeline_of_lines(costs, delay_us=latency_us - interval_us)
    machine = simulated(fitted, 1, simulator="loggopsim", unit="ns")
    found = (machine.latency, machine.overhead, machine.interval, machine.per_byte)
    assert found == (12_000, 1500, 4250, 0)


def test_a_fast_wire_needs_a_decimal_or_a_finer_unit() -> None:
    """0.08 ns a byte is no whole number of ns; at the chosen size the times are right even so."""
    wire = pipeline_of_lines([("out", 1.0, 0.02), ("wire", 2.0, 0.08), ("in", 1.0, 0.02)])
    per_byte = {
        (simulator, unit): simulated(wire, 65536, simulator=simulator, unit=unit).per_byte
        for simulator in ("loggopsim", "atlahs")
        for unit in UNITS
    }
    assert per_byte == {
        ("loggopsim", "ns"): 0,
        ("loggopsim", "ps"): 80,
        ("atlahs", "ns"): 0.08,
        ("atlahs", "ps"): 80,
    }


@pytest.mark.parametrize(
    ("options", "stated"),
    [
        ({"message_bytes": "0"}, "1 <= message_bytes"),
        ({"message_bytes": "999999999999999"}, "message_bytes <= 281474976710656"),
        ({"message_bytes": "1000000000000"}, "do not fit LogGOPSim's int"),
        ({"unit": "ps", "message_bytes": "281474976710656"}, "do not fit LogGOPSim's int"),
        ({"eager_bytes": "2147483648"}, "do not fit LogGOPSim's int"),
    ],
)
def test_what_an_int_cannot_hold_is_refused(options: dict[str, str], stated: str) -> None:
    """The programs would cut it off, or end."""
    model = pipeline_of_lines([("a", 1.0, 1.5), ("b", 1.0, 10.0)])
    with pytest.raises(InvalidInput, match=stated):
        TARGET.render(given_for(TARGET, options, pipeline=model))
