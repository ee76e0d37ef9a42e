"""What transfers said of a revision's model.

Revisions that were stored before have none. Going back forgets all.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# Text that is a key is compared byte by byte on both databases.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table: at most one verification a revision."""
    op.create_table(
        "verification",
        sa.Column("profile_name", KEY, nullable=False),
        sa.Column("profile_revision", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("profile_name", "profile_revision", name="pk_verification"),
        sa.ForeignKeyConstraint(
            ["profile_name", "profile_revision"],
            ["revision.profile_name", "revision.number"],
            name="fk_verification_profile_name",
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    """Forget them."""
    op.drop_table("verification")
