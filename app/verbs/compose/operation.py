"""Compose: stages with files of their own, prepared as one fit of all files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.operations.fits import FitTraces
from app.questions.fits import loaded_measurements
from app.verbs.compose.request import composed_measurements, composed_options
from contract.compose import ComposeIn
from models.records import FitRequest

if TYPE_CHECKING:
    from app.settings import Settings


def operation(asked: ComposeIn, settings: Settings) -> FitTraces:
    """Return the fit of all stages. Raises InvalidInput and UnreadableTrace."""
    traces, kinds = loaded_measurements(composed_measurements(asked))
    return FitTraces(
        traces,
        FitRequest(composed_options(asked), kinds=kinds),
        settings.max_fragments,
        wants_plot=asked.plot,
        save_as=asked.save_as,
    )
