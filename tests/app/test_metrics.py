"""Counters and latencies, read back by the library's own parser."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from app.http.metrics import (
    LAG_EVERY_S,
    OBJECTIVES,
    QUEUES,
    LoopLag,
    Metrics,
)
from app.jobs.metrics import RunnerMetrics, runner_gauges
from app.operations.tasks import JOB_KINDS
from app.serving import make_first_key, prepare_store
from app.settings import VERSION
from domain.errors import InvalidInput
from models.records import JobEnd, JobState
from models.session import Store
from tests.app.serving import (
    GUARD_S,
    Live,
    serving,
    settings_for,
    wait_for_end,
    wait_until,
)
from tests.jobs.support import accepted, ended, running
from tests.support.in_process_engine import InProcessEngine
from tests.support.long_work import long_here_engine

ROOT = Path(__file__).parents[2]
GAUGES = {"sluice_open": ("What is open.", 3), "sluice_late_total": ("What was late.", 2)}


def families(metrics: Metrics) -> dict[str, Metric]:
    """Every family of the text, by its name."""
    found: Iterator[Metric] = text_string_to_metric_families(metrics.exposition(GAUGES))
    return {family.name: family for family in found}


def values(family: Metric, suffix: str) -> dict[tuple[str, ...], float]:
    """The samples with this ending, by the values of their labels in alphabetical order."""
    return {
        tuple(text for _, text in sorted(sample.labels.items())): sample.value
        for sample in family.samples
        if sample.name.endswith(suffix)
    }


def test_requests_lookups_and_answers() -> None:
    metrics = Metrics()
    metrics.request("POST", "/optimize", 200, 0.02)
    metrics.request("POST", "/optimize", 200, 40.0)
    metrics.answer("stored")
    for _ in range(2500):  # two batches, and some that wait for the next
        metrics.request("GET", "/profiles/{name}/schedule", 304, 0.002)
    found = families(metrics)
    assert values(found["sluice_http_requests"], "_total") == {
        ("GET", "/profiles/{name}/schedule", "304"): 2500,
        ("POST", "/optimize", "200"): 2,
    }
    seconds = found["sluice_http_request_seconds"]
    assert values(seconds, "_count") == {("/optimize",): 2, ("/profiles/{name}/schedule",): 2500}
    assert values(seconds, "_sum")["/optimize",] == 40.02
    buckets = values(seconds, "_bucket")
    assert [buckets[bound, "/optimize"] for bound in ("0.01", "0.025", "30.0", "+Inf")] == [
        0,
        1,
        1,
        2,
    ]
    assert buckets["0.0025", "/profiles/{name}/schedule"] == 2500
    assert values(found["sluice_answers"], "_total") == {("stored",): 1}


def test_values_of_the_moment() -> None:
    """What only grows is a counter."""
    found = families(Metrics())
    assert (found["sluice_open"].type, values(found["sluice_open"], "")) == ("gauge", {(): 3})
    assert (found["sluice_late"].type, values(found["sluice_late"], "")) == ("counter", {(): 2})


def test_applications_of_one_process_count_for_themselves() -> None:
    """There is no registry that they share."""
    first, second = Metrics(), Metrics()
    first.answer("quick")
    assert values(families(first)["sluice_answers"], "_total") == {("quick",): 1}
    assert values(families(second)["sluice_answers"], "_total") == {}
    assert families(first)["sluice_answers"].samples == families(first)["sluice_answers"].samples


def test_jobs_that_ended() -> None:
    """By kind, state and code; how long they ran where they were begun."""
    metrics = Metrics()
    done = JobEnd("optimize", JobState.DONE, "", 0.3)
    failed = JobEnd("audit", JobState.FAILED, "time_limit", 7200.0)
    metrics.jobs_ended((done, done, failed, JobEnd("audit", JobState.CANCELLED)))
    found = families(metrics)
    assert values(found["sluice_job_ends"], "_total") == {
        ("", "optimize", "done"): 2,
        ("time_limit", "audit", "failed"): 1,
        ("", "audit", "cancelled"): 1,
    }
    runs = found["sluice_job_run_seconds"]
    assert values(runs, "_count") == {("audit",): 1, ("optimize",): 2}
    assert values(runs, "_sum") == {("audit",): 7200.0, ("optimize",): 0.6}
    buckets = values(runs, "_bucket")
    assert [buckets["audit", "3600.0"], buckets["audit", "+Inf"]] == [0, 1]
    assert [buckets["optimize", "0.1"], buckets["optimize", "0.5"]] == [0, 2]


def test_a_process_without_http_tells_of_the_jobs_that_it_ends(store: Store) -> None:
    """At a port of its own: ends, its runner's state, what waits; nothing of requests."""
    with running(store) as runner:
        told = RunnerMetrics(lambda: runner_gauges(store, InProcessEngine(1), runner))
        store.watch_job_ends(told.jobs_ended)
        ended(store, accepted(store))
        with told.served("127.0.0.1", 0) as port:
            text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
            with pytest.raises(InvalidInput, match="cannot be had"), told.served("127.0.0.1", port):
                pass
    found = {family.name: family for family in text_string_to_metric_families(text)}
    ended_jobs = values(found["sluice_job_ends"], "_total")
    assert {end[2]: count for end, count in ended_jobs.items() if count} == {"done": 1}
    assert "process_resident_memory_bytes" in found
    assert values(found["sluice_job_run_seconds"], "_count")
    assert values(found["sluice_waiting_jobs"], "") == {(): 0}
    assert {"sluice_worker_deaths", "sluice_running_jobs", "sluice_build_info"} <= set(found)
    assert "sluice_http_requests" not in found
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{port}/metrics")


