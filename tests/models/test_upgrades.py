"""Data of earlier schemas: they are there after an upgrade, and after going back."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any

import pytest
from alembic import command
from sqlalchemy import Connection, insert, text

from domain.fit import Combine, ExcludedSample, FitMethod, FitOptions, FitShape, StepGroup
from domain.measurement import TraceKind
from models.base import utc_now
from models.identifiers import new_id
from models.records import FitRequest, JobState
from models.rows.compiled_table import CompiledTableRow, values_of
from models.rows.compiled_table_file import CompiledTableFileRow
from models.schema import alembic_config
from models.session import create_store
from tests.models.test_migrations import connected
from tests.support.records import a_fit, a_job, a_table

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
    connection: Connection, fit_id: str, moment: datetime, *, request: str = ""
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
        "moment": moment,
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
        ("0006", {"runner": "somewhere"}),
    ],
    ids=["history", "question and steps", "process"],
)
def test_jobs_of_before_lack_what_a_revision_adds(
    empty_database_url: str, before: str, kept: dict[str, Any]
) -> None:
    """Back to the revision before and up again: the job stays, what was added is forgotten."""
    job = a_job(state=JobState.RUNNING, **kept)
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
        assert work.jobs.runners() == {None}
    store.dispose()


def test_an_upgrade_activates_no_table(empty_database_url: str) -> None:
    """0003 to 0004 and back: what was compiled stays, a choice is forgotten."""
    table = a_table(profile_name="old", profile_revision=1)
    with connected(empty_database_url) as connection:
        command.upgrade(alembic_config(connection), "0003")
        _store_first(connection, new_id(), utc_now(), request=", NULL")
        connection.execute(insert(CompiledTableRow).values(**values_of(table)))
        file = {"digest": table.digest, "file": table.file, "document": table.document}
        connection.execute(insert(CompiledTableFileRow).values(**file))
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
