"""A key may have the scope `metrics`.

PostgreSQL changes its rule in place. SQLite cannot: there the table is copied. Going back forgets
keys of that scope, which software of before does not know.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

# Text that is a key is compared byte by byte on both databases.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TIME = sa.DateTime(timezone=True)
BEFORE = "scope IN ('read', 'write', 'admin')"
AFTER = "scope IN ('read', 'write', 'admin', 'metrics')"
_COPY = "copy_of_api_key"


def upgrade() -> None:
    """Allow the scope."""
    _replace_rule(AFTER)


def downgrade() -> None:
    """Allow it no longer."""
    op.execute("DELETE FROM api_key WHERE scope = 'metrics'")
    _replace_rule(BEFORE)


def _replace_rule(rule: str) -> None:
    if op.get_bind().dialect.name == "sqlite":
        _copy(rule)
        return
    op.drop_constraint(op.f("ck_api_key_scope"), "api_key", type_="check")
    op.create_check_constraint(op.f("ck_api_key_scope"), "api_key", rule)


def _copy(rule: str) -> None:
    """Copy the table; the copy names itself, so that no row goes with the table that is dropped."""
    columns: list[Any] = [
        sa.Column("id", KEY, nullable=False),
        sa.Column("owner", KEY, nullable=False),
        sa.Column("name", KEY, nullable=False),
        sa.Column("digest", KEY, nullable=False),
        sa.Column("scope", KEY, nullable=False),
        sa.Column("parent", KEY, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=True),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.Column("requests_per_s", sa.Integer(), nullable=True),
    ]
    listed = ", ".join(column.name for column in columns)
    op.create_table(
        _COPY,
        *columns,
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
        sa.CheckConstraint(rule, name=op.f("ck_api_key_scope")),
        sa.ForeignKeyConstraint(
            ["parent"], [f"{_COPY}.id"], name="fk_api_key_parent", ondelete="CASCADE"
        ),
    )
    # Keys before those of browsers, which name them.
    op.execute(
        f"INSERT INTO {_COPY} ({listed}) SELECT {listed} FROM api_key ORDER BY parent IS NOT NULL"
    )
    op.drop_table("api_key")
    op.rename_table(_COPY, "api_key")
    op.create_index("uq_api_key_digest", "api_key", ["digest"], unique=True)
    op.create_index("ix_api_key_owner", "api_key", ["owner", "id"])
