"""Stages of equal names told apart: the second "copy" is shown as "copy (2)".

The interface stores names as they were given, and equal ones are allowed; whoever reads about
stages has to know which is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from domain.pipeline import MAX_NAME_LENGTH

if TYPE_CHECKING:
    from app.schemas.optimize import OptimizeOut


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names in their order; each that was there before has the next free number behind it."""
    taken, found = set(names), list[str]()
    for place, name in enumerate(names):
        number = 2
        told = name
        while (place and told in found) or (told != name and told in taken):
            ending = f" ({number})"
            told, number = name[: MAX_NAME_LENGTH - len(ending)] + ending, number + 1
        found.append(told)
    return found


def told_apart(answer: OptimizeOut) -> OptimizeOut:
    """An answer whose stages all have names of their own: the same one where they have."""
    if answer.pipeline is None:
        return answer
    stages = answer.pipeline.stages
    names = [stage.name for stage in stages]
    if len(set(names)) == len(names):
        return answer
    told = zip(stages, distinct_names(names), strict=True)
    renamed = tuple(replace(stage, name=name) for stage, name in told)
    return replace(answer, pipeline=replace(answer.pipeline, stages=renamed))
