"""Regrets as a reader meets them: what was found as it is, what is proven rounded up."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

_ARITHMETIC = 1e-12  # what two ways of adding up may differ by


def regret_text(regret: float | None) -> str:
    """A regret in per cent, two digits behind the point; whole per cents from 100 on."""
    if regret is None:
        return "unbounded"
    return f"{100.0 * regret:.0f} %" if abs(regret) >= 1.0 else f"{100.0 * regret:.2f} %"


def proven_regret_text(at_most: float | None, at_least: float | None) -> str:
    """What a regret is at most, proven, and so rounded up, unless it is known to be `at_least`."""
    if at_most is None or at_least is None or at_most - at_least <= _ARITHMETIC * (1.0 + at_most):
        return regret_text(at_most)
    step = Decimal("1") if at_most >= 1.0 else Decimal("0.01")
    return f"{(Decimal(repr(at_most)) * 100).quantize(step, ROUND_CEILING)} %"
