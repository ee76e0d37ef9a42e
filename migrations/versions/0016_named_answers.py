"""Stored answers may have a name and a note.

Software of before reads and writes answers as it did. Going back forgets names and notes.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

# Text that is a key is compared byte by byte on both databases.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add both columns."""
    op.add_column("answer", sa.Column("name", KEY, nullable=True))
    op.add_column("answer", sa.Column("note", KEY, nullable=True))


def downgrade() -> None:
    """Drop both."""
    op.drop_column("answer", "note")
    op.drop_column("answer", "name")
