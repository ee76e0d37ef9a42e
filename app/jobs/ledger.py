"""Jobs for any process: accept, find, read, cancel; and heartbeats of the runners that run them.

A service need not run jobs to accept them: any runner of the same database with free slots claims
them, and a cancel reaches it through the database.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.execution.engine import Pool
from app.operations.operation import Operation, OperationKind, Outcome
from app.schemas.base import dump_json, problem_out
from app.telemetry import TRACE, events
from domain.errors import (
    Conflict,
    IdempotencyKeyInFlight,
    Overloaded,
    QuotaExceeded,
    SolverFailed,
    StoreUnavailable,
)
from models.collection import Collector, remember
from models.identifiers import known_identifier, new_id
from models.records import (
    MAX_LOSSES,
    JobEnd,
    JobRecord,
    JobState,
    KeyClaim,
    KeyedAnswer,
    RunnerRecord,
)

if TYPE_CHECKING:
    from app.settings import Settings
    from models.session import Store, UnitOfWork


MAX_WAITING_JOBS = 10_000  # of all owners and services together
MAX_RUNNING_SHOWN = 64
# Their results are kept in their jobs and nowhere else; they never change.
_KEPT_IN_JOBS = (
    OperationKind.EXPORT,
    OperationKind.AUDIT,
    OperationKind.LAYER,
    OperationKind.THRESHOLDS,
)


def accept_job(
    store: Store,
    operation: Operation[Any],
    *,
    most_waiting: int | None = None,
    then: Callable[[UnitOfWork, JobRecord], None] = lambda _unit, _job: None,
) -> JobRecord:
    """Return the store's owner's job of this question: one that is open or done, or a new one.

    A result that is stored already makes a job that is done. When this returns, the job outlives
    the process, with what `then` stored. Raises Overloaded where too many jobs wait, QuotaExceeded
    where more than `most_waiting` of the owner's do.
    """
    with store.unit_of_work() as unit:
        job = _accepted(unit, operation, most_waiting)
        then(unit, job)
    events.info("job accepted", extra={"job": job.id, "fields": {"kind": job.kind}})
    return job


def _accepted(unit: UnitOfWork, operation: Operation[Any], most_waiting: int | None) -> JobRecord:
    outcome = operation.stored(unit)
    done = _done(unit, operation, outcome)
    if done is not None:
        return done
    if outcome is not None:
        job = _ended(operation, outcome, unit.owner)
        unit.jobs.add(job)
        return job
    found = _found_open(unit, operation)
    if found is not None:
        return found
    if sum(unit.jobs.waiting(*Pool).values()) >= MAX_WAITING_JOBS:
        raise Overloaded("more jobs are waiting than this service accepts")
    if most_waiting is not None and unit.jobs.waiting_of_owner() >= most_waiting:
        raise QuotaExceeded(f"expected at most {most_waiting} jobs of one owner that wait")
    return _open(unit, operation)


def tell_ends(ends: Iterable[JobEnd]) -> None:
    """Log that jobs have ended, for who watches a store's ends of jobs."""
    for end in ends:
        fields = {"kind": end.kind, "state": end.state.value, "code": end.code}
        run_s = None if end.run_s is None else round(end.run_s, 6)
        events.info("job ended", extra={"job": end.id, "fields": {**fields, "seconds": run_s}})


def get_job(store: Store, identifier: str) -> JobRecord:
    """Return the job as it stands. Raises NotFound."""
    known_identifier(identifier, "job")
    with store.reading() as unit:
        return unit.jobs.get(identifier)


def shown_job(store: Store, identifier: str) -> JobRecord:
    """Return it without its request, for clients that poll. Raises NotFound."""
    known_identifier(identifier, "job")
    with store.reading() as unit:
        return unit.jobs.shown(identifier)


def running_jobs(store: Store, kind: OperationKind) -> tuple[JobRecord, ...]:
    """Return the jobs of this kind that run now, the newest first; only so many run at once."""
    with store.reading() as unit:
        found = unit.jobs.list(state=JobState.RUNNING, limit=MAX_RUNNING_SHOWN)
    return tuple(job for job in found if job.kind == kind)


def list_jobs(store: Store, state: JobState | None, *, limit: int) -> tuple[JobRecord, ...]:
    """Return jobs, of one state where it is given, the newest first."""
    with store.reading() as unit:
        return tuple(unit.jobs.list(state=state, limit=limit))


def cancel_job(store: Store, identifier: str) -> JobRecord:
    """Ask a job to stop. One that waits ends here, one that runs soon, wherever it runs.

    One that has ended stays as it is. Raises NotFound.
    """
    known_identifier(identifier, "job")
    with store.unit_of_work() as unit:
        return unit.jobs.cancel(identifier)


def _done(unit: UnitOfWork, operation: Operation[Any], outcome: Outcome | None) -> JobRecord | None:
    """Return a job that is done and whose result still stands.

    Of results that are stored elsewhere that is so while they are: a table may have been deleted,
    and an answer that was cut off is not given again.
    """
    found = unit.jobs.find(operation.digest, JobState.DONE)
    if found is None:
        return None
    if outcome is None:
        return found if operation.kind in _KEPT_IN_JOBS else None
    return found if found.answer_id == outcome.answer_id else None


