"""Answers about messages that are hidden behind a calculation.

Going back forgets them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# Text that is a key is compared byte by byte on both databases.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table, found by identifier and by question."""
    op.create_table(
        "hidden_answer",
        sa.Column("id", KEY, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("question_digest", KEY, nullable=False),
        sa.Column("cut_off", sa.Boolean(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hidden_answer"),
    )
    op.create_index("ix_hidden_answer_question", "hidden_answer", ["question_digest", "id"])


def downgrade() -> None:
    """Forget them."""
    op.drop_table("hidden_answer")