def scraped(live: Live) -> dict[str, Metric]:
    """Every family that a service tells, by its name."""
    text = live.client.get("/metrics").text
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_a_service_tells_of_its_jobs_its_database_and_its_build(database_url: str) -> None:
    """Also of jobs that it does not run: how many wait, and for how long the oldest has."""
    settings = settings_for(database_url, run_jobs=False)
    with serving(settings, open_engine=long_here_engine) as live:
        asked = {"message_bytes": 4096, "profile": "gms"}
        job = live.client.post("/optimize", json=asked, headers={"Prefer": "respond-async"})
        found = scraped(live)
        assert values(found["sluice_waiting_jobs"], "") == {(): 1}
        ages = values(found["sluice_oldest_waiting_job_seconds"], "")
        assert set(ages) == {(kind,) for kind in JOB_KINDS}
        assert {kind for kind, age in ages.items() if age > 0.0} <= {("optimize",)}
        assert 0.0 <= ages["optimize",] < GUARD_S
        used = values(found["sluice_database_connections"], "")
        assert set(used) == {(p, s) for p in ("read", "write") for s in ("used", "free")}
        assert sum(used.values()) >= 2
        (build,) = found["sluice_build_info"].samples
        assert build.labels["version"] == VERSION
        assert build.labels["database"] == live.service.context.store.dialect
        assert live.client.delete(job.headers["location"]).status_code == 200
        assert live.client.delete(job.headers["location"]).status_code == 200  # ends no second time
        wait_until(lambda: "sluice_job_ends" in scraped(live) and bool(ends(live)))
        assert ends(live) == {("", "optimize", "cancelled"): 1}
        assert values(scraped(live)["sluice_waiting_jobs"], "") == {(): 0}


def ends(live: Live) -> dict[tuple[str, ...], float]:
    """The jobs that ended, by code, kind and state; zeros are there for each kind and state."""
    found = values(scraped(live)["sluice_job_ends"], "_total")
    assert {("", kind, end) for kind in JOB_KINDS for end in ("done", "failed")} <= set(found)
    return {end: count for end, count in found.items() if count}


def test_ends_of_jobs_and_of_workers(own: Live) -> None:
    """Of a job that ran, and of a worker that was killed between two tasks."""
    asked = {"message_bytes": 4096, "profile": "gms"}
    job = own.client.post("/optimize", json=asked, headers={"Prefer": "respond-async"})
    assert wait_for_end(own.client, job.headers["location"])["state"] == "done"
    wait_until(lambda: bool(ends(own)))
    assert ends(own) == {("", "optimize", "done"): 1}
    runs = values(scraped(own)["sluice_job_run_seconds"], "_count")
    assert runs == dict.fromkeys(((kind,) for kind in JOB_KINDS), 0) | {("optimize",): 1}
    deaths = values(scraped(own)["sluice_worker_deaths"], "_total")
    assert set(deaths.values()) == {0}
    assert set(deaths) == {
        (p, w) for p in ("solve", "read", "long") for w in ("crash", "idle", "memory", "time")
    }


