"""Results that took long and may soon be asked for again: polling costs one lookup."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Protocol, TypeVar

from app.operations.operation import Operation

T = TypeVar("T")
MAX_RECENT = 256


class Remembered(Operation[T], Protocol[T]):
    """An operation whose result is worth remembering where it takes long."""

    @property
    def takes_long(self) -> bool: ...

    def is_worth_it(self, result: T) -> bool:
        """Whether this result may be kept: it is short, and more time would not improve it."""
        ...


class RecentResults:
    """The last results that took long, by owner and question. For one thread."""

    def __init__(self) -> None:
        self._results: OrderedDict[tuple[str, str], Any] = OrderedDict()

    def find(self, owner: str, operation: Remembered[T]) -> T | None:
        """Return the owner's result of the same question, if it is among them."""
        key = owner, operation.digest
        return self._results.get(key) if operation.takes_long else None

    def add(self, owner: str, operation: Remembered[T], made: T) -> None:
        """Keep it as the youngest, where it is worth that, and let the oldest go."""
        if operation.takes_long and operation.is_worth_it(made):
            self._results[owner, operation.digest] = made
            self._results.move_to_end((owner, operation.digest))
        while len(self._results) > MAX_RECENT:
            self._results.popitem(last=False)
