"""Jobs that several services share: claimed in the database, fenced, swept, one a question.

Whatever was running is queued again, since no process of earlier software goes on with it; what was
asked to stop ends. Where several open jobs are of one question, the oldest is the one that is found
by it; the others are run as well, since somebody may follow them. Going back forgets owners, counts
of crashes and losses, and runners; open jobs are queued.
"""

from __future__ import annotations

from typing import Any, Literal

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# Text that is a key is compared byte by byte on both databases.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TIME = sa.DateTime(timezone=True)

_OPEN = "state IN ('queued', 'running')"
_OPEN_QUESTION = f"{_OPEN} AND NOT cancel_requested"


def upgrade() -> None:
    """Add what the ledger needs, and settle what contradicts it."""
    op.create_table(
        "runner",
        sa.Column("name", KEY, nullable=False),
        sa.Column("beats", sa.BigInteger(), nullable=False),
        sa.Column("process", KEY, nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_runner"),
    )
    _end_what_was_to_stop()
    _queue_what_was_running()
    op.execute("UPDATE job SET runner = NULL")
    op.execute(
        f"UPDATE job SET request_digest = NULL WHERE {_OPEN} AND request_digest IS NOT NULL "
        "AND EXISTS (SELECT 1 FROM job AS older WHERE older.request_digest = job.request_digest "
        "AND older.state IN ('queued', 'running') AND older.id < job.id)"
    )
    with op.batch_alter_table("job", recreate=_recreate()) as job:
        job.alter_column("attempts", new_column_name="claim", existing_type=sa.Integer())
        job.add_column(_added("pool", KEY, "solve"))
        job.add_column(_added("owner", KEY, "local"))
        job.add_column(_added("crashes", sa.Integer(), "0"))
        job.add_column(_added("losses", sa.Integer(), "0"))
        job.add_column(sa.Column("not_before", TIME))
        job.create_check_constraint(
            op.f("ck_job_runner"), "(state = 'running') = (runner IS NOT NULL)"
        )
        job.create_check_constraint(
            op.f("ck_job_cancel"), "NOT (state = 'queued' AND cancel_requested)"
        )
        job.create_foreign_key(op.f("fk_job_runner"), "runner", ["runner"], ["name"])
    op.execute("UPDATE job SET pool = 'long' WHERE kind IN ('table', 'export', 'audit')")
    _index("ix_job_queued", ["pool", "owner", "id", "state"], "state = 'queued'")
    _index("ix_job_runner", ["runner", "owner"], "runner IS NOT NULL")
    _index("uq_job_open_question", ["owner", "request_digest"], _OPEN_QUESTION, unique=True)


def downgrade() -> None:
    """Forget it; what is open waits."""
    _end_what_was_to_stop()
    for name in ("uq_job_open_question", "ix_job_runner", "ix_job_queued"):
        op.drop_index(name, "job")
    with op.batch_alter_table("job", recreate=_recreate()) as job:
        job.drop_constraint(op.f("ck_job_cancel"), type_="check")
        job.drop_constraint(op.f("ck_job_runner"), type_="check")
        job.drop_constraint(op.f("fk_job_runner"), type_="foreignkey")
        for name in ("not_before", "losses", "crashes", "owner", "pool"):
            job.drop_column(name)
        job.alter_column("claim", new_column_name="attempts", existing_type=sa.Integer())
    _queue_what_was_running()
    op.execute("UPDATE job SET runner = NULL")
    op.drop_table("runner")


def _end_what_was_to_stop() -> None:
    ended = sa.text(
        "UPDATE job SET state = 'cancelled', finished_at = CURRENT_TIMESTAMP, runner = NULL "
        f"WHERE {_OPEN} AND cancel_requested"
    )
    op.execute(ended)


def _queue_what_was_running() -> None:
    op.execute(
        "UPDATE job SET state = 'queued', started_at = NULL, runner = NULL WHERE state = 'running'"
    )


def _recreate() -> Literal["always", "never"]:
    """Return how the table is altered: SQLite adds constraints to a copy of the table alone."""
    return "always" if op.get_bind().dialect.name == "sqlite" else "never"


def _added(name: str, kind: sa.types.TypeEngine[Any], default: str) -> sa.Column[Any]:
    """Return a column whose default is there for the rows of before."""
    return sa.Column(name, kind, nullable=False, server_default=default)


def _index(name: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    op.create_index(
        name,
        "job",
        columns,
        unique=unique,
        sqlite_where=sa.text(where),
        postgresql_where=sa.text(where),
    )
