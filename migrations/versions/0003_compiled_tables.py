"""Compiled plan tables, by the digest of their file.

Going back drops them: each can be compiled again from its revision.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# Text that is a key is compared byte by byte on both databases.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables' rows, and their files apart."""
    op.create_table(
        "compiled_table",
        _column("digest", KEY),
        _column("id", KEY),
        _column("created_at", sa.DateTime(timezone=True)),
        _column("question_digest", KEY),
        sa.Column("profile_name", KEY),
        sa.Column("profile_revision", sa.Integer()),
        _column("least_bytes", sa.BigInteger()),
        _column("greatest_bytes", sa.BigInteger()),
        _column("relative_gap", sa.Double()),
        _column("min_fragment_bytes", sa.BigInteger()),
        sa.Column("max_fragment_bytes", sa.BigInteger()),
        _column("alignment_bytes", sa.BigInteger()),
        sa.Column("max_fragments", sa.BigInteger()),
        _column("fragment_cap", sa.BigInteger()),
        _column("worst_gap", sa.Double()),
        _column("file_bytes", sa.BigInteger()),
        sa.PrimaryKeyConstraint("digest", name="pk_compiled_table"),
        sa.ForeignKeyConstraint(
            ["profile_name", "profile_revision"],
            ["revision.profile_name", "revision.number"],
            name="fk_compiled_table_profile_name",
            ondelete="SET NULL",
        ),
    )
    op.create_index("ix_compiled_table_question", "compiled_table", ["question_digest", "id"])
    op.create_index("ix_compiled_table_profile", "compiled_table", ["profile_name", "id"])
    op.create_table(
        "compiled_table_file",
        _column("digest", KEY),
        _column("file", sa.LargeBinary()),
        _column("document", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("digest", name="pk_compiled_table_file"),
        sa.ForeignKeyConstraint(
            ["digest"],
            ["compiled_table.digest"],
            name="fk_compiled_table_file_digest",
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    """Drop the compiled tables."""
    op.drop_table("compiled_table_file")
    op.drop_table("compiled_table")


def _column(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)