def rules() -> list[dict[str, Any]]:
    """All rules, those that record among them."""
    groups = yaml.safe_load((ROOT / "docs" / "prometheus-alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def asked_for() -> Iterator[tuple[str, str]]:
    """(where, expression) of the dashboard and of the rules for alerts."""
    dashboard = json.loads((ROOT / "docs" / "grafana-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for rule in rules():
        yield str(rule.get("alert") or rule["record"]), str(rule["expr"])


def chosen(expression: str) -> Iterator[tuple[str, str, bool, str]]:
    """(series, label, whether it is a pattern, text) of each label that is chosen by a text."""
    for name, group in re.findall(r'\b(\w+)\{((?:[^{}"]|"[^"]*")*)\}', expression):
        for label, sign, text in re.findall(r'(\w+)(=~?)"([^"]*)"', group):
            yield name, label, sign == "=~", text


def test_the_dashboard_and_the_alerts_ask_for_what_is_told(tmp_path: Path) -> None:
    """By a service that was started and asked nothing: each series is there before its first event,
    and every label that they choose or sum by is its own.
    """
    settings = settings_for(f"sqlite:///{tmp_path / 'own.db'}")
    with serving(settings, open_engine=long_here_engine) as live:
        families = scraped(live)
    told = {
        sample.name: {*sample.labels, "job", "instance"}
        for family in families.values()
        for sample in family.samples
    }
    shown, recorded = set(), {rule["record"] for rule in rules() if "record" in rule}
    for where, expression in asked_for():
        names = re.findall(r"\b(?:sluice|process)_\w+", expression)
        own = set(re.findall(r"\bsluice:\w+:\w+", expression))
        assert own <= recorded, where
        assert names or own or expression.startswith("up{"), where
        shown |= {re.sub("_(bucket|sum|count)$", "", name) for name in names}
        labels = {
            label.strip()
            for group in re.findall(r"\b(?:by|without) \(([^)]*)\)", expression)
            for label in group.split(",")
        }
        for name, label, _, _ in chosen(expression):
            assert name == "up" or label in told[name], (where, name, label)
        for name in names:
            assert name in told, (where, name)
            assert labels <= told[name], (where, labels - told[name])
    hidden = {"sluice_loaded_tables"}  # their bytes are shown
    ours = {name for name in families if name.startswith("sluice_")}
    assert {name for name in ours if not {name, f"{name}_total"} & shown} <= hidden


def test_what_the_alerts_choose_is_there_from_the_start(live: Live) -> None:
    """Each value of a label: a rate sees no first event of a series that begins with it."""
    samples = [sample for family in scraped(live).values() for sample in family.samples]
    looked = 0
    for rule in rules():
        for name, label, is_pattern, text in chosen(rule["expr"]):
            if name == "up":  # Prometheus's own
                continue
            values_of = {one.labels[label] for one in samples if one.name == name}
            for part in re.split(r"\|(?![^(]*\))", text) if is_pattern else [text]:
                looked += 1
                found = [one for one in values_of if re.fullmatch(part, one)]
                assert found if is_pattern else text in values_of, (rule, part)
    assert looked > 50


def test_objectives_are_about_routes_that_are_told() -> None:
    (pattern,) = {
        text
        for rule in rules()
        for name, label, _, text in chosen(rule["expr"])
        if name == "sluice_http_requests_total" and label == "route"
    }
    assert all(re.fullmatch(pattern, route) for _, route in OBJECTIVES)


def test_each_alert_has_five_lines_of_what_to_do() -> None:
    """On the page that it names, in the order of the rules."""
    text = (ROOT / "docs" / "alerts.md").read_text()
    sections = dict(re.findall(r"^## (\w+)\n\n((?:\d\. .*\n)+)", text, flags=re.MULTILINE))
    alerts = [rule for rule in rules() if "alert" in rule]
    assert list(sections) == [rule["alert"] for rule in alerts]
    for rule in alerts:
        anchor = f"docs/alerts.md#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook_url"] == anchor
        assert rule["labels"]["severity"] in ("page", "ticket")
        lines = sections[rule["alert"]].splitlines()
        assert [line[:2] for line in lines] == [f"{number}." for number in range(1, 6)]


def test_budgets_are_looked_at_over_two_windows() -> None:
    """Both are recorded, and the short one is at most a sixth of the long one."""
    lengths = {"5m": 300, "30m": 1800, "1h": 3600, "6h": 21_600, "3d": 259_200}
    pairs = [
        pair
        for rule in rules()
        if "alert" in rule
        for pair in re.findall(r"ratio_rate(\w+) > \S+ \* \S+ and \S+ratio_rate(\w+)", rule["expr"])
    ]
    assert len(pairs) == 9
    assert all(lengths[long] >= 6 * lengths[short] for long, short in pairs)


def test_refusals_are_counted_by_reason(tmp_path: Path) -> None:
    """What is wrong with a request is none of them."""
    settings = settings_for(f"sqlite:///{tmp_path / 'own.db'}", auth="keys", owner_requests_per_s=1)
    prepare_store(settings)
    secret = make_first_key(settings)
    with serving(settings, open_engine=long_here_engine) as live:
        live.client.headers["authorization"] = f"Bearer {secret}"
        statuses = [live.client.get("/jobs/none").status_code for _ in range(5)]
        assert set(statuses) == {404, 429}
        refused = [sample.value for sample in counted_refusals(live.service.metrics)]
    assert sum(refused) == statuses.count(429)


def counted_refusals(metrics: Metrics) -> Iterator[Sample]:
    (family,) = (one for one in metrics.collect() if one.name == "sluice_refusals")
    yield from family.samples


def test_the_time_in_queues_is_counted(own: Live) -> None:
    """Of calls in threads, and of what waits for a worker."""
    own.client.post("/optimize", json={"message_bytes": 12288, "profile": "gms"})
    waits = values(scraped(own)["sluice_queue_seconds"], "_count")
    assert set(waits) == {(queue,) for queue in QUEUES}
    assert waits["read",] > 0


class TestLag:
    def test_the_greatest_of_a_minute_counts(self) -> None:
        lag, now_s = LoopLag(), time.monotonic()
        lag.took(now_s - 59.0, 0.2)
        lag.took(now_s - 30.0, 0.5)
        lag.took(now_s - 10.0, 0.1)
        assert lag.seconds == 0.5
        lag = LoopLag()
        lag.took(now_s - 61.0, 9.0)
        lag.took(now_s, 0.1)
        assert lag.seconds == 0.1

    def test_a_loop_that_is_held_up_is_late(self) -> None:
        async def held_up() -> float:
            lag = LoopLag()
            lag.start(asyncio.get_running_loop())
            time.sleep(2 * LAG_EVERY_S)
            while not lag.seconds:
                await asyncio.sleep(0.01)
            lag.stop()
            return lag.seconds

        assert asyncio.run(held_up()) >= LAG_EVERY_S / 2

    @given(st.lists(st.floats(0.0, 10.0), max_size=50))
    def test_it_is_the_maximum(self, delays: list[float]) -> None:
        lag, now_s = LoopLag(), time.monotonic()
        for delay in delays:
            lag.took(now_s, delay)
        assert lag.seconds == max(delays, default=0.0)


def test_the_dashboard_is_one_that_can_be_imported() -> None:
    """Panels do not overlap and have identifiers of their own; the data source is chosen."""
    dashboard = json.loads((ROOT / "docs" / "grafana-dashboard.json").read_text())
    assert {one["name"] for one in dashboard["templating"]["list"]} == {"datasource", "job"}
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    taken = [
        (panel["gridPos"]["x"] + across, panel["gridPos"]["y"] + down)
        for panel in dashboard["panels"]
        for across in range(panel["gridPos"]["w"])
        for down in range(panel["gridPos"]["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(across for across, _ in taken) < 24
