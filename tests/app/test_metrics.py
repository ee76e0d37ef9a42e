"""Counters and latencies, read back by the library's own parser."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from app.http.metrics import Metrics

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
