"""Notifications of jobs by PostgreSQL, so that a runner elsewhere begins them without polling.

It is an accelerator alone: a notice that is lost costs as long as a runner waits between polls.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from models.repositories.jobs import JOB_CHANNEL

log = logging.getLogger("sluice.jobs")

_LOOK_S = 0.5  # between looks whether to go on
_RETRY_S = 1.0


def listen(engine: Engine, act: Callable[[], None], closing: threading.Event) -> None:
    """Call `act` on each notice until `closing` is set; connects again where it has to."""
    while not closing.is_set():
        try:
            _listen_once(engine, act, closing)
        except (DBAPIError, PoolTimeout, OSError) as error:
            log.warning("no notices of jobs for now: %s", type(error).__name__)
            closing.wait(_RETRY_S)
            act()


def _listen_once(engine: Engine, act: Callable[[], None], closing: threading.Event) -> None:
    import psycopg

    with engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        connection.execute(text(f"LISTEN {JOB_CHANNEL}"))
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        try:
            while not closing.is_set():
                for _ in driver.notifies(timeout=_LOOK_S, stop_after=1):
                    act()
        except psycopg.Error as error:
            raise OSError("the connection was lost") from error
        finally:
            connection.invalidate()  # a connection that listens must not go back into the pool
