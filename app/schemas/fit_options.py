"""How to fit: the `fit_options` of an optimisation, and the same as query parameters."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from app.schemas.base import Input, whole
from domain.errors import InvalidInput
from domain.fit import DEFAULT_MAX_RANGES, Combine, FitMethod, FitOptions, FitShape, StepGroup
from domain.pipeline import MAX_NAME_LENGTH, MAX_STAGES

MAX_FIT_RANGES = 16

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH)]
MaxRanges = Annotated[int, Field(ge=1, le=MAX_FIT_RANGES)]


def parse_group(text: str) -> StepGroup:
    """A group in one word, `name:overlap:step,step`. Raises InvalidInput naming `group`."""
    name, _, rest = text.partition(":")
    combine, _, steps = rest.partition(":")
    words = tuple(steps.split(","))
    if combine not in tuple(Combine) or not name or len(words) < 2 or not all(words):
        raise InvalidInput(
            "expected a group as name:overlap:step,step or name:sequence:step,step, with the names "
            "of two or more steps",
            field="group",
        )
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidInput(
            f"expected a name of at most {MAX_NAME_LENGTH} characters", field="group"
        )
    return StepGroup(name, words, Combine(combine))


class StepGroupIn(Input):
    """Measured steps, neighbours in the trace, that form one stage."""

    name: Name
    steps: Annotated[list[Name], Field(min_length=2, max_length=MAX_STAGES)]
    combine: Combine

    def to_domain(self) -> StepGroup:
        """The group."""
        return StepGroup(self.name, tuple(self.steps), self.combine)


class FitOptionsIn(Input):
    """How to fit measurements; `groups` are for direct traces."""

    method: FitMethod = FitMethod.ROBUST
    shape: FitShape = FitShape.RANGES
    max_ranges: Annotated[MaxRanges, BeforeValidator(whole)] = DEFAULT_MAX_RANGES
    groups: tuple[StepGroupIn, ...] = Field(default=(), max_length=MAX_STAGES)

    def to_domain(self) -> FitOptions:
        """The options."""
        groups = tuple(group.to_domain() for group in self.groups)
        return FitOptions(self.method, self.shape, self.max_ranges, groups)
