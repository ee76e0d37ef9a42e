"""Export targets as parts: what each takes, and its options."""

from __future__ import annotations

from app.ui.parts import Column, Grid, Part
from contract.export import ExportTargetsOut

_TAKES = {
    "one_size": "one size",
    "size_steps": "a size a range",
    "costs": "fitted costs",
    "table": "the table",
}


def parts(targets: ExportTargetsOut) -> list[Part]:
    """Return a table of every target."""
    columns = (
        Column("target", is_number=False),
        Column("takes", is_number=False),
        Column("read by", is_number=False),
        Column("options", is_number=False),
    )
    rows = tuple(
        (
            target.name,
            _TAKES[target.takes],
            target.verified_by or "unverified",
            ", ".join(f"{option.name}={option.default}" for option in target.options),
        )
        for target in targets.items
    )
    return [Grid(columns, rows)]
