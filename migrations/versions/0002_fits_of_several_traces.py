"""Fits of several traces, and how a fit was asked for.

Going back keeps every fit, with the first of its traces.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Text that is a key is compared byte by byte on both databases.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the further traces of a fit, and its request."""
    op.add_column("fit", sa.Column("request", sa.Text()))
    op.create_table(
        "further_trace",
        sa.Column("fit_id", KEY, nullable=False),
        sa.Column("place", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("trace_digest", KEY, nullable=False),
        sa.PrimaryKeyConstraint("fit_id", "place", name="pk_further_trace"),
        sa.ForeignKeyConstraint(
            ["fit_id"], ["fit.id"], name="fk_further_trace_fit_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["trace_digest"], ["trace.digest"], name="fk_further_trace_trace_digest"
        ),
    )
    op.create_index("ix_further_trace_trace_digest", "further_trace", ["trace_digest"])


def downgrade() -> None:
    """Back to one trace a fit."""
    op.drop_table("further_trace")
    op.drop_column("fit", "request")
