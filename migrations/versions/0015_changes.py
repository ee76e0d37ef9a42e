"""Who changed what, row by row.

Software of before goes on beside it and notes nothing. Going back forgets what was noted.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

# Text that is a key is compared byte by byte on both databases.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table, found by owner and, for what is kept no longer, by age."""
    op.create_table(
        "change",
        sa.Column("id", KEY, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("owner", KEY, nullable=False),
        sa.Column("made_by", KEY, nullable=False),
        sa.Column("key_id", KEY, nullable=True),
        sa.Column("request", KEY, nullable=True),
        sa.Column("action", KEY, nullable=False),
        sa.Column("subject", KEY, nullable=False),
        sa.Column("before", KEY, nullable=True),
        sa.Column("after", KEY, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_change"),
    )
    op.create_index("ix_change_owner", "change", ["owner", "id"])
    op.create_index("ix_change_age", "change", ["created_at"])


def downgrade() -> None:
    """Forget them."""
    op.drop_table("change")
