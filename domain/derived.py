"""Values that compute what follows from them once, and keep it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Derived:
    """A base of frozen dataclasses without slots whose derived values are computed once.

    Nothing derived is compared, hashed, copied or pickled: it follows from the fields.
    """

    def derived(self, compute: Callable[[Self], T]) -> T:
        """Return `compute(self)`, computed at the first call with this function and then kept."""
        try:
            value: T = self.__dict__["_derived"][compute]
        except KeyError:
            value = compute(self)
            self.__dict__.setdefault("_derived", {})[compute] = value
        return value

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
