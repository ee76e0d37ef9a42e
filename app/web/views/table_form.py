"""The form that compiles a table: texts as typed, the scope that they mean, and mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.flows.build_table import DEFAULT_GREATEST_BYTES, TableScope
from app.schemas.problems import ProblemOut
from app.schemas.tables import TableIn
from app.web.views.forms import FieldReader
from domain.errors import SluiceError
from domain.plan_table import DEFAULT_TABLE_GAP
from domain.units import format_bytes, parse_share

_FIELDS = {
    "least_bytes": "least",
    "greatest_bytes": "greatest",
    "relative_gap": "tolerance",
    "min_fragment_bytes": "min",
    "max_fragment_bytes": "max",
    "alignment_bytes": "align",
    "max_fragments": "most",
}


@dataclass(frozen=True, slots=True)
class TableForm:
    """What to compile, as typed. `mistakes` is by the field's name, "" for what fits none."""

    least: str = "1 B"
    greatest: str = format_bytes(DEFAULT_GREATEST_BYTES)
    tolerance: str = f"{100.0 * DEFAULT_TABLE_GAP:g} %"
    min: str = ""
    max: str = ""
    align: str = ""
    most: str = ""
    activate: str = ""
    mistakes: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_limits(self) -> bool:
        """Whether a limit was given, so that they are shown open."""
        return any((self.min, self.max, self.align, self.most))

    @classmethod
    def of(cls, given: Mapping[str, str]) -> TableForm:
        """As a form was sent."""
        texts = {name: given.get(name, "").strip() for name in (*_FIELDS.values(), "activate")}
        return cls(mistakes={}, **texts)

    def scope(self) -> tuple[TableScope | None, TableForm]:
        """What is to be compiled, or None and the form with its mistakes."""
        reader = FieldReader({one: getattr(self, one) for one in _FIELDS.values()})
        least, greatest = reader.size("least") or 1, reader.size("greatest")
        tolerance = reader.read("tolerance", parse_share)
        limits = reader.limits()
        if reader.mistakes:
            return None, replace(self, mistakes=reader.mistakes)
        gap = DEFAULT_TABLE_GAP if tolerance is None else tolerance
        try:
            return TableScope(limits, least, greatest or DEFAULT_GREATEST_BYTES, gap), self
        except SluiceError as refusal:
            return None, self.refused(refusal)

    @classmethod
    def of_request(cls, asked: TableIn) -> TableForm:
        """As a job was asked for it."""
        given = {**dict(asked), **dict(asked.constraints)}
        texts = {name: _text(given[key], name) for key, name in _FIELDS.items()}
        return cls(activate="yes" if asked.activate else "", mistakes={}, **texts)

    def failed(self, problem: ProblemOut) -> TableForm:
        """The form with why a job failed."""
        found = {
            _FIELDS.get(one.pointer.rpartition("/")[2], ""): one.detail for one in problem.errors
        }
        return replace(self, mistakes={name: words for name, words in found.items() if name})

    def refused(self, refusal: SluiceError) -> TableForm:
        """The form with what was refused."""
        name = _FIELDS.get((refusal.field or "").rpartition(".")[2], "")
        return replace(self, mistakes={name: refusal.detail})


def _text(value: float | None, name: str) -> str:
    """A field's text; what excludes nothing is left empty."""
    if value is None or (name in ("min", "align") and value == 1):
        return ""
    if name == "tolerance":
        return f"{100.0 * value:.12g} %"
    return str(value) if name == "most" else format_bytes(int(value))
