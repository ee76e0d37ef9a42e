"""What a user's own transfers decide, printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.terminal import Output

if TYPE_CHECKING:
    from app.questions.transfers import DecidedTransfers

NOT_DECIDED = 6  # the exit code, as in the table of app/console/arguments.py


def show_decided(decided: DecidedTransfers, output: Output) -> int:
    """Print a decision; the exit code is 0 where a size is set or kept."""
    from app.schemas.base import dump_json
    from app.schemas.transfers import transfers_out
    from app.ui.transfers import transfers_parts

    found = transfers_out(decided)
    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(transfers_parts(found))
    return 0 if found.is_decided else NOT_DECIDED
