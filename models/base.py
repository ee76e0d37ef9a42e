"""The metadata that every row shares: naming convention, column types, one meaning of time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import DateTime, Double, LargeBinary, MetaData, String
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeDecorator

NAMING_CONVENTION = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "ix": "ix_%(table_name)s_%(column_0_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
}

# Compared byte by byte on both databases: pages by name and by identifier come in one order
# whatever the locale of the PostgreSQL cluster, and it is the order of Python's strings.
KEY = String().with_variant(String(collation="C"), "postgresql")


class UtcTime(TypeDecorator[datetime]):
    """A point in time, aware, in UTC, to the microsecond. Refuses a time without a zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the time as the database keeps it. Raises ValueError for a time without a zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("expected a time with a zone")
        timestamp = value.astimezone(UTC)
        # SQLite's text form has no zone.
        return timestamp.replace(tzinfo=None) if dialect.name == "sqlite" else timestamp

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the time as it was given, in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Parent of every row."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: KEY,
        bytes: LargeBinary(),
        float: Double(),
        datetime: UtcTime(),
    }


def utc_now() -> datetime:
    """Return the present time, aware, in UTC."""
    return datetime.now(UTC)
