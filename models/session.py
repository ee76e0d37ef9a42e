"""The entry point of this package: a store, and units of work in it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from copy import copy

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session
from sqlalchemy.pool import QueuePool

from domain.errors import StoreUnavailable
from models.engines import (
    LIMIT_S,
    WRITE_CONNECTIONS,
    open_engines,
    open_migration_engine,
    parse_url,
)
from models.errors import TranslatedErrors
from models.records import NOBODY, OWNER, ChangedBy, JobEnd
from models.repositories import (
    AnswerRepository,
    ApiKeyRepository,
    ChangeRepository,
    FitRepository,
    HiddenAnswerRepository,
    JobRepository,
    LeftoverRepository,
    ProfileRepository,
    RequestKeyRepository,
    RetentionRepository,
    RunnerRepository,
    StoredBytesRepository,
    TableRepository,
    TraceRepository,
)
from models.repositories.changes import CHANGED_BY
from models.repositories.fits import KeptFits
from models.repositories.statements import (
    has_changed_choices,
    has_changed_jobs,
    job_ends,
)
from models.repositories.stored_bytes import TALLY, Tally
from models.schema import upgrade
from models.wakeup import listen


class UnitOfWork:
    """The repositories of one transaction, which see and store what is one owner's.

    It belongs to one thread and ends with its block.

    What every optimisation reads and adds, a revision, its fit and answers, goes to the connection
    itself; a session, which costs more than these statements, is opened where something needs one.
    """

    __slots__ = ("_by", "_connection", "_kept_fits", "_session", "_tally", "answers", "owner")

    def __init__(
        self, connection: Connection, kept_fits: KeptFits, owner: str, by: ChangedBy
    ) -> None:
        self._connection = connection
        self._kept_fits = kept_fits
        self._session: Session | None = None
        self._by = by
        self.owner = owner
        self._tally: Tally | None = None
        self.answers = AnswerRepository(connection, self._counted, owner)

    @property
    def profiles(self) -> ProfileRepository:
        """Hardware profiles and their revisions."""
        return ProfileRepository(self._connection, self._opened, self.owner)

    @property
    def traces(self) -> TraceRepository:
        """Files of measurements."""
        return TraceRepository(self._opened(), self.owner)

    @property
    def fits(self) -> FitRepository:
        """Fits of them."""
        return FitRepository(self._connection, self._opened, self._kept_fits, self.owner)

    @property
    def hidden_answers(self) -> HiddenAnswerRepository:
        """Answers about messages that are hidden behind a calculation."""
        return HiddenAnswerRepository(self._opened(), self.owner)

    @property
    def jobs(self) -> JobRepository:
        """Durable jobs."""
        return JobRepository(self._opened(), self.owner)

    @property
    def runners(self) -> RunnerRepository:
        """The processes that run them."""
        return RunnerRepository(self._opened())

    @property
    def leftovers(self) -> LeftoverRepository:
        """What may be deleted by age or count."""
        return LeftoverRepository(self._opened(), self.owner)

    @property
    def retention(self) -> RetentionRepository:
        """What is kept, of whom."""
        return RetentionRepository(self._opened())

    @property
    def request_keys(self) -> RequestKeyRepository:
        """Keys of requests that are answered once."""
        return RequestKeyRepository(self._opened())

    @property
    def api_keys(self) -> ApiKeyRepository:
        """Keys by which somebody says who he is."""
        return ApiKeyRepository(self._opened(), self.owner)

    @property
    def changes(self) -> ChangeRepository:
        """Who changed what."""
        return ChangeRepository(self._opened(), self.owner)

    @property
    def tables(self) -> TableRepository:
        """Compiled plan tables."""
        return TableRepository(self._opened(), self.owner)

    @property
    def stored_bytes(self) -> StoredBytesRepository:
        """How many bytes each owner stores."""
        return StoredBytesRepository(self._opened())

    def finish(self, most_bytes: int | None) -> None:
        """Send what is pending, and count what it stores, before the transaction is committed.

        Raises QuotaExceeded where its owner then stores more than this.
        """
        if self._session is not None:
            self._session.flush()
        if self._tally is not None:
            self._tally.settle(self._connection, most_bytes)

    def close(self) -> None:
        """Let go of what was read."""
        if self._session is not None:
            self._session.close()

    @property
    def has_changed_choices(self) -> bool:
        """Whether it may have changed which compiled table a profile answers from."""
        return self._session is not None and has_changed_choices(self._session)

    @property
    def has_changed_jobs(self) -> bool:
        """Whether it may have left a job to run or to stop."""
        return self._session is not None and has_changed_jobs(self._session)

    @property
    def job_ends(self) -> tuple[JobEnd, ...]:
        """The ends of jobs that it wrote."""
        return () if self._session is None else job_ends(self._session)

    def _opened(self) -> Session:
        if self._session is None:
            self._session = Session(self._connection, autoflush=False, expire_on_commit=False)
            self._session.info[CHANGED_BY] = self._by
            self._session.info[TALLY] = self._counted()
        return self._session

    def _counted(self) -> Tally:
        if self._tally is None:
            self._tally = Tally()
        return self._tally


class Store:
    """One database, as an owner sees it. Thread-safe; connects with the first statement.

    Calls block: an async caller makes them in a worker thread, one thread a unit of work.
    """

    owner = OWNER
    by = NOBODY  # who changes what is changed through it
    most_bytes: int | None = None  # that one owner may store

    def __init__(self, database_url: str) -> None:
        self._url = parse_url(database_url)
        self._writer, self._reader = open_engines(self._url)
        self._watchers: list[Callable[[], None]] = []
        self._job_watchers: list[Callable[[], None]] = []
        self._end_watchers: list[Callable[[tuple[JobEnd, ...]], None]] = []
        self._kept_fits = KeptFits()

    def of(self, owner: str, by: ChangedBy | None = None) -> Store:
        """Return the same store for another owner, who sees nothing of what is others'; and for
        who changes it, where that is said.
        """
        view = copy(self)
        view.owner = owner
        view.by = self.by if by is None else by
        return view

    def bounded(self, most_bytes: int | None) -> Store:
        """Return the same store, where a unit of work that stores is refused, all of it, if its
        owner then stores more than this; None: he may store any number.
        """
        view = copy(self)
        view.most_bytes = most_bytes
        return view

    def watch_choices(self, act: Callable[[], None]) -> None:
        """Have `act` called after each commit through this store that may have changed which
        compiled table a profile answers from: in the writer's thread, before it goes on.
        """
        self._watchers.append(act)

    def watch_jobs(self, act: Callable[[], None]) -> None:
        """Have `act` called after each commit through this store that may have left a job to run
        or to stop: in the writer's thread, before it goes on. It must not wait.
        """
        self._job_watchers.append(act)

    def watch_job_ends(self, act: Callable[[tuple[JobEnd, ...]], None]) -> None:
        """Have `act` called after each commit through this store that ended jobs: in the writer's
        thread, before it goes on. It must not wait.
        """
        self._end_watchers.append(act)

    def unwatch_jobs(self, act: Callable[[], None]) -> None:
        """Call it no more; nothing happens where it is not called."""
        if act in self._job_watchers:
            self._job_watchers.remove(act)

    def listen_for_jobs(self, act: Callable[[], None], closing: threading.Event) -> None:
        """Have `act` called on commits of other processes too, where the database can say so.

        Blocks until `closing` is set; returns at once on SQLite, which cannot.
        """
        if self.dialect == "postgresql":
            listen(self._writer, act, closing)

    @property
    def dialect(self) -> str:
        """ "sqlite" or "postgresql"."""
        return self._url.get_backend_name()

    @property
    def connections(self) -> Mapping[str, tuple[int, int]]:
        """How many connections are in use, and how many are open and free, for reads and writes."""
        pools = {"read": self._reader.pool, "write": self._writer.pool}
        return {
            name: (pool.checkedout(), pool.checkedin())
            for name, pool in pools.items()
            if isinstance(pool, QueuePool)
        }

    @property
    def max_wait_s(self) -> float:
        """The longest that a statement, or a wait for a lock or a connection, may take."""
        return LIMIT_S

    @property
    def parallel_writes(self) -> int:
        """How many units of work can be open at once, those of other processes not counted."""
        return 1 if self.dialect == "sqlite" else WRITE_CONNECTIONS

    def upgrade(self) -> None:
        """Bring the schema up to date, also where several processes start together.

        Raises Conflict for a database that newer software has written, StoreUnavailable where
        there is none.
        """
        engine = open_migration_engine(self._url)
        try:
            with TranslatedErrors():
                upgrade(engine)
        finally:
            engine.dispose()

    def unit_of_work(self) -> AbstractContextManager[UnitOfWork]:
        """One transaction: committed at the end of the block, rolled back on any error.

        Raises QuotaExceeded at the end, where the owner may not store that much more.

        On SQLite it is the only writer while it lasts, so keep work that is no statement outside.
        Do not open one inside another.
        """
        return self._transaction(self._writer)

    def reading(self) -> AbstractContextManager[UnitOfWork]:
        """One transaction that only reads: it waits for no writer and can change nothing."""
        return self._transaction(self._reader)

    def ping(self) -> None:
        """Return if the database answers and holds the schema; else raises StoreUnavailable."""
        try:
            with TranslatedErrors(), self._reader.connect() as connection:
                connection.execute(text("SELECT 1 FROM alembic_version"))
        except DBAPIError as error:
            raise StoreUnavailable("the database does not hold the schema") from error

    def dispose(self) -> None:
        """Close every connection. The store opens new ones if it is used again."""
        self._reader.dispose()
        self._writer.dispose()

    @contextmanager
    def _transaction(self, engine: Engine) -> Iterator[UnitOfWork]:
        with TranslatedErrors(), engine.connect() as connection, connection.begin():
            unit = UnitOfWork(connection, self._kept_fits, self.owner, self.by)
            try:
                yield unit
                unit.finish(self.most_bytes)
            finally:
                unit.close()
        if unit.has_changed_choices:
            for act in self._watchers:
                act()
        if unit.has_changed_jobs:
            for act in tuple(self._job_watchers):
                act()
        if unit.job_ends:
            for count in self._end_watchers:
                count(unit.job_ends)


def create_store(database_url: str) -> Store:
    """A store for `sqlite:///path` or `postgresql://...`. Connects to nothing yet.

    Raises InvalidInput for any other URL.
    """
    return Store(database_url)
