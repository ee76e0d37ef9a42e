"""What contract/optimize.py declares, as the domain has it: a message and what it crosses."""

from __future__ import annotations

from app.questions.question import Question, UncertaintyOptions
from app.questions.transfers import TransfersQuestion
from app.schemas.items import refuse_fill_alone
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
    refuse_fill_alone(asked.fill)
    return Question(
        message_bytes=_message_bytes(asked),
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
        transfers=_transfers_question(asked),
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


def _message_bytes(asked: OptimizeIn) -> int:
    """The size of the message. Raises InvalidFields, as for any field that is required."""
    if asked.message_bytes is None:
        rule = "this field is required"
        where = "/message_bytes"
        raise InvalidFields(f"{where}: {rule}", problems=(FieldProblem(where, rule),))
    return asked.message_bytes


def _transfers_question(asked: OptimizeIn) -> TransfersQuestion | None:
    if asked.transfers is None:
        return None
    known = draws_of(asked.uncertainty) if asked.uncertainty else UncertaintyOptions()
    return transfers_question(
        asked.transfers,
        _message_bytes(asked),
        current_bytes=known.current_bytes,
        sends_whole=known.sends_whole,
    )
