"""The form of a compilation: texts in, what to compile or mistakes by field out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.questions.tables import TableScope
from app.ui.fields import FieldReader
from contract.limits import DEFAULT_TABLE_GAP, DEFAULT_TABLE_MESSAGE_BYTES
from contract.problem import ProblemOut
from contract.table import TableIn
from domain.errors import SluiceError
from domain.units import format_bytes, parse_share

_FIELDS = {
    "min_message_bytes": "min_message",
    "max_message_bytes": "max_message",
    "relative_gap": "tolerance",
    "min_fragment_bytes": "min",
    "max_fragment_bytes": "max",
    "alignment_bytes": "align",
    "max_fragments": "max_fragments",
}


@dataclass(frozen=True, slots=True)
class TableForm:
    """What to compile, as typed. `mistakes` is by the field's name, "" for what fits none."""

    min_message: str = "1 B"
    max_message: str = format_bytes(DEFAULT_TABLE_MESSAGE_BYTES)
    tolerance: str = f"{100.0 * DEFAULT_TABLE_GAP:g} %"
    min: str = ""
    max: str = ""
    align: str = ""
    max_fragments: str = ""
    activate: str = ""
    mistakes: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_limits(self) -> bool:
        """Whether a limit was given, so that they are shown open."""
        return any((self.min, self.max, self.align, self.max_fragments))

    @classmethod
    def of(cls, given: Mapping[str, str]) -> TableForm:
        """Return the form as it was sent."""
        texts = {name: given.get(name, "").strip() for name in (*_FIELDS.values(), "activate")}
        return cls(mistakes={}, **texts)

    def scope(self) -> tuple[TableScope | None, TableForm]:
        """Return what is to be compiled, or None and the form with its mistakes."""
        reader = FieldReader({one: getattr(self, one) for one in _FIELDS.values()})
        min_message, max_message = reader.size("min_message") or 1, reader.size("max_message")
        tolerance = reader.read("tolerance", parse_share)
        limits = reader.limits()
        if reader.mistakes:
            return None, replace(self, mistakes=reader.mistakes)
        gap = DEFAULT_TABLE_GAP if tolerance is None else tolerance
        try:
            return TableScope(
                limits, min_message, max_message or DEFAULT_TABLE_MESSAGE_BYTES, gap
            ), self
        except SluiceError as refusal:
            return None, self.refused(refusal)

    @classmethod
    def of_request(cls, asked: TableIn) -> TableForm:
        """Return the form as a job was asked."""
        given = {**vars(asked), **vars(asked.constraints)}
        texts = {name: _text(given[key], name) for key, name in _FIELDS.items()}
        return cls(activate="yes" if asked.activate else "", mistakes={}, **texts)

    def failed(self, problem: ProblemOut) -> TableForm:
        """Return the form with why a job failed."""
        found = {
            _FIELDS.get(one.pointer.rpartition("/")[2], ""): one.detail for one in problem.errors
        }
        return replace(self, mistakes={name: words for name, words in found.items() if name})

    def refused(self, refusal: SluiceError) -> TableForm:
        """Return the form with what was refused."""
        name = _FIELDS.get((refusal.field or "").rpartition(".")[2], "")
        return replace(self, mistakes={name: refusal.detail})


def _text(value: float | None, name: str) -> str:
    """Return a field's text; what excludes nothing is left empty."""
    if value is None or (name in ("min", "align") and value == 1):
        return ""
    if name == "tolerance":
        return f"{100.0 * value:.12g} %"
    return str(value) if name == "max_fragments" else format_bytes(int(value))
