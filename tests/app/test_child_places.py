"""Places for processes of their own: clients are refused, jobs wait, neither takes all."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest

from app.child_places import MOST_FOR_CLIENTS, MOST_FOR_JOBS, MOST_TOGETHER, ChildPlaces
from domain.errors import Cancelled, Overloaded
from tests.app.serving import GUARD_S, wait_until


def unasked() -> None:
    """Nobody wants the job to stop."""


def test_neither_kind_may_take_all() -> None:
    """Whatever one of them does, the other has a place."""
    assert max(MOST_FOR_CLIENTS, MOST_FOR_JOBS) < MOST_TOGETHER <= MOST_FOR_CLIENTS + MOST_FOR_JOBS


def test_clients_are_refused_where_none_is_free() -> None:
    """With two of them, or with two jobs and one of them; what is given back is free again."""
    places = ChildPlaces()
    places.take_for_client()
    places.take_for_client()
    with pytest.raises(Overloaded):
        places.take_for_client()
    places.leave_client()
    with places.for_job(unasked), ExitStack() as others:
        places.leave_client()
        others.enter_context(places.for_job(unasked))
        places.take_for_client()
        with pytest.raises(Overloaded):
            places.take_for_client()
        assert (places.of_clients, places.of_jobs) == (1, 2)
    places.take_for_client()
    assert (places.of_clients, places.of_jobs) == (2, 0)


def test_jobs_wait_for_a_place() -> None:
    """A third one until one of the others ends; no place is lost on the way."""
    places, ran = ChildPlaces(), threading.Event()

    def third() -> None:
        with places.for_job(unasked):
            ran.set()

    with places.for_job(unasked), ExitStack() as second:
        second.enter_context(places.for_job(unasked))
        thread = threading.Thread(target=third)
        thread.start()
        assert not ran.is_set()
        assert places.of_jobs == 2
        second.close()
        thread.join(GUARD_S)
    assert ran.is_set()
    assert places.of_jobs == 0


def test_a_job_that_waits_can_be_stopped() -> None:
    """By what its check raises."""
    places, is_stopped, endings = ChildPlaces(), threading.Event(), []

    def check() -> None:
        if is_stopped.is_set():
            raise Cancelled("the job was cancelled")

    def waits() -> None:
        try:
            with places.for_job(check):
                pass
        except Cancelled as ending:
            endings.append(ending)

    with places.for_job(unasked), places.for_job(unasked):
        thread = threading.Thread(target=waits)
        thread.start()
        is_stopped.set()
        thread.join(GUARD_S)
        wait_until(lambda: len(endings) == 1)
        assert places.of_jobs == 2
