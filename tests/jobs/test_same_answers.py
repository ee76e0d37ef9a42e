"""Answers are the same bytes in this process and on a cluster of any size, in whatever order."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from analysis.audit import messages_of
from app.execution.cluster import ClusterEngine
from app.execution.engine import Engine, Pool
from app.execution.local import PoolOptions
from app.jobs.ledger import accept_job
from app.jobs.runner import open_runner
from app.questions.profiles import create_profile
from app.questions.source import Stored
from app.questions.tables import TableScope
from app.schemas.base import dump_json
from app.settings import Settings
from app.verbs.audit.answer import audited as audit_out
from app.verbs.audit.operation import requested as requested_audit
from app.verbs.compare.operation import requested as requested_compare
from app.verbs.table.operation import operation as table_operation
from domain.pipeline import Pipeline, Stage
from domain.profile import ProfileReference
from models.records import JobState
from models.session import Store, create_store
from tests.support.cluster import cluster, wait_for_slots
from tests.support.counts import is_campaign
from tests.support.in_process_engine import InProcessEngine

PROFILES = 4
SCOPE = TableScope(max_message_bytes=2**16)
LONG_S = 600.0  # no answer is cut off
COMPARED = {
    "profile": "profile-1",
    "message_bytes": [65_536, 1_000_000],
    "strategies": ["single", "fixed", "exact"],
    "time_limit_s": LONG_S,
}
AUDITED = {
    "profile": "profile-2",
    "setting": {"static_bytes": 65_536},
    "min_message_bytes": 100_000,
    "max_message_bytes": 2**17,
    "time_limit_s": 60.0,  # the longest that may be asked for, a hundred times what it takes
}
RANGED: dict[str, Any] = {
    "pipeline": {
        "stages": [
            {
                "name": "switch",
                "ranges": [
                    {"up_to_bytes": 5000, "overhead_us": 1.0, "ns_per_byte": 1.0},
                    {"up_to_bytes": None, "overhead_us": 9.0, "ns_per_byte": 0.5},
                ],
            },
            {"name": "wire", "overhead_us": 5.0, "ns_per_byte": 0.8},
        ]
    },
    "setting": {"static_bytes": 4096},
    "min_message_bytes": 2**12,
    "max_message_bytes": 2**14,
    "workload": [{"message_bytes": 4096 + 500 * at} for at in range(20)],
    "time_limit_s": 60.0,
}
SIZES = (1, 2, 4) if is_campaign() else (2,)


def _answers(engine: Engine, folder: Path, *, seed: int) -> dict[str, str]:
    """What a runner with this engine keeps: digests of tables, documents of what has parts."""
    store = create_store(f"sqlite:///{folder / 'answers.db'}")
    store.upgrade()
    names = [f"profile-{number}" for number in range(PROFILES)]
    for number, name in enumerate(names, start=1):
        create_profile(store, name, _pipeline(number))
    settings = Settings()
    runner = open_runner(store, engine, settings)
    runner.start()
    with store.reading() as unit:
        operations = [
            table_operation(
                ProfileReference(name), SCOPE, Stored.of_unit(unit), settings, activate=None
            )
            for name in names
        ]
        compared = requested_compare(json.dumps(COMPARED).encode(), Stored.of_unit(unit), settings)
        audited = [
            requested_audit(json.dumps(asked).encode(), Stored.of_unit(unit), settings)
            for asked in (AUDITED, RANGED)
        ]
    all_of_them: list[Any] = [*operations, compared, *audited]
    order = random.Random(seed).sample(range(len(all_of_them)), len(all_of_them))
    jobs = {at: accept_job(store, all_of_them[at]) for at in order}
    _wait_for_ends(store, [job.id for job in jobs.values()])
    runner.close()
    try:
        return {str(at): _said(store, jobs[at].id) for at in sorted(jobs)}
    finally:
        store.dispose()


def _wait_for_ends(store: Store, identifiers: list[str]) -> None:
    """Workers give way to everything else on this machine, so that this may take long."""
    end_s = time.monotonic() + LONG_S
    while time.monotonic() < end_s:
        with store.reading() as unit:
            if len(unit.jobs.ended(identifiers)) == len(identifiers):
                return
        time.sleep(0.1)
    raise AssertionError("waited in vain")


def _said(store: Store, job_id: str) -> str:
    with store.reading() as unit:
        job = unit.jobs.get(job_id)
    assert job.state is JobState.DONE, job.error
    assert job.best is not None
    document = json.loads(job.best)
    document.pop("audit_ms", None)  # how long it took is its own
    return str(document.get("digest") or json.dumps(document))


def _pipeline(number: int) -> Pipeline:
    return Pipeline(
        (
            Stage.of_line("copy", overhead_us=1.0 + number, ns_per_byte=1.0),
            Stage.of_line("bus", overhead_us=2.0, ns_per_byte=0.1 * number),
            Stage.of_line("wire", overhead_us=5.0, ns_per_byte=0.8),
        )
    )


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Answers of this process."""
    engine = InProcessEngine(1)
    try:
        return _answers(engine, tmp_path_factory.mktemp("here"), seed=0)
    finally:
        engine.close()


@pytest.mark.parametrize("workers", SIZES)
def test_a_cluster_answers_with_the_same_bytes(
    workers: int, here: dict[str, str], tmp_path: Path
) -> None:
    with cluster(workers) as made:
        engine = ClusterEngine(made.options(), dict.fromkeys(Pool, PoolOptions(64)))
        wait_for_slots(engine, workers)
        try:
            assert _answers(engine, tmp_path, seed=workers) == here
        finally:
            engine.close()


class _Silent:
    """A report to nobody."""

    files = ()

    def steps(self, done: int, total: int) -> None: ...

    def best(self, result: object) -> None: ...


def test_parts_of_an_audit_make_the_whole(sqlite_store: Store) -> None:
    """Each message is in one of them; an audit of lines has none."""
    with sqlite_store.reading() as unit:
        audited = requested_audit(json.dumps(RANGED).encode(), Stored.of_unit(unit), Settings())
        lines = {**RANGED, "pipeline": {"stages": RANGED["pipeline"]["stages"][1:]}}
        assert (
            requested_audit(json.dumps(lines).encode(), Stored.of_unit(unit), Settings()).split()
            == ()
        )
    parts = audited.split()
    assert len(parts) > 1
    solved = [part.run(_Silent()) for part in parts]
    joined = audited.join(solved)
    assert [one.message_bytes for one in joined.known.best] == [*messages_of(audited.question)]
    assert joined.run_here() is None
    whole, made = (
        json.loads(dump_json(audit_out(one.run(_Silent())))) for one in (audited, joined)
    )
    assert made.pop("audit_ms") > 1e3 * sum(one.seconds for one in solved)
    assert whole.pop("audit_ms") > 0.0
    assert made == whole
