"""Stages in a file of JSON: a member that a stage table could have is that column's."""

from __future__ import annotations

from typing import Any

import pytest

from app.console.files import plain_stage
from domain.errors import UnitMismatch


def test_members_of_json_are_columns() -> None:
    """Texts with units, numbers where the member names the unit; what is known stays."""
    found = plain_stage({"name": "copy", "overhead": "3 us", "bandwidth": "24 GB/s"})
    assert found == {"name": "copy", "overhead_us": 3.0, "ns_per_byte": pytest.approx(1 / 24)}
    found = plain_stage({"stage": "w", "overhead_us": 1.5, "bw (GB/s)": 12.5, "up to": "8 KiB"})
    assert found == {"name": "w", "overhead_us": 1.5, "ns_per_byte": 0.08, "up_to_bytes": 8192}
    plain = {"name": "a", "ranges": [], "handoff_bytes": 64, "odd": None}
    assert plain_stage(plain) == plain


@pytest.mark.parametrize(
    ("stage", "field"),
    [
        ({"bandwidth": 24}, "bandwidth"),
        ({"bandwidth": "24"}, "bandwidth"),
        ({"overhead": "3 parsecs"}, "overhead"),
        ({"ns_per_byte": 1.0, "bandwidth": "24 GB/s"}, "bandwidth"),
    ],
)
def test_json_without_a_unit_is_refused(stage: dict[str, Any], field: str) -> None:
    """Naming the member."""
    with pytest.raises(UnitMismatch) as refused:
        plain_stage(stage)
    assert refused.value.field == field
