"""Verdicts on models: kept with the revision that they are on, and the exit codes that say them."""

from __future__ import annotations

from app.console.commands import opened_store
from app.settings import Settings
from domain.profile import Revision
from domain.verification import Contradiction, ModelVerdict, Verification

STOPPED, DOES_NOT_HOLD = 6, 7  # exit codes, as in the table of app/console/arguments.py
EXIT_CODES = {ModelVerdict.NOT_DECIDED: STOPPED, ModelVerdict.DOES_NOT_HOLD: DOES_NOT_HOLD}


def kept_with(
    revision: Revision | None, found: Verification, settings: Settings
) -> tuple[Verification, str]:
    """Keep a verdict with its revision where there is one. Return it with its date, and what a
    later trace says against the revision, "" for nothing.
    """
    if revision is None:
        return found, ""
    from app.questions.source import Stored

    with opened_store(settings) as store, store.unit_of_work() as unit:
        kept = unit.profiles.verify(revision.profile, revision.number, found)
        against = Stored.of_unit(unit).against(kept)
    said = against.notice().detail if isinstance(against, Contradiction) else ""
    return kept.verification or found, said