def _open(unit: UnitOfWork, operation: Operation[Any]) -> JobRecord:
    while True:
        job = _new(operation, unit.owner)
        if unit.jobs.add_unless_open(job):
            return job
        found = _found_open(unit, operation)
        if found is not None:  # else it has ended since
            return found


def _found_open(unit: UnitOfWork, operation: Operation[Any]) -> JobRecord | None:
    return unit.jobs.find(operation.digest, JobState.QUEUED, JobState.RUNNING)


def _new(operation: Operation[Any], owner: str) -> JobRecord:
    return JobRecord(
        id=new_id(),
        kind=operation.kind,
        pool=operation.pool,
        owner=owner,
        request=operation.request,
        request_digest=operation.digest,
        created_at=datetime.now(UTC),
        trace=TRACE.get() or None,
    )


def _ended(operation: Operation[Any], outcome: Outcome, owner: str) -> JobRecord:
    job = _new(operation, owner)
    return JobRecord(
        id=job.id,
        kind=job.kind,
        pool=job.pool,
        owner=owner,
        state=JobState.DONE,
        request=job.request,
        request_digest=job.request_digest,
        created_at=job.created_at,
        finished_at=job.created_at,
        best=outcome.document if outcome.answer_id is None else None,
        answer_id=outcome.answer_id,
    )


_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
_PROCESSES = Path("/proc")


def this_process() -> str:
    """Return this process by its machine, namespace of processes, number and start; else ''."""
    machine, number = _machine(), os.getpid()
    try:
        return f"{machine} {number} {_start_of(number)}" if machine else ""
    except OSError:
        return ""


def is_gone(process: str) -> bool:
    """Return whether this process was on this machine and has ended; False where unknown."""
    machine, _, rest = process.partition(" ")
    number, _, started = rest.partition(" ")
    if not started or machine != _machine() or not number.isdigit():
        return False
    try:
        return _start_of(int(number)) != started
    except (FileNotFoundError, ProcessLookupError):
        return True
    except OSError:
        return False


def _start_of(number: int) -> str:
    """Return when a process began, in ticks since the boot; '' of one that has ended but is kept.

    Not by the clock: where that is set, every process would be another one. Raises OSError.
    """
    text = (_PROCESSES / str(number) / "stat").read_text(errors="replace")
    state, *others = text.rpartition(")")[2].split()  # proc_pid_stat(5), from the third field on
    return "" if state in ("Z", "X") else others[18]


def _machine() -> str:
    """Return the boot and the namespace in which numbers of processes mean something."""
    try:
        return f"{_BOOT.read_text().strip()}/{_NAMESPACE.stat().st_ino}"
    except OSError:
        return ""


# --- requests that are answered once --------------------------------------------------------------


KEPT_S = 86_400.0  # for how long a key's answer is given again
KEY_LEASE_S = 30.0  # after its last sign of life a request's key may be taken over
KEY_BEAT_S = 10.0


def claim_key(store: Store, claim: KeyClaim) -> KeyedAnswer | None:
    """Have a key for this request; the answer where one was given under it.

    Answers that are too old are forgotten on the way. Raises IdempotencyKeyInFlight where another
    request has the key, and its process lives. A clock that is wrong only makes a request be taken
    for dead that is not: what it does then is fenced.
    """
    now = datetime.now(UTC)
    with store.unit_of_work() as unit:
        unit.request_keys.sweep(now - timedelta(seconds=KEPT_S))
        found = unit.request_keys.claim(claim)
        if found.answer is not None or found.token == claim.token:
            return found.answer
        unheard_s = (now - found.touched_at).total_seconds()
        may_take = unheard_s > KEY_LEASE_S or is_gone(found.process)
        if may_take and unit.request_keys.take_over(claim, found.token):
            return None
    raise IdempotencyKeyInFlight("a request with this key is under way")


def touch_key(store: Store, claim: KeyClaim) -> bool:
    """Say that the request is still under way; False where its key was taken over."""
    with store.unit_of_work() as unit:
        return unit.request_keys.touch(claim)


def complete_key(store: Store, claim: KeyClaim, answer: KeyedAnswer) -> None:
    """Keep the answer to a request that stored nothing else. Raises Fenced."""
    with store.unit_of_work() as unit:
        unit.request_keys.complete(claim, answer)


def release_key(store: Store, claim: KeyClaim) -> None:
    """Forget the key of a request that was refused: nothing was done under it."""
    with store.unit_of_work() as unit:
        unit.request_keys.release(claim)


def sweep_keys(store: Store) -> int:
    """Forget the answers that are too old; return how many there were."""
    with store.unit_of_work() as unit:
        return unit.request_keys.sweep(datetime.now(UTC) - timedelta(seconds=KEPT_S))


