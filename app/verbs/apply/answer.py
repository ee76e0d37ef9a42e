"""What contract/apply.py declares, made of trials over an installed library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.schemas.settings import finite
from contract.apply import ComparedOut, TrialOut

if TYPE_CHECKING:
    from measuring.trials import Trial


def trial_out(trial: Trial) -> TrialOut:
    """Return a trial as it is printed."""
    rows = (
        ComparedOut(
            pair.program,
            pair.message_bytes,
            pair.before_us,
            finite(pair.after_us),
            finite(pair.ratio),
            finite(pair.low),
            finite(pair.high),
            pair.outcome,
        )
        for pair in trial.compared
    )
    return TrialOut(trial.pairs, trial.failure, tuple(rows))
