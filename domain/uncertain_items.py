"""How sure a cut of items is: what is known of errors, and what draws leave of an answer."""

from __future__ import annotations

from dataclasses import dataclass

from domain.uncertain_answer import Uncertainty
from domain.uncertainty import KnownErrors


@dataclass(frozen=True, slots=True)
class ItemErrors:
    """What is known of the errors of costs and of ready times.

    `ready_relative` is one standard deviation of a calculation's speed, a share. `measured_bytes`
    are the least and the greatest size that every stage was measured at, None where none was.
    """

    known: KnownErrors
    ready_relative: float = 0.0
    measured_bytes: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class SureItems:
    """What draws leave of an answer about items.

    Sizes of `uncertainty` are caps in bytes. `priced` of the `layouts` that were listed were priced
    in every draw; `is_complete` says that none of the others, and of those that were not listed, is
    near the best in any draw. `one_cap` are the first and the
    last cap of the layout that is advised, or where none is, of that of least expected latency;
    None: every greater one gives it.
    """

    uncertainty: Uncertainty
    ready_relative: float
    layouts: int
    priced: int
    is_complete: bool
    one_cap: tuple[int, int | None]