# --- the times of a runner ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerOptions:
    """Seconds. A runner beats each `beat_s`; others hold it for dead after `lease_s` without one.

    One that could not beat for `fence_s` ends its own tasks: by `lease_s` others may have them.
    Each `poll_s` it looks for jobs and cancels that it was not notified of; `show_s` lies between
    two writes of how far a job is. A job whose worker crashed waits for `crash_wait_s`, four times
    as long after the second crash. Each `collect_s` the oldest one deletes what is kept no longer.
    """

    lease_s: float = 15.0
    beat_s: float = 3.0
    fence_s: float = 12.0
    poll_s: float = 1.0
    show_s: float = 0.5
    retry_s: float = 1.0
    crash_wait_s: float = 1.0
    collect_s: float = 60.0

    @classmethod
    def of_lease(cls, lease_s: float) -> RunnerOptions:
        """Return the options of a lease: five beats in it, four until a runner fences itself."""
        return cls(lease_s=lease_s, beat_s=lease_s / 5, fence_s=lease_s * 0.8)


def remember_retention(store: Store, settings: Settings) -> None:
    """Have the database say what this process was told to keep, where it was told anything.

    Whichever process deletes then knows it; the last that starts with rules has the word.
    """
    if settings.retention:
        remember(store, settings.keeps)


# --- a runner's beats, and its check of the others ------------------------------------------------


log = logging.getLogger("sluice.jobs")

LOST_TOO_OFTEN = dump_json(
    problem_out(SolverFailed(f"what ran the job was lost {MAX_LOSSES} times"))
)


@dataclass(frozen=True, slots=True)
class _Sighting:
    beats: int
    since_s: float


class Heartbeat:
    """One per runner, with a thread of its own: beats must go on whatever else has to wait.

    `on_lost` is called where this runner has to take all that it runs for lost: it was removed by
    another one, or could not beat for too long.
    """

    def __init__(self, store: Store, options: RunnerOptions, on_lost: Callable[[], None]) -> None:
        self.collector = Collector(store, every_s=options.collect_s)
        self._store = store
        self._options = options
        self._on_lost = on_lost
        self._process = this_process()
        self._seen: dict[str, _Sighting] = {}
        self._beaten_s = time.monotonic()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sluice-beats", daemon=True)
        self._is_registered = False
        self.name = new_id()

    def start(self) -> None:
        """Register this runner and begin to beat. Raises StoreUnavailable."""
        self.beat()
        self._thread.start()
        self.collector.start()

    def close(self) -> None:
        """Beat no more and leave: what is still running under this name counts as lost."""
        self._closing.set()
        self.collector.close()
        if self._thread.is_alive():
            self._thread.join(timeout=self._options.lease_s)
        try:
            with self._store.unit_of_work() as unit:
                unit.runners.remove(self.name, error=LOST_TOO_OFTEN)
        except StoreUnavailable as error:
            log.warning("a runner could not say that it leaves: %s", error)

    def beat(self) -> None:
        """Beat once, and remove who is dead. Raises StoreUnavailable."""
        name = self.name
        with self._store.unit_of_work() as unit:
            is_known = unit.runners.beat(name)
            if not is_known:
                # By a new name where another one has removed it: what it ran is not its any more.
                name = new_id() if self._is_registered else name
                unit.runners.register(name, process=self._process)
            others = [found for found in unit.runners.all() if found.name != name]
        if not is_known and self._is_registered:
            log.warning("this runner was held for dead")
            self._on_lost()  # before the new name: what is claimed by that one is not lost
        self.name = name
        self._is_registered = True
        # Names are in the order of registration: the oldest runner collects, and no other.
        self.collector.may_collect = all(found.name > name for found in others)
        self._remove_dead(others)
        self._beaten_s = time.monotonic()

    # --- in its thread ----------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._closing.wait(self._options.beat_s):
            try:
                self.beat()
            except (StoreUnavailable, Conflict) as error:
                log.warning("a runner could not beat: %s", error)
                self._seen.clear()
                if time.monotonic() - self._beaten_s >= self._options.fence_s:
                    self._on_lost()
            except Exception:
                log.exception("a runner's beat failed")

    def _remove_dead(self, others: list[RunnerRecord]) -> None:
        now_s = time.monotonic()
        if now_s - self._beaten_s > self._options.lease_s / 2:
            self._seen.clear()  # it was stopped itself, and saw nothing for a while
        self._seen = {other.name: self._sighting(other, now_s) for other in others}
        for other in others:
            unseen_s = now_s - self._seen[other.name].since_s
            if unseen_s >= self._options.lease_s or is_gone(other.process):
                self._remove(other)

    def _sighting(self, other: RunnerRecord, now_s: float) -> _Sighting:
        seen = self._seen.get(other.name)
        return seen if seen and seen.beats == other.beats else _Sighting(other.beats, now_s)

    def _remove(self, dead: RunnerRecord) -> None:
        with self._store.unit_of_work() as unit:
            recovered = unit.runners.remove(dead.name, beats=dead.beats, error=LOST_TOO_OFTEN)
        if recovered is not None:
            log.warning("runner %s is gone; %d of its jobs wait again", dead.name, recovered)
