"""What is asked of the integer program for each count, and what it reports."""

from __future__ import annotations

from dataclasses import dataclass

OUT_OF_TIME = 75  # exit status of the process where its time ended the search


@dataclass(frozen=True, slots=True)
class CountToTry:
    """A number of fragments, and a cut into them (units) to begin from, where one is known."""

    count: int
    hint: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Report:
    """What is known of a count: no cut takes fewer than `bound_steps`; a cut found, in units.

    `is_final` says that nothing better than the best known is left in this count.
    """

    count: int
    bound_steps: int
    sizes: tuple[int, ...] | None = None
    is_final: bool = False
