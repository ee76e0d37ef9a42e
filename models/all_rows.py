"""All rows of a database: copied from one into another, and counted."""

from __future__ import annotations

from sqlalchemy import Connection, Table, func, insert, select, text

import models.rows
from models.base import Base

assert models.rows.__all__  # imported for its effect: the metadata is complete

_BATCH = 100  # rows at a time: one may hold a file of measurements


def tables_in_order() -> list[Table]:
    """Return the tables, each after those that it names."""
    return list(Base.metadata.sorted_tables)


def copy_rows(reading: Connection, writing: Connection) -> None:
    """Copy every row of every table, some at a time."""
    if writing.dialect.name == "sqlite":
        # Of rows that name others of their own table: all are there at the end.
        writing.execute(text("PRAGMA defer_foreign_keys=ON"))
    for table in tables_in_order():
        found = reading.execution_options(yield_per=_BATCH).execute(
            select(table).order_by(*table.primary_key)
        )
        for rows in found.mappings().partitions():
            writing.execute(insert(table), [dict(row) for row in rows])


def row_counts(connection: Connection) -> dict[str, int]:
    """Return how many rows each table has."""
    return {
        table.name: connection.scalar(select(func.count()).select_from(table)) or 0
        for table in tables_in_order()
    }
