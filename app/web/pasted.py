"""A fit of what was pasted into the panel, which has an address of its own."""

from __future__ import annotations

from dataclasses import replace

from fastapi import Request

from app.errors import kind_of
from app.questions.fits import known_kind, utf8
from app.questions.traces import LoadedTrace
from app.ui.panel.choices import run_of, said_of
from app.ui.panel.form import InvalidForm
from app.ui.panel.request import request_of
from app.ui.panel.state import InputState
from app.web.fitted import fit_and_store
from domain.conditions import RowChoice
from domain.errors import Overloaded, SluiceError
from domain.fit import FitMethod, FitOptions, FitShape
from domain.trace_formats import UnreadableRows, UnrecognisedTrace
from models.records import FitRequest

_OF_THE_TRACE = (
    *("trace", "kind", "columns", "test", "run", "where", "stages_overlap", "current"),
)


async def fit_of_entry(request: Request, entry: InputState) -> str:
    """Fit and store what was pasted into the panel. Raises InvalidForm where that is wrong."""
    read = request_of(entry)
    wrong = {name: words for name, words in read.mistakes.items() if name in _OF_THE_TRACE}
    if wrong:
        raise InvalidForm(entry.with_mistakes(wrong))
    try:
        trace = LoadedTrace.of(utf8(entry.trace))
        return await fit_and_store(request, (trace,), fit_request_of(entry))
    except SluiceError as refusal:
        if isinstance(refusal, Overloaded) or kind_of(refusal.code).status >= 500:
            raise
        place = refusal.field if refusal.field in _OF_THE_TRACE else "trace"
        assert place is not None
        marked = entry.with_mistakes({place: refusal.detail})
        unread = refusal if isinstance(refusal, UnrecognisedTrace | UnreadableRows) else None
        raise InvalidForm(replace(marked, unread=unread)) from None


def fit_request_of(entry: InputState) -> FitRequest:
    """Return how to fit, with the default method for an unknown one. Raises UnreadableTrace, and
    InvalidInput for what does not go together.
    """
    method = entry.method if entry.method in tuple(FitMethod) else FitMethod.ROBUST
    shape = entry.shape if entry.shape == FitShape.LINE else FitShape.RANGES
    options = FitOptions(
        FitMethod(method),
        FitShape(shape),
        columns=entry.columns or None,
        choice=RowChoice(entry.test or None, run_of(entry.run), entry.where or None),
        several_at_once=said_of(entry.several_at_once),
        stages_overlap=said_of(entry.stages_overlap),
    )
    return FitRequest(options, None, (known_kind(entry.kind or None),))
