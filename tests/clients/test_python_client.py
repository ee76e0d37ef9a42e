"""The Python clients against the service itself, over a socket: each operation, both clients."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from app.questions.profiles import paper_profiles
from exports.table.slt import digest_of
from sluice_client import (
    AggregateIn,
    ConfigurationIn,
    ConfiguredIn,
    Conflict,
    ConstraintsIn,
    DeadlineExceeded,
    Declined,
    DrawsIn,
    ExcludedSampleIn,
    FitOptionsIn,
    InputRefused,
    LineCostIn,
    LineStageIn,
    MeasurementIn,
    NotFound,
    PipelineIn,
    RangeIn,
    RangesStageIn,
    RepeatIn,
    StaticIn,
    StepGroupIn,
    StepIn,
    StepsIn,
    Table,
    Unavailable,
    UncertaintyIn,
    WholeIn,
    WorkloadSizeIn,
    as_json,
    check_job,
    from_json,
    pipeline_of_lines,
)
from sluice_client.contract.fit import ExcludedSampleOut
from sluice_client.contract.pipeline import AggregateOut, PipelineOut
from sluice_client.contract.setting import SettingStepOut
from tests.app.serving import LARGE, LARGE_BYTES, MYRINET, Live, serving, settings_for
from tests.clients.python_clients import KINDS, opened
from tests.support.compiler import require_native_kernels
from tests.support.transfers import transfers_of

EXAMPLES = Path(__file__).parents[2] / "examples"
TRACE = EXAMPLES / "local-path-direct.csv"
LATENCIES = "message_bytes,repetition,latency_us\n64,0,12\n512,0,21\n4096,0,93\n"
ARRIVALS = "message_bytes,repetition,interarrival_us\n64,0,5\n512,0,9\n4096,0,41\n"
OUTSIDE = [MeasurementIn(content=LATENCIES), MeasurementIn(content=ARRIVALS)]
PIPELINE = pipeline_of_lines(
    [(one["name"], one["overhead_us"], one["ns_per_byte"]) for one in MYRINET["stages"]]
)
RANGES = [
    RangeIn(up_to_bytes=8192, overhead_us=10.0, ns_per_byte=20.0),
    RangeIn(overhead_us=60.0, ns_per_byte=11.25),
]
RANGED = PipelineIn(stages=[RangesStageIn(name="wire", ranges=RANGES)], delay_us=0.5)
HARD = pipeline_of_lines(
    [(one["name"], one["overhead_us"], one["ns_per_byte"]) for one in LARGE["stages"]]
)
AGGREGATE = AggregateIn(
    total=LineCostIn(name="all", overhead_us=27.25, ns_per_byte=63.5),
    bottleneck=LineCostIn(name="slowest", overhead_us=7.5, ns_per_byte=24.25),
)


def asked_as(answered: PipelineOut | AggregateOut) -> PipelineIn | AggregateIn:
    """What an answer says of costs, as a request has it."""
    kind = PipelineIn if isinstance(answered, PipelineOut) else AggregateIn
    found: PipelineIn | AggregateIn = from_json(kind, as_json(answered))
    return found


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A service of this file's own."""
    folder = tmp_path_factory.mktemp("service")
    with serving(settings_for(f"sqlite:///{folder / 'sluice.db'}")) as live:
        yield live


@pytest.fixture(params=KINDS)
def client(request: pytest.FixtureRequest, service: Live) -> Iterator[Any]:
    """A client of each kind in turn."""
    with opened(request.param, f"http://127.0.0.1:{service.port}") as client:
        yield client


@pytest.fixture
def name(client: Any, request: pytest.FixtureRequest) -> str:
    """A stored profile that is this test's own."""
    chosen = f"p{abs(hash(request.node.nodeid)):x}"
    client.create_profile(name=chosen, pipeline=PIPELINE, detail="by hand")
    return chosen


# --- schedules ------------------------------------------------------------------------------------


