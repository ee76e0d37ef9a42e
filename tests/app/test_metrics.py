"""Counters and latencies, read back by the library's own parser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from app.http.metrics import Metrics, RunnerMetrics, runner_gauges
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
        metrics.lookup(("/profiles/{name}/schedule", 304), 0.002)
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
    (count,) = values(found["sluice_job_ends"], "_total").items()
    assert (count[0][2], count[1]) == ("done", 1)
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
        (age,) = values(found["sluice_oldest_waiting_job_seconds"], "").items()
        assert age[0] == ("optimize",)
        assert 0.0 <= age[1] < GUARD_S
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
    """The jobs that ended, by code, kind and state."""
    return values(scraped(live)["sluice_job_ends"], "_total")


def test_ends_of_jobs_and_of_workers(own: Live) -> None:
    """Of a job that ran, and of a worker that was killed between two tasks."""
    asked = {"message_bytes": 4096, "profile": "gms"}
    job = own.client.post("/optimize", json=asked, headers={"Prefer": "respond-async"})
    assert wait_for_end(own.client, job.headers["location"])["state"] == "done"
    wait_until(lambda: bool(ends(own)))
    assert ends(own) == {("", "optimize", "done"): 1}
    assert values(scraped(own)["sluice_job_run_seconds"], "_count") == {("optimize",): 1}
    deaths = values(scraped(own)["sluice_worker_deaths"], "_total")
    assert set(deaths.values()) == {0}
    assert set(deaths) == {
        (p, w) for p in ("solve", "long") for w in ("crash", "idle", "memory", "time")
    }


def asked_for() -> Iterator[tuple[str, str]]:
    """(where, expression) of the dashboard and of the rules for alerts."""
    dashboard = json.loads((ROOT / "docs" / "grafana-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    rules = yaml.safe_load((ROOT / "docs" / "prometheus-alerts.yaml").read_text())
    for rule in rules["groups"][0]["rules"]:
        yield rule["alert"], rule["expr"]


def test_the_dashboard_and_the_alerts_ask_for_what_is_told(live: Live) -> None:
    """Every metric that they name is one, and every label that they choose or sum by is its own."""
    asked = {"message_bytes": 8192, "profile": "gms"}
    job = live.client.post("/optimize", json=asked, headers={"Prefer": "respond-async"})
    wait_for_end(live.client, job.headers["location"])
    live.client.post("/optimize", json=asked)
    wait_until(lambda: bool(scraped(live)["sluice_job_ends"].samples))
    told = {
        sample.name: {*sample.labels, "job", "instance"}
        for family in scraped(live).values()
        for sample in family.samples
    }
    told["sluice_oldest_waiting_job_seconds"] = {"kind", "job", "instance"}  # none waits here
    shown = set()
    for where, expression in asked_for():
        names = re.findall(r"\bsluice_\w+", expression)
        assert names, where
        shown |= {re.sub("_(bucket|sum|count)$", "", name) for name in names}
        labels = {
            label.strip()
            for group in re.findall(r"\b(?:by|without) \(([^)]*)\)", expression)
            for label in group.split(",")
        } | set(re.findall(r"(\w+)=~?\"", expression))
        for name in names:
            assert name in told, (where, name)
            assert labels <= told[name], (where, labels - told[name])
    families = {family.name for family in scraped(live).values()}
    hidden = {"sluice_loaded_tables"}  # their bytes are shown
    assert {name for name in families if not {name, f"{name}_total"} & shown} <= hidden


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
