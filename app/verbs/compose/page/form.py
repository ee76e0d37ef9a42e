"""The form of a pipeline whose stages were measured each by itself: a row a stage, as typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import ClassVar, TypeAlias

from app.ui.panel.form import move_row
from contract.compose import ComposedStageIn, ComposeIn
from contract.declare import Asked, words_of
from contract.fit_options import METHODS, SHAPES
from contract.limits import MAX_STAGES
from domain.trace_formats import UnreadableRows, UnrecognisedTrace

Unread: TypeAlias = UnreadableRows | UnrecognisedTrace
COLUMNS = ("name", "trace", "stored", "step", "processor")
CHOICES = ("method", "shape")
_NEW_ROWS = 2


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """One stage as it was filled in: `trace` is the text of its measurements, and `stored` a stage
    of a stored profile in its place, as profile/stage.
    """

    name: str = ""
    trace: str = ""
    stored: str = ""
    step: str = ""
    processor: str = ""

    @property
    def is_blank(self) -> bool:
        """Whether nothing was filled in."""
        return not any(getattr(self, name) for name in COLUMNS)

    @property
    def source(self) -> str:
        """The field that its measurements are from."""
        return "stored" if self.stored and not self.trace.strip() else "trace"


@dataclass(frozen=True, slots=True)
class ComposeForm:
    """What compose.html is given.

    `mistakes` is by field and row, "" for all of it; `unread` has more to say of files of some.
    """

    rows: tuple[MeasuredRow, ...] = (MeasuredRow(),) * _NEW_ROWS
    method: str = METHODS[0][0]
    shape: str = SHAPES[0][0]
    mistakes: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, Unread] = field(default_factory=dict)
    words: ClassVar[Mapping[str, Asked]] = {
        word.name: word for word in (*words_of(ComposedStageIn), *words_of(ComposeIn))
    }

    @classmethod
    def from_pairs(cls, pairs: Sequence[tuple[str, str]]) -> ComposeForm:
        """Return the form as it was sent; one row more than there may be stages is kept."""
        given: dict[str, list[str]] = {}
        for name, value in pairs:
            given.setdefault(name, []).append(value)
        columns = [given.get(name, []) for name in COLUMNS]
        lines = list(zip_longest(*columns, fillvalue=""))[: MAX_STAGES + 1]
        rows = tuple(
            MeasuredRow(
                *(
                    text.replace("\r\n", "\n") if name == "trace" else text.strip()
                    for name, text in zip(COLUMNS, line, strict=True)
                )
            )
            for line in lines
        )
        method, shape = (
            given.get(name, [""])[-1].strip() or cls.words[name].choices[0][0] for name in CHOICES
        )
        return cls(rows or (MeasuredRow(),), method, shape)

    def changed(self, change: str) -> ComposeForm:
        """Return the form with its rows changed, for browsers that run no script."""
        rows = list(self.rows)
        verb, _, number = change.partition(".")
        if verb == "add":
            rows.append(MeasuredRow())
        elif verb == "reverse":
            rows.reverse()
        elif int(number) < len(rows):
            move_row(rows, int(number), verb)
        return replace(self, rows=tuple(rows[: MAX_STAGES + 1]) or (MeasuredRow(),))

    @property
    def filled(self) -> list[tuple[int, MeasuredRow]]:
        """The rows that are stages, with their places."""
        return [(place, row) for place, row in enumerate(self.rows) if not row.is_blank]

    @property
    def first_mistake(self) -> str:
        """The first field that is wrong, from above; "" where none is."""
        fields = (f"{name}-{row}" for row in range(len(self.rows)) for name in COLUMNS)
        return next((name for name in (*fields, *CHOICES) if name in self.mistakes), "")