def test_optimize_answers_with_the_paper_s_schedule(client: Any) -> None:
    """Every part of it in its own type."""
    require_native_kernels()  # NumPy's rounding cuts a byte elsewhere, as fast
    answer = client.optimize(message_bytes=4096, pipeline=PIPELINE)
    assert answer.fragment_bytes == (294, 729, 824, 918, 1013, 318)
    assert answer.latency_us == pytest.approx(184.357, abs=1e-3)
    assert asked_as(answer.pipeline) == PIPELINE
    assert asdict(answer.constraints) == asdict(ConstraintsIn())
    assert answer.best_fixed.size_bytes == 820
    assert {one.strategy for one in answer.baselines} == {"single", "static", "fixed"}
    assert answer.aggregate is answer.fit is answer.profile is answer.levels is None
    assert client.optimization(answer.id) == answer
    reported = client.explanation(answer.id, cheaper_by=0.2)
    assert (reported.id, reported.cheaper_by) == (answer.id, 0.2)
    assert [one.name for one in reported.path] == [stage.name for stage in PIPELINE.stages]


def test_optimize_takes_every_source_and_option(client: Any) -> None:
    """A profile, ranges, an aggregate, measurements, limits."""
    limits = ConstraintsIn(
        min_fragment_bytes=64, max_fragment_bytes=1024, alignment_bytes=64, max_fragments=40
    )
    answer = client.optimize(
        message_bytes=4096, profile="myrinet-gam@1", strategy="repeat", constraints=limits
    )
    assert asdict(answer.constraints) == asdict(limits)
    assert (answer.profile.name, answer.profile.revision) == ("myrinet-gam", 1)
    ranged = client.optimize(
        message_bytes=20_000, pipeline=RANGED, time_limit_s=5.0, relative_gap=1e-3
    )
    assert asked_as(ranged.pipeline) == RANGED
    bounded = client.optimize(message_bytes=4096, aggregate=AGGREGATE, strategy="fixed")
    assert asked_as(bounded.aggregate) == AGGREGATE
    assert client.optimize(
        message_bytes=4096, pipeline=PIPELINE, strategy="static", static_bytes=512
    ).fragments
    nested = client.optimize(message_bytes=4096, pipeline=PIPELINE, allow_refragmentation=True)
    assert nested.allow_refragmentation
    fitted = client.optimize(
        message_bytes=4096, measurements=OUTSIDE, fit_options=FitOptionsIn(shape="line")
    )
    assert fitted.fit.aggregate is not None
    assert fitted.warnings


def test_an_answer_of_fitted_costs_says_how_sure_it_is(client: Any) -> None:
    """And what to do, about the setting in use; the seed that it names gives it again."""
    fitted: dict[str, Any] = {
        "measurements": MeasurementIn(content=TRACE.read_text()),
        "strategy": "repeat",
        "fit_options": FitOptionsIn(stages_overlap=True),
    }
    options = UncertaintyIn(draws=50, current=RepeatIn(repeat=65536), mtu_bytes=1500)
    answer = client.optimize(message_bytes=2**20, **fitted, uncertainty=options)
    found = answer.uncertainty
    assert (found.source, found.draws, found.compared_with) == ("fit", 50, "current")
    assert found.decision == "set_it"
    assert found.sentence.startswith("Set ")
    assert found.advised_bytes in [one.size_bytes for one in found.round]
    assert found.gain.p05 < found.gain.p50 < found.gain.p95
    assert "multiple of the MTU" in [one.rule for one in found.round]
    assert all(low <= high for one in found.good_sizes for low, high in one.intervals)
    assert found.measure_next
    assert answer.baselines[0].static_bytes == 65536
    assert client.optimization(answer.id) == answer
    again = client.optimize(
        message_bytes=2**20, **fitted, uncertainty=replace(options, seed=found.seed)
    )
    assert again.uncertainty == found


def test_typed_costs_have_errors_where_they_are_given(client: Any) -> None:
    """Without them the setting in use is only compared with."""
    assert client.optimize(message_bytes=4096, pipeline=PIPELINE).uncertainty is None
    whole = UncertaintyIn(current="whole")
    assert (
        client.optimize(message_bytes=4096, pipeline=PIPELINE, uncertainty=whole).uncertainty
        is None
    )
    options = UncertaintyIn(draws=50, seed="7", relative=0.1)
    found = client.optimize(message_bytes=4096, pipeline=PIPELINE, uncertainty=options).uncertainty
    assert (found.source, found.draws, found.seed) == ("relative", 50, "7")
    with pytest.raises(InputRefused):
        client.optimize(message_bytes=4096, pipeline=PIPELINE, uncertainty=UncertaintyIn(seed="7"))


