"""How many bytes each owner has stored is a row, which what stores and deletes keeps right.

What is there is counted now. Software of before does not count: what it stores and deletes beside
this version is found by the next recount. Going back forgets the figures.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

# Text that is a key is compared byte by byte on both databases.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
_BYTES = {
    "answer": ((), ("name", "note")),
    "hidden_answer": (("body",), ()),
    "trace": (("compressed",), ()),
    "fit": ((), ("document", "request")),
    "revision": ((), ("pipeline", "detail")),
    "verification": ((), ("document",)),
    "compiled_table_file": (("file", "document"), ()),
    "job": (("request",), ()),
    "request_key": (("headers", "body"), ()),
}


def upgrade() -> None:
    """Add the table, and count."""
    op.create_table(
        "owner_bytes",
        sa.Column("owner", KEY, nullable=False),
        sa.Column("stored_bytes", sa.BigInteger(), nullable=False),
        sa.Column("recounts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_owner_bytes"),
    )
    counts = [
        f"SELECT owner, {_sum(*columns)} AS bytes FROM {table}" for table, columns in _BYTES.items()
    ]
    counts += [
        "SELECT answer.owner, length(answer_body.body) AS bytes FROM answer_body "
        "JOIN answer ON answer.id = answer_body.answer_id",
        f"SELECT owner, {_sum(('best', 'history', 'error'), ())} AS bytes FROM job "
        "WHERE finished_at IS NOT NULL",
    ]
    op.execute(
        "INSERT INTO owner_bytes (owner, stored_bytes, recounts) "
        f"SELECT owner, sum(bytes), 0 FROM ({' UNION ALL '.join(counts)}) AS counted GROUP BY owner"
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("owner_bytes")


def _sum(of_bytes: tuple[str, ...], of_text: tuple[str, ...]) -> str:
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    text = "length(CAST({} AS BLOB))" if is_sqlite else "octet_length({})"
    lengths = [f"length({name})" for name in of_bytes] + [text.format(name) for name in of_text]
    return " + ".join(f"coalesce({length}, 0)" for length in lengths)
