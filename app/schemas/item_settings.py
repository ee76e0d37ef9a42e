"""An answer about items as the setting of a program, out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.schemas.stages import limits_of, stored_pipeline
from contract.items import ItemsOut
from contract.optimize import ItemsOptimizeOut, OptimizeOut
from domain.errors import InconsistentInput, InvalidInput, StrategyDeclined
from domain.items import FillRule, ItemSequence, item_problem_of
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
    assert answer.pipeline is not None, "items cross stages"
    sequence, cut, last = _sequence(answer.items), list[int](), 0
    for count in answer.fragment_items:
        last += count
        cut.append(last)
    fill = FillRule.named(answer.fill.rule, answer.fill.first_bytes)
    assert fill is not None, "a stored answer has a rule"
    best, profile = answer.best_cap, answer.profile
    return AnsweredItems(
        problem=item_problem_of(
            stored_pipeline(answer.pipeline), sequence, limits_of(answer.constraints)
        ),
        fill=fill,
        cut=tuple(cut),
        lower_bound_us=answer.lower_bound_us,
        caps=None if best is None else (best.from_bytes, best.to_bytes),
        profile=f"profile '{profile.name}', revision {profile.revision}" if profile else "",
    )


def _sequence(items: ItemsOut) -> ItemSequence:
    return ItemSequence.of(items.bytes, items.ready_us, stage_us=items.stage_us, names=items.names)
