"""What became of the tables of many profiles, as contract/table.py sends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from contract.table import FleetItemOut, FleetOut


def fleet_out(items: Iterable[FleetItemOut]) -> FleetOut:
    """Count and sort."""
    found = tuple(sorted(items, key=lambda item: item.profile))
    counts = Counter(item.outcome for item in found)
    return FleetOut(len(found), counts["compiled"], counts["stored"], counts["failed"], found)
