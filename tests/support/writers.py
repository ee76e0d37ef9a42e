"""Processes that write to a store, for tests of concurrency and of sudden death."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import time
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any

from models.session import create_store
from tests.support.records import GIVEN, a_job, a_pipeline, an_answer

# Each process forks from one that has imported everything and has no thread.
PROCESSES: ForkServerContext = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.support.writers"])


def started(target: Any, *arguments: Any) -> ForkServerProcess:
    """A started process that runs target(*arguments)."""
    process = PROCESSES.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def write_for_ever(database_url: str, acknowledge: Connection) -> None:
    """Store answers and jobs until killed; send each answer's identifier after its commit."""
    store = create_store(database_url)
    while True:
        answer = an_answer(body=b"")
        body = answer.id.encode() * (1 + int(answer.id[-2:], 16))
        with store.unit_of_work() as work:
            work.answers.add(an_answer(id=answer.id, body=body, question_digest=digest(body)))
            work.jobs.add(a_job(answer_id=answer.id))
        acknowledge.send(answer.id)


def write_some(database_url: str, number: int, results: Any) -> None:
    """Store answers, and revisions of one shared profile; put what was written, or the error."""
    try:
        results.put(write_answers_and_revisions(database_url, number))
    except Exception as error:
        results.put(f"{type(error).__name__}: {error}")


def write_answers_and_revisions(database_url: str, number: int) -> list[tuple[str, float]]:
    """Store answers, and revisions of one shared profile; each answer's identifier, and seconds."""
    store = create_store(database_url)
    written = []
    for _ in range(number):
        answer, begun_s = an_answer(), time.monotonic()
        with store.unit_of_work() as work:
            work.profiles.save("shared", a_pipeline(), GIVEN)
            work.answers.add(answer)
        written.append((answer.id, time.monotonic() - begun_s))
        with store.reading() as work:
            assert work.answers.get(answer.id) == answer
    store.dispose()
    return written


def read_on(database_url: str, stop: Any, results: Any) -> None:
    """List answers as a page that is kept fresh until told to stop; put how often, or an error."""
    try:
        store, number = create_store(database_url), 0
        while not stop.wait(0.05):
            with store.reading() as work:
                work.answers.list(limit=50)
            number += 1
        store.dispose()
        results.put(number)
    except Exception as error:
        results.put(f"{type(error).__name__}: {error}")


def upgrade_once(database_url: str, results: Any) -> None:
    """Bring the schema up to date; put "done", or the error."""
    try:
        store = create_store(database_url)
        store.upgrade()
        store.ping()
        results.put("done")
    except Exception as error:
        results.put(f"{type(error).__name__}: {error}")


def identifiers_of_a_fork(number: int) -> list[str]:
    """Identifiers that a forked child of this process hands out."""
    from models.identifiers import new_id

    receive, send = os.pipe()
    child = os.fork()
    if not child:
        os.write(send, "\n".join(new_id() for _ in range(number)).encode())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive) as stream:
        found = stream.read().split()
    os.waitpid(child, 0)
    return found


def digest(body: bytes) -> str:
    """The digest that `write_for_ever` stores beside a body, so that a torn row shows."""
    return hashlib.sha256(body).hexdigest()
