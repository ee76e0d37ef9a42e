"""The form that fits once more: how a fit was made, to be changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import ClassVar, TypeVar

from app.text.choices import expected_one_of
from app.ui.panel.choices import SAID, as_said, said_of
from contract.declare import Asked, words_of
from contract.fit import FitQueryIn
from contract.fit_options import NARROWED, SHAPES
from contract.limits import MAX_FIT_RANGES, MAX_NAME_LENGTH
from domain.errors import InvalidInput
from domain.fit import Combine, ExcludedSample, FitMethod, FitOptions, FitShape, StepGroup
from domain.measurement import TraceKind
from models.records import FitRecord, FitRequest

Kind = TypeVar("Kind", FitMethod, FitShape)

OWN = "own"
_TYPED = ("method", "shape", "max_ranges", "as_stage", "stages_overlap", "several_at_once")
FIELDS = ("join", "max_ranges", "as_stage", "stages_overlap", "several_at_once")
JOINS = (
    (OWN, "a stage of its own"),
    (str(Combine.OVERLAP), "at the same time as the one before"),
    (str(Combine.SEQUENCE), "after the one before, on one processor"),
)


@dataclass(frozen=True, slots=True)
class StepChoice:
    """A measured step, and how it goes together with the one before it; "" for the first."""

    name: str
    join: str


@dataclass(frozen=True, slots=True)
class AgainForm:
    """How a fit was made, to be changed. `steps` are there where a trace has several, `as_stage`
    where the times may be those of one stage ("": they are not), `total_is_uncut` where latencies
    of whole messages were measured, and `stages_overlap` and `several_at_once` where the stages are
    of one trace ("": nothing is said).
    """

    method: str
    shape: str
    shapes: tuple[tuple[str, str], ...]
    max_ranges: str
    steps: tuple[StepChoice, ...]
    as_stage: str | None = None
    total_is_uncut: bool | None = None
    stages_overlap: str | None = None
    several_at_once: str | None = None
    said: tuple[tuple[str, str], ...] = SAID
    joins: tuple[tuple[str, str], ...] = JOINS
    fields: ClassVar = FIELDS
    words: ClassVar[Mapping[str, Asked]] = {word.name: word for word in words_of(FitQueryIn)}

    @property
    def is_unusual(self) -> bool:
        """Whether anything was chosen, so that the choices are shown open."""
        default = FitOptions()
        chosen = (self.method, self.shape, self.max_ranges, self.as_stage or "")
        usual = (default.method, default.shape, str(default.max_ranges), "")
        said = self.total_is_uncut or self.stages_overlap or self.several_at_once
        return chosen != usual or self.has_groups or bool(said)

    @property
    def has_groups(self) -> bool:
        """Whether steps form one stage."""
        return any(step.join not in ("", OWN) for step in self.steps)

    def typed(self, pairs: Sequence[tuple[str, str]]) -> AgainForm:
        """Return the form as it was sent, so that nothing is lost where a field is wrong."""
        given = dict(pairs)
        joins = iter([value for name, value in pairs if name == "join"])
        steps = tuple(
            replace(step, join=next(joins, step.join)) if step.join else step for step in self.steps
        )
        texts = {
            name: value
            for name, value in given.items()
            if name in _TYPED and getattr(self, name) is not None
        }
        is_uncut = None if self.total_is_uncut is None else "total_is_uncut" in given
        return replace(self, steps=steps, total_is_uncut=is_uncut, **texts)  # type: ignore[arg-type]


def again_form(record: FitRecord) -> AgainForm:
    """Return the form as the fit was made."""
    request = record.request or FitRequest()
    options = request.options
    narrowed = (NARROWED,) if options.shape is FitShape.NARROWED else ()
    may_overlap = _may_overlap(record, options)
    return AgainForm(
        method=options.method,
        shape=options.shape,
        shapes=(*SHAPES, *narrowed),
        max_ranges=str(options.max_ranges),
        steps=tuple(_steps(record)) if _has_steps(record, options) else (),
        as_stage=(options.as_stage or "") if _may_be_a_stage(record, options) else None,
        total_is_uncut=None if record.fit.aggregate is None else options.total_is_uncut,
        stages_overlap=as_said(options.stages_overlap) if may_overlap else None,
        several_at_once=as_said(options.several_at_once) if may_overlap else None,
    )


def _has_steps(record: FitRecord, options: FitOptions) -> bool:
    """Whether the stages are steps of one trace, and not of files of their own."""
    return record.fit.kind is TraceKind.DIRECT and not options.composed


def _may_overlap(record: FitRecord, options: FitOptions) -> bool:
    """Whether there are several stages of one trace, or were before something was said of them."""
    is_said = options.stages_overlap is not None or options.several_at_once is not None
    several = len(record.fit.stages) > 1 or is_said
    return several and _has_steps(record, options) and options.as_stage is None


def _may_be_a_stage(record: FitRecord, options: FitOptions) -> bool:
    """Whether times of messages were fitted, or times that were called a stage before."""
    times_alone = record.fit.kind in (TraceKind.END_TO_END, TraceKind.INDIRECT)
    return times_alone or options.as_stage is not None


def _steps(record: FitRecord) -> Iterable[StepChoice]:
    groups = (
        {group.name: group for group in record.request.options.groups} if record.request else {}
    )
    place = 0
    for stage in record.fit.fitted_stages:
        group = groups.get(stage.name)
        for number, name in enumerate(group.steps if group else (stage.name,)):
            join = group.combine if group and number else OWN
            yield StepChoice(name, str(join) if place else "")
            place += 1


def asked_again(record: FitRecord, pairs: Sequence[tuple[str, str]]) -> FitRequest:
    """Return a fit's own request as the form changes it. Raises InvalidInput naming the field."""
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        given.setdefault(name, []).append(value)
    before = record.request or FitRequest()
    options = before.options
    shape = _choice(FitShape, given, "shape", options.shape)
    names = [step.name for step in again_form(record).steps]
    groups = _groups(names, given["join"], options.groups) if "join" in given else options.groups
    asked = replace(
        options,
        method=_choice(FitMethod, given, "method", options.method),
        shape=shape,
        max_ranges=_maximum(given.get("max_ranges", [""])[-1], options.max_ranges),
        groups=groups,
        as_stage=_stage_name(given, options.as_stage),
        total_is_uncut="total_is_uncut" in given,
        stages_overlap=_said(given, "stages_overlap", options.stages_overlap),
        several_at_once=_said(given, "several_at_once", options.several_at_once),
        excluded=tuple(dict.fromkeys(map(sample_of, given.get("excluded", ())))),
    )
    message_bytes = before.message_bytes if shape is FitShape.NARROWED else None
    if shape is FitShape.NARROWED and message_bytes is None:
        raise InvalidInput("this shape needs a message", field="shape")
    return replace(before, options=asked, message_bytes=message_bytes)


