"""The first schema: profiles and revisions, traces and fits, answers, jobs."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Text that is a key is compared byte by byte on both databases.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """From nothing to the first schema."""
    _create_profiles()
    _create_answers()
    _create_jobs()
    _forbid_changed_revisions()


def downgrade() -> None:
    """Back to nothing."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP TRIGGER revision_immutable ON revision")
        op.execute("DROP FUNCTION revision_immutable()")
    else:
        op.execute("DROP TRIGGER revision_immutable")
    for table in ("job", "answer_body", "answer", "revision", "profile", "fit", "trace"):
        op.drop_table(table)


def _create_profiles() -> None:
    op.create_table(
        "trace",
        _key("digest"),
        _column("kind", KEY),
        _column("content_bytes", sa.BigInteger()),
        _column("compressed", sa.LargeBinary()),
        _column("created_at", TIME),
        sa.PrimaryKeyConstraint("digest", name="pk_trace"),
    )
    op.create_table(
        "fit",
        _key("id"),
        _column("trace_digest", KEY),
        _column("document", sa.Text()),
        _column("created_at", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_fit"),
        sa.ForeignKeyConstraint(["trace_digest"], ["trace.digest"], name="fk_fit_trace_digest"),
    )
    op.create_index("ix_fit_trace_digest", "fit", ["trace_digest"])
    op.create_table(
        "profile",
        _key("name"),
        _column("current_number", sa.Integer()),
        _column("latest_number", sa.Integer()),
        _column("created_at", TIME),
        sa.PrimaryKeyConstraint("name", name="pk_profile"),
    )
    op.create_table(
        "revision",
        _key("profile_name"),
        _column("number", sa.Integer(), autoincrement=False),
        _column("pipeline", sa.Text()),
        _column("origin", KEY),
        _column("detail", sa.Text()),
        sa.Column("fit_id", KEY),
        _column("created_at", TIME),
        sa.PrimaryKeyConstraint("profile_name", "number", name="pk_revision"),
        sa.ForeignKeyConstraint(
            ["profile_name"],
            ["profile.name"],
            name="fk_revision_profile_name",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["fit_id"], ["fit.id"], name="fk_revision_fit_id"),
    )


def _create_answers() -> None:
    op.create_table(
        "answer",
        _key("id"),
        _column("created_at", TIME),
        _column("question_digest", KEY),
        _column("strategy", KEY),
        _column("message_bytes", sa.BigInteger()),
        _column("fragments", sa.Integer()),
        _column("latency_us", sa.Double()),
        _column("lower_bound_us", sa.Double()),
        _column("relative_gap", sa.Double()),
        _column("status", KEY),
        sa.Column("profile_name", KEY),
        sa.Column("profile_revision", sa.Integer()),
        sa.PrimaryKeyConstraint("id", name="pk_answer"),
    )
    op.create_index("ix_answer_question", "answer", ["question_digest", "id"])
    filters = ("profile_name", "profile_revision", "message_bytes", "strategy")
    for short, column in zip(("profile", "revision", "message", "strategy"), filters, strict=True):
        others = [name for name in filters if name != column]
        op.create_index(f"ix_answer_{short}", "answer", [column, "id", *others])
    op.create_table(
        "answer_body",
        _key("answer_id"),
        _column("body", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("answer_id", name="pk_answer_body"),
        sa.ForeignKeyConstraint(
            ["answer_id"], ["answer.id"], name="fk_answer_body_answer_id", ondelete="CASCADE"
        ),
    )


def _create_jobs() -> None:
    op.create_table(
        "job",
        _key("id"),
        _column("kind", KEY),
        _column("state", KEY),
        _column("request", sa.LargeBinary()),
        _column("created_at", TIME),
        sa.Column("started_at", TIME),
        sa.Column("finished_at", TIME),
        _column("attempts", sa.Integer()),
        sa.Column("best_latency_us", sa.Double()),
        sa.Column("lower_bound_us", sa.Double()),
        sa.Column("best", sa.LargeBinary()),
        sa.Column("answer_id", KEY),
        sa.Column("error", sa.LargeBinary()),
        _column("cancel_requested", sa.Boolean()),
        sa.PrimaryKeyConstraint("id", name="pk_job"),
        sa.ForeignKeyConstraint(["answer_id"], ["answer.id"], name="fk_job_answer_id"),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'done', 'failed', 'cancelled')",
            name=op.f("ck_job_state"),
        ),
        sa.CheckConstraint(
            "(state IN ('done', 'failed', 'cancelled')) = (finished_at IS NOT NULL)",
            name=op.f("ck_job_end"),
        ),
    )
    op.create_index("ix_job_state", "job", ["state", "id"])


def _forbid_changed_revisions() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION revision_immutable() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'revisions are immutable' "
            "USING ERRCODE = 'integrity_constraint_violation'; END $$"
        )
        op.execute(
            "CREATE TRIGGER revision_immutable BEFORE UPDATE ON revision "
            "FOR EACH ROW EXECUTE FUNCTION revision_immutable()"
        )
    else:
        op.execute(
            "CREATE TRIGGER revision_immutable BEFORE UPDATE ON revision "
            "BEGIN SELECT RAISE(ABORT, 'revisions are immutable'); END"
        )


def _column(name: str, kind: Any, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, **options)


def _key(name: str) -> sa.Column[Any]:
    return _column(name, KEY)
