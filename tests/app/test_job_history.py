"""What a job remembers of its way."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from app.job_history import MOST_POINTS, JobHistory
from domain.pipeline import pipeline_of_lines
from domain.problem import Problem
from domain.schedule import Schedule
from domain.solution import Solution, Status, Strategy


@pytest.fixture
def solution() -> Solution:
    """Some solution; its numbers are changed."""
    problem = Problem(pipeline_of_lines([("a", 1.0, 1.0)]), 4)
    return Solution(
        problem=problem,
        strategy=Strategy.EXACT,
        schedule=Schedule((4,)),
        latency_us=9.0,
        lower_bound_us=1.0,
        status=Status.PROVEN_GAP,
    )


def test_what_is_no_better_is_no_point(solution: Solution) -> None:
    """A better latency is one, a better bound is one; worse ones keep what was known."""
    history = JobHistory()
    assert history.note(solution, elapsed_s=0.1)
    assert not history.note(solution, elapsed_s=0.2)
    assert history.note(replace(solution, lower_bound_us=2.0), elapsed_s=0.3)
    assert not history.note(replace(solution, latency_us=10.0), elapsed_s=0.4)
    assert history.note(replace(solution, latency_us=8.0), elapsed_s=0.5)
    assert json.loads(history.as_json()) == [
        {"elapsed_s": 0.1, "best_latency_us": 9.0, "lower_bound_us": 1.0},
        {"elapsed_s": 0.3, "best_latency_us": 9.0, "lower_bound_us": 2.0},
        {"elapsed_s": 0.5, "best_latency_us": 8.0, "lower_bound_us": 2.0},
    ]


def test_it_stays_short(solution: Solution) -> None:
    """However many points come, the first and the last are there, in order."""
    history = JobHistory()
    for place in range(5000):
        latency_us = 9.0 - place / 1000
        assert history.note(replace(solution, latency_us=latency_us), elapsed_s=place / 10)
        assert len(history.points) <= MOST_POINTS
    moments = [point.elapsed_s for point in history.points]
    assert (moments[0], moments[-1]) == (0.0, 499.9)
    assert moments == sorted(set(moments))
