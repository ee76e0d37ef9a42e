"""Notices of an answer as parts: those that stand before all else, and the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from app.ui.parts import Notice
from domain.fit import BEYOND_MEASURED
from domain.verification import CONTRADICTED, DOES_NOT_HOLD


class Said(Protocol):
    """A notice, as it is found or as it is sent."""

    @property
    def code(self) -> str:
        """Its stable name."""

    @property
    def detail(self) -> str:
        """Its sentence."""


SaidT = TypeVar("SaidT", bound=Said)

_FIRST = (DOES_NOT_HOLD, CONTRADICTED, BEYOND_MEASURED)


def failures(notices: Iterable[Said]) -> Iterator[Notice]:
    """Yield that the model failed on the machine, that sizes of the answer were not measured, or
    that it holds if stages overlap.
    """
    for notice in notices:
        if _is_first(notice):
            yield Notice(notice.code, notice.detail, is_first=True)


def others(notices: Iterable[SaidT]) -> list[SaidT]:
    """Return the notices that `failures` leaves."""
    return [notice for notice in notices if not _is_first(notice)]


def noted(notices: Iterable[Said]) -> Iterator[Notice]:
    """Yield these notices."""
    for notice in notices:
        yield Notice(notice.code, notice.detail)


def _is_first(notice: Said) -> bool:
    from app.text.overlap import IF_OVERLAPPING

    return notice.code in _FIRST or notice.detail.startswith(IF_OVERLAPPING)
