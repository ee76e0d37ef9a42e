"""Stored answers as parts: a list of them, and what one is called."""

from __future__ import annotations

from app.text.moments import format_minute
from app.text.units import format_time, printable
from app.ui.parts import Column, Facts, Grid, Part
from contract.answers import OptimizationsOut, SummaryOut
from domain.units import format_bytes


def listing(answers: OptimizationsOut) -> list[Part]:
    """Return a table of answers."""
    columns = [Column("id"), Column("created"), Column("message"), Column("latency")]
    last = "name or profile" if any(answer.name for answer in answers.items) else "profile"
    rows = (
        (
            answer.id,
            format_minute(answer.created_at),
            format_bytes(answer.message_bytes),
            format_time(answer.latency_us),
            printable(answer.name or (answer.profile.reference if answer.profile else "")),
        )
        for answer in answers.items
    )
    return [Grid((*columns, Column(last, is_number=False)), tuple(rows))]


def described(answer: SummaryOut) -> list[Part]:
    """Return its name and its note, each in one line; nothing where it has none."""
    facts = (("name", answer.name), ("note", answer.note))
    found = tuple((kind, printable(" ".join(text.split()))) for kind, text in facts if text)
    return [Facts(found)] if found else []
