"""LogP parameters from signatures: the regimes are found, and what is not there is not guessed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from domain.aggregate import Aggregate
from domain.errors import MeasurementMissing, PoorFit, UnreadableTrace
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


# Loopback TCP, 64 B, in µs: medians of burst lengths by computation; one of them is an outlier.
REAL = {
    0.0: "1:5.668 2:5.454 3:6.473 4:6.763 6:6.537 8:7.022 12:7.314 16:7.367 24:7.223 32:7.300 "
    "48:7.436 64:8.550 96:7.242 128:7.284 192:7.216",
    10.042: "16:16.852 24:16.021 32:16.122 48:16.847 64:16.405 96:16.238 128:16.659",
    20.039: "16:26.857 24:26.955 32:26.507 48:26.822 64:26.496 96:26.163 128:25.972",
}


def real(*, head: str = "", without: int = 0, receive_us: float | None = None) -> bytes:
    """The file of these rows, without bursts of one length."""
    rows = [
        f"64,{messages},{spent},{cost}"
        for spent, words in REAL.items()
        for messages, cost in (word.split(":") for word in words.split())
        if int(messages) != without
    ]
    receives = f"message_bytes,repetition,receive_us\n64,0,{receive_us}\n" if receive_us else ""
    columns = "message_bytes,burst,computation_us,cost_us"
    trips = "message_bytes,repetition,round_trip_us\n64,0,11.237"
    return "\n".join([head + columns, *rows, trips, receives]).encode()


class TestRealSignatures:
    """What real transports give: outliers, drift, a timer that is in every burst, ends that limit.

    Figures in µs."""

    @pytest.mark.parametrize("without", [0, 64, 48, 192])
    def test_both_regimes_are_found_in_spite_of_an_outlier(self, without: int) -> None:
        fitted = fit([read(real(without=without))])
        assert "regime_missing" not in codes(fitted)
        assert fitted.loggp is not None
        (found,) = fitted.loggp.sizes
        send, receive = value(found.send_overhead_us), value(found.receive_overhead_us)
        assert value(found.message_gap_us) == pytest.approx(7.2, rel=0.03)
        assert send + receive == pytest.approx(6.4, rel=0.06)
        assert 5.4 <= send <= 6.0

    @pytest.mark.parametrize("seed", range(10))
    def test_outliers_move_nothing(self, seed: int) -> None:
        """One length in eight takes a fifth longer, as where something else ran."""
        bursts = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
        trace = signature(bursts=bursts, computations_us=(0.0, 16.0, 25.0), noise=0.004)
        rng = np.random.default_rng(seed)
        struck = rng.choice([length for length in bursts if length > 8], 2, replace=False)
        costs = [
            cost * (1.2 if length in struck else 1.0)
            for length, cost in zip(trace.bursts, trace.cost_us, strict=True)
        ]
        found = parameters(replace(trace, cost_us=costs))
        assert value(found.message_gap_us) == pytest.approx(12.4, rel=0.03)
        send, receive = value(found.send_overhead_us), value(found.receive_overhead_us)
        assert send + receive == pytest.approx(4.6, abs=0.25)

    @pytest.mark.parametrize("timer_us", [0.0, 0.05, 0.2, 1.0])
    def test_the_timer_is_not_in_the_send_overhead(self, timer_us: float) -> None:
        """Where the file does not say that it was subtracted; and where it is there no longer."""
        trace = signature(noise=0.0)
        costs = [
            cost + timer_us / length
            for length, cost in zip(trace.bursts, trace.cost_us, strict=True)
        ]
        found = parameters(replace(trace, cost_us=costs))
        assert value(found.send_overhead_us) == pytest.approx(2.0, rel=0.01)
        said = parameters(replace(trace, timer_subtracted=True))
        assert value(said.send_overhead_us) == pytest.approx(2.0, rel=1e-6)

    def test_a_file_that_says_so_keeps_its_shortest_burst(self) -> None:
        found = fit([read(real(head="# timer_subtracted: true\n"))])
        assert found.loggp is not None
        assert value(found.loggp.sizes[0].send_overhead_us) == pytest.approx(5.668)

    @pytest.mark.parametrize("head", ["", "# timer_subtracted: true\n"])
    def test_an_interval_always_has_a_width(self, head: str) -> None:
        """Also where one burst of one message is all that tells the send overhead."""
        for without in (0, 2):
            fitted = fit([read(real(head=head, without=without))])
            assert fitted.loggp is not None
            estimate = fitted.loggp.sizes[0].send_overhead_us
            assert estimate is not None
            low, high = estimate.interval
            assert low < estimate.value < high

    def test_ends_that_are_the_bottleneck(self) -> None:
        """Culler96 Fig. 9: o_s 60, o_r 40 and g 30; long bursts take 100 + D at every D."""
        trace = signature(Machine(60.0, 40.0, 30.0, 5.0), computations_us=(0.0, 50.0, 200.0))
        fitted = fit_signatures(trace, FitOptions())
        assert codes(fitted).count("ends_are_the_bottleneck") == 1
        assert fitted.loggp is not None
        (found,) = fitted.loggp.sizes
        assert value(found.message_gap_us) == pytest.approx(100.0, rel=0.03)
        assert value(found.receive_overhead_us) == pytest.approx(40.0, rel=0.08)
        assert "ends_are_the_bottleneck" not in codes(fit_signatures(signature(), FitOptions()))

    def test_ends_whose_difference_is_noise_are_not_said_to_be_clipped(self) -> None:
        """As of a pipe: nothing is received that was not sent by the same system call."""
        trace = signature(Machine(0.7, 1e-4, 0.1, 0.1), computations_us=(0.0, 1.0, 3.0), noise=0.02)
        fitted = fit_signatures(trace, FitOptions())
        assert "ends_are_the_bottleneck" in codes(fitted)
        assert "negative_overhead_clipped" not in codes(fitted)

    def test_overheads_that_disagree(self) -> None:
        """Both numbers, where what was timed itself is more than a fifth away."""
        trace = signature()
        receive = Samples((16,) * 9, (2.6, 2.61, 2.59) * 3)
        assert "overheads_disagree" not in codes(
            fit_signatures(replace(trace, receive=receive), FitOptions())
        )
        twice = Samples((16,) * 9, (5.2, 5.22, 5.18) * 3)
        fitted = fit_signatures(replace(trace, receive=twice), FitOptions())
        (said,) = (one for one in fitted.notices if one.code == "overheads_disagree")
        assert dict(said.values)["measured_us"] == pytest.approx(5.2)
        assert dict(said.values)["fitted_us"] == pytest.approx(2.6, rel=0.05)


class TestHeaderLines:
    """Lines `# name: value` of signature files."""

    def test_they_are_said_back(self) -> None:
        head = "# transport: tcp\n# window: 64\n# not a pair\n# format: mine\n"
        reading = read(real(head=head))
        said = dict(reading.understood)
        assert (said["transport"], said["window"], said["format"]) == ("tcp", "64", "signature CSV")

    def test_a_sender_that_handles_no_replies(self) -> None:
        trace = read(real(head="# handles_replies: false\n")).trace
        assert isinstance(trace, SignatureTrace)
        assert not trace.handles_replies
        assert isinstance(read(real()).trace, SignatureTrace)

    @pytest.mark.parametrize("name", ["handles_replies", "timer_subtracted"])
    def test_neither_true_nor_false(self, name: str) -> None:
        with pytest.raises(UnreadableTrace, match=f"{name}: expected true or false"):
            read(real(head=f"# {name}: perhaps\n"))

    def test_many_lines_and_odd_ones(self) -> None:
        """Say little back: thirty, each of a name and 200 characters."""
        head = "".join(f"# k{place}: {'v' * 300 if place == 3 else place}\n" for place in range(99))
        said = dict(read(real(head=head + "# UPPER: x\n# :\n#\n")).understood)
        assert sum(name.startswith("k") for name in said) == 30
        assert "k3" not in said
        assert "UPPER" not in said


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
