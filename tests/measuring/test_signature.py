"""Signatures measured on a simulated pair of end points."""

from __future__ import annotations

from random import Random

import pytest

from fitting import fit, read
from measuring import signature as module
from measuring.signature import Signature, SignaturePlan, signatures_csv
from tests.support.logp_machine import Machine

MYRINET = Machine(2.0, 2.6, 12.4, 11.1)


class Ends:
    """Answers as the probe does, in the simulated machine's time, with a share of noise."""

    def __init__(self, machine: Machine, share: float = 0.005, preempted: float = 0.0) -> None:
        self.asked = list[str]()
        self._machine, self._share, self._preempted = machine, share, preempted
        self._noise = Random(11)
        self._known = dict[tuple[int, float], float]()

    def ask(self, line: str) -> str:
        """One sample."""
        self.asked.append(line)
        word, *given = line.split()
        if word == "compute":
            return f"compute {given[0]} {float(given[0]) + 40.0}"
        times_us = {"trip": self._machine.round_trip_us, "receive": self._machine.receive_us}
        if word == "burst":
            messages, computation_us = int(given[0]), float(given[1]) / 1000.0
            point = messages, computation_us + (0.04 if computation_us else 0.0)
            if point not in self._known:
                self._known[point] = self._machine.burst_us(*point)
            times_us[word] = self._known[point]
        ns = 1000.0 * times_us[word] * (1.0 + self._noise.gauss(0.0, self._share))
        return f"{word} 1 0 {ns:.0f} {int(self._noise.random() < self._preempted)}"


def _measured(ends: Ends, size: int = 64, **plan: float) -> Signature:
    found = Signature(SignaturePlan(size, **plan))  # type: ignore[arg-type]
    found.run(ends.ask)
    return found


class TestSignature:
    """The plan of Culler et al., with lengths and computations found on the way."""

    @pytest.mark.parametrize("preempted", [0.0, 0.3])
    def test_a_known_machine_is_found_again(self, preempted: float) -> None:
        found = _measured(Ends(MYRINET, preempted=preempted))
        assert found.ended == "known"
        reading = read(signatures_csv([found], {"transport": "sim"}).encode())
        loggp = fit([reading]).loggp
        assert loggp is not None
        (one,) = loggp.sizes
        assert one.send_overhead_us is not None
        assert one.send_overhead_us.value == pytest.approx(2.0, rel=0.05)
        assert one.message_gap_us is not None
        assert one.message_gap_us.value == pytest.approx(12.4, rel=0.05)

    def test_lengths_grow_until_messages_cost_the_same(self) -> None:
        found = _measured(Ends(MYRINET))
        lengths = sorted({length for length, ns in found.cost_us if not ns})
        assert lengths[:6] == [1, 2, 3, 4, 6, 8]
        assert 64 <= lengths[-1] <= 256

    def test_computations_follow_the_gap_and_are_written_as_measured(self) -> None:
        found = _measured(Ends(MYRINET))
        computations = sorted(found.computed_us)
        assert [ns / 12400 for ns in computations[1:]] == pytest.approx([0.5, 1.5, 2, 4], rel=0.1)
        assert found.computed_us[computations[1]] == (computations[1] + 40.0) / 1000.0

    def test_long_bursts_stay_within_a_time_slice(self) -> None:
        found = _measured(Ends(Machine(100.0, 100.0, 500.0, 100.0)))
        for length, ns in found.cost_us:
            assert length * max(ns, 500_000) <= 4 * module.MAX_BURST_NS

    def test_preempted_bursts_are_dropped(self) -> None:
        """All of them too: then nothing is known, and it ends."""
        found = _measured(Ends(MYRINET, preempted=1.0))
        assert not any(found.cost_us.values())
        assert found.preempted > 100
        assert found.ended != "known"

    def test_time_and_interrupts_keep_what_there_is(self) -> None:
        found = _measured(Ends(MYRINET), time_limit_s=1e-9)
        assert found.ended == "time"
        ends, found = Ends(MYRINET), Signature(SignaturePlan(64))

        def ask(line: str) -> str:
            if len(ends.asked) == 320:
                raise KeyboardInterrupt
            return ends.ask(line)

        with pytest.raises(KeyboardInterrupt):
            found.run(ask)
        assert found.ended == "interrupted"
        assert read(signatures_csv([found], {}).encode()).trace.kind == "logp"

    def test_several_sizes_are_one_file(self) -> None:
        both = [_measured(Ends(MYRINET), size=size) for size in (64, 4096)]
        text = signatures_csv(both, {"transport": "sim"})
        assert text.count("message_bytes,burst") == text.count("round_trip_us\n") == 1
        reading = read(text.encode())
        assert dict(reading.understood)["sizes"].startswith("2: 64 B")
