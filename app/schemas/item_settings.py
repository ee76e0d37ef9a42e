"""An answer about items as the setting of a program, out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.items import most_of_cap
from app.schemas.items import stored_cut, stored_fill, stored_problem
from contract.optimize import ItemsOptimizeOut, OptimizeOut
from domain.errors import InconsistentInput, InvalidInput, StrategyDeclined
from domain.items import layout
from exports.targets.item_cuts import AnsweredItems, ItemTarget, item_target_named
from exports.targets.target import PLAIN_TEXT


@dataclass(frozen=True, slots=True)
class ItemSetting:
    """The text, and what a file of it is called."""

    text: str
    file_name: str
    media_type: str = PLAIN_TEXT


def chosen_target(name: str, options: Mapping[str, str]) -> tuple[ItemTarget, dict[str, str]]:
    """Return the target of this name and its options, as given or by default. Raises InvalidInput,
    and InconsistentInput for an option that it has not.
    """
    target = item_target_named(name)
    try:
        return target, target.options_from(options)
    except InvalidInput as refusal:
        raise InconsistentInput(refusal.detail, field="option") from None


def item_setting(answer: OptimizeOut, name: str, options: Mapping[str, str]) -> ItemSetting:
    """Return an answer as this target's setting. Raises as `chosen_target`, and StrategyDeclined
    for an answer without items, and for what the program cannot be given.
    """
    target, chosen = chosen_target(name, options)
    if not isinstance(answer, ItemsOptimizeOut):
        raise StrategyDeclined(
            f"{name} is given a cut between items, and this answer is of a message that may be cut "
            "at any byte: exports of profiles write its size",
            field="target",
        )
    text = target.render(_answered(answer), chosen)
    return ItemSetting(text, f"sluice-{name}.{target.suffix}")


def _answered(answer: ItemsOptimizeOut) -> AnsweredItems:
    """What the answer says, as the domain has it."""
    problem, fill, best = stored_problem(answer), stored_fill(answer), answer.best_cap
    profile, caps = answer.profile, None
    if best is not None:
        cut = layout(problem.sequence, best.from_bytes, fill)
        caps = best.from_bytes, most_of_cap(problem, cut, best.to_bytes)
    return AnsweredItems(
        problem=problem,
        fill=fill,
        cut=stored_cut(answer),
        lower_bound_us=answer.lower_bound_us,
        caps=caps,
        profile=f"profile '{profile.name}', revision {profile.revision}" if profile else "",
    )
