"""The size to set, and what it rests on, as contract/tune.py sends it."""

from __future__ import annotations

from app.console.probe_race import Raced
from app.schemas.transfers import transfers_out
from app.schemas.verification import verification_out
from contract.profile import ProfileRevisionOut
from contract.tune import TunedOut
from domain.profile import Revision


def tuned_out(raced: Raced, revision: Revision) -> TunedOut:
    """Return what a race decided over the stages of this revision."""
    transfers = transfers_out(raced.decided)
    return TunedOut(
        set_bytes=transfers.set_this.size_bytes,
        is_of_model=transfers.set_this.size_bytes == raced.recommended_bytes,
        profile=ProfileRevisionOut(revision.profile, revision.number),
        transfers=transfers,
        verification=verification_out(raced.verification),
    )