def _choice(kind: type[Kind], given: dict[str, list[str]], name: str, default: Kind) -> Kind:
    sent = given.get(name, [str(default)])[-1]
    if sent not in tuple(kind):
        raise InvalidInput(expected_one_of(kind, sent), field=name)
    return kind(sent)


def _stage_name(given: dict[str, list[str]], default: str | None) -> str | None:
    return given["as_stage"][-1].strip() or None if "as_stage" in given else default


def _said(given: dict[str, list[str]], name: str, default: bool | None) -> bool | None:
    if name not in given:
        return default
    offered = [value for value, _ in SAID]
    if given[name][-1] not in offered:
        raise InvalidInput(expected_one_of(filter(None, offered), given[name][-1]), field=name)
    return said_of(given[name][-1])


def _maximum(text: str, default: int) -> int:
    if not text.strip():
        return default
    if not (text.strip().isascii() and text.strip().isdigit() and len(text) <= 4):
        raise InvalidInput(
            f"expected a whole number from 1 to {MAX_FIT_RANGES}", field="max_ranges"
        )
    return int(text)


def _groups(
    names: Sequence[str], joins: Sequence[str], before: Sequence[StepGroup]
) -> tuple[StepGroup, ...]:
    """Return runs of joined steps; `joins` begins with the second step."""
    runs: list[tuple[list[str], set[str]]] = []
    for name, join in zip_longest(names, ("", *joins[: len(names) - 1]), fillvalue=OWN):
        if join in tuple(Combine) and runs:
            runs[-1][0].append(name)
            runs[-1][1].add(join)
        else:
            runs.append(([name], set()))
    return tuple(_group(tuple(run), kinds, before) for run, kinds in runs if len(run) > 1)


def _group(steps: tuple[str, ...], kinds: set[str], before: Sequence[StepGroup]) -> StepGroup:
    if len(kinds) > 1:
        raise InvalidInput(
            f"{', '.join(steps)}: the steps of one stage run either all at the same time or all "
            "one after the other",
            field="join",
        )
    combine = Combine(kinds.pop())
    known = next(
        (group for group in before if (group.steps, group.combine) == (steps, combine)), None
    )
    name = " + ".join(steps)
    if len(name) > MAX_NAME_LENGTH:
        name = f"{steps[0]} to {steps[-1]}"[:MAX_NAME_LENGTH]
    return known or StepGroup(name, steps, combine)


def sample_of(value: str) -> ExcludedSample:
    """Return the sample that a form names. Raises InvalidInput."""
    size, _, rest = value.partition("|")
    time, _, stage = rest.partition("|")
    try:
        return ExcludedSample(stage[:200], int(size[:20]), float(time[:40]))
    except ValueError:
        raise InvalidInput("expected samples as bytes|µs|stage", field="excluded") from None
