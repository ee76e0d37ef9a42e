"""Data of earlier schemas: they are there after an upgrade, and after going back."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any

import pytest
import sqlalchemy
from alembic import command
from sqlalchemy import Connection, insert, inspect, text

from domain.fit import Combine, ExcludedSample, FitMethod, FitOptions, FitShape, StepGroup
from domain.measurement import TraceKind
from models.base import utc_now
from models.identifiers import new_id
from models.records import OWNER, FitRequest, JobState, KeyClaim, KeyedAnswer, KeyScope
from models.rows.api_key import ApiKeyRow
from models.rows.compiled_table import values_of
from models.schema import alembic_config
from models.session import create_store
from tests.models import test_owners
from tests.models.test_collection import bytes_by_owner, everything
from tests.models.test_migrations import connected
from tests.support.records import TIMESTAMP, a_fit, a_job, a_key, a_table

CONTENT = b"message_bytes,repetition,copy_us\n64,0,1.5\n"
DIGEST = sha256(CONTENT).hexdigest()
# As version 1 wrote it: one line by ordinary least squares a stage.
DOCUMENT = {
    "version": 1,
    "kind": "direct",
    "understood": [["format", "direct CSV"]],
    "stages": [
        {
            "name": "copy",
            "overhead_us": 1.25,
            "ns_per_byte": 0.5,
            "overhead_std_error_us": 0.1,
            "ns_per_byte_std_error": 0.01,
            "overhead_us_interval": [1.0, 1.5],
            "ns_per_byte_interval": [0.4, 0.6],
            "num_samples": 9,
            "clipped": [],
            "residual_std_us": 0.2,
            "r_squared": 0.99,
        }
    ],
    "notices": [{"code": "a_code", "detail": "a sentence"}],
}


def test_fits_of_one_trace_become_fits_of_several(empty_database_url: str) -> None:
    """0001 to 0002 and back, with a revision that names the fit."""
    fit_id = new_id()
    with connected(empty_database_url) as connection:
        command.upgrade(alembic_config(connection), "0001")
        _store_first(connection, fit_id, utc_now())
    store = create_store(empty_database_url)
    store.upgrade()
    with store.unit_of_work() as work:
        found = work.fits.get(fit_id)
        assert (found.trace_digests, found.request) == ((DIGEST,), None)
        assert found.fit.method is FitMethod.ORDINARY
        assert found.fit.stages[0].lines[0].overhead_us == 1.25
        assert work.traces.get(DIGEST) == CONTENT
        others = [work.traces.add(b"other", kind="direct"), DIGEST, DIGEST]
        several = work.fits.add(others, a_fit())
    store.dispose()
    with connected(empty_database_url) as connection:
        command.downgrade(alembic_config(connection), "0001")
        rows = connection.execute(text("SELECT id, trace_digest FROM fit ORDER BY id")).all()
        assert [tuple(row) for row in rows] == [(fit_id, DIGEST), (several, others[0])]
    store.upgrade()
    with store.reading() as work:
        assert work.fits.get(fit_id).fit == found.fit
        assert work.fits.get(several).trace_digests == (others[0],)
        assert work.profiles.get("old").current.provenance.fit_id == fit_id
    store.dispose()


def test_a_fit_keeps_its_traces_and_its_request(database_url: str) -> None:
    """All digests in their order, one of them twice; options to the last group."""
    request = FitRequest(
        FitOptions(
            FitMethod.WEIGHTED,
            FitShape.NARROWED,
            3,
            (StepGroup("\x00 odd", ("copy", "crc"), Combine.SEQUENCE),),
            (ExcludedSample("\x00 odd", 64, 0.1 + 0.2),),
        ),
        message_bytes=2**48,
        kinds=(None, TraceKind.INDIRECT, TraceKind.END_TO_END),
    )
    store = create_store(database_url)
    with store.unit_of_work() as work:
        digests = [work.traces.add(content, kind="direct") for content in (b"b", b"a", b"b")]
        fit_id = work.fits.add(digests, a_fit(), request)
    with store.reading() as work:
        found = work.fits.get(fit_id)
    store.dispose()
    assert found.trace_digests == tuple(digests)
    assert (found.request, found.fit) == (request, a_fit())


def _store_first(
    connection: Connection, fit_id: str, timestamp: datetime, *, request: str = ""
) -> None:
    """A trace, its fit and a profile of it, as revision 0001 stored them.

    `request` is what later revisions have behind the columns of a fit.
    """
    values = {
        "digest": DIGEST,
        "fit_id": fit_id,
        "packed": zlib.compress(CONTENT),
        "length": len(CONTENT),
        "document": json.dumps(DOCUMENT),
        "moment": timestamp,
        "pipeline": json.dumps(
            {
                "version": 1,
                "kind": "stages",
                "stages": [
                    {
                        "name": "copy",
                        "ranges": [{"overhead_us": 1.25, "ns_per_byte": 0.5, "up_to_bytes": None}],
                    }
                ],
                "delay_us": 0.0,
            }
        ),
    }
    for statement in (
        "INSERT INTO trace VALUES (:digest, 'direct', :length, :packed, :moment)",
        f"INSERT INTO fit VALUES (:fit_id, :digest, :document, :moment{request})",
        "INSERT INTO profile VALUES ('old', 1, 1, :moment)",
        "INSERT INTO revision VALUES ('old', 1, :pipeline, 'fit', '', :fit_id, :moment)",
    ):
        connection.execute(text(statement), values)


def test_compiled_tables_come_and_go_beside_what_was_there(empty_database_url: str) -> None:
    """0002 to 0003 and back: profiles stay, tables are dropped and can be stored again."""
    with connected(empty_database_url) as connection:
        command.upgrade(alembic_config(connection), "0002")
        _store_first(connection, new_id(), utc_now(), request=", NULL")
    store = create_store(empty_database_url)
    for _ in range(2):
        store.upgrade()
        table = a_table(profile_name="old", profile_revision=1)
        with store.unit_of_work() as work:
            work.tables.add(table)
        with store.reading() as work:
            assert work.tables.get(table.digest) == table
            assert work.profiles.get("old").latest == 1
        store.dispose()
        with connected(empty_database_url) as connection:
            command.downgrade(alembic_config(connection), "0002")
    store.dispose()


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        ("0004", {"history": b"[]"}),
        ("0005", {"request_digest": "d" * 64, "steps_done": 1, "steps_total": 2}),
    ],
    ids=["history", "question and steps"],
)
def test_jobs_of_before_lack_what_a_revision_adds(
    empty_database_url: str, before: str, kept: dict[str, Any]
) -> None:
    """Back to the revision before and up again: the job stays, what was added is forgotten."""
    job = a_job(state=JobState.DONE, finished_at=TIMESTAMP, claim=2, **kept)
    store = create_store(empty_database_url)
    store.upgrade()
    with store.unit_of_work() as work:
        work.jobs.add(job)
    store.dispose()
    with connected(empty_database_url) as connection:
        command.downgrade(alembic_config(connection), before)
    store.upgrade()
    with store.reading() as work:
        assert work.jobs.get(job.id) == replace(job, **dict.fromkeys(kept))
        assert work.jobs.find("d" * 64, *JobState) is None
    store.dispose()


# Of revision 0007: identifier, kind, state, digest, attempts, asked to stop, runner.
_JOBS_OF_BEFORE = (
    ("a", "audit", "queued", "one", 0, False, None),
    ("b", "audit", "running", "one", 1, False, "gone"),
    ("c", "table", "queued", "one", 2, True, None),
    ("d", "export", "running", "two", 3, True, "gone"),
    ("e", "table", "done", "one", 1, False, "gone"),
    ("f", "optimize", "running", None, 1, False, None),
    ("g", "compare", "failed", "two", 4, True, None),
    ("h", "optimize", "queued", None, 0, False, None),
)


def test_open_jobs_of_before_become_those_of_a_ledger(empty_database_url: str) -> None:
    """0007 to 0008 and back, with jobs of one question, jobs that ran and that were to stop."""
    with connected(empty_database_url) as connection:
        command.upgrade(alembic_config(connection), "0007")
        _store_jobs_of_before(connection)
    store = create_store(empty_database_url)
    store.upgrade()
    with store.unit_of_work() as work:
        found = {job.id: job for job in work.jobs.list(limit=99)}
        assert [found[job[0]].state.value for job in _JOBS_OF_BEFORE] == [
            *("queued", "queued", "cancelled", "cancelled"),
            *("done", "queued", "failed", "queued"),
        ]
        assert [found[job[0]].claim for job in _JOBS_OF_BEFORE] == [
            job[4] for job in _JOBS_OF_BEFORE
        ]
        assert [found[job[0]].pool for job in _JOBS_OF_BEFORE] == [
            *("long", "long", "long", "long", "long", "solve", "solve", "solve")
        ]
        assert {(job.runner, job.owner, job.crashes) for job in found.values()} == {
            (None, OWNER, 0)
        }
        # Of one question the oldest is found, and all are run.
        assert (found["a"].request_digest, found["b"].request_digest) == ("one", None)
        assert not work.jobs.add_unless_open(a_job(request_digest="one"))
        work.runners.register("new")
        claimed = [work.jobs.claim("new", pool="long") for _ in range(3)]
        assert [job and job.id for job in claimed] == ["a", "b", None]
    store.dispose()
    with connected(empty_database_url) as connection:
        command.downgrade(alembic_config(connection), "0007")
        rows = connection.execute(text("SELECT id, state, attempts, request FROM job ORDER BY id"))
        assert [tuple(row) for row in rows][:2] == [
            ("a", "queued", 1, b"{}"),
            ("b", "queued", 2, b"{}"),
        ]
    store.upgrade()
    store.dispose()


def test_ranges_of_messages_get_their_words(empty_database_url: str) -> None:
    """0008 to 0009 and back: the columns of tables, and what waiting jobs keep of requests."""
    requests = {
        "a": ("table", {"profile": "p@1", "least_bytes": 1, "greatest_bytes": 9}),
        "b": ("audit", {"mix": [{"message_bytes": 5}], "profile": "p@1"}),
        "c": ("optimize", {"message_bytes": 7, "mix": "as it was"}),
    }
    with connected(empty_database_url) as connection:
        command.upgrade(alembic_config(connection), "0008")
        for name, (kind, request) in requests.items():
            connection.execute(
                text(
                    "INSERT INTO job (id, kind, state, request, created_at, claim, pool, owner, "
                    "crashes, losses, cancel_requested) VALUES (:id, :kind, 'queued', :request, "
                    ":now, 0, 'long', 'local', 0, 0, :no)"
                ),
                {
                    "id": name,
                    "kind": kind,
                    "request": json.dumps(request).encode(),
                    "now": utc_now(),
                    "no": False,
                },
            )
    store = create_store(empty_database_url)
    store.upgrade()
    with store.reading() as work:
        found = {job.id: json.loads(job.request) for job in work.jobs.list(limit=9)}
    store.dispose()
    assert found == {
        "a": {"profile": "p@1", "min_message_bytes": 1, "max_message_bytes": 9},
        "b": {"workload": [{"message_bytes": 5}], "profile": "p@1"},
        "c": requests["c"][1],
    }
    with connected(empty_database_url) as connection:
        assert _columns(connection) >= {"min_message_bytes", "max_message_bytes"}
        command.downgrade(alembic_config(connection), "0008")
        assert _columns(connection) >= {"least_bytes", "greatest_bytes"}
        rows = connection.execute(text("SELECT id, request FROM job"))
        assert {row.id: json.loads(bytes(row.request)) for row in rows} == {
            name: request for name, (_, request) in requests.items()
        }


def test_keys_stay_as_they_were(empty_database_url: str) -> None:
    """And browsers that signed in by them; going back forgets keys of the scope `metrics` alone."""
    with connected(empty_database_url) as connection:
        command.upgrade(alembic_config(connection), "0016")
        key = {"owner": "a", "name": "x", "scope": "admin", "created_at": TIMESTAMP}
        for named in ({"id": "b", "parent": None}, {"id": "a", "parent": "b"}):
            digest = named["id"]
            connection.execute(insert(ApiKeyRow).values(**key, **named, digest=digest))
    store = create_store(empty_database_url)
    store.upgrade()
    scraper = a_key(scope=KeyScope.METRICS)
    with store.of(scraper.owner).unit_of_work() as work:
        assert {(one.id, one.parent) for one in work.api_keys.usable()} == {("a", "b"), ("b", None)}
        work.api_keys.add(scraper)
    store.dispose()
    with connected(empty_database_url) as connection:
        command.downgrade(alembic_config(connection), "0016")
        rows = connection.execute(text("SELECT id, parent FROM api_key ORDER BY id")).all()
    assert [tuple(row) for row in rows] == [("a", "b"), ("b", None)]


def _columns(connection: Connection) -> set[str]:
    return {column["name"] for column in inspect(connection).get_columns("compiled_table")}


def _store_jobs_of_before(connection: Connection) -> None:
    for name, kind, state, digest, attempts, asked, runner in _JOBS_OF_BEFORE:
        ended = state in ("done", "failed")
        connection.execute(
            text(
                "INSERT INTO job (id, kind, state, request, request_digest, created_at, "
                "finished_at, attempts, cancel_requested, runner) VALUES (:id, :kind, :state, "
                ":request, :digest, :moment, :end, :attempts, :asked, :runner)"
            ),
            {
                "id": name,
                "kind": kind,
                "state": state,
                "request": b"{}",
                "digest": digest,
                "moment": utc_now(),
                "end": utc_now() if ended else None,
                "attempts": attempts,
                "asked": asked,
                "runner": runner,
            },
        )


def test_an_upgrade_activates_no_table(empty_database_url: str) -> None:
    """0003 to 0004 and back: what was compiled stays, a choice is forgotten."""
    table = a_table(profile_name="old", profile_revision=1)
    with connected(empty_database_url) as connection:
        command.upgrade(alembic_config(connection), "0003")
        _store_first(connection, new_id(), utc_now(), request=", NULL")
        old = {"min_message_bytes": "least_bytes", "max_message_bytes": "greatest_bytes"}  # 0009
        values = {old.get(name, name): value for name, value in values_of("", table).items()}
        del values["owner"]  # 0013
        connection.execute(
            insert(sqlalchemy.table("compiled_table", *map(sqlalchemy.column, values))).values(
                values
            )
        )
        file = {"digest": table.digest, "file": table.file, "document": table.document}
        files = sqlalchemy.table("compiled_table_file", *map(sqlalchemy.column, file))
        connection.execute(insert(files).values(**file))
    store = create_store(empty_database_url)
    for _ in range(2):
        store.upgrade()
        with store.unit_of_work() as work:
            assert work.tables.active("old") is None
            work.tables.activate("old", table.digest)
        with store.reading() as work:
            assert work.tables.active("old") == table
        store.dispose()
        with connected(empty_database_url) as connection:
            command.downgrade(alembic_config(connection), "0003")
            count = connection.execute(text("SELECT count(*) FROM compiled_table")).scalar_one()
            assert count == 1
    store.dispose()


def test_an_upgrade_counts_what_owners_store(empty_database_url: str) -> None:
    """0018 to 0019, of two owners: text in bytes, what came of jobs that have ended and not of
    those that run.
    """
    store = create_store(empty_database_url)
    store.upgrade()
    for owner in ("mine", "theirs"):
        with store.of(owner).unit_of_work() as work:
            test_owners.fill(work, new_id())
            done = a_job(owner=owner, best=b"12345", history=b"[]")
            work.jobs.add(replace(done, state=JobState.DONE, finished_at=TIMESTAMP))
            work.jobs.add(a_job(owner=owner, best=b"12345"))
            claim = KeyClaim(owner, "a key", new_id(), "")
            work.request_keys.claim(claim)
            answer = KeyedAnswer(
                fingerprint="f", body_bytes=2, status=200, headers=b"[]", body=b"{}"
            )
            work.request_keys.complete(claim, answer)
    store.dispose()
    with connected(empty_database_url) as connection:
        counted = everything(connection)
        command.downgrade(alembic_config(connection), "0018")
        assert not inspect(connection).has_table("owner_bytes")
        command.upgrade(alembic_config(connection), "head")
    with connected(empty_database_url) as connection:
        assert everything(connection) == counted
    figures = {row["owner"]: row["stored_bytes"] for row in counted["owner_bytes"]}
    assert figures == bytes_by_owner(counted)
    assert figures["mine"] == figures["theirs"] > 1000
