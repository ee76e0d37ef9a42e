# app/verbs/curve/answer.py
"""A curve as contract/curve.py sends it."""

from __future__ import annotations

from analysis.curve import Curve
from contract.curve import CurveOut, CurvePointOut


def sent(found: Curve) -> CurveOut:
    """Return the points as they are sent."""
    return CurveOut(tuple(CurvePointOut(size, us) for size, us in found))
