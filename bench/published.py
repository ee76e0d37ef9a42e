"""The pipelines of the papers, and those that the project's own example measurements fit."""

from __future__ import annotations

import fitting
from app.flows.paper_profiles import paper_profiles
from bench.machine import CHECKOUT
from domain.fit import FitOptions, FitShape
from domain.pipeline import Pipeline

EXAMPLE_TRACE = CHECKOUT / "examples" / "local-path-direct.csv"


def papers() -> dict[str, Pipeline]:
    """The papers' pipelines by the names of their profiles."""
    return {profile.name: profile.pipeline for profile in paper_profiles()}


def example(shape: FitShape = FitShape.RANGES) -> Pipeline:
    """The pipeline that examples/local-path-direct.csv fits, with fit ranges where none is said."""
    reading = fitting.read(EXAMPLE_TRACE.read_bytes())
    model = fitting.fit([reading], FitOptions(shape=shape)).to_model()
    if not isinstance(model, Pipeline):
        raise AssertionError("the example measures stages")
    return model
