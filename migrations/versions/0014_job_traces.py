"""Jobs know the trace of the request that asked for them, and are found by their answers.

Software of before reads and writes such rows as it did. Going back forgets the traces.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

# Text that is a key is compared byte by byte on both databases.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
_HAS_ANSWER = sa.text("answer_id IS NOT NULL")


def upgrade() -> None:
    """Add the column and the index."""
    op.add_column("job", sa.Column("trace", KEY, nullable=True))
    op.create_index(
        "ix_job_answer",
        "job",
        ["answer_id"],
        sqlite_where=_HAS_ANSWER,
        postgresql_where=_HAS_ANSWER,
    )


def downgrade() -> None:
    """Drop both."""
    op.drop_index("ix_job_answer", "job")
    op.drop_column("job", "trace")
