"""Which compiled table of a revision is active.

An upgrade activates none, so that look-ups go on answering as they did. Going back forgets the
choice; the compiled tables stay.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# Text that is a key is compared byte by byte on both databases.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the choice: at most one digest a revision."""
    op.create_table(
        "active_table",
        sa.Column("profile_name", KEY, nullable=False),
        sa.Column("profile_revision", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("digest", KEY, nullable=False),
        sa.PrimaryKeyConstraint("profile_name", "profile_revision", name="pk_active_table"),
        sa.ForeignKeyConstraint(
            ["profile_name", "profile_revision"],
            ["revision.profile_name", "revision.number"],
            name="fk_active_table_profile_name",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["digest"],
            ["compiled_table.digest"],
            name="fk_active_table_digest",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_active_table_digest", "active_table", ["digest"])


def downgrade() -> None:
    """Forget the choice."""
    op.drop_table("active_table")
