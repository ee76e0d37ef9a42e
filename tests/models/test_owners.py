"""What is stored is its owner's: nobody else sees it, changes it, or finds its name taken."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from alembic import command
from sqlalchemy import text

from domain.errors import NotFound
from models.identifiers import new_id
from models.records import HiddenAnswerRecord, JobState
from models.schema import alembic_config
from models.session import Store, UnitOfWork, create_store
from tests.models.test_migrations import connected
from tests.support.records import (
    GIVEN,
    TIMESTAMP,
    a_fit,
    a_job,
    a_key,
    a_pipeline,
    a_table,
    a_verification,
    an_answer,
)

MINE, THEIRS = "mine", "theirs"


def fill(work: UnitOfWork, answer_id: str) -> dict[str, str]:
    """Store one of everything, under the same names and digests for whoever asks."""
    digest = work.traces.add(b"a trace", kind="direct")
    fit_id = work.fits.add([digest, digest], a_fit())
    work.profiles.create("gam", a_pipeline(), GIVEN)
    work.profiles.verify("gam", 1, a_verification())
    table = a_table(profile_name="gam", profile_revision=1)
    work.tables.add(table)
    work.tables.activate("gam", table.digest)
    kept = {"name": None, "note": None}  # going back forgets these
    work.answers.add(an_answer(id=answer_id, profile_name="gam", profile_revision=1, **kept))
    hidden = HiddenAnswerRecord(
        id=answer_id, created_at=TIMESTAMP, question_digest="1", cut_off=False, body=b"{}"
    )
    work.hidden_answers.add(hidden)
    job, key = a_job(owner=work.owner, request_digest="2"), a_key(owner=work.owner)
    work.jobs.add(job)
    work.api_keys.add(key)
    named = {"trace": digest, "fit": fit_id, "answer": answer_id, "job": job.id, "key": key.id}
    return {**named, "table": table.digest}


def test_two_owners_have_the_same_names_and_digests(store: Store) -> None:
    """Each has his own; what one deletes, the other keeps."""
    mine, theirs = store.of(MINE), store.of(THEIRS)
    for owned in (mine, theirs):
        with owned.unit_of_work() as work:
            named = fill(work, new_id())
    with mine.unit_of_work() as work:
        work.profiles.add_revision("gam", a_pipeline(2.0), GIVEN)
        work.profiles.delete("gam")
        assert work.profiles.list(limit=9) == []
        assert work.tables.get(named["table"]).profile_name is None
    with theirs.reading() as work:
        kept = work.profiles.get("gam")
        assert (kept.latest, kept.current.verification) == (1, a_verification())
        active = work.tables.active("gam")
        assert active is not None
        assert active.profile_revision == 1
        assert [one.owner for one in work.tables.active_all()] == [THEIRS]
    with store.reading() as work:
        assert work.profiles.list(limit=9) == []


@pytest.mark.parametrize(
    "look",
    [
        lambda work, named: work.traces.packed(named["trace"]),
        lambda work, named: work.fits.get(named["fit"]),
        lambda work, named: work.fits.fit(named["fit"]),
        lambda work, named: work.profiles.get("gam"),
        lambda work, named: work.profiles.lock("gam"),
        lambda work, named: work.profiles.revision("gam"),
        lambda work, named: work.profiles.revision("gam", 1),
        lambda work, named: work.profiles.revisions("gam"),
        lambda work, named: work.profiles.set_current("gam", 1),
        lambda work, named: work.profiles.verify("gam", 1, a_verification()),
        lambda work, named: work.profiles.add_revision("gam", a_pipeline(), GIVEN),
        lambda work, named: work.profiles.delete("gam"),
        lambda work, named: work.tables.get(named["table"]),
        lambda work, named: work.tables.activate("gam", named["table"]),
        lambda work, named: work.answers.get(named["answer"]),
        lambda work, named: work.hidden_answers.get(named["answer"]),
        lambda work, named: work.jobs.get(named["job"]),
        lambda work, named: work.jobs.shown(named["job"]),
        lambda work, named: work.jobs.cancel(named["job"]),
        lambda work, named: work.api_keys.get(named["key"]),
        lambda work, named: work.api_keys.revoke(named["key"]),
    ],
)
def test_what_is_anothers_is_not_found(
    store: Store, look: Callable[[UnitOfWork, dict[str, str]], object]
) -> None:
    """By whatever asks for it by its name, and nothing of it has changed."""
    theirs = store.of(THEIRS)
    with theirs.unit_of_work() as work:
        named = fill(work, new_id())
        work.fits.fit(named["fit"])  # now in memory as well
    with pytest.raises(NotFound), store.of(MINE).unit_of_work() as work:
        look(work, named)
    with theirs.reading() as work:
        assert work.profiles.get("gam").latest == 1
        assert work.jobs.get(named["job"]).state is JobState.QUEUED
        assert work.api_keys.get(named["key"]).revoked_at is None


def test_what_is_anothers_is_in_no_list(store: Store) -> None:
    """Nor is it the answer to the same question."""
    with store.of(THEIRS).unit_of_work() as work:
        named = fill(work, new_id())
    with store.of(MINE).unit_of_work() as work:
        assert work.profiles.list(limit=9) == []
        assert work.answers.list(limit=9) == []
        assert work.answers.list(profile="gam", limit=9) == []
        assert work.tables.list("gam", limit=9) == []
        assert work.jobs.list(limit=9) == []
        assert work.api_keys.list() == []
        assert work.answers.find("0" * 64) is None
        assert work.hidden_answers.find("1") is None
        assert work.jobs.find("2", *JobState) is None
        assert work.tables.find("0" * 64) is None
        assert work.tables.active("gam") is None
        assert work.tables.active_summary("gam", 1) is None
        work.api_keys.expire(named["key"], TIMESTAMP)
    with store.of(THEIRS).reading() as work:
        assert work.api_keys.get(named["key"]).expires_at is None


def test_what_was_stored_before_there_were_owners_is_the_first_ones(
    empty_database_url: str,
) -> None:
    """Going back keeps it, byte for byte, and forgets what is others'; so does going on again."""
    store = create_store(empty_database_url)
    store.upgrade()
    answer_id = new_id()
    with store.unit_of_work() as work:
        named = fill(work, answer_id)
    with store.of(THEIRS).unit_of_work() as work:
        fill(work, new_id())
    before = _seen(store, named)
    for _ in range(2):
        store.dispose()
        with connected(empty_database_url) as connection:
            command.downgrade(alembic_config(connection), "0012")
            tables = ("profile", "revision", "trace", "fit", "answer", "hidden_answer", "job")
            for table in (*tables, "compiled_table", "active_table", "verification"):
                counted = connection.execute(text(f"SELECT count(*) FROM {table}"))
                assert (table, counted.scalar_one()) == (table, 1)
        store.upgrade()
        assert _seen(store, named) == before
        with store.of(THEIRS).reading() as work:
            assert work.profiles.list(limit=9) == []
            assert work.api_keys.count() == 0
    store.dispose()


def _seen(store: Store, named: dict[str, str]) -> tuple[object, ...]:
    with store.reading() as work:
        fit = work.fits.get(named["fit"])
        return (
            fit,
            [work.traces.get(digest) for digest in fit.trace_digests],
            work.profiles.get("gam"),
            work.tables.get(named["table"]),
            work.tables.active("gam"),
            work.answers.get(named["answer"]),
            work.hidden_answers.get(named["answer"]),
            work.jobs.get(named["job"]),
        )
