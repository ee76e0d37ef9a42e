"""Which sizes a library is to use for all messages of a range: one, or a step for each octave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import lcm

import solvers
from analysis.audit import breakpoints, powers_of_two
from analysis.best_known import best_known
from domain.errors import Infeasible, InvalidInput
from domain.pipeline import Pipeline
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits
from domain.regret import ChosenSetting, Objective, SizeRule
from domain.workload import DEFAULT_MAX_MESSAGE_BYTES, Workload, default_min_message_bytes

TURNS_LIMIT_S = 10.0  # for the messages at which the chosen sizes turn
SOLVE_LIMIT_S = 60.0  # for the best known of all sizes together; the process is ended at 120 s


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages that sizes are chosen for, and the limits of their fragments."""

    min_message_bytes: int
    max_message_bytes: int
    limits: FragmentLimits = field(default_factory=FragmentLimits)


def messages_of(
    min_message_bytes: int | None,
    max_message_bytes: int | None,
    limits: FragmentLimits | None,
    table: PlanTable | None,
) -> Messages:
    """Return the messages asked for; what is not asked for, the table says. Raises InvalidInput."""
    maximum = max_message_bytes or (table.max_message_bytes if table else DEFAULT_MAX_MESSAGE_BYTES)
    known_min_bytes = table.min_message_bytes if table else 1
    minimum = min_message_bytes or default_min_message_bytes(
        maximum, known_min_bytes=known_min_bytes
    )
    if minimum > maximum:
        raise InvalidInput(
            f"expected min_message_bytes <= max_message_bytes, which are {minimum} and {maximum}",
            field="max_message_bytes" if max_message_bytes else "min_message_bytes",
        )
    return Messages(minimum, maximum, limits or (table.limits if table else FragmentLimits()))


def choose_sizes(
    pipeline: Pipeline,
    messages: Messages,
    *,
    rule: SizeRule,
    takes_size_steps: bool,
    objective: Objective,
    table: PlanTable | None,
    fragment_cap: int,
    progress: Callable[[int, int], None] | None = None,
) -> ChosenSetting:
    """Return the best single size, or the best steps, that the rule admits, with their regrets.

    `table` answers for the best known where it serves; else every message is solved. `progress` is
    called with messages solved and messages in all. Raises Infeasible.
    """
    workload = Workload.log_uniform(messages.min_message_bytes, messages.max_message_bytes)
    admitted = narrowed(rule, messages.limits, messages.max_message_bytes)
    powers = powers_of_two(messages.min_message_bytes, messages.max_message_bytes)
    known = partial(
        best_known,
        pipeline,
        table=table,
        limits=messages.limits,
        fragment_cap=fragment_cap,
    )
    sizes = {*powers, *(size.message_bytes for size in workload.sizes)}
    best = known(sorted(sizes), time_limit_s=SOLVE_LIMIT_S, progress=progress)
    choose = solvers.choose_size_steps if takes_size_steps else solvers.choose_size
    chosen = choose(pipeline, best, workload, rule=admitted, objective=objective)
    turns = breakpoints(chosen.setting, messages.min_message_bytes, messages.max_message_bytes)
    best += known(sorted({*turns} - sizes), time_limit_s=TURNS_LIMIT_S)
    found = solvers.regrets(pipeline, chosen.setting, best)
    return replace(
        chosen,
        worst_regret=max(one.over_best for one in found),
        worst_at_most=max(one.at_most for one in found),
        at_powers=tuple(one for one in found if one.message_bytes in powers),
    )


def narrowed(rule: SizeRule, limits: FragmentLimits, max_message_bytes: int) -> SizeRule:
    """Return the sizes of a rule that also keep the limits. Raises Infeasible where there are none.

    The last fragment carries the rest, whatever the least size. No message of the range, up to
    max_message_bytes, has more than the most fragments.
    """
    minimum = max(rule.min_bytes, limits.min_fragment_bytes)
    if limits.max_fragments is not None:
        minimum = max(minimum, -(-max_message_bytes // limits.max_fragments))
    maximum = min(rule.max_bytes, limits.max_fragment_bytes or rule.max_bytes)
    unit = lcm(rule.multiple_of, limits.alignment_bytes)
    found = SizeRule(-(-minimum // unit) * unit, maximum // unit * unit, unit, rule.is_power_of_two)
    if not _admits_any(found):
        raise Infeasible(
            "no size that this target takes keeps the limits: it takes "
            f"{rule.min_bytes} to {rule.max_bytes} bytes, multiples of {rule.multiple_of}"
            f"{', powers of two' if rule.is_power_of_two else ''}",
            field="constraints",
        )
    return found


def _admits_any(rule: SizeRule) -> bool:
    if not rule.is_power_of_two:
        return rule.min_bytes <= rule.max_bytes
    power = 1 << (max(rule.min_bytes, 1) - 1).bit_length()
    return power <= rule.max_bytes and (1 << 48) % rule.multiple_of == 0
