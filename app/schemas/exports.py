"""Exports to libraries' configurations: what is asked for, and the targets that there are."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from app.flows.export_setting import Exported, ExportQuestion, ExportScope
from app.schemas.audit import StepOut
from app.schemas.base import Output, dump_json
from app.schemas.fits import ProfileRevisionOut
from app.schemas.queries import Digits, Query
from domain.errors import InconsistentInput
from domain.pipeline import MAX_MESSAGE_BYTES
from domain.problem import FragmentLimits
from domain.regret import ChosenSetting, Objective
from exports.target import Takes, Target
from exports.targets import TARGETS

MAX_OPTIONS = 32
_Whole = Annotated[int, Field(ge=1, le=MAX_MESSAGE_BYTES), Digits]
_Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Option = Annotated[str, Field(max_length=200, pattern="^[a-z_]{1,32}:.+$")]


class _Asked(BaseModel):
    """The range of messages and what the sizes are chosen for, limits, and options."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    least_bytes: _Whole | None = None
    greatest_bytes: _Whole | None = None
    objective: Objective = Objective.MEAN
    min_fragment_bytes: _Whole | None = None
    max_fragment_bytes: _Whole | None = None
    alignment_bytes: _Whole | None = None
    max_fragments: _Whole | None = None
    option: Annotated[
        tuple[_Option, ...],
        Field(max_length=MAX_OPTIONS, description="name:value, an option of the target"),
    ] = ()

    def to_domain(self, target: str) -> ExportScope:
        """What is asked for. Raises InvalidInput."""
        least, greatest = self.least_bytes, self.greatest_bytes
        if least is not None and greatest is not None and least > greatest:
            raise InconsistentInput(
                "expected least_bytes <= greatest_bytes", field="greatest_bytes"
            )
        return ExportScope(
            target=target,
            options=tuple(split_option(option) for option in self.option),
            least_bytes=least,
            greatest_bytes=greatest,
            objective=self.objective,
            limits=self._limits(),
        )

    def _limits(self) -> FragmentLimits | None:
        given = {name: getattr(self, name) for name in FragmentLimits.__slots__}
        given = {name: value for name, value in given.items() if value is not None}
        return FragmentLimits(**given) if given else None


class ExportQuery(_Asked, Query):
    """The parameters of an export."""

    table: Annotated[_Digest | None, Field(description="a compiled table, not the active one")] = (
        None
    )


class ExportIn(_Asked):
    """The options of the command line."""


def split_option(text: str) -> tuple[str, str]:
    """Name and value of `name:value`."""
    name, _, value = text.partition(":")
    return name, value


class ExportSizesOut(Output):
    """The sizes that a target takes: inclusive limits, multiples of one, or powers of two alone."""

    least_bytes: int
    greatest_bytes: int
    multiple_of: int
    is_power_of_two: bool


class ExportOptionOut(Output):
    """An option. Without `choices` its value is any text that matches `pattern`."""

    name: str
    default: str
    meaning: str
    choices: list[str]
    pattern: str


class ExportTargetOut(Output):
    """A target. `takes` is `one_size`, `ladder`, `costs` or `table`.

    `verified_by` is the program that reads it back in the tests, with its version; null where none
    does, and then the text says so itself. `is_audited` says whether such a text can be audited.
    """

    name: str
    title: str
    takes: Takes
    suffix: str
    media_type: str
    verified_by: str | None
    grammar: str
    is_audited: bool
    sizes: ExportSizesOut | None
    options: list[ExportOptionOut]


class ExportTargetsOut(Output):
    """Every target, in the order of their names."""

    items: list[ExportTargetOut]


class ChosenOut(Output):
    """The sizes that an export has, and what they cost over the best schedules known, as shares."""

    steps: list[StepOut]
    mean_regret: float | None
    worst_regret: float | None


class ExportedOut(Output):
    """A profile as a library's configuration: the text, and what a file of it is called.

    `chosen` is null where no sizes were chosen for it.
    """

    profile: ProfileRevisionOut | None
    target: str
    file_name: str
    media_type: str
    text: str
    chosen: ChosenOut | None


def render_exported(question: ExportQuestion, made: Exported) -> bytes:
    """The JSON of an export: ExportedOut."""
    profile = question.profile
    return dump_json(
        {
            "profile": {"name": profile.name, "revision": profile.revision} if profile else None,
            "target": question.target.name,
            "file_name": made.file_name,
            "media_type": made.media_type,
            "text": made.content.decode(),
            "chosen": _chosen_document(made.chosen) if made.chosen else None,
        }
    )


def _chosen_document(chosen: ChosenSetting) -> dict[str, Any]:
    return {
        "steps": [
            {"from_bytes": step.from_bytes, "size_bytes": step.size_bytes}
            for step in chosen.setting.steps
        ],
        "mean_regret": chosen.mean_regret,
        "worst_regret": chosen.worst_regret,
    }


def targets_document() -> dict[str, Any]:
    """ExportTargetsOut."""
    named = sorted(TARGETS, key=lambda target: target.name)
    return {"items": [_target_document(target) for target in named]}


def _target_document(target: Target) -> dict[str, Any]:
    return {
        "name": target.name,
        "title": target.title,
        "takes": target.takes.value,
        "suffix": target.suffix,
        "media_type": target.media_type,
        "verified_by": target.verified_by or None,
        "grammar": target.grammar,
        "is_audited": target.read is not None,
        "sizes": _sizes_document(target),
        "options": [
            {
                "name": option.name,
                "default": option.default,
                "meaning": option.meaning,
                "choices": list(option.choices),
                "pattern": "" if option.choices else option.pattern,
            }
            for option in target.options
        ],
    }


def _sizes_document(target: Target) -> dict[str, Any] | None:
    if target.takes not in (Takes.ONE_SIZE, Takes.LADDER):
        return None
    rule = target.sizes
    return {
        "least_bytes": rule.least_bytes,
        "greatest_bytes": rule.greatest_bytes,
        "multiple_of": rule.multiple_of,
        "is_power_of_two": rule.is_power_of_two,
    }
