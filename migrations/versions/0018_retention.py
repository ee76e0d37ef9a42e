"""What is kept is in the database, so that whichever process deletes knows it.

Software of before deletes by the environment of its own process. Going back forgets the rules.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

# Text that is a key is compared byte by byte on both databases.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "retention",
        sa.Column("owner", KEY, nullable=False),
        sa.Column("rules", sa.Text(), nullable=False),
        sa.Column("set_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_retention"),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("retention")