def test_a_stored_answer_is_found_again(client: Any, name: str) -> None:
    """On pages and one by one, by any filter."""
    answers = [client.optimize(message_bytes=size, profile=name) for size in (1000, 2000, 3000)]
    page = client.optimizations(profile=name, limit=2)
    assert [one.id for one in page.items] == [answers[2].id, answers[1].id]
    assert len(page.items) == 2
    rest = client.optimizations(profile=name, cursor=page.next_cursor)
    assert [one.id for one in rest.items] == [answers[0].id]
    assert rest.next_cursor is None
    each = client.each_optimization(profile=name, revision=1, limit=1)
    assert [one.message_bytes for one in each] == [3000, 2000, 1000]
    (only,) = client.optimizations(profile=name, message_bytes=2000, strategy="exact").items
    assert only.profile.name == name


def test_items_are_compared_audited_and_hidden(client: Any) -> None:
    """Their answers are classes of their own."""
    asked: dict[str, Any] = {
        "pipeline": {"stages": [{"overhead_us": 2, "ns_per_byte": 1000}]},
        "items": {"bytes": [4, 1, 1, 2, 4], "ready_us": [1, 2, 3, 5, 9]},
    }
    table = client.compare(**asked, caps_bytes=[4])
    assert [row.latency_us for row in table.rows if row.way in ("exact", "cap")] == [18.0, 19.0]
    audit = client.audit(**asked, setting={"static_bytes": 4})
    assert (audit.advice, audit.sequences[0].latency_us) == ("set", 19.0)
    hidden = client.hide(**asked, cap_bytes=4)
    assert (hidden.with_us, hidden.current.latency_us) == (18.0, 19.0)
    assert client.hidden(hidden.id) == hidden


def test_compare_has_a_row_for_each(client: Any) -> None:
    """Also for what cannot run, which says why."""
    table = client.compare(
        message_bytes=[4096, 8192], strategies=["auto", "ramp"], profile="myrinet-gam@1"
    )
    assert [(row.message_bytes, row.strategy) for row in table.rows] == [
        (4096, "auto"),
        (4096, "ramp"),
        (8192, "auto"),
        (8192, "ramp"),
    ]
    assert table.rows[0].chosen == "exact"
    assert table.rows[1].latency_us is None
    assert "two stages" in table.rows[1].declined


def test_simulate_has_every_interval(client: Any) -> None:
    """Of one cut, and of one a stage."""
    run = client.simulate(profile="myrinet-gam@1", fragment_bytes=[2048, 2048])
    assert len(run.intervals) == 8
    assert run.latency_us == pytest.approx(run.intervals[-1].exit_us)
    assert run.critical_path[0].stage == 0
    two = pipeline_of_lines([("a", 1.0, 1.0), ("b", 1.0, 2.0)])
    assert client.simulate(pipeline=two, levels=[[100], [50, 50]]).critical_path is None


def test_stages_without_a_name_are_named_by_their_place(client: Any) -> None:
    """By the service, in the answer."""
    costs = [LineStageIn(overhead_us=1.0, ns_per_byte=cost) for cost in (2.0, 3.0)]
    answer = client.optimize(message_bytes=4096, pipeline=PipelineIn(stages=costs))
    assert [stage.name for stage in answer.pipeline.stages] == ["stage 1", "stage 2"]


# --- measurements ---------------------------------------------------------------------------------


def test_fit_takes_the_file_as_it_is(client: Any, name: str) -> None:
    """As bytes or text, and stores it under a name."""
    fit = client.fit(TRACE.read_bytes(), save_as=name, shape="line", max_ranges=3, plot=True)
    assert fit.pipeline.stages[0].overhead_us_interval[0] <= fit.pipeline.stages[0].overhead_us
    assert fit.profile.name == name
    assert fit.plot.stages[0].points.time_us
    stored = client.stored_fit(fit.fit_id)
    assert stored.pipeline == fit.pipeline
    assert client.fit_plot(fit.fit_id) == fit.plot
    assert client.trace(fit.trace_digests[0]) == TRACE.read_bytes()
    assert client.profile(name).provenance.fit_id == fit.fit_id


def test_fit_takes_groups_of_steps(client: Any) -> None:
    """As the query writes them."""
    text = TRACE.read_text()
    steps = [stage.name for stage in client.fit(text).pipeline.stages]
    group = StepGroupIn(name="both", steps=steps[:2], combine="sequence")
    fitted = client.fit(text, kind="direct", method="weighted", groups=(group,))
    assert [stage.name for stage in fitted.pipeline.stages] == ["both", *steps[2:]]


