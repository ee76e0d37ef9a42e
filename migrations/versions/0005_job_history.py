"""How the best answer of a job and the bound on it came about.

Jobs that were stored before have no history. Going back forgets it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the history, JSON."""
    op.add_column("job", sa.Column("history", sa.LargeBinary()))


def downgrade() -> None:
    """Forget the histories."""
    op.drop_column("job", "history")
