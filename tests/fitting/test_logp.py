"""LogP parameters from signatures: the regimes are found, and what is not there is not guessed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from domain.aggregate import Aggregate
from domain.errors import MeasurementMissing, PoorFit
from domain.fit import FitOptions, TraceFit
from domain.loggp import NETWORK_STAGE, RECEIVE_STAGE, SEND_STAGE, Estimate, LogGPParameters
from domain.measurement import Samples, SignatureTrace, TraceKind
from domain.pipeline import Pipeline
from domain.schedule import latency_us
from fitting import fit, read
from fitting.combine import joined
from fitting.logp import fit_signatures
from tests.support.logp_machine import Machine

BURSTS = (1, 2, 3, 4, 8, 16, 32, 64, 128, 256)
COMPUTATIONS_US = (0.0, 5.0, 10.0, 20.0, 40.0)
MACHINE = Machine(2.0, 2.6, 12.4, 11.1)
TRACES = Path(__file__).parents[1] / "data" / "traces"


def signature(
    machine: Machine = MACHINE,
    *,
    size: int = 16,
    bursts: tuple[int, ...] = BURSTS,
    computations_us: tuple[float, ...] = COMPUTATIONS_US,
    noise: float = 0.01,
) -> SignatureTrace:
    return machine.signature(
        size,
        bursts=bursts,
        computations_us=computations_us,
        repetitions=20,
        noise=noise,
        seed=size,
    )


def parameters(trace: SignatureTrace) -> LogGPParameters:
    loggp = fit_signatures(trace, FitOptions()).loggp
    assert loggp is not None
    return loggp.sizes[0]


def value(estimate: Estimate | None) -> float:
    assert estimate is not None
    assert estimate.interval[0] <= estimate.value <= estimate.interval[1]
    return estimate.value


def codes(fitted: TraceFit) -> list[str]:
    return [notice.code for notice in fitted.notices]


class TestOneSize:
    """What one message size gives."""

    @pytest.mark.parametrize(
        "machine",
        [
            MACHINE,
            Machine(0.5, 30.0, 40.0, 0.0),
            Machine(100.0, 1.0, 250.0, 1000.0),
            Machine(0.02, 0.03, 0.2, 1.0),
        ],
    )
    def test_without_noise_every_parameter_is_exact(self, machine: Machine) -> None:
        bursts = (*BURSTS, 1024, 4096)
        computations = tuple(machine.gap_us * share for share in (0.0, 0.3, 1.2, 2.0, 4.0))
        found = parameters(
            signature(machine, bursts=bursts, computations_us=computations, noise=0.0)
        )
        assert value(found.send_overhead_us) == pytest.approx(machine.send_us, rel=1e-6)
        assert value(found.receive_overhead_us) == pytest.approx(machine.receive_us, rel=1e-3)
        assert value(found.message_gap_us) == pytest.approx(machine.gap_us, rel=1e-6)
        near = pytest.approx(machine.wire_us, rel=1e-3, abs=1e-2 * machine.gap_us)
        assert value(found.wire_latency_us) == near

    def test_a_gap_below_the_overheads_cannot_be_told_from_them(self) -> None:
        """The rate of long bursts is max(g, o_s + o_r)."""
        found = parameters(signature(Machine(3.0, 4.0, 5.0, 20.0), noise=0.0))
        assert value(found.message_gap_us) == pytest.approx(7.0, rel=1e-3)

    def test_short_bursts_alone_give_the_send_overhead_and_say_what_is_missing(self) -> None:
        trace = signature(bursts=(1, 2, 3), computations_us=(0.0,))
        fitted = fit_signatures(trace, FitOptions())
        assert fitted.loggp is not None
        found = fitted.loggp.sizes[0]
        assert value(found.send_overhead_us) == pytest.approx(2.0, rel=0.02)
        assert found.message_gap_us is None
        assert found.receive_overhead_us is None
        assert found.wire_latency_us is None
        assert codes(fitted).count("regime_missing") == 2
        details = " ".join(notice.detail for notice in fitted.notices)
        assert "longer bursts without computation" in details
        assert "more computation between messages" in details

    def test_a_burst_in_transition_is_not_taken_for_a_long_one(self) -> None:
        found = parameters(signature(bursts=(1, 2, 4, 5), computations_us=(0.0,), noise=0.0))
        assert found.message_gap_us is None

    def test_computation_that_the_gap_hides_tells_no_receive_overhead(self) -> None:
        found = parameters(signature(computations_us=(0.0, 1.0, 3.0), noise=0.0))
        assert found.receive_overhead_us is None

    def test_without_round_trips_there_is_no_wire_latency(self) -> None:
        trace = signature()
        bare = SignatureTrace(
            trace.message_bytes, trace.bursts, trace.computation_us, trace.cost_us
        )
        found = parameters(bare)
        assert value(found.receive_overhead_us) == pytest.approx(2.6, rel=0.05)
        assert found.wire_latency_us is None

    def test_a_round_trip_that_is_too_short_is_clipped_and_said(self) -> None:
        trace = signature()
        wrong = SignatureTrace(
            trace.message_bytes,
            trace.bursts,
            trace.computation_us,
            trace.cost_us,
            round_trip=Samples((16,), (3.0,)),
        )
        fitted = fit_signatures(wrong, FitOptions())
        assert "negative_wire_latency_clipped" in codes(fitted)
        assert fitted.loggp is not None
        assert value(fitted.loggp.sizes[0].wire_latency_us) == 0.0

    def test_nothing_to_tell_is_a_poor_fit(self) -> None:
        with pytest.raises(PoorFit, match="no regime"):
            fit_signatures(SignatureTrace((16,), (4,), (5.0,), (9.0,)), FitOptions())

    @pytest.mark.parametrize("handles_replies", [True, False])
    @pytest.mark.parametrize(
        "costs_us", [(8.0, 4.0, 1.0, 0.1), (0.0,) * 4, (0.0, 5e-324, 1.0, 0.0)]
    )
    def test_costs_that_contradict_themselves_give_nothing_below_0(
        self, costs_us: tuple[float, ...], handles_replies: bool
    ) -> None:
        sizes, computations_us = (8, 4096), (0.0, 10.0, 20.0)
        rows = [
            (size, burst, spent, cost)
            for size in sizes
            for spent in computations_us
            for burst, cost in zip((1, 2, 8, 64), costs_us, strict=True)
            for _ in range(3)
        ]
        x, bursts, spent_us, cost_us = zip(*rows, strict=True)
        ends = Samples(sizes, (3.0, 9.0))
        trace = SignatureTrace(
            x,
            bursts,
            spent_us,
            cost_us,
            round_trip=ends,
            receive=ends,
            handles_replies=handles_replies,
        )
        fitted = fit_signatures(trace, FitOptions())
        assert fitted.loggp is not None
        for size in fitted.loggp.sizes:
            found = (size.send_overhead_us, size.receive_overhead_us, size.message_gap_us)
            for estimate in filter(None, (*found, size.wire_latency_us)):
                assert (
                    0.0 <= estimate.interval[0] <= estimate.value <= estimate.interval[1] < np.inf
                )
        for stage in fitted.stages:
            stage.to_stage()

    def test_costs_without_the_computation_are_clipped_and_said(self) -> None:
        rows = [(burst, spent) for spent in (0.0, 20.0, 40.0) for burst in (1, 2, 8, 64, 128)]
        bursts, computations_us = zip(*rows, strict=True)
        round_trip = Samples((8,), (9.0,))
        trace = SignatureTrace((8,) * 15, bursts, computations_us, (2.0,) * 15, round_trip)
        fitted = fit_signatures(trace, FitOptions())
        assert "negative_overhead_clipped" in codes(fitted)

    def test_one_size_gives_no_pipeline(self) -> None:
        fitted = fit_signatures(signature(), FitOptions())
        assert "one_size" in codes(fitted)
        with pytest.raises(MeasurementMissing, match="signatures"):
            fitted.to_model()


def bulk(*, noise: float = 0.0) -> SignatureTrace:
    """Send 2 + 0.01 n/1000, receive 3 + 0.02, gap 10 + 0.05, wire latency 30 µs, n in bytes."""
    traces = []
    for size in (64, 1024, 4096, 16384, 65536):
        kib = size / 1000.0
        machine = Machine(2 + 0.1 * kib, 3 + 0.2 * kib, 10 + 0.5 * kib, 30 + 0.5 * kib)
        computations = (0.0, 2 * machine.gap_us, 4 * machine.gap_us)
        traces.append(signature(machine, size=size, computations_us=computations, noise=noise))
    out = joined(traces)
    assert isinstance(out, SignatureTrace)
    return out


class TestPipeline:
    """The pipeline that follows from signatures of several sizes."""

    def test_stages_and_delay(self) -> None:
        fitted = fit_signatures(bulk(), FitOptions())
        assert [stage.name for stage in fitted.stages] == [SEND_STAGE, NETWORK_STAGE, RECEIVE_STAGE]
        costs = [stage.lines[0].ns_per_byte for stage in fitted.stages]
        assert costs == pytest.approx([0.1, 0.5, 0.2], rel=1e-2)
        overheads = [stage.lines[0].overhead_us for stage in fitted.stages]
        assert overheads == pytest.approx([2.0, 10.0, 3.0], rel=1e-2)
        assert fitted.delay_us == pytest.approx(20.0, rel=1e-2)
        assert fitted.loggp is not None
        assert value(fitted.loggp.byte_gap_ns) == pytest.approx(0.5, rel=1e-2)
        assert any("less the network stage's own time" in a for a in fitted.loggp.assumptions)

    def test_an_unpipelined_message_takes_half_a_round_trip(self) -> None:
        model = fit_signatures(bulk(), FitOptions()).to_model()
        assert isinstance(model, Pipeline)
        for size in (64, 4096, 65536):
            kib = size / 1000.0
            half = 2 + 0.1 * kib + 3 + 0.2 * kib + 30 + 0.5 * kib
            assert latency_us(model, (size,)) == pytest.approx(half, rel=1e-2)

    def test_a_network_that_is_never_seen_is_no_stage(self) -> None:
        traces = [
            signature(Machine(4 + s / 1000, 3 + s / 1000, 1.0, 30.0), size=s, noise=0.0)
            for s in (64, 1024, 8192)
        ]
        trace = joined(traces)
        assert isinstance(trace, SignatureTrace)
        fitted = fit_signatures(trace, FitOptions())
        assert [stage.name for stage in fitted.stages] == [SEND_STAGE, RECEIVE_STAGE]
        assert fitted.delay_us == pytest.approx(30.0, rel=1e-2)

    def test_a_network_longer_than_the_wire_latency_is_said(self) -> None:
        traces = [
            signature(
                Machine(2.0, 3.0, 50.0 + s / 100, 10.0),
                size=s,
                computations_us=(0.0, 200.0, 400.0),
                noise=0.0,
            )
            for s in (64, 1024, 8192)
        ]
        trace = joined(traces)
        assert isinstance(trace, SignatureTrace)
        fitted = fit_signatures(trace, FitOptions())
        assert fitted.delay_us == 0.0
        assert codes(fitted)[0] == "stages_disagree_with_round_trip"

    def test_one_transfer_seen_three_times_is_no_three_stages(self) -> None:
        """Behind a switch sending, the gap and receiving are the same transfer: an aggregate."""
        traces = []
        for size in (64, 256, 1024, 4096, 16384, 65536):
            own = size / 1000.0
            machine = (
                Machine(2.0, 2.0, 5.0 + own, 10.0 + own)
                if size <= 4096
                else Machine(own, own, own, 12.0)
            )
            traces.append(
                signature(
                    machine,
                    size=size,
                    computations_us=(0.0, 4 * machine.gap_us + 40.0, 8 * machine.gap_us + 80.0),
                    noise=0.0,
                )
            )
        trace = joined(traces)
        assert isinstance(trace, SignatureTrace)
        assert trace.round_trip is not None
        whole = [2.0 * (20.0 + size / 900.0) for size in trace.round_trip.message_bytes]
        trace = replace(trace, round_trip=replace(trace.round_trip, times_us=whole))
        fitted = fit_signatures(trace, FitOptions())
        (said,) = (n for n in fitted.notices if n.code == "stages_disagree_with_round_trip")
        assert "64 KiB" in said.detail or "16 KiB" in said.detail
        model = fitted.to_model()
        assert isinstance(model, Aggregate)
        for size in (64, 4096, 65536):
            assert model.total_us(size) == pytest.approx(20.0 + size / 900.0, rel=0.02)

    def test_the_delay_is_that_of_all_sizes(self) -> None:
        """One round trip that is too long at the smallest size moves it little."""
        trace = bulk()
        assert trace.round_trip is not None
        samples = trace.round_trip
        times = [
            time * (1.05 if size == 64 else 1.0)
            for size, time in zip(samples.message_bytes, samples.times_us, strict=True)
        ]
        moved = replace(trace, round_trip=replace(samples, times_us=times))
        assert fit_signatures(moved, FitOptions()).delay_us == pytest.approx(20.0, rel=0.02)

    def test_noise_is_in_the_intervals(self) -> None:
        fitted = fit_signatures(bulk(noise=0.02), FitOptions())
        assert fitted.loggp is not None
        for size in fitted.loggp.sizes:
            assert size.message_gap_us is not None
            low, high = size.message_gap_us.interval
            assert low < 10 + 0.5 * size.message_bytes / 1000.0 < high * 1.05


class TestNetgauge:
    """Its sender handles no replies, and its receiver measures its own overhead."""

    def test_parameters(self) -> None:
        fitted = fit([read((TRACES / "netgauge-loggp.out").read_bytes())])
        assert fitted.kind is TraceKind.LOGP
        assert fitted.loggp is not None
        first = fitted.loggp.sizes[0]
        assert value(first.message_gap_us) == pytest.approx((28.25 - 10.25) / 9)
        assert value(first.send_overhead_us) == pytest.approx((131.5 - 10.25) / 9 - 10.25)
        assert value(first.receive_overhead_us) == pytest.approx(2.21)
        wire = 10.25 / 2 - (131.5 - 10.25) / 9 + 10.25 - 2.21
        assert value(first.wire_latency_us) == pytest.approx(max(0.0, wire))
        assert fitted.loggp.sizes[2].receive_overhead_us is None
        assert np.isfinite(fitted.delay_us)
