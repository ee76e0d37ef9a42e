"""sluice answers: list stored ones, name one, or show one as it was given."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from app.console.reports import answer_parts
from app.console.stored import emit, limit_of, owned_store
from app.text.moments import format_minute
from app.text.units import format_time, printable
from app.ui.parts import Column, Facts, Grid, Part
from app.ui.terminal import Output
from domain.profile import ProfileReference
from domain.units import format_bytes

if TYPE_CHECKING:
    from models.records import AnswerSummary
    from models.session import Store


def answers(arguments: argparse.Namespace, output: Output) -> int:
    """List stored answers, name one, or show one as it was given."""
    from app.questions.optimize import describe_answer, get_answer
    from app.schemas.answers import summary_out
    from app.schemas.optimize import read_answer

    with owned_store(arguments) as store:
        if arguments.verb == "name":
            given = describe_answer(store, arguments.id, name=arguments.name, note=arguments.note)
            emit(summary_out(given.summary()), output, _described(given.summary()))
            return 0
        if arguments.verb != "show":
            _list_answers(store, arguments, output)
            return 0
        record = get_answer(store, arguments.id)
    if output.wants_json:
        output.document(record.body)
    else:
        width, ink = output.out.width, output.out.ink
        found = answer_parts(read_answer(record.body), width=width, ink=ink)
        output.parts([*_described(record.summary()), *found])
    return 0


def _described(answer: AnswerSummary) -> list[Part]:
    facts = (("name", answer.name), ("note", answer.note))
    found = tuple((kind, printable(" ".join(text.split()))) for kind, text in facts if text)
    return [Facts(found)] if found else []


def _list_answers(store: Store, arguments: argparse.Namespace, output: Output) -> None:
    from app.questions.optimize import AnswerFilter, list_answers
    from app.schemas.answers import answers_out

    name = getattr(arguments, "profile", None)
    wanted = AnswerFilter(message_bytes=getattr(arguments, "bytes", None))
    if name is not None:
        of = ProfileReference.parse(name)
        wanted = replace(wanted, profile=of.name, revision=of.revision)
    listed = answers_out(list_answers(store, wanted, limit=limit_of(arguments)))
    columns = [Column("id"), Column("created"), Column("message"), Column("latency")]
    last = "name or profile" if any(one.name for one in listed.items) else "profile"
    rows = tuple(
        (
            one.id,
            format_minute(one.created_at),
            format_bytes(one.message_bytes),
            format_time(one.latency_us),
            printable(one.name or (one.profile.reference if one.profile else "")),
        )
        for one in listed.items
    )
    emit(listed, output, [Grid((*columns, Column(last, is_number=False)), rows)])
