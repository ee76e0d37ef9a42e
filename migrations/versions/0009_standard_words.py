"""Standard words: ranges of messages are `min_message_bytes` to `max_message_bytes`.

The columns of compiled tables have those names, and what jobs of tables, exports and audits keep of
their requests has them too, with `workload` for what was `mix`, so that a job that waits is still
understood. Stored answers and results stay as the bytes that were sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

COLUMNS = {"least_bytes": "min_message_bytes", "greatest_bytes": "max_message_bytes"}
KEYS = {**COLUMNS, "mix": "workload"}
KINDS = ("table", "export", "audit")

_JOB = sa.table(
    "job",
    sa.column("id", sa.String),
    sa.column("kind", sa.String),
    sa.column("request", sa.LargeBinary),
)


def upgrade() -> None:
    """Rename columns and keys."""
    for old, new in COLUMNS.items():
        op.alter_column("compiled_table", old, new_column_name=new)
    _rename_keys(KEYS)


def downgrade() -> None:
    """Rename them back."""
    for old, new in COLUMNS.items():
        op.alter_column("compiled_table", new, new_column_name=old)
    _rename_keys({new: old for old, new in KEYS.items()})


def _rename_keys(names: Mapping[str, str]) -> None:
    connection = op.get_bind()
    jobs = connection.execute(sa.select(_JOB.c.id, _JOB.c.request).where(_JOB.c.kind.in_(KINDS)))
    for identifier, request in jobs.all():
        asked = json.loads(request)
        renamed = {names.get(key, key): value for key, value in asked.items()}
        if renamed != asked:
            body = json.dumps(renamed, ensure_ascii=False, separators=(",", ":")).encode()
            connection.execute(_JOB.update().where(_JOB.c.id == identifier).values(request=body))
