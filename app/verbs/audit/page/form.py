"""The form of an audit: declared words, and what else the page takes: stages, a fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from app.schemas.base import dump_json, parse_json
from app.schemas.stages import asked_pipeline
from app.ui.forms import RequestForm
from app.ui.panel.request import request_of
from app.ui.panel.state import InputSource, InputState, StageRow
from app.ui.words import shown
from app.verbs.audit.request import audit_question_of, audit_scope, title_of
from contract.audit import AuditIn
from contract.problem import FieldProblemOut, ProblemOut
from domain.errors import SluiceError
from exports.targets.registry import TARGETS

FORM = RequestForm(AuditIn, "audit", optional=("profile",))
_WORDS = {word.name: word for word in FORM.words}
_USUAL = {name: word.begins_with or word.usual for name, word in _WORDS.items()}
_RARER = ("workload", "objective", "over", "time_limit", "relative")  # shown open where given
_ELSEWHERE = {
    "aggregate": "costs that are known from outside",
    "measurements": "measurements",
    "fit": "a fit",
}


@dataclass(frozen=True, slots=True)
class AuditForm:
    """What is to be audited, as typed. `mistakes` is by field, "" for what fits none.

    `elsewhere` says which costs a program gave that the form has no fields for.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    stages: InputState = field(default_factory=InputState)
    mistakes: Mapping[str, str] = field(default_factory=dict)
    elsewhere: str = ""

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]]) -> AuditForm:
        """Read what a form sent, or what an address has."""
        given = list(pairs)
        texts = {name: text.strip() for name, text in given if name in _WORDS or name == "fit"}
        return cls(texts, InputState.of_form(given))

    @classmethod
    def of_request(cls, asked: AuditIn) -> AuditForm:
        """Return what a job was asked, as far as the form has fields for it."""
        texts = {name: shown(word, asked) for name, word in _WORDS.items()}
        texts["fit"] = asked.fit_id or ""
        stages = InputState(rows=())
        if asked.pipeline is not None:
            stages = stages.with_pipeline(asked_pipeline(asked.pipeline))
        elsewhere = next((words for key, words in _ELSEWHERE.items() if getattr(asked, key)), "")
        kept = {name: text for name, text in texts.items() if text}
        return cls(kept, stages, elsewhere=elsewhere)

    def text(self, name: str) -> str:
        """Return one field."""
        return self.texts.get(name) or _USUAL.get(name, "")

    @property
    def shown_texts(self) -> dict[str, str]:
        """All fields, with what is usual where nothing was typed."""
        return {name: self.text(name) for name in (*_WORDS, "fit")}

    @property
    def unusual(self) -> dict[str, str]:
        """The fields that say something else than what is usual."""
        return {name: text for name, text in self.texts.items() if text != _USUAL.get(name, "")}

    @property
    def rows(self) -> tuple[StageRow, ...]:
        """The stages that came along, where no profile is named."""
        return self.stages.given_rows

    @property
    def title(self) -> str:
        """The work in a few words."""
        return title_of(self.text("setting"))

    @property
    def is_asked(self) -> bool:
        """Whether a setting was given, so that there is something to audit."""
        return bool(self.text("setting") or self.text("configuration"))

    @property
    def has_more(self) -> bool:
        """Whether any of the rarer choices was made, so that they are shown open."""
        return any(name in self.unusual or name in self.mistakes for name in _RARER)

    @property
    def targets(self) -> tuple[tuple[str, str], ...]:
        """The libraries whose configurations can be read."""
        readable = sorted((target for target in TARGETS if target.read), key=lambda one: one.title)
        return (("", "none"), *((one.name, one.title) for one in readable))

    def query(self) -> str:
        """Return the same as the query of an address; what is usual is left out."""
        is_named = self.text("profile") or self.text("fit")
        stages = [] if is_named else self.stages.stage_pairs()
        return urlencode([*self.unusual.items(), *stages])

    def command(self) -> str:
        """Return the command that asks the same of a stored profile."""
        return FORM.shell({**dict.fromkeys(_WORDS, ""), **self.unusual})

    def files(self) -> str:
        """Return which fields stand in the files that the command reads; "" for none."""
        named = [word for word in FORM.words if word.file and self.text(word.name)]
        return "; ".join(f"{word.file} is the {word.name} that the form has" for word in named)

    def asked(self) -> tuple[AuditIn | None, AuditForm]:
        """Return the request, or None and the form with its mistakes."""
        body, mistakes = FORM.document(self.shown_texts)
        source, wrong = self._source()
        mistakes = {**self._unsaid(), **mistakes, **wrong}
        if mistakes:
            return None, replace(self, mistakes=mistakes)
        try:
            given = parse_json(AuditIn, dump_json({**body, **source}))
            audit_scope(given)
            audit_question_of(given)
        except SluiceError as refusal:
            return None, self.refused(refusal)
        return given, self

    def refused(self, refusal: SluiceError) -> AuditForm:
        """Return the form with what was refused."""
        found = FORM.mistakes(refusal)
        if list(found) == [""] and refusal.field is not None:
            found = {_place("/" + refusal.field.replace(".", "/")): refusal.detail}
        return replace(self, mistakes=found)

    def failed(self, problem: ProblemOut) -> AuditForm:
        """Return the form with why a job failed."""
        found: dict[str, str] = {}
        for fault in problem.errors or (FieldProblemOut("", problem.detail),):
            found.setdefault(_place(fault.pointer), fault.detail)
        return replace(self, mistakes=found)

    def _source(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Return where the costs come from, and what is wrong with that."""
        if self.text("profile"):
            return {}, {}
        if self.text("fit"):
            return {"fit_id": self.text("fit")}, {}
        if not self.rows:
            return {}, {"profile": "expected the name of a stored profile"}
        made = request_of(replace(self.stages, source=InputSource.TABLE, message="1 B"))
        wrong = next(iter(made.mistakes.values()), "")
        return {"pipeline": made.document["pipeline"]}, {"stages": wrong} if wrong else {}

    def _unsaid(self) -> dict[str, str]:
        """Return what is wrong unless one setting is given."""
        setting, content = self.text("setting"), self.text("configuration")
        if setting and content:
            return {"setting": "expected a setting or a configuration, not both"}
        if not (setting or content):
            return {
                "setting": "expected a size as 512 KiB, whole, or steps as whole, from 64 KiB: "
                "16 KiB; or a configuration"
            }
        if content and not self.text("target"):
            return {"target": "expected the library that reads this configuration"}
        return {}


def _place(pointer: str) -> str:
    """Return the field of a pointer; those of costs that the page has no field for are others'."""
    instead = {"/fit_id": "profile", "/pipeline": "stages"}
    at = next((name for start, name in instead.items() if pointer.startswith(start)), "")
    return at or (FORM.place(pointer) if pointer else "")
