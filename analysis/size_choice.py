"""Which sizes a library is to use for all messages of a range: one, or a step for each octave."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import lcm

import solvers
from analysis.audit import powers_of_two, turning_points
from analysis.best_known import best_known
from domain.errors import Infeasible, InvalidInput, TimeLimitReached
from domain.message_mix import USUAL_GREATEST_BYTES, MessageMix, usual_least
from domain.pipeline import Pipeline
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits
from domain.regret import ChosenSetting, Objective, SizeRule

TURNS_LIMIT_S = 10.0  # for the messages at which the chosen sizes turn
SOLVE_LIMIT_S = 60.0  # for the best known of all sizes together; the process is ended at 120 s


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages that sizes are chosen for, and the limits of their fragments."""

    least_bytes: int
    greatest_bytes: int
    limits: FragmentLimits = field(default_factory=FragmentLimits)


def messages_of(
    least_bytes: int | None,
    greatest_bytes: int | None,
    limits: FragmentLimits | None,
    table: PlanTable | None,
) -> Messages:
    """Return the messages asked for; what is not asked for, the table says. Raises InvalidInput."""
    greatest = greatest_bytes or (table.greatest_bytes if table else USUAL_GREATEST_BYTES)
    known_least_bytes = table.least_bytes if table else 1
    least = least_bytes or usual_least(greatest, known_least_bytes=known_least_bytes)
    if least > greatest:
        raise InvalidInput(
            f"expected least_bytes <= greatest_bytes, which are {least} and {greatest}",
            field="greatest_bytes" if greatest_bytes else "least_bytes",
        )
    return Messages(least, greatest, limits or (table.limits if table else FragmentLimits()))


def choose_sizes(
    pipeline: Pipeline,
    messages: Messages,
    *,
    rule: SizeRule,
    takes_ladder: bool,
    objective: Objective,
    table: PlanTable | None,
    fragment_cap: int,
    progress: Callable[[int, int], None] | None = None,
) -> ChosenSetting:
    """Return the best single size, or the best steps, that the rule admits, with their regrets.

    `table` answers for the best known where it serves; else every message is solved. `progress` is
    told messages solved and messages in all. Raises Infeasible and TimeLimitReached.
    """
    mix = MessageMix.log_uniform(messages.least_bytes, messages.greatest_bytes)
    admitted = narrowed(rule, messages.limits, messages.greatest_bytes)
    powers = powers_of_two(messages.least_bytes, messages.greatest_bytes)
    known = partial(
        best_known,
        pipeline,
        table=table,
        limits=messages.limits,
        fragment_cap=fragment_cap,
    )
    sizes = {*powers, *(size.message_bytes for size in mix.sizes)}
    best = known(sorted(sizes), time_limit_s=SOLVE_LIMIT_S, progress=progress)
    choose = solvers.choose_ladder if takes_ladder else solvers.choose_size
    chosen = choose(pipeline, best, mix, rule=admitted, objective=objective)
    turns = turning_points(chosen.setting, messages.least_bytes, messages.greatest_bytes)
    with suppress(TimeLimitReached):  # then the worst is that of the messages that are known
        best += known(sorted({*turns} - sizes), time_limit_s=TURNS_LIMIT_S)
    found = solvers.regrets(pipeline, chosen.setting, best)
    return replace(
        chosen,
        worst_regret=max(one.over_best for one in found),
        at_powers=tuple(one for one in found if one.message_bytes in powers),
    )


def narrowed(rule: SizeRule, limits: FragmentLimits, greatest_bytes: int) -> SizeRule:
    """Return the sizes of a rule that also keep the limits. Raises Infeasible where there are none.

    The last fragment carries the rest, whatever the least size. No message of the range, up to
    greatest_bytes, has more than the most fragments.
    """
    least = max(rule.least_bytes, limits.min_fragment_bytes)
    if limits.max_fragments is not None:
        least = max(least, -(-greatest_bytes // limits.max_fragments))
    greatest = min(rule.greatest_bytes, limits.max_fragment_bytes or rule.greatest_bytes)
    unit = lcm(rule.multiple_of, limits.alignment_bytes)
    found = SizeRule(-(-least // unit) * unit, greatest // unit * unit, unit, rule.is_power_of_two)
    if not _admits_any(found):
        raise Infeasible(
            "no size that this target takes keeps the limits: it takes "
            f"{rule.least_bytes} to {rule.greatest_bytes} bytes, multiples of {rule.multiple_of}"
            f"{', powers of two' if rule.is_power_of_two else ''}",
            field="constraints",
        )
    return found


def _admits_any(rule: SizeRule) -> bool:
    if not rule.is_power_of_two:
        return rule.least_bytes <= rule.greatest_bytes
    power = 1 << (max(rule.least_bytes, 1) - 1).bit_length()
    return power <= rule.greatest_bytes and (1 << 48) % rule.multiple_of == 0
