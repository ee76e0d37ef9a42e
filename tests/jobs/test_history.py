"""What a job remembers of its way."""

from __future__ import annotations

import json

from app.jobs.running_job import MAX_POINTS, JobHistory


def test_what_is_no_better_is_no_point() -> None:
    """A better latency is one, a better bound is one; worse ones keep what was known."""
    history = JobHistory()
    assert history.add(9.0, 1.0, elapsed_s=0.1)
    assert not history.add(9.0, 1.0, elapsed_s=0.2)
    assert history.add(9.0, 2.0, elapsed_s=0.3)
    assert not history.add(10.0, 1.0, elapsed_s=0.4)
    assert history.add(8.0, 1.0, elapsed_s=0.5)
    assert json.loads(history.as_json()) == [
        {"elapsed_s": 0.1, "best_latency_us": 9.0, "lower_bound_us": 1.0},
        {"elapsed_s": 0.3, "best_latency_us": 9.0, "lower_bound_us": 2.0},
        {"elapsed_s": 0.5, "best_latency_us": 8.0, "lower_bound_us": 2.0},
    ]


def test_it_stays_short() -> None:
    """However many points come, the first and the last are there, in order."""
    history = JobHistory()
    for place in range(5000):
        assert history.add(9.0 - place / 1000, 1.0, elapsed_s=place / 10)
        assert len(history.points) <= MAX_POINTS
    times = [point.elapsed_s for point in history.points]
    assert (times[0], times[-1]) == (0.0, 499.9)
    assert times == sorted(set(times))
