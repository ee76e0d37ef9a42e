"""Alembic's environment: the service passes its connection; the command line names a database.

By hand: SLUICE_DATABASE_URL=sqlite:///path .venv/bin/alembic upgrade head
"""

from __future__ import annotations

import os

from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection

import models.rows
from models.base import Base
from models.engines import open_migration_engine, parse_url


def run(connection: Connection) -> None:
    """Migrate inside this connection's transaction; SQLite too can roll back its DDL."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        transactional_ddl=True,
        render_as_batch=connection.dialect.name == "sqlite",
    )
    with context.begin_transaction():
        context.run_migrations()


def main() -> None:
    """Use the connection that was passed, or open the database that the environment names."""
    if context.is_offline_mode():
        raise CommandError("migrations need a database: --sql is not supported")
    passed = context.config.attributes.get("connection")
    if passed is not None:
        run(passed)
        return
    url = os.environ.get("SLUICE_DATABASE_URL")
    if not url:
        raise CommandError("set SLUICE_DATABASE_URL to the database that is to be migrated")
    engine = open_migration_engine(parse_url(url))
    with engine.begin() as connection:
        run(connection)


assert models.rows.__all__  # imported for its effect: the metadata is complete
main()
