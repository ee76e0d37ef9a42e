"""Stored answers for tests that need no service."""

from __future__ import annotations

from app.questions.question import Question, prepare
from app.questions.source import Stored
from app.verbs.optimize.answer import conclude, optimize_out
from contract.optimize import OptimizeOut
from domain.model import CostModel
from solvers import solve


def solved(model: CostModel, message_bytes: int = 128) -> OptimizeOut:
    """Return the answer to a question about this model, as it is stored."""
    question = Question(message_bytes=message_bytes, source=model)
    prepared = prepare(question, Stored(), fragment_cap=100_000)
    solution = solve(prepared.problem, question.strategy, relative_gap=question.relative_gap)
    return optimize_out(conclude(prepared, solution, solve_ms=1.0))
