"""The form of a compilation: declared words, as they were typed or as a job was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.ui.forms import RequestForm
from app.ui.words import shown
from app.verbs.table.request import scope_of
from contract.problem import ProblemOut
from contract.table import TableIn
from domain.errors import SluiceError

FORM = RequestForm(TableIn, "table", check=scope_of)
_LIMITS = tuple(word for word in FORM.words if word.place[0] == "constraints")


@dataclass(frozen=True, slots=True)
class TableForm:
    """What to compile, as typed. `mistakes` is by the field's name, "" for what fits none."""

    texts: Mapping[str, str] = field(default_factory=FORM.first_texts)
    mistakes: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_limits(self) -> bool:
        """Whether a limit was given, so that they are shown open."""
        return any(self.texts[word.name] for word in _LIMITS)

    @classmethod
    def from_texts(cls, given: Mapping[str, str]) -> TableForm:
        """Return the form as it was sent."""
        return cls({word.name: given.get(word.name, "").strip() for word in FORM.words})

    @classmethod
    def of_request(cls, asked: TableIn) -> TableForm:
        """Return the form as a job was asked; limits that exclude nothing are left empty."""
        texts = {word.name: shown(word, asked) for word in FORM.words}
        given = asked.constraints.said()
        unsaid = (word.name for word in _LIMITS if word.place[-1] not in given)
        return cls({**texts, **dict.fromkeys(unsaid, "")})

    def asked(self) -> tuple[TableIn | None, TableForm]:
        """Return the request, or None and the form with its mistakes."""
        asked, mistakes = FORM.asked(self.texts)
        return asked, replace(self, mistakes=mistakes)

    def failed(self, problem: ProblemOut) -> TableForm:
        """Return the form with why a job failed, where that is a field's."""
        found = {FORM.place(fault.pointer): fault.detail for fault in problem.errors}
        return replace(self, mistakes={name: words for name, words in found.items() if name})

    def refused(self, refusal: SluiceError) -> TableForm:
        """Return the form with what was refused."""
        return replace(self, mistakes=FORM.mistakes(refusal))

    def command(self, reference: str) -> str:
        """Return the command that compiles the same for this revision of a profile."""
        return FORM.shell(self.texts, (reference,))
