"""Which sizes a library is to use for all messages of a range: one, or a step for each octave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import lcm

import solvers
from analysis.audit import SHARE_OF_ADVICE
from analysis.best_known import SolvedMessages, improved, left_open
from analysis.setting_price import price
from contract.limits import DEFAULT_AUDIT_LIMIT_S
from domain.errors import Infeasible, InvalidInput
from domain.fragment_setting import FragmentSetting, breakpoints
from domain.model import CostModel
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits
from domain.regret import BestKnown, ChosenSetting, Objective, PricedSetting, SizeRule
from domain.workload import (
    DEFAULT_MAX_MESSAGE_BYTES,
    Workload,
    default_min_message_bytes,
    powers_of_two,
)

_AS_GIVEN = 0.01  # of a size: rounded up by so much it is still the one that was given


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages that sizes are chosen for, and the limits of their fragments.

    `workload` None is log-uniform over the range.
    """

    min_message_bytes: int
    max_message_bytes: int
    limits: FragmentLimits = field(default_factory=FragmentLimits)
    workload: Workload | None = None


def messages_of(
    min_message_bytes: int | None,
    max_message_bytes: int | None,
    limits: FragmentLimits | None,
    table: PlanTable | None,
    workload: Workload | None = None,
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
    kept = limits or (table.limits if table else FragmentLimits())
    return Messages(minimum, maximum, kept, workload)


def choose_sizes(
    pipeline: CostModel,
    messages: Messages,
    *,
    rule: SizeRule,
    takes_size_steps: bool,
    objective: Objective,
    table: PlanTable | None,
    fragment_cap: int,
    default: FragmentSetting | None = None,
    measured_bytes: tuple[int, int] | None = None,
    given_bytes: int | None = None,
    time_limit_s: float = DEFAULT_AUDIT_LIMIT_S,
    progress: Callable[[int, int], None] | None = None,
    on_best: Callable[[ChosenSetting], None] | None = None,
) -> ChosenSetting:
    """Return the best single size, or the best steps, that the rule admits, with their regrets.

    Priced beside it are `default`, what the library does by itself, and what would be chosen if
    the rule admitted every size: none is below the least of `measured_bytes` where it can be so.
    `given_bytes`, rounded up by 1 % at most, is repeated instead of the best size where the rule
    and the limits admit it.
    `table` answers for the best known where it serves; else every message is solved within
    `time_limit_s`, for all together. `progress` is called with messages solved and messages in all;
    where it takes long `on_best` now and then with the choice by what is solved so far, for a
    caller that has to stop it. Raises Infeasible.
    """
    low, high = messages.min_message_bytes, messages.max_message_bytes
    workload = messages.workload or Workload.log_uniform(low, high)
    admitted, free = (
        narrowed(from_measured(one, measured_bytes, messages.limits), messages.limits, high)
        for one in (rule, SizeRule())
    )
    powers = powers_of_two(low, high)
    solved = SolvedMessages(
        pipeline,
        limits=messages.limits,
        fragment_cap=fragment_cap,
        time_limit_s=time_limit_s,
        table=table,
        progress=progress,
    )

    def chosen_by(best: tuple[BestKnown, ...], rule: SizeRule = admitted) -> ChosenSetting:
        choose = solvers.choose_size_steps if takes_size_steps else solvers.choose_size
        chosen = choose(pipeline, best, workload, rule=rule, objective=objective)
        given = given_bytes or 0
        size = -(-given // rule.multiple_of) * rule.multiple_of
        is_near = size <= given * (1.0 + _AS_GIVEN)
        if rule is not admitted or not given or not is_near or not rule.admits(size):
            return chosen
        return replace(chosen, setting=FragmentSetting.always(size), is_given=True)

    def priced(chosen: ChosenSetting, best: tuple[BestKnown, ...]) -> ChosenSetting:
        wanted = chosen_by(best, free).setting if free != admitted else chosen.setting
        beside = (wanted, *([default] if default is not None else []))
        best = improved(pipeline, best, chosen.setting, *beside)
        # Of a given workload nothing else is sent that may be the worst.
        every = [] if messages.workload else [one.message_bytes for one in best]

        def over_all(setting: FragmentSetting) -> PricedSetting:
            one = price(pipeline, setting, best, workload, also=every)
            figures = (one.time.at_least, one.mean.at_least, one.worst_span.at_least)
            return PricedSetting(setting, *figures)

        found = price(pipeline, chosen.setting, best, workload, also=every)
        at_powers = [one for one in best if one.message_bytes in powers]
        return replace(
            chosen,
            time_regret=found.time.at_least,
            time_at_most=found.time.at_most,
            mean_regret=found.mean.at_least,
            mean_at_most=found.mean.at_most,
            worst_regret=found.worst_span.at_least,
            worst_at_most=found.worst_span.at_most,
            at_powers=solvers.regrets(pipeline, chosen.setting, at_powers),
            is_partial=bool(left_open(best, workload, objective)),
            wanted=over_all(wanted),
            default=over_all(default) if default is not None else None,
        )

    if on_best is not None:
        solved.report = lambda best: on_best(
            replace(priced(chosen_by(best), best), is_partial=True)
        )
    sizes = {*powers, *(size.message_bytes for size in workload.sizes)}
    solved.add(sizes, share=1.0 - SHARE_OF_ADVICE)
    chosen = chosen_by(solved.best)
    solved.report = None
    solved.add({*breakpoints(chosen.setting, low, high)})
    return priced(chosen, solved.best)


def from_measured(
    rule: SizeRule, measured_bytes: tuple[int, int] | None, limits: FragmentLimits | None = None
) -> SizeRule:
    """Return the sizes of a rule that are no smaller than those that every stage was measured at.

    The rule itself where no such size keeps the limits, or nothing was measured.
    """
    if measured_bytes is None:
        return rule
    found = replace(rule, min_bytes=max(rule.min_bytes, measured_bytes[0]))
    try:
        narrowed(found, limits or FragmentLimits(), 1)
    except Infeasible:
        return rule
    return found


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
