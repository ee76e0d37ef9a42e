"""Operations: a request read again asks the very same; nothing depends on where it runs."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.execution.engine import Crashed, Done, Limit, LimitExceeded, Lost, Refused, Stopped
from app.operations.fits import FitTraces
from app.operations.operation import Operation, OperationKind
from app.operations.tasks import prepare_request, result_of, task_of
from app.questions.profiles import seed_paper_profiles
from app.questions.settings import ExportScope
from app.questions.source import Stored
from app.questions.tables import TableScope
from app.questions.traces import LoadedTrace
from app.schemas.base import dump_json, parse_json
from app.settings import Settings
from app.verbs.audit.operation import operation as audit_operation
from app.verbs.compare.operation import operation as compare_operation
from app.verbs.export.operation import operation as export_operation
from app.verbs.optimize.operation import Optimize, schedule
from app.verbs.optimize.operation import operation as optimize_operation
from app.verbs.table.operation import operation as table_operation
from contract.audit import AuditIn
from contract.compare import CompareIn
from contract.optimize import OptimizeIn
from domain.errors import (
    Cancelled,
    MemoryLimitReached,
    NotReady,
    SolverFailed,
    StrategyDeclined,
    TimeLimitReached,
)
from domain.profile import ProfileReference
from domain.solution import Status
from models.records import FitRequest
from models.session import Store, UnitOfWork, create_store

SETTINGS = Settings()
GMS = ProfileReference("gms", None)
EXAMPLE = (Path(__file__).parents[2] / "examples" / "local-path-direct.csv").read_bytes()
Make = Callable[[UnitOfWork], Operation[Any]]


class Silent:
    """A report that nobody hears."""

    files: Sequence[int] = ()

    def steps(self, done: int, total: int) -> None:
        assert 0 <= done <= total

    def best(self, result: object) -> None:
        pickle.dumps(result)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with the papers' profiles."""
    made = create_store(f"sqlite:///{tmp_path_factory.mktemp('operations') / 'sluice.db'}")
    made.upgrade()
    seed_paper_profiles(made)
    yield made
    made.dispose()


def _optimize(unit: UnitOfWork) -> Optimize:
    asked = OptimizeIn(profile="gms", message_bytes=4321, relative_gap=1e-4, time_limit_s=7.0)
    return optimize_operation(asked, Stored.of_unit(unit), SETTINGS)


def _compare(unit: UnitOfWork) -> Operation[Any]:
    asked = CompareIn(
        profile="gms",
        message_bytes=[1000, 2000],
        strategies=["auto", "single", "static"],
        static_bytes=500,
    )
    return compare_operation(asked, Stored.of_unit(unit), SETTINGS)


def _audit(unit: UnitOfWork) -> Operation[Any]:
    setting = {
        "steps": [{"from_bytes": 1, "size_bytes": 2048}, {"from_bytes": 9000, "size_bytes": None}]
    }
    asked = parse_json(
        AuditIn,
        dump_json(
            {
                "profile": "gms",
                "setting": setting,
                "min_message_bytes": 4096,
                "max_message_bytes": 4096,
            }
        ),
    )
    return audit_operation(asked, Stored.of_unit(unit), SETTINGS)


def _table(unit: UnitOfWork) -> Operation[Any]:
    return table_operation(GMS, TableScope(), Stored.of_unit(unit), SETTINGS, activate=True)


def _export(unit: UnitOfWork) -> Operation[Any]:
    scope = ExportScope(target="simgrid")
    return export_operation(GMS, scope, Stored.of_unit(unit), SETTINGS, table=None)


def _schedule(unit: UnitOfWork) -> Operation[Any]:
    return schedule(GMS, 4321, Stored.of_unit(unit), SETTINGS)


JOBS: dict[str, Make] = {
    "optimize": _optimize,
    "schedule": _schedule,
    "compare": _compare,
    "audit": _audit,
    "table": _table,
    "export": _export,
}


def made(store: Store, make: Make) -> Operation[Any]:
    with store.reading() as unit:
        return make(unit)


@pytest.mark.parametrize("name", JOBS)
def test_a_request_that_is_read_again_asks_the_same(store: Store, name: str) -> None:
    """With the profile pinned to the revision that it had, so that a later one changes nothing."""
    operation = made(store, JOBS[name])
    assert b"gms@1" in operation.request
    with store.reading() as unit:
        again = prepare_request(operation.kind, operation.request, Stored.of_unit(unit), SETTINGS)
    assert (again.kind, again.digest) == (operation.kind, operation.digest)
    assert again.request == operation.request


def test_no_two_questions_share_a_digest(store: Store) -> None:
    digests = {made(store, make).digest for make in JOBS.values()}
    assert len(digests) == len(JOBS)


def test_kinds_that_are_no_jobs_are_not_prepared(store: Store) -> None:
    with store.reading() as unit, pytest.raises((KeyError, ValueError)):
        prepare_request(OperationKind.FIT, b"{}", Stored.of_unit(unit), SETTINGS)


@pytest.mark.parametrize("name", ["optimize", "compare", "audit", "export"])
def test_what_a_worker_is_sent_gives_the_same_as_here(store: Store, name: str) -> None:
    """But for the time that it took."""
    operation = made(store, JOBS[name])
    work = pickle.loads(pickle.dumps(operation.work))
    there, here = work.run(Silent()), operation.run(Silent())
    if name == "optimize":
        there, here = there.solution, here.solution
    elif name == "audit":
        there, here = replaced(there), replaced(here)
    assert there == here


