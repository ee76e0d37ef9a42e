"""What would wait for too long is refused, before it is read; a burst waits."""

from __future__ import annotations

import time
from collections import deque
from contextlib import ExitStack, nullcontext
from pathlib import Path

import httpx
import pytest

from app.errors import RETRY_AFTER_S
from app.execution.engine import Pool
from app.http import call_threads
from app.http.admission import (
    BURST,
    CALM_S,
    MAX_WAIT_S,
    POOLS,
    SPARE_S,
    STANDING_ENDS,
    STANDING_S,
    TARGET_S,
    Admission,
)
from domain.errors import Overloaded
from tests.app.serving import LARGE, LARGE_BYTES, MYRINET, Live, serving, settings_for
from tests.support.in_process_engine import InProcessEngine


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be moved."""
    now_s = [100.0]
    monkeypatch.setattr("app.http.admission.time.monotonic", lambda: now_s[0])
    return now_s


def end_some(admission: Admission, clock: list[float], gap_s: float, count: int) -> None:
    """Requests of others end, so many seconds apart."""
    for _ in range(count):
        with admission.entered("others"):
            clock[0] += gap_s


def overloaded(
    clock: list[float], stack: ExitStack, slots: int = 1, client: str = "a"
) -> Admission:
    """Where one of this client runs in each slot, and others have waited for long."""
    admission = Admission(lambda _: slots)
    for _ in range(slots):
        stack.enter_context(admission.entered(client))
    with ExitStack() as waiting:
        for _ in range((BURST - 1) * slots):
            waiting.enter_context(admission.entered(client))
        end_some(admission, clock, TARGET_S, 2 * STANDING_ENDS * slots)
        assert admission.is_overloaded
        with pytest.raises(Overloaded):
            admission.check(client)
    return admission


class TestRule:
    def test_a_burst_waits(self, clock: list[float]) -> None:
        """So many for each worker, whatever they take; not one more while that is not known."""
        admission = Admission(lambda _: 2)
        with ExitStack() as stack:
            for _ in range(2 + 2 * BURST):
                stack.enter_context(admission.entered("a"))
            clock[0] += 60.0
            assert not admission.is_overloaded
            with pytest.raises(Overloaded):
                admission.check("a")
            assert admission.refused == 1

    def test_long_work_may_be_waited_for(self, clock: list[float]) -> None:
        """Two that take a minute are no overload."""
        admission = Admission(lambda _: 1)
        with admission.entered("a"), admission.entered("b"):
            clock[0] += 60.0
            admission.check("c")

    @pytest.mark.parametrize("share", [0.8, 1.2])
    def test_a_queue_that_is_soon_done_is_not_refused(
        self, clock: list[float], share: float
    ) -> None:
        """By how far apart requests have ended lately, and how many wait."""
        admission, waiting = Admission(lambda _: 2), 10
        with ExitStack() as stack:
            for _ in range(2 + waiting):
                stack.enter_context(admission.entered("a"))
            end_some(admission, clock, share * TARGET_S / waiting, 100)
            assert admission.is_overloaded == (share > 1.0)

    @pytest.mark.parametrize("share", [0.8, 1.2])
    def test_more_than_a_burst_waits_only_where_it_is_soon_done(
        self, clock: list[float], share: float
    ) -> None:
        admission, waiting = Admission(lambda _: 1), BURST + 4
        with ExitStack() as stack:
            for _ in range(1 + BURST - 1):
                stack.enter_context(admission.entered("a"))
            end_some(admission, clock, share * MAX_WAIT_S / waiting, STANDING_ENDS)
            admission._waiting_since_s = clock[0]  # not a queue that stands
            stack.enter_context(admission.entered("a"))
            with pytest.raises(Overloaded) if share > 1.0 else nullcontext():
                for _ in range(4):
                    stack.enter_context(admission.entered("a"))

    def test_what_ended_before_says_nothing_of_a_new_queue(self, clock: list[float]) -> None:
        """Nor do the first that end of it: those of two workers end together."""
        admission = Admission(lambda _: 2)
        queue = deque(ExitStack() for _ in range(2 + 2 * BURST))
        for request in list(queue)[:2]:
            request.enter_context(admission.entered("a"))
        end_some(admission, clock, 0.001, 10 * STANDING_ENDS)
        for request in list(queue)[2:]:
            request.enter_context(admission.entered("a"))
        for number in range(2 * STANDING_ENDS):
            with pytest.raises(Overloaded):
                admission.check("a")
            queue[number].close()
            clock[0] += 0.001
            queue.append(ExitStack())
            queue[-1].enter_context(admission.entered("a"))
        admission.check("a")

    def test_strict_until_it_has_been_quiet(self, clock: list[float]) -> None:
        """Then a burst waits again."""
        with ExitStack() as stack:
            admission = overloaded(clock, stack, slots=2)
            stack.enter_context(admission.entered("a"))  # one waits: no worker is ever idle
            with pytest.raises(Overloaded):
                stack.enter_context(admission.entered("a"))
            clock[0] += 0.9 * CALM_S
            with pytest.raises(Overloaded):  # which counts from now
                stack.enter_context(admission.entered("a"))
            clock[0] += 0.9 * CALM_S
            assert admission.is_overloaded
            clock[0] += 0.2 * CALM_S
            for _ in range(2 * BURST - 1):
                stack.enter_context(admission.entered("a"))

    @pytest.mark.parametrize("slots", [2, 16])
    def test_one_waits_for_every_two_that_run(self, clock: list[float], slots: int) -> None:
        with ExitStack() as stack:
            admission = overloaded(clock, stack, slots)
            for _ in range(slots // 2):
                stack.enter_context(admission.entered("a"))
            with pytest.raises(Overloaded):
                admission.check("a")

    @pytest.mark.parametrize(("gap_s", "may_wait"), [(0.8 * SPARE_S, True), (1.2 * SPARE_S, False)])
    def test_for_a_single_worker_one_waits_where_that_is_short(
        self, clock: list[float], gap_s: float, may_wait: bool
    ) -> None:
        """How long one takes is learned while nothing waits, too."""
        with ExitStack() as stack:
            admission = overloaded(clock, stack)
            stack.close()
            for _ in range(60):
                with admission.entered("a"):
                    clock[0] += gap_s
                    admission._strict_until_s = clock[0] + CALM_S  # others are refused
            stack.enter_context(admission.entered("a"))
            with nullcontext() if may_wait else pytest.raises(Overloaded):
                stack.enter_context(admission.entered("a"))
            with pytest.raises(Overloaded):
                admission.check("a")

    def test_what_need_not_wait_is_let_in(self, clock: list[float]) -> None:
        with ExitStack() as stack:
            admission = overloaded(clock, stack)
            stack.close()
            assert admission.is_overloaded
            admission.check("a")

    def test_who_has_nothing_here_is_let_in_beside_a_flood(self, clock: list[float]) -> None:
        """But not where the other has one, as he would have."""
        with ExitStack() as stack:
            admission = overloaded(clock, stack, slots=2)
            stack.enter_context(admission.entered("a"))
            with pytest.raises(Overloaded):
                admission.check("a")
            stack.enter_context(admission.entered("b"))
            with pytest.raises(Overloaded):
                admission.check("b")

    def test_many_names_are_let_in_no_further_than_a_burst(self, clock: list[float]) -> None:
        """One who has several would else open the door for any number of others."""
        with ExitStack() as stack:
            admission = overloaded(clock, stack, slots=2)
            stack.enter_context(admission.entered("a"))
            for number in range(2 * BURST - 1):
                stack.enter_context(admission.entered(f"reader {number}"))
            with pytest.raises(Overloaded):
                admission.check("another reader")

    def test_slots_of_a_cluster_come_and_go(self) -> None:
        slots = 1
        admission = Admission(lambda _: slots)
        with ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(admission.entered("a"))
            assert admission.waiting == 2
            slots = 5
            stack.enter_context(admission.entered("a"))
            assert admission.waiting == 0


# --- the service ----------------------------------------------------------------------------------


@pytest.fixture
def strict(live: Live) -> Live:
    """The shared service, of which too much of every kind has been asked; no page was read."""
    live.client.cookies.clear()
    for admission in live.service.admissions.values():
        admission._strict_until_s = time.monotonic() + 3600.0
        admission._count += 1000
        admission._of_client["others"] += 1
    return live


@pytest.fixture(autouse=True)
def _calm_again(request: pytest.FixtureRequest) -> object:
    yield
    if "strict" in request.fixturenames:
        for admission in request.getfixturevalue("live").service.admissions.values():
            admission._strict_until_s = 0.0
            admission._count -= 1000
            admission._of_client["others"] -= 1


@pytest.mark.parametrize("path", POOLS)
def test_a_request_is_refused_unread(path: str, strict: Live) -> None:
    """Its body is no JSON, which nobody finds out; the refusal is as the framework's."""
    refused = strict.client.post(path, content=b"{", headers={"content-type": "application/json"})
    assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
    assert int(refused.headers["retry-after"]) in RETRY_AFTER_S
    assert len(refused.headers["x-request-id"]) == 32
    by_framework = strict.client.post(path, content=b"{", headers={"cookie": "a=b"})
    kept = {"content-type", "x-content-type-options", "x-request-id", "retry-after"}
    if by_framework.status_code == 503:  # another body, that it has read
        assert kept <= by_framework.headers.keys()
    metrics = strict.client.get("/metrics").text
    assert f'sluice_http_requests_total{{method="POST",route="{path}",status="503"}}' in metrics


