"""How a driver's errors become those of the error tree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from domain.errors import Conflict, StoreUnavailable


class Fenced(Exception):
    """A job, or the answer of a key, was written by somebody who no longer has it: another one has,
    or it has ended.

    Raised inside a unit of work, which is rolled back with all that was written in it.
    """


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn a driver's errors into the tree; their text (it may hold the URL) is never shown."""
    try:
        yield
    except IntegrityError as error:
        raise Conflict("the stored state contradicts the request") from error
    except PoolTimeout as error:
        raise StoreUnavailable("no database connection became free in time") from error
    except DBAPIError as error:
        if not _is_about_the_connection(error):
            raise
        raise StoreUnavailable("the database cannot be reached or is not usable") from error


def _is_about_the_connection(error: DBAPIError) -> bool:
    # Both drivers file lost servers, full disks and locked files under OperationalError.
    kinds = {kind.__name__ for kind in type(error.orig).__mro__}
    return error.connection_invalidated or bool(kinds & {"OperationalError", "InterfaceError"})
