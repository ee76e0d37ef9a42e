"""Files of measurements, given as texts."""

from __future__ import annotations

from typing import Annotated

from .declare import Input, asked, by_type, one_of, rule
from .limits import MAX_KIND_LENGTH, MAX_MEASUREMENTS


class MeasurementIn(Input):
    """The text of one trace, and its kind where it cannot be told from the text."""

    content: str = asked("the text of the file")
    kind: Annotated[str, rule(max_length=MAX_KIND_LENGTH)] | None = asked(
        "direct, indirect, end_to_end or logp; null: as the text says", default=None
    )


MeasurementList = Annotated[
    list[MeasurementIn], rule(min_length=1, max_length=MAX_MEASUREMENTS, fail_fast=True)
]


MeasurementsIn = Annotated[
    MeasurementIn | list[MeasurementIn],
    one_of(by_type(list, "many", "one"), one=MeasurementIn, many=MeasurementList),
]


def listed(given: MeasurementIn | list[MeasurementIn] | None) -> tuple[MeasurementIn, ...]:
    """Return the files, in their order."""
    if given is None:
        return ()
    return tuple(given) if isinstance(given, list) else (given,)