def test_fit_leaves_samples_out(client: Any) -> None:
    """By the query of one file, and by the body of several; the answer tells which."""
    rows = "message_bytes,repetition,wire_us\n64,0,1.25\n64,1,9\n256,0,2\n1024,0,4\n"
    left = ExcludedSampleIn(stage="wire", message_bytes=64, time_us=9.0)
    for fit in (
        client.fit(rows, method="weighted", excluded=(left,)),
        client.fit_together([MeasurementIn(content=rows)], method="weighted", excluded=(left,)),
    ):
        assert fit.excluded == (ExcludedSampleOut("wire", 64, 9.0),)
        assert fit.pipeline.stages[0].num_samples == 3


def test_several_files_are_fitted_together(client: Any) -> None:
    """To an aggregate, from outside."""
    fit = client.fit_together(OUTSIDE, method="weighted")
    assert fit.aggregate.sum_overhead_us >= 0.0
    assert len(fit.trace_digests) == 2


def test_a_plan_says_what_to_measure(client: Any) -> None:
    """At the start, and with what was measured."""
    plan = client.plan_measurements(min_message_bytes=64, max_message_bytes=2**20)
    assert not plan.decided
    assert plan.measure[0].message_bytes == 64
    more = client.plan_measurements(
        min_message_bytes=64,
        max_message_bytes=4096,
        measurements=MeasurementIn(content=ARRIVALS),
        tolerance=0.1,
    )
    assert more.reason


# --- profiles -------------------------------------------------------------------------------------


def test_a_profile_from_its_first_revision_to_its_end(client: Any, name: str) -> None:
    """Revised, rolled back, listed, deleted."""
    assert client.profile(name).provenance.detail == "by hand"
    revised = client.revise_profile(name, aggregate=AGGREGATE, detail="from outside")
    assert (revised.revision, asked_as(revised.aggregate)) == (2, AGGREGATE)
    back = client.set_current(name, revision=1)
    assert (back.revision, back.latest_revision) == (1, 2)
    assert asked_as(back.pipeline) == PIPELINE
    listed = client.revisions(name)
    assert [(one.revision, one.is_current) for one in listed.revisions] == [(1, True), (2, False)]
    machine = paper_profiles()[0].pipeline
    runs = transfers_of(machine, tuple(stage.name for stage in machine.stages))
    verified = client.verify(name, transfers=runs)
    assert (verified.revision, verified.verification.verdict) == (1, "holds")
    assert client.profile(name).verification == verified.verification
    with pytest.raises(Conflict):
        client.create_profile(name=name, pipeline=PIPELINE)
    assert name in [one.name for one in client.each_profile(limit=2)]
    assert client.profiles(limit=1).next_cursor
    assert client.delete_profile(name) is None
    with pytest.raises(NotFound):
        client.profile(name)


# --- tables ---------------------------------------------------------------------------------------


def test_a_table_is_compiled_read_and_switched(client: Any, name: str) -> None:
    """The reader and the lookup give the same schedule; the roll back is a second switch."""
    first = client.compile_table(name, min_message_bytes=1024, max_message_bytes=8192)
    assert client.compile_table(name, min_message_bytes=1024, max_message_bytes=8192) == first
    limits = ConstraintsIn(alignment_bytes=64)
    second = client.compile_table(
        name, min_message_bytes=4900, max_message_bytes=5000, relative_gap=0.01, constraints=limits
    )
    assert client.active_table(name).digest == first.digest
    found = client.schedule(name, 5000)
    reader = Table.from_bytes(client.active_table_file(name))
    assert found.fragment_bytes == tuple(reader.schedule(5000))
    assert found.table == first.digest
    assert client.activate_table(name, digest=second.digest).digest == second.digest
    assert client.schedule(name, 5000).constraints.alignment_bytes == 64
    assert client.activate_table(name, digest=first.digest) == first
    listed = list(client.each_table(name, limit=1))
    assert [(one.digest, one.active) for one in listed] == [
        (second.digest, False),
        (first.digest, True),
    ]
    assert len(client.tables(f"{name}@1").items) == 2


def test_a_table_comes_in_its_three_forms(client: Any, name: str) -> None:
    """The file, what is told of it, its twin."""
    reported = client.compile_table(
        name, min_message_bytes=4000, max_message_bytes=4096, activate=True
    )
    data = client.table_file(reported.digest)
    assert digest_of(data) == reported.digest
    assert client.table(reported.digest) == reported
    assert client.table_twin(reported.digest)["max_message_bytes"] == 4096
    assert Table.from_bytes(data).digest == reported.digest


