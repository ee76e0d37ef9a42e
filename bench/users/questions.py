"""What a user asks, by the functions that `POST /optimize` calls, and what the answer advises."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from analysis.solve import Solved
from app.questions.question import prepare
from app.questions.source import Stored
from app.schemas.base import parse_json
from app.schemas.source import as_job
from app.verbs.optimize.answer import optimize_out
from app.verbs.optimize.operation import Optimize
from app.verbs.optimize.request import optimize_question
from bench.users.kinds import csv_of
from bench.users.machines import Row, repeated
from contract.optimize import OptimizeIn, OptimizeOut
from domain.errors import SluiceError
from domain.problem import DEFAULT_FRAGMENT_CAP
from domain.solution import Strategy

_RELATIVE_GAP = 0.005


@dataclass(frozen=True, slots=True)
class Stated:
    """What an answer says, `decision` and all; `refused` has the error where there is none.

    `advised` is the cut that is advised, and `sizes_to_set` what is said to be set where one size
    is repeated.
    """

    message_bytes: int
    answer: OptimizeOut | None
    refused: str = ""

    @property
    def decision(self) -> str:
        """`set_it` and the like; `refused` where nothing was answered."""
        if self.answer is None or self.answer.uncertainty is None:
            return "refused"
        return self.answer.uncertainty.decision

    @property
    def advised(self) -> tuple[tuple[int, ...], ...]:
        """The cuts that are advised: of the decision, and the size to repeat beside it."""
        answer = self.answer
        if answer is None or answer.uncertainty is None:
            return ()
        size = answer.uncertainty.advised_bytes
        cuts = [answer.fragment_bytes if size is None else repeated(self.message_bytes, size)]
        beside = answer.set_this
        if beside is not None and not beside.keeps_current:
            cuts.append(repeated(self.message_bytes, beside.size_bytes))
        return tuple(dict.fromkeys(cuts))


def ask_text(
    text: str,
    message_bytes: int,
    current_bytes: int | None,
    strategy: Strategy = Strategy.REPEAT,
    *,
    static_bytes: int | None = None,
    **fit_options: object,
) -> Stated:
    """Ask about a file. What is refused is said to be."""
    body: dict[str, object] = {
        "message_bytes": message_bytes,
        "measurements": {"content": text},
        "strategy": strategy,
        "relative_gap": _RELATIVE_GAP,
    }
    if static_bytes is not None:
        body["static_bytes"] = static_bytes
    if current_bytes is not None:
        body["uncertainty"] = {"current": {"repeat": current_bytes}}
    options = {name: value for name, value in fit_options.items() if value is not None}
    if options:
        body["fit_options"] = options
    asked = parse_json(OptimizeIn, json.dumps(body).encode())
    try:
        prepared = prepare(optimize_question(asked), Stored(), fragment_cap=DEFAULT_FRAGMENT_CAP)
        operation = Optimize(prepared, partial(as_job, asked))
        question = operation.asked
        answer = operation.answer(question.completed(Solved(question.solution(), 0.0)))
    except SluiceError as refusal:
        return Stated(message_bytes, None, f"{refusal.code}: {refusal.detail}")
    return Stated(message_bytes, optimize_out(answer))


def ask(
    rows: Sequence[Row],
    message_bytes: int,
    current_bytes: int | None,
    strategy: Strategy = Strategy.REPEAT,
    *,
    static_bytes: int | None = None,
) -> Stated:
    """Ask about rows of times of each stage of a pipeline, as its user says."""
    return ask_text(
        csv_of(rows),
        message_bytes,
        current_bytes,
        strategy,
        static_bytes=static_bytes,
        stages_overlap=True,
    )
