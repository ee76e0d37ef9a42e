"""Keys of requests, and what was answered to each.

Going back forgets them: a request that is repeated then is done again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# Text that is a key is compared byte by byte on both databases.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table, one row for each key of an owner, found by age as well."""
    op.create_table(
        "request_key",
        sa.Column("owner", KEY, nullable=False),
        sa.Column("key", KEY, nullable=False),
        sa.Column("token", KEY, nullable=False),
        sa.Column("process", KEY, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("touched_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("fingerprint", KEY, nullable=True),
        sa.Column("body_bytes", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("headers", sa.LargeBinary(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("owner", "key", name="pk_request_key"),
    )
    op.create_index("ix_request_key_age", "request_key", ["created_at"])


def downgrade() -> None:
    """Forget them."""
    op.drop_table("request_key")
