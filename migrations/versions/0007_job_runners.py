"""Which process runs a job, so that one that starts leaves alone what another one is at.

Jobs that were stored before have none. Going back forgets it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the name of the process."""
    op.add_column("job", sa.Column("runner", sa.String()))


def downgrade() -> None:
    """Forget the names."""
    op.drop_column("job", "runner")
