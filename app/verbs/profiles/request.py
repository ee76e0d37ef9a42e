"""What contract/profiles.py asks, as the domain has it: the costs that a revision holds."""

from __future__ import annotations

from app.questions.fits import FitReference, GivenFit
from app.schemas.fit_documents import given_fit
from app.schemas.source import check_exactly_one
from app.schemas.stages import asked_aggregate, asked_pipeline
from contract.profiles import SOURCES_OF_REVISION, RevisionIn
from domain.model import CostModel


def revision_costs(asked: RevisionIn) -> CostModel | FitReference | GivenFit:
    """Return what the revision holds. Raises InvalidInput for none, and for more than one."""
    check_exactly_one({name: getattr(asked, name) for name in SOURCES_OF_REVISION})
    if asked.fit is not None:
        return given_fit(asked.fit, "fit")
    if asked.fit_id is not None:
        return FitReference(asked.fit_id)
    if asked.pipeline is not None:
        return asked_pipeline(asked.pipeline)
    assert asked.aggregate is not None
    return asked_aggregate(asked.aggregate)
