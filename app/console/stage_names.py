"""Stages of equal names told apart: the second "copy" is shown as "copy (2)".

The interface stores names as they were given, and equal ones are allowed; whoever reads about
stages has to know which is meant.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from domain.pipeline import MAX_NAME_LENGTH

Document = Mapping[str, Any]


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


def told_apart(document: Document) -> Document:
    """An OptimizeOut whose stages all have names of their own: the same one where they have."""
    if document["pipeline"] is None:
        return document
    stages = document["pipeline"]["stages"]
    names = [stage["name"] for stage in stages]
    if len(set(names)) == len(names):
        return document
    renamed = [
        {**stage, "name": name} for stage, name in zip(stages, distinct_names(names), strict=True)
    ]
    return {**document, "pipeline": {**document["pipeline"], "stages": renamed}}


def body_told_apart(body: bytes) -> bytes:
    """The same of its JSON."""
    document = json.loads(body)
    told = told_apart(document)
    return body if told is document else json.dumps(told).encode()