def replaced(audit: Any) -> Any:
    return replace(audit, audit_ms=0.0)


def test_measurements_stay_where_they_are(store: Store) -> None:
    """A worker that solves needs the problem, and what every size took; no single time."""
    asked = parse_json(
        OptimizeIn,
        dump_json({"measurements": {"content": EXAMPLE.decode()}, "message_bytes": 65536}),
    )
    operation = made(
        store,
        lambda unit: optimize_operation(asked, Stored.of_unit(unit), SETTINGS),
    )
    sent = pickle.dumps(operation.work)
    assert len(sent) < len(EXAMPLE) * 0.6  # 70 sizes of 5 stages, of 25 times each
    assert EXAMPLE[:100] not in sent


def test_an_answer_is_stored_with_its_kept_result(store: Store) -> None:
    operation = made(store, _optimize)
    assert made(store, _optimize).stored is not None
    with store.unit_of_work() as unit:
        assert operation.stored(unit) is None
        kept = operation.keep(unit, operation.run(Silent()))
    with store.reading() as unit:
        assert operation.stored(unit) == kept
        assert kept.answer_id is not None


class TestParts:
    def test_they_join_to_the_whole(self, store: Store) -> None:
        operation: Any = made(store, _compare)
        parts = operation.split()
        assert len(parts) == 6
        joined = operation.join([part.run(Silent()) for part in parts]).run_here()
        with store.unit_of_work() as unit:
            whole = operation.keep(unit, operation.run(Silent()))
            assert operation.keep(unit, joined) == whole

    def test_what_was_not_reached_says_so(self, store: Store) -> None:
        operation: Any = made(store, _compare)
        found = operation.run(Silent())
        first, rest = found[:2], found[2:]
        to_come = tuple(replace(cell, solution=None, declined=None) for cell in rest)
        cells = operation.cut_off((*first, *to_come), Cancelled("interrupted"))
        assert cells[:2] == first
        assert [cell.declined for cell in cells[2:]] == ["not tried: interrupted"] * 4


class TestEnds:
    """How a task ends, and what comes of it."""

    @pytest.mark.parametrize(
        ("end", "error", "words"),
        [
            (LimitExceeded(Limit.TIME), TimeLimitReached, "the solve took longer than 8 s"),
            (LimitExceeded(Limit.MEMORY), MemoryLimitReached, "the solve needed more memory than"),
            (Crashed("signal 9"), SolverFailed, "the process of the solve ended unexpectedly"),
            (Stopped(), Cancelled, "the solve was cancelled"),
        ],
    )
    def test_without_any_result_and_with_the_best_so_far(
        self, store: Store, end: Any, error: type[Exception], words: str
    ) -> None:
        operation = made(store, _optimize)
        limits = task_of(operation, id="1", memory_bytes=2**30).limits
        with pytest.raises(error, match=words):
            result_of(operation, end, best=None, limits=limits)
        best = operation.run(Silent())
        weaker = pickle.dumps(replaced_status(best))
        found = result_of(operation, end, best=weaker, limits=limits)
        assert found.solution.status is Status.TIME_LIMIT
        assert words in found.solution.notices[-1].detail
        assert found.baselines == best.baselines

    @pytest.mark.parametrize("end", [Stopped(is_closing=True), Lost(was_started=True)])
    def test_what_can_be_asked_again_has_no_result(self, store: Store, end: Any) -> None:
        operation = made(store, _optimize)
        limits = task_of(operation, id="1", memory_bytes=2**30).limits
        best = pickle.dumps(operation.run(Silent()))
        with pytest.raises(NotReady):
            result_of(operation, end, best=best, limits=limits)

    def test_results_and_refusals_are_handed_on(self, store: Store) -> None:
        operation = made(store, _optimize)
        limits = task_of(operation, id="1", memory_bytes=2**30).limits
        result = operation.run(Silent())
        done = Done(pickle.dumps(result))
        assert result_of(operation, done, best=None, limits=limits).solution == result.solution
        refused = Refused(pickle.dumps(StrategyDeclined("needs two stages", field="strategy")))
        with pytest.raises(StrategyDeclined, match="needs two") as caught:
            result_of(operation, refused, best=pickle.dumps(result), limits=limits)
        assert caught.value.field == "strategy"


def replaced_status(solved: Any) -> Any:
    solution = replace(solved.solution, status=Status.PROVEN_GAP)
    return replace(solved, solution=solution, baselines=None)


def test_a_fit_is_of_open_files(tmp_path: Path) -> None:
    """Traces in memory are put into files; the fit is that of the traces themselves."""
    operation = FitTraces((LoadedTrace.of(EXAMPLE),), FitRequest(kinds=(None,)), 1000)
    assert operation.run_here() is None  # a service reads no file in its own process
    here = operation.work.fit(operation.traces)
    with ExitStack() as stack:
        in_files = operation.in_files(stack)
        report = Silent()
        report.files = in_files.files
        work = pickle.loads(pickle.dumps(in_files.work))
        assert work.run(report) == here
    assert operation.files == ()
