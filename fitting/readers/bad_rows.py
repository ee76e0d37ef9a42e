"""Rows that break rules, so that a user mends all of them at once and not one a try."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from domain.errors import UnreadableTrace
from domain.trace_formats import UnreadableRows

MOST_TOLD = 10
Given = ParamSpec("Given")
Result = TypeVar("Result")


class BadRows:
    """The refusals of the rows of one file, in their order."""

    def __init__(self) -> None:
        self._said: list[str] = []

    def tried(
        self, read: Callable[Given, Result], *given: Given.args, **named: Given.kwargs
    ) -> Result | None:
        """What reading a row gives; None where it is refused, which is kept.

        Raises UnreadableRows once there are more than can be told.
        """
        try:
            return read(*given, **named)
        except UnreadableTrace as refusal:
            if len(self._said) == MOST_TOLD:
                raise UnreadableRows(tuple(self._said), has_more=True) from None
            self._said.append(refusal.detail)
            return None

    @contextmanager
    def told(self) -> Iterator[None]:
        """Read rows inside; what was refused is raised at the end. Raises UnreadableTrace.

        A refusal that leaves the block ends the reading; it is told after those of rows.
        """
        try:
            yield
        except UnreadableRows:
            raise
        except UnreadableTrace as refusal:
            if not self._said:
                raise
            self._said.append(refusal.detail)
        if len(self._said) == 1:
            raise UnreadableTrace(self._said[0], field="measurements")
        if self._said:
            raise UnreadableRows(tuple(self._said))