def test_a_lookup_without_a_table_is_solved(client: Any, name: str) -> None:
    """And names the stored answer."""
    found = client.schedule(name, 4096)
    assert found.fragment_bytes == client.optimization(found.id).fragment_bytes
    with pytest.raises(NotFound):
        client.active_table(name)


# --- exports and audits ---------------------------------------------------------------------------


def test_every_target_is_told_with_its_options(client: Any) -> None:
    """In the order of their names."""
    targets = client.export_targets().items
    assert [one.name for one in targets] == sorted(one.name for one in targets)
    assert any(one.sizes for one in targets)


def test_an_export_is_a_file_with_a_name(client: Any, name: str) -> None:
    """In the target's own syntax; it can be audited."""
    scope = {"min_message_bytes": 4096, "max_message_bytes": 8192}
    file = client.export(name, "ucx", objective="worst", **scope)
    assert file.file_name
    assert "UCX_RNDV_FRAG_SIZE" in file.text
    found = client.audit(
        setting=ConfiguredIn(configuration=ConfigurationIn(target="ucx", content=file.text)),
        profile=name,
        **scope,
    )
    assert found.setting.steps[0].size_bytes is not None
    with pytest.raises(InputRefused):
        client.export(name, "ucx", option=("nothing:1",))
    with pytest.raises(NotFound):
        client.export(name, "nothing")


def test_an_audit_says_what_a_setting_costs(client: Any) -> None:
    """Over a workload, against a limit."""
    setting = StepsIn(
        steps=[StepIn(from_bytes=1, size_bytes=None), StepIn(from_bytes=8192, size_bytes=4096)]
    )
    workload = [WorkloadSizeIn(message_bytes=4096), WorkloadSizeIn(message_bytes=16384, weight=2.0)]
    found = client.audit(
        setting=setting, pipeline=PIPELINE, workload=workload, max_regret=0.001, over="best"
    )
    assert found.setting.steps == (SettingStepOut(1, None), SettingStepOut(8192, 4096))
    assert found.setting.mean.at_least > 0.001
    assert not found.is_kept
    assert found.changes
    assert asked_as(found.pipeline) == PIPELINE
    assert found.in_draws is found.uncertainty is None


def test_an_audit_says_how_sure_it_is(client: Any) -> None:
    """Whether a limit is kept in so many draws of the costs."""
    found = client.audit(
        setting=StaticIn(static_bytes=4096),
        pipeline=PIPELINE,
        workload=[WorkloadSizeIn(message_bytes=size) for size in (16384, 65536)],
        max_regret=0.5,
        in_draws=0.95,
        uncertainty=DrawsIn(draws=50, seed="7", relative=0.1),
    )
    drawn = found.uncertainty
    assert found.in_draws == 0.95
    assert (drawn.source, drawn.draws, drawn.seed, drawn.messages) == ("relative", 50, "7", 2)
    assert (drawn.decision, drawn.sentence[:4]) == ("set_it", "Set ")
    names = [one.name for one in drawn.settings]
    assert names == ["setting", "best_size", "best_size_steps"]
    assert drawn.advised in names
    assert found.is_kept == (drawn.settings[0].kept >= 0.95)


def test_exports_and_tables_of_fitted_costs_say_how_sure_they_are(client: Any, name: str) -> None:
    """Of typed costs they say nothing."""
    sizes = {"min_message_bytes": 2**16, "max_message_bytes": 2**16}
    assert client.compile_table(name, **sizes).uncertainty is None
    client.fit(TRACE.read_bytes(), save_as=name, shape="line")
    compiled = client.compile_table(name, **sizes)
    assert compiled.uncertainty.sentence
    assert [one.name for one in compiled.uncertainty.settings] == ["repeats", "cuts"]
    exported = client.wait_job(client.start_export(name, "ucx", **sizes).id, within_s=60.0).export
    assert exported.uncertainty.sentence
    assert client.table(compiled.digest) == compiled


# --- jobs -----------------------------------------------------------------------------------------


