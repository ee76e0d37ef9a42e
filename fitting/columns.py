"""Columns of measurements: plain arrays that give their extremes without a loop in Python."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    _Whole = array[int]
    _Real = array[float]
else:  # before Python 3.12 an array has no parameters at run time
    _Whole = _Real = array


class Sizes(_Whole):
    """Whole numbers, 8 bytes each. `min(column)` would make an object of every one."""

    __slots__ = ()

    def min(self) -> int:
        """Return the least one."""
        return int(_view(self, "q").min())

    def max(self) -> int:
        """Return the greatest one."""
        return int(_view(self, "q").max())


class Times(_Real):
    """Times, 8 bytes each; both extremes are NaN where any of them is."""

    __slots__ = ()

    def min(self) -> float:
        """Return the least one."""
        return float(_view(self, "d").min())

    def max(self) -> float:
        """Return the greatest one."""
        return float(_view(self, "d").max())


def _view(
    column: array[int] | array[float], kind: str
) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    import numpy as np

    return np.frombuffer(column, dtype=kind)
