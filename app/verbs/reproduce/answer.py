"""The numbers of papers as they are sent: published beside computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from papers.items import Item


@dataclass(frozen=True, slots=True)
class ReproducedOut:
    """One number in JSON; `ok` is null where the paper prints none and it is the model's own."""

    paper: str
    item: str
    figure: str
    unit: str
    published: float | None
    published_max: float | None
    computed: float
    difference: float | None
    tolerance: float | None
    ok: bool | None

    @classmethod
    def from_item(cls, paper: str, item: Item) -> Iterator[ReproducedOut]:
        """Yield the numbers of one item, in its order."""
        for figure in item.figures:
            yield cls(
                paper,
                item.name,
                figure.name,
                figure.unit,
                figure.published,
                figure.published_max,
                figure.computed,
                figure.difference,
                None if figure.published is None else figure.tolerance,
                figure.ok,
            )
