"""How a driver's errors become those of the error tree."""

from __future__ import annotations

from types import TracebackType

from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from domain.errors import Conflict, StoreUnavailable


class Fenced(Exception):
    """A job, or the answer of a key, was written by somebody who no longer has it: another one has,
    or it has ended.

    Raised inside a unit of work, which is rolled back with all that was written in it.
    """


class TranslatedErrors:
    """Turns a driver's errors into the tree; their text (it may hold the URL) is never shown."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Raise Conflict or StoreUnavailable where one of theirs ends the block."""
        if error is None:
            return
        if isinstance(error, IntegrityError):
            raise Conflict("the stored state contradicts the request") from error
        if isinstance(error, PoolTimeout):
            raise StoreUnavailable("no database connection became free in time") from error
        if isinstance(error, DBAPIError) and _is_about_the_connection(error):
            raise StoreUnavailable("the database cannot be reached or is not usable") from error


def _is_about_the_connection(error: DBAPIError) -> bool:
    # Both drivers file lost servers, full disks and locked files under OperationalError.
    kinds = {kind.__name__ for kind in type(error.orig).__mro__}
    return error.connection_invalidated or bool(kinds & {"OperationalError", "InterfaceError"})
