"""The form that fits once more: what it offers, and what was asked with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TypeVar

from app.web.fit_changes import fitted_stages
from app.web.input_choices import METHODS, SHAPES
from domain.errors import InvalidInput
from domain.fit import (
    Combine,
    ExcludedSample,
    FitMethod,
    FitOptions,
    FitShape,
    StepGroup,
)
from domain.measurement import TraceKind
from domain.pipeline import MAX_NAME_LENGTH
from models.records import FitRecord, FitRequest

Kind = TypeVar("Kind", FitMethod, FitShape)

OWN = "own"
JOINS = (
    (OWN, "a stage of its own"),
    (str(Combine.OVERLAP), "at the same time as the one before"),
    (str(Combine.SEQUENCE), "after the one before, on one processor"),
)
MOST_RANGES = 16
_NARROWED = (FitShape.NARROWED, "one line over the sizes in use")


@dataclass(frozen=True, slots=True)
class StepChoice:
    """A measured step, and how it goes together with the one before it; "" for the first."""

    name: str
    join: str


@dataclass(frozen=True, slots=True)
class AgainForm:
    """How a fit was made, to be changed. `steps` are there where a trace has several."""

    method: str
    methods: tuple[tuple[str, str], ...]
    shape: str
    shapes: tuple[tuple[str, str], ...]
    max_ranges: str
    steps: tuple[StepChoice, ...]
    joins: tuple[tuple[str, str], ...] = JOINS

    @property
    def is_unusual(self) -> bool:
        """Whether anything was chosen, so that the choices are shown open."""
        usual = FitOptions()
        chosen = (self.method, self.shape, self.max_ranges)
        return chosen != (usual.method, usual.shape, str(usual.max_ranges)) or self.has_groups

    @property
    def has_groups(self) -> bool:
        """Whether steps form one stage."""
        return any(step.join not in ("", OWN) for step in self.steps)


def again_form(record: FitRecord) -> AgainForm:
    """The form as the fit was made."""
    request = record.request or FitRequest()
    options = request.options
    narrowed = (_NARROWED,) if options.shape is FitShape.NARROWED else ()
    return AgainForm(
        method=options.method,
        methods=METHODS,
        shape=options.shape,
        shapes=(*SHAPES, *narrowed),
        max_ranges=str(options.max_ranges),
        steps=tuple(_steps(record)) if record.fit.kind is TraceKind.DIRECT else (),
    )


def _steps(record: FitRecord) -> Iterable[StepChoice]:
    groups = (
        {group.name: group for group in record.request.options.groups} if record.request else {}
    )
    place = 0
    for stage in fitted_stages(record.fit):
        group = groups.get(stage.name)
        for number, name in enumerate(group.steps if group else (stage.name,)):
            join = group.combine if group and number else OWN
            yield StepChoice(name, str(join) if place else "")
            place += 1


def asked_again(record: FitRecord, pairs: Sequence[tuple[str, str]]) -> FitRequest:
    """The request that the form makes of a fit's own. Raises InvalidInput naming the field."""
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
        max_ranges=_most(given.get("max_ranges", [""])[-1], options.max_ranges),
        groups=groups,
        excluded=tuple(dict.fromkeys(map(sample_of, given.get("excluded", ())))),
    )
    message_bytes = before.message_bytes if shape is FitShape.NARROWED else None
    if shape is FitShape.NARROWED and message_bytes is None:
        raise InvalidInput("this shape needs a message", field="shape")
    return replace(before, options=asked, message_bytes=message_bytes)


def _choice(kind: type[Kind], given: dict[str, list[str]], name: str, usual: Kind) -> Kind:
    sent = given.get(name, [str(usual)])[-1]
    return kind(sent) if sent in tuple(kind) else usual


def _most(text: str, usual: int) -> int:
    if not text.strip():
        return usual
    if not (text.strip().isascii() and text.strip().isdigit() and len(text) <= 4):
        raise InvalidInput(f"expected a whole number from 1 to {MOST_RANGES}", field="max_ranges")
    return int(text)


def _groups(
    names: Sequence[str], joins: Sequence[str], before: Sequence[StepGroup]
) -> tuple[StepGroup, ...]:
    """Runs of joined steps; `joins` begins with the second step."""
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
    known = next((one for one in before if (one.steps, one.combine) == (steps, combine)), None)
    name = " + ".join(steps)
    if len(name) > MAX_NAME_LENGTH:
        name = f"{steps[0]} to {steps[-1]}"[:MAX_NAME_LENGTH]
    return known or StepGroup(name, steps, combine)


def sample_of(value: str) -> ExcludedSample:
    """What a form names. Raises InvalidInput."""
    size, _, rest = value.partition("|")
    time, _, stage = rest.partition("|")
    try:
        return ExcludedSample(stage[:200], int(size[:20]), float(time[:40]))
    except ValueError:
        raise InvalidInput("expected samples as bytes|µs|stage", field="excluded") from None