def test_what_asks_for_more_is_read(strict: Live, client: httpx.Client) -> None:
    """A job waits in the database; a key may be answered already; others have ends of their own."""
    body = {"message_bytes": 4321, "pipeline": MYRINET}
    job = client.post("/optimize", json=body, headers={"Prefer": "respond-async"})
    assert job.status_code == 202
    assert client.get("/profiles").status_code == 200
    keyed = client.post("/optimize", json=body, headers={"Idempotency-Key": "of-overload"})
    assert (keyed.status_code, keyed.json()["code"]) == (503, "overloaded")


def test_as_much_is_let_in_as_the_engine_runs_at_once(tmp_path: Path) -> None:
    """Whatever the number of this machine's own workers: a cluster has others."""
    settings, slots = settings_for(f"sqlite:///{tmp_path / 'sluice.db'}"), 8
    with ExitStack() as held:
        live = held.enter_context(serving(settings, open_engine=lambda _: InProcessEngine(slots)))
        for _ in range(slots - 1):
            held.enter_context(live.service.admissions[Pool.SOLVE].entered("one"))
        body = {"message_bytes": 4321, "pipeline": MYRINET}
        assert live.client.post("/optimize", json=body).status_code == 200


def test_nothing_waits_for_a_cluster_without_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused once a worker that is started again would be back."""
    monkeypatch.setattr(call_threads, "WORKERLESS_S", 0.0)
    settings = settings_for(f"sqlite:///{tmp_path / 'sluice.db'}")
    engine = InProcessEngine()
    with serving(settings, open_engine=lambda _: engine) as live:
        monkeypatch.setattr(engine, "_slots", 0)
        monkeypatch.setattr(engine, "submit", lambda *_: None)
        body = {"message_bytes": LARGE_BYTES, "pipeline": LARGE}
        refused = live.client.post("/optimize", json=body)
        assert (refused.status_code, refused.json()["code"]) == (503, "not_ready")
        assert int(refused.headers["retry-after"]) in RETRY_AFTER_S


def test_constants_fit_each_other() -> None:
    """A burst is judged later than a queue that stands."""
    assert STANDING_S <= TARGET_S <= MAX_WAIT_S
