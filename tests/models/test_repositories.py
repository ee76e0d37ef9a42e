"""Every repository, run through its contract on every database."""

from __future__ import annotations

import inspect

from models.session import UnitOfWork
from tests.contracts.answer_repository import AnswerContract
from tests.contracts.api_key_repository import ApiKeyContract
from tests.contracts.change_repository import ChangeContract
from tests.contracts.hidden_answer_repository import HiddenAnswerContract
from tests.contracts.job_ends import JobEndContract
from tests.contracts.job_repository import JobContract
from tests.contracts.leftover_repository import LeftoverContract
from tests.contracts.profile_repository import ProfileContract
from tests.contracts.request_key_repository import RequestKeyContract
from tests.contracts.retention_repository import RetentionContract
from tests.contracts.runner_repository import RunnerContract
from tests.contracts.stored_bytes_repository import StoredBytesContract
from tests.contracts.table_repository import ActiveTableContract, TableContract
from tests.contracts.trace_repository import FitContract, TraceContract


class TestProfiles(ProfileContract):
    """Profiles."""


class TestTraces(TraceContract):
    """Traces."""


class TestFits(FitContract):
    """Fits."""


class TestAnswers(AnswerContract):
    """Answers."""


class TestApiKeys(ApiKeyContract):
    """Keys by which somebody says who he is."""


class TestChanges(ChangeContract):
    """Who changed what."""


class TestHiddenAnswers(HiddenAnswerContract):
    """Answers about hidden messages."""


class TestJobs(JobContract):
    """Jobs."""


class TestJobEnds(JobEndContract):
    """What is told of them."""


class TestLeftovers(LeftoverContract):
    """What may be deleted."""


class TestRequestKeys(RequestKeyContract):
    """Keys of requests."""


class TestRetention(RetentionContract):
    """On each database."""


class TestRunners(RunnerContract):
    """Runners."""


class TestStoredBytes(StoredBytesContract):
    """How much owners store."""


class TestTables(TableContract):
    """Compiled tables."""


class TestActiveTables(ActiveTableContract):
    """Which of them are active."""


def test_every_repository_has_a_contract() -> None:
    """A repository cannot be added without one."""
    under_contract = {
        "profiles": TestProfiles,
        "traces": TestTraces,
        "fits": TestFits,
        "answers": TestAnswers,
        "api_keys": TestApiKeys,
        "changes": TestChanges,
        "hidden_answers": TestHiddenAnswers,
        "jobs": TestJobs,
        "leftovers": TestLeftovers,
        "request_keys": TestRequestKeys,
        "retention": TestRetention,
        "runners": TestRunners,
        "stored_bytes": TestStoredBytes,
        "tables": TestTables,
    }
    made = (name for name in dir(UnitOfWork) if not name.startswith("_"))
    repositories = {
        name
        for name in made
        if isinstance(member := inspect.getattr_static(UnitOfWork, name), property)
        and member.fget.__annotations__["return"].endswith("Repository")
    }
    slots = {name for name in UnitOfWork.__slots__ if not name.startswith("_") and name != "owner"}
    assert set(under_contract) == repositories | slots
