"""The form of an audit: texts as typed, the request that they make, and mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import urlencode

from fastapi import Request, Response

from app.errors import field_problems
from app.schemas.audit import audit_question_of, audit_scope
from app.schemas.base import dump_json, parse_json
from app.schemas.stages import asked_pipeline
from app.text.numbers import format_step_size
from app.text.units import parse_setting, parse_workload
from app.ui.fields import FieldReader
from app.ui.pages import page
from app.web.workbench.request import request_of
from app.web.workbench.state import InputSource, InputState, StageRow
from contract.audit import AuditIn
from contract.limits import DEFAULT_AUDIT_LIMIT_S, MAX_AUDIT_LIMIT_S
from contract.problem import FieldProblemOut, ProblemOut
from contract.setting import ConfiguredIn, StaticIn, StepsIn, WholeIn
from contract.workload import WorkloadSizeIn
from domain.errors import InvalidInput, SluiceError
from domain.regret import Objective
from domain.units import format_bytes, parse_share
from exports.targets.registry import TARGETS

MAX_ADDRESS = 6_000  # characters of a query that browsers, proxies and mail programs pass on whole
MAX_TITLE = 40  # characters of a setting
OBJECTIVES = (
    ("", "total time of a workload, mean regret of a range"),
    (Objective.TIME.value, "total time"),
    (Objective.MEAN.value, "mean regret"),
    (Objective.WORST.value, "worst regret"),
)
_DEFAULT = {"objective": "", "over": "best", "time_limit": f"{DEFAULT_AUDIT_LIMIT_S:g}"}
_TEXTS = (
    "profile",
    "fit",
    "setting",
    "target",
    "configuration",
    "min_message",
    "max_message",
    "workload",
    "max_regret",
)
_STAGES = ("name", "overhead", "cost", "up_to")
_UNITS = ("overhead_unit", "cost_unit", "delay")
# From the beginning of a JSON pointer to the field that it is about.
_PLACES = (
    ("/setting/configuration/target", "target"),
    ("/setting/configuration", "configuration"),
    ("/setting", "setting"),
    ("/profile", "profile"),
    ("/fit_id", "profile"),
    ("/pipeline", "stages"),
    ("/min_message_bytes", "min_message"),
    ("/max_message_bytes", "max_message"),
    ("/workload", "workload"),
    ("/objective", "objective"),
    ("/max_regret", "max_regret"),
    ("/over", "over"),
    ("/time_limit_s", "time_limit"),
)

_ELSEWHERE = {
    "aggregate": "costs that are known from outside",
    "measurements": "measurements",
    "fit": "a fit",
}

T = TypeVar("T")


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
    def of(cls, pairs: Iterable[tuple[str, str]]) -> AuditForm:
        """Read what a form sent, or what an address has."""
        given = list(pairs)
        names = (*_TEXTS, *_DEFAULT)
        texts = {name: value.strip() for name, value in given if name in names}
        return cls(texts, InputState.of_form(given))

    def text(self, name: str) -> str:
        """Return one field."""
        return self.texts.get(name) or _DEFAULT.get(name, "")

    def is_default(self, name: str) -> bool:
        """Return whether a field has what it has by default."""
        return self.text(name) == _DEFAULT.get(name, "")

    @property
    def rows(self) -> tuple[StageRow, ...]:
        """The stages that came along, where no profile is named."""
        return tuple(row for row in self.stages.rows if not row.is_blank)

    @property
    def title(self) -> str:
        """The work in a few words."""
        setting = self.text("setting") or "a configuration"
        return f"Auditing {setting if len(setting) <= MAX_TITLE else 'steps by message size'}"

    @property
    def is_asked(self) -> bool:
        """Whether a setting was given, so that there is something to audit."""
        return bool(self.text("setting") or self.text("configuration"))

    @classmethod
    def of_request(cls, asked: AuditIn) -> AuditForm:
        """Return what a job was asked, as far as the form has fields for it."""
        texts = {
            "profile": asked.profile or "",
            "fit": asked.fit_id or "",
            **_setting_texts(asked.setting),
            "min_message": _format_size(asked.min_message_bytes),
            "max_message": _format_size(asked.max_message_bytes),
            "workload": "\n".join(workload_lines(asked.workload or ())),
            "max_regret": _format_share(asked.max_regret),
            "objective": asked.objective or "",
            "over": str(asked.over),
            "time_limit": f"{asked.time_limit_s:g}",
        }
        stages = InputState(rows=())
        if asked.pipeline is not None:
            stages = stages.with_pipeline(asked_pipeline(asked.pipeline))
        elsewhere = next((words for key, words in _ELSEWHERE.items() if getattr(asked, key)), "")
        kept = {name: text for name, text in texts.items() if text}
        return cls(kept, stages, elsewhere=elsewhere)

    @property
    def has_more(self) -> bool:
        """Whether any of the rarer choices was made, so that they are shown open."""
        rarer = ("workload", "objective", "over", "time_limit")
        return any(self.text(name) != _DEFAULT.get(name, "") for name in rarer) or any(
            name in self.mistakes for name in rarer
        )

    @property
    def objectives(self) -> tuple[tuple[str, str], ...]:
        """What may be held against the limit; the first of them unless another is chosen."""
        return OBJECTIVES

    @property
    def targets(self) -> tuple[tuple[str, str], ...]:
        """The libraries whose configurations can be read."""
        readable = sorted((one for one in TARGETS if one.read), key=lambda one: one.title)
        return (("", "none"), *((one.name, one.title) for one in readable))

    def query(self) -> str:
        """Return the same as the query of an address; defaults are left out."""
        pairs = [(name, text) for name, text in self.texts.items() if text]
        pairs = [pair for pair in pairs if _DEFAULT.get(pair[0]) != pair[1]]
        if not (self.text("profile") or self.text("fit")):
            pairs += [(name, getattr(row, name)) for row in self.rows for name in _STAGES]
            pairs += self.units() if self.rows else []
        return urlencode(pairs)

    def units(self) -> list[tuple[str, str]]:
        """Return the units of the stages that came along, and their delay."""
        return [(name, str(getattr(self.stages, name))) for name in _UNITS]

    def asked(self) -> tuple[AuditIn | None, AuditForm]:
        """Return the request, or None and the form with its mistakes."""
        reader = FieldReader(self.texts)
        body = self._body(reader)
        if reader.mistakes:
            return None, replace(self, mistakes=reader.mistakes)
        try:
            given = parse_json(AuditIn, dump_json(body))
            audit_scope(given)
            audit_question_of(given)
        except SluiceError as refusal:
            return None, self.refused(refusal)
        return given, self

    def refused(self, refusal: SluiceError) -> AuditForm:
        """Return the form with what was refused."""
        found: dict[str, str] = {}
        for problem in field_problems(refusal):
            found.setdefault(_place(problem.pointer), problem.detail)
        if not found:
            at = (refusal.field or "").replace(".", "/")
            found[_place(f"/{at}")] = refusal.detail
        return replace(self, mistakes=found)

    def failed(self, problem: ProblemOut) -> AuditForm:
        """Return the form with why a job failed."""
        found: dict[str, str] = {}
        for fault in problem.errors or (FieldProblemOut("", problem.detail),):
            found.setdefault(_place(fault.pointer), fault.detail)
        return replace(self, mistakes=found)

    def _body(self, reader: FieldReader) -> dict[str, Any]:
        time_limit = reader.read("time_limit", _seconds)
        optional = {
            "min_message_bytes": reader.size("min_message"),
            "max_message_bytes": reader.size("max_message"),
            "max_regret": reader.read("max_regret", parse_share),
            "workload": _long(reader, "workload", parse_workload),
            "objective": self.text("objective") or None,
            "time_limit_s": time_limit,
        }
        return {
            **self._source(reader),
            "setting": self._setting(reader),
            "over": self.text("over"),
            **{name: value for name, value in optional.items() if value is not None},
        }

    def _source(self, reader: FieldReader) -> dict[str, Any]:
        if self.text("profile"):
            return {"profile": self.text("profile")}
        if self.text("fit"):
            return {"fit_id": self.text("fit")}
        if not self.rows:
            reader.mistakes["profile"] = "expected the name of a stored profile"
            return {}
        entry = replace(self.stages, source=InputSource.TABLE, message="1 B")
        made = request_of(entry)
        if made.mistakes:
            reader.mistakes["stages"] = next(iter(made.mistakes.values()))
        return {"pipeline": made.document["pipeline"]}

    def _setting(self, reader: FieldReader) -> dict[str, Any] | None:
        setting, content = self.text("setting"), self.text("configuration")
        if setting and content:
            reader.mistakes["setting"] = "expected a setting or a configuration, not both"
        elif not (setting or content):
            reader.mistakes["setting"] = (
                "expected a size as 512 KiB, whole, or steps as whole, from 64 KiB: 16 KiB; "
                "or a configuration"
            )
        elif content and not self.text("target"):
            reader.mistakes["target"] = "expected the library that reads this configuration"
        elif content:
            return {"configuration": {"target": self.text("target"), "content": content + "\n"}}
        return _long(reader, "setting", parse_setting)


def _long(reader: FieldReader, name: str, read: Callable[[str], T]) -> T | None:
    """Return the value of a text of any length; None where it is empty or wrong."""
    try:
        return read(reader.text(name)) if reader.text(name) else None
    except InvalidInput as refusal:
        reader.mistakes.setdefault(name, refusal.detail)
        return None


def _seconds(text: str) -> float:
    try:
        value = float(text.removesuffix("s").strip())
    except ValueError:
        value = 0.0
    if not 0.0 < value <= MAX_AUDIT_LIMIT_S:
        raise InvalidInput(f"expected more than 0 and at most {MAX_AUDIT_LIMIT_S:g} s")
    return value


def _place(pointer: str) -> str:
    return next((name for start, name in _PLACES if pointer.startswith(start)), "")


def _setting_texts(setting: StaticIn | WholeIn | StepsIn | ConfiguredIn) -> dict[str, str]:
    if isinstance(setting, ConfiguredIn):
        given = setting.configuration
        return {"target": given.target, "configuration": given.content.strip()}
    if isinstance(setting, StaticIn):
        return {"setting": format_bytes(setting.static_bytes)}
    if isinstance(setting, WholeIn):
        return {"setting": format_step_size(None)}
    steps = setting.steps
    if len(steps) == 1 and steps[0].from_bytes == 1:
        return {"setting": format_step_size(steps[0].size_bytes)}
    words = [
        f"{format_bytes(step.from_bytes)}: {format_step_size(step.size_bytes)}" for step in steps
    ]
    return {"setting": ", ".join(words)}


def _format_size(size_bytes: int | None) -> str:
    return "" if size_bytes is None else format_bytes(size_bytes)


def _format_share(share: float | None) -> str:
    return "" if share is None else f"{100.0 * share:.12g} %"


def workload_lines(workload: Iterable[WorkloadSizeIn]) -> Iterator[str]:
    """Yield a workload as it is typed: a size and a weight a line."""
    for one in workload:
        size = format_bytes(one.message_bytes).replace(" ", "")
        yield f"{size} {one.weight:.12g}"


# --- pages that show the input panel --------------------------------------------------------------


def panel_page(
    request: Request, template: str, entry: InputState, *, status: int = 200, **values: Any
) -> Response:
    """Return a page with the panel as it is filled in. `values` are for the rest of the page."""
    address = audit_address(entry)
    return page(request, template, status=status, entry=entry, audit_address=address, **values)


def audit_address(entry: InputState) -> str:
    """Return where a setting is audited on the panel's costs.

    "" where they are too long for an address.
    """
    if entry.source is InputSource.TRACE:
        return ""
    named = {
        InputSource.PROFILE: {"profile": entry.profile},
        InputSource.FIT: {"fit": entry.fit},
    }.get(entry.source)
    form = AuditForm(stages=entry) if named is None else AuditForm(named)
    query = form.query()
    return f"/ui/audit?{query}" if query and len(query) <= MAX_ADDRESS else ""
