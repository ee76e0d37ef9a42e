"""Export targets as parts, and what the sizes of an export cost in words."""

from __future__ import annotations

from app.text.regrets import format_advised_regret
from app.ui.parts import Column, Grid, Part
from contract.export import ChosenOut, ExportTargetsOut
from domain.units import format_bytes

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


def format_export_cost(chosen: ChosenOut, warnings: tuple[str, ...] = ()) -> str:
    """Return what the sizes of an export cost, after what has to be known before that."""
    warned = "".join(f"{warning[0].upper()}{warning[1:]}. " for warning in warnings)
    return warned + _cost_words(chosen)


def _cost_words(chosen: ChosenOut) -> str:
    time, mean, worst = (
        format_advised_regret(at_least, at_most)
        for at_least, at_most in (
            (chosen.time_regret, chosen.time_at_most),
            (chosen.mean_regret, chosen.mean_at_most),
            (chosen.worst_regret, chosen.worst_at_most),
        )
    )
    total = "" if chosen.objective is None else f"{time} of the total time, "
    steps = chosen.steps
    ended = " Time ended: more of it may choose other sizes." if chosen.is_partial else ""
    if len(steps) > 1:
        each = "A size for each range of messages costs"
        return f"{each} {total}{mean} in the mean, {worst} at worst.{ended}"
    cut = steps[0].size_bytes
    name = (
        "Every message whole" if cut is None else f"One size, {format_bytes(cut)}, for all messages"
    )
    return f"{name} costs {total}{mean} in the mean, {worst} at worst.{ended}"
