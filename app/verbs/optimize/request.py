"""What contract/optimize.py declares, as the domain has it: a message and what it crosses."""

from __future__ import annotations

from app.questions.question import Question, UncertaintyOptions
from app.questions.transfers import TransfersQuestion
from app.schemas.items import fill_alone
from app.schemas.source import options_of, source_of
from app.schemas.stages import limits_of
from app.schemas.transfers import transfers_question
from app.schemas.uncertainty import draws_of
from contract.optimize import OptimizeIn
from contract.source import SOURCES
from domain.errors import FieldProblem, InconsistentInput, InvalidFields
from domain.solution import Strategy

_OWN_TRANSFERS = frozenset({"message_bytes", "transfers", "uncertainty"})


def optimize_question(asked: OptimizeIn) -> Question:
    """Return the question, of a message that may be cut at any byte. Raises InvalidInput for
    sources or fields that exclude others.
    """
    if asked.fill is not None:
        raise fill_alone()
    if asked.uncertainty is not None and asked.uncertainty.ready_relative is not None:
        raise InconsistentInput(
            "ready_relative goes with items alone", field="uncertainty.ready_relative"
        )
    if asked.message_bytes is None:
        raise _without_message()
    return Question(
        message_bytes=asked.message_bytes,
        source=source_of(asked),
        strategy=Strategy(asked.strategy),
        static_bytes=asked.static_bytes,
        limits=limits_of(asked.constraints),
        allow_refragmentation=asked.allow_refragmentation,
        relative_gap=asked.relative_gap,
        time_limit_s=asked.time_limit_s,
        save_as=asked.save_as,
        fit_options=options_of(asked),
        uncertainty=draws_of(asked.uncertainty) if asked.uncertainty else None,
        transfers=_transfers_question(asked) if asked.transfers else None,
    )


def alone_question(asked: OptimizeIn) -> TransfersQuestion | None:
    """Return what is asked of own transfers alone, None of a question about a model. Raises
    InvalidInput.
    """
    if asked.transfers is None or any(getattr(asked, name) is not None for name in SOURCES):
        return None
    for name in sorted(asked.said().keys() - _OWN_TRANSFERS):
        raise InconsistentInput(
            "own transfers decide alone, among the sizes that were transferred", field=name
        )
    return _transfers_question(asked)


def _without_message() -> InvalidFields:
    """The refusal of any field that is required."""
    where, rule = "/message_bytes", "this field is required"
    return InvalidFields(f"{where}: {rule}", problems=(FieldProblem(where, rule),))


def _transfers_question(asked: OptimizeIn) -> TransfersQuestion | None:
    if asked.transfers is None:
        return None
    if asked.message_bytes is None:
        raise _without_message()
    known = draws_of(asked.uncertainty) if asked.uncertainty else UncertaintyOptions()
    return transfers_question(
        asked.transfers,
        asked.message_bytes,
        current_bytes=known.current_bytes,
        sends_whole=known.sends_whole,
    )
