"""Whole messages seen from outside, and which traces go together."""

from __future__ import annotations

import pytest

from domain.aggregate import PREMISE, Aggregate
from domain.errors import InvalidInput, MeasurementMissing, PoorFit, UnreadableTrace
from domain.fit import (
    BOTTLENECK_STAGE,
    END_TO_END_STAGE,
    Combine,
    FitOptions,
    StepGroup,
    TraceFit,
)
from domain.measurement import (
    DirectTrace,
    MessageTrace,
    Reading,
    Samples,
    SignatureTrace,
    Trace,
    TraceKind,
)
from domain.solution import Notice
from fitting import fit

SIZES = (64, 256, 1024, 4096, 16384, 65536)


def samples(overhead_us: float, ns_per_byte: float, repetitions: int = 3) -> Samples:
    rows = [size for size in SIZES for _ in range(repetitions)]
    wobble = (0.99, 1.0, 1.01)
    times = [
        (overhead_us + ns_per_byte * size / 1000.0) * wobble[place % 3]
        for place, size in enumerate(rows)
    ]
    return Samples(rows, times)


def fitted(*traces: Trace, options: FitOptions | None = None) -> TraceFit:
    readings = [Reading("test", trace, (("format", "test"),)) for trace in traces]
    return fit(readings, options)


def codes(found: TraceFit) -> list[str]:
    return [notice.code for notice in found.notices]


class TestMessages:
    """Latencies and inter-arrival times."""

    def test_both_give_an_aggregate(self) -> None:
        found = fitted(MessageTrace(samples(50.0, 20.0), samples(8.0, 11.0)))
        assert found.kind is TraceKind.INDIRECT
        model = found.to_model()
        assert isinstance(model, Aggregate)
        assert model.total.ranges[0].overhead_us == pytest.approx(50.0, rel=0.01)
        assert model.bottleneck.ranges[0].ns_per_byte == pytest.approx(11.0, rel=0.01)
        assert "bottleneck_above_total" not in codes(found)

    def test_latencies_alone_are_no_pipeline_of_one_stage(self) -> None:
        found = fitted(MessageTrace(latency=samples(50.0, 20.0)))
        assert found.kind is TraceKind.END_TO_END
        assert [stage.name for stage in found.stages] == [END_TO_END_STAGE]
        assert codes(found)[0] == "no_bottleneck"
        with pytest.raises(MeasurementMissing, match=r"inter-arrival times .* are missing"):
            found.to_model()

    def test_interarrival_times_alone_say_what_is_missing(self) -> None:
        found = fitted(MessageTrace(interarrival=samples(8.0, 11.0)))
        assert [stage.name for stage in found.stages] == [BOTTLENECK_STAGE]
        assert codes(found)[0] == "latency_missing"
        with pytest.raises(MeasurementMissing, match=r"latencies .* are missing"):
            found.to_model()

    def test_two_files_make_one_measurement(self) -> None:
        apart = fitted(
            MessageTrace(latency=samples(50.0, 20.0)), MessageTrace(interarrival=samples(8.0, 11.0))
        )
        assert apart.aggregate is not None
        assert apart.understood == (("file_1_format", "test"), ("file_2_format", "test"))

    def test_a_bottleneck_above_the_total_is_said(self) -> None:
        found = fitted(MessageTrace(samples(8.0, 5.0), samples(50.0, 11.0)))
        assert codes(found)[0] == "bottleneck_above_total"

    def test_that_nothing_cut_the_messages_is_a_premise_until_it_is_said(self) -> None:
        trace = MessageTrace(samples(50.0, 20.0), samples(8.0, 11.0))
        taken = fitted(trace)
        said = fitted(trace, options=FitOptions(total_is_uncut=True))
        assert codes(taken) == ["total_may_be_pipelined", *codes(said)]
        assert (taken.to_model().premise, said.to_model().premise) == (PREMISE, "")

    def test_stages_have_no_total(self) -> None:
        with pytest.raises(InvalidInput, match="of whole messages") as refused:
            fitted(direct(), options=FitOptions(total_is_uncut=True))
        assert refused.value.field == "total_is_uncut"

    def test_an_uncut_message_is_not_priced_above_what_it_was_measured_to_take(self) -> None:
        """Back-to-back messages 8 % further apart than one takes all the way, as RDMA shows."""
        found = fitted(MessageTrace(samples(3.0, 0.300), samples(0.5, 0.324)))
        model = found.to_model()
        assert isinstance(model, Aggregate)
        for size in SIZES:
            assert model.total_us(size) == pytest.approx(3.0 + 0.3 * size / 1000.0, rel=0.01)
        assert model.bottleneck.time_us(64) < model.total.time_us(64)

    def test_a_refusal_says_which_of_the_two_it_means(self) -> None:
        one_size = Samples((64, 64, 64), (1.0, 1.1, 1.2))
        with pytest.raises(PoorFit, match=r"^inter-arrival times: all rows measure"):
            fitted(MessageTrace(samples(50.0, 20.0), one_size))


def direct(names: tuple[str, ...] = ("copy", "wire"), total: float | None = None) -> DirectTrace:
    columns = tuple(samples(2.0 + place, 3.0).times_us for place in range(len(names)))
    rows = samples(1.0, 1.0).message_bytes
    totals = None if total is None else [total] * len(rows)
    return DirectTrace(names, rows, (0,) * len(rows), columns, totals)


class TestTogether:
    """Which traces go together."""

    def test_direct_traces_of_the_same_stages_are_joined(self) -> None:
        found = fitted(direct(), direct())
        assert [stage.num_samples for stage in found.stages] == [36, 36]

    def test_a_total_counts_only_where_every_trace_has_it(self) -> None:
        assert "steps_overlap" not in codes(fitted(direct(total=1.0), direct()))

    @pytest.mark.parametrize(
        ("traces", "rule"),
        [
            ((direct(), direct(("copy", "disk"))), "different stages"),
            ((direct(), MessageTrace(samples(1.0, 1.0))), "do not go together: direct, end_to_end"),
            (
                (
                    SignatureTrace((1,), (1,), (0.0,), (1.0,)),
                    SignatureTrace((1,), (1,), (0.0,), (1.0,), handles_replies=False),
                ),
                "some signatures handle replies",
            ),
            ((), "at least one trace"),
        ],
    )
    def test_others_are_refused(self, traces: tuple[Trace, ...], rule: str) -> None:
        with pytest.raises(UnreadableTrace, match=rule):
            fitted(*traces)

    def test_groups_are_of_direct_traces(self) -> None:
        options = FitOptions(groups=(StepGroup("both", ("a", "b"), Combine.SEQUENCE),))
        with pytest.raises(InvalidInput, match="groups are of the steps of a direct trace"):
            fitted(MessageTrace(samples(1.0, 1.0)), options=options)

    def test_what_readers_noticed_comes_first(self) -> None:
        notice = Notice("unit_assumed", "seconds")
        reading = Reading("test", MessageTrace(samples(50.0, 20.0)), (), (notice,))
        assert fit([reading]).notices[0] == notice