def test_a_job_is_started_watched_and_read(client: Any) -> None:
    """Its events end with the state that it ended in."""
    job = client.start_optimize(message_bytes=LARGE_BYTES, pipeline=HARD, relative_gap=1e-2)
    events = list(client.job_events(job.id))
    assert events[-1].name == "done"
    assert events[-1].job.has_ended
    ended = client.wait_job(job.id)
    assert check_job(ended) == events[-1].job
    assert client.optimization(ended.answer_id).message_bytes == LARGE_BYTES


def test_a_comparison_is_a_job_too(client: Any) -> None:
    """Whose table is in the job."""
    job = client.start_compare(message_bytes=[4096], strategies=["single"], profile="gms@1")
    assert client.wait_job(job.id, within_s=60.0).comparison.rows[0].strategy == "single"


def test_long_work_is_a_job_too(client: Any, name: str) -> None:
    """A table, an export, an audit: each result as the operation itself gives it."""
    compiled = client.start_compile_table(name, min_message_bytes=4000, max_message_bytes=4040)
    table = check_job(client.wait_job(compiled.id, within_s=60.0)).table
    assert table == client.compile_table(name, min_message_bytes=4000, max_message_bytes=4040)
    assert (
        client.start_compile_table(name, min_message_bytes=4000, max_message_bytes=4040).table
        == table
    )
    exported = client.start_export(name, "ucx-costs").export
    assert exported.text == client.export(name, "ucx-costs").text
    scope = {"min_message_bytes": 4096, "max_message_bytes": 4096}
    audited = client.wait_job(
        client.start_audit(setting=WholeIn(whole=True), profile=name, **scope).id
    )
    assert (audited.progress.steps_done, audited.progress.steps_total) == (1, 1)
    assert audited.audit.setting.steps == (SettingStepOut(1, None),)


def test_a_job_is_cancelled(client: Any) -> None:
    """And waits no longer than it is told to."""
    job = client.start_optimize(
        message_bytes=2**40, pipeline=HARD, relative_gap=0.0, time_limit_s=600.0
    )
    with pytest.raises(DeadlineExceeded):
        client.wait_job(job.id, within_s=0.0)
    assert client.cancel_job(job.id).cancel_requested
    assert client.wait_job(job.id, within_s=60.0).state == "cancelled"


# --- the service, and refusals --------------------------------------------------------------------


def _once_ready(client: Any) -> Any:
    """What it tells when a worker is there: one that was cancelled is being replaced."""
    for _ in range(600):
        with suppress(Unavailable):
            return client.readiness()
        time.sleep(0.1)
    return client.readiness()


def test_the_service_tells_of_itself(client: Any) -> None:
    """Limits, health, counters, and whatever has no method."""
    assert client.limits().max_message_bytes == 2**48
    assert client.is_alive()
    assert _once_ready(client).database == "sqlite"
    assert "sluice_" in client.metrics()
    assert client.request("GET", "/limits")["max_stages"] == 64
    assert client.request("get", "/profiles", query={"limit": 1})["items"]


def test_a_refusal_names_the_fields_and_not_the_input(client: Any) -> None:
    """As the problem document does."""
    with pytest.raises(InputRefused) as refusal:
        client.optimize(message_bytes=0, profile="gms", strategy="sorcery")
    error = refusal.value
    assert (error.status, error.code) == (422, "invalid_input")
    assert {one.pointer for one in error.errors} == {"/message_bytes", "/strategy"}
    assert error.problem.type == "urn:sluice:problem:invalid-input"
    assert "sorcery" not in f"{error} {error.problem}"


def test_a_refusal_has_its_own_class(client: Any) -> None:
    """By what it means for the caller."""
    with pytest.raises(Declined):
        client.optimize(message_bytes=4096, profile="gms", strategy="ramp")
    with pytest.raises(Declined):
        client.optimize(
            message_bytes=4099,
            pipeline=PIPELINE,
            constraints=ConstraintsIn(min_fragment_bytes=4000, max_fragment_bytes=4001),
        )
    with pytest.raises(NotFound):
        client.request("GET", "/nowhere")
    with pytest.raises(NotFound):
        client.job("0" * 32)
    with pytest.raises(NotFound):
        list(client.job_events("0" * 32))


def test_what_is_sent_is_what_the_service_publishes(client: Any) -> None:
    """An answer's pipeline can be sent again as it came."""
    answer = client.optimize(message_bytes=20_000, pipeline=RANGED)
    assert asked_as(answer.pipeline) == RANGED
    assert client.optimize(message_bytes=20_000, pipeline=answer.pipeline).id == answer.id
