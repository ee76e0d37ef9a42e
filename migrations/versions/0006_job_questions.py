"""What question a job answers, so that the same one is not worked on twice, and how far it is.

Jobs that were stored before have neither. Going back forgets both; jobs of tables, exports and
audits stay, and earlier software ends those that are open as failed.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the digest of the question, found by it, and the steps done of all."""
    op.add_column("job", sa.Column("request_digest", sa.String()))
    op.add_column("job", sa.Column("steps_done", sa.Integer()))
    op.add_column("job", sa.Column("steps_total", sa.Integer()))
    op.create_index("ix_job_request_digest", "job", ["request_digest", "id"])


def downgrade() -> None:
    """Forget them."""
    op.drop_index("ix_job_request_digest", "job")
    op.drop_column("job", "steps_total")
    op.drop_column("job", "steps_done")
    op.drop_column("job", "request_digest")
