"""Whether what an export writes is better than what the library does by itself, in words.

Exact     a gain is known only where all of these hold: the default is one setting that the stages
          can price, the written setting has less regret over the same messages by the objective
          that it was chosen for, gains more than the margin in nine of ten draws of fitted costs,
          and nothing that the export leaves unpriced can turn that round.
Traps     a gain by the fitted costs is one of the model. That the library keeps to the model is
          what a measurement before and after shows, and nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator

from domain.fit import beyond_measured
from domain.fragment_setting import FragmentSetting
from domain.regret import Objective, PricedSetting
from domain.structure import IF_THEY_OVERLAP, NOT_SAID
from domain.units import format_bytes
from exports.targets.target import ExportInput, Target

_EQUAL = 1e-9  # regrets that differ by less are one figure, computed twice
_OF = {
    Objective.TIME: "of the total time",
    Objective.MEAN: "in the mean",
    Objective.WORST: "at worst",
}
_MUCH = 0.01  # regret that a target's limits may add before that is a warning


def doubts(given: ExportInput, target: Target) -> tuple[str, ...]:
    """Return why the written setting is not known to be better than the default; () where it is."""
    chosen = given.chosen
    if chosen is None:
        return ()
    found = [one.name for one in target.unpriced(given.options) if one.may_lose]
    reasons = [given.refused] if given.refused else []
    reasons += [f"not priced: {', '.join(found)}"] if found else []
    if beyond := _beyond(given):
        reasons.append(beyond)
    if given.refused:  # what that model rests on and gains is no longer of interest
        return tuple(reasons)
    reasons += [f"premise: {one}" for one in given.premises]
    if chosen.default is None:
        reasons.append(f"the default has no price: {target.default(given.options).words}")
    elif chosen.written.regret_of(chosen.objective) >= (
        chosen.default.regret_of(chosen.objective) - _EQUAL
    ):
        reasons.append("by the fitted costs the default is as good or better")
    elif given.over_default is not None and not given.over_default.is_gain_certain:
        gain, margin = given.over_default.gain, given.over_default.thresholds.margin
        reasons.append(
            f"it gains {_share(gain.p05)} to {_share(gain.p95)} in nine of ten draws of the costs, "
            f"and the measurements cannot distinguish less than {_share(margin)} from nothing"
        )
    return tuple(reasons)


def warnings(given: ExportInput, target: Target) -> Iterator[str]:
    """Yield what has to be known before the export is used: that it holds of stages that overlap,
    no known gain, a premise of a table, and costly limits.
    """
    if NOT_SAID in given.premises and not given.refused:
        yield IF_THEY_OVERLAP
    if reasons := doubts(given, target):
        yield f"NOT KNOWN TO BE BETTER than the library's default: {'; '.join(reasons)}"
    chosen = given.chosen
    if chosen is None and (beyond := _beyond(given)):
        yield f"NOT MEASURED: {beyond}"
    if chosen is None and given.refused:
        yield given.refused
    elif chosen is None:
        yield from (f"by a premise: {one}" for one in given.premises)
    if chosen is None or chosen.wanted is None:
        return
    written, wanted = (one.regret_of(chosen.objective) for one in (chosen.written, chosen.wanted))
    if written - wanted > _MUCH:
        yield (
            f"the target's limits cost {_share(written)} {_OF[chosen.objective]} where "
            f"{setting_words(chosen.wanted.setting)} would cost {_share(wanted)}"
        )


def _beyond(given: ExportInput) -> str:
    """Say which sizes that are written nobody measured; "" where there are none."""
    if given.chosen is not None:
        messages = [one.message_bytes for one in given.chosen.workload.sizes]
        cuts = ((given.chosen.setting.size_at(size), size) for size in messages)
        sizes = tuple(cut for cut, size in cuts if cut < size)
    else:
        sizes = given.table.table.cut_bytes if given.table else ()
    found = beyond_measured(sizes, given.measured_bytes, "it")
    return found.detail if found else ""


def comparison(given: ExportInput, target: Target) -> Iterator[str]:
    """Yield the default, what is written and what was wanted, and what has no price."""
    chosen = given.chosen
    if chosen is None:
        return
    default = target.default(given.options)
    priced = f": {_regrets(chosen.default)}" if chosen.default else ", which has no price here"
    yield f"library's default: {default.words}{priced} ({default.source})"
    yield f"written: {setting_words(chosen.setting)}: {_regrets(chosen.written)}"
    if chosen.wanted is not None:
        wanted = setting_words(chosen.wanted.setting)
        yield f"wanted before the target's limits: {wanted}: {_regrets(chosen.wanted)}"
    names = [one.name for one in target.unpriced(given.options)]
    yield f"not priced: {'; '.join(names) or 'nothing that is known of'}"


def setting_words(setting: FragmentSetting) -> str:
    """Return a setting in a few words: its size, or how many sizes of which range it has."""
    sizes = [step.size_bytes for step in setting.steps if step.size_bytes is not None]
    if not sizes:
        return "messages sent whole"
    if len(setting.steps) == 1:
        return f"{sizes[0]} bytes"
    return f"{len(setting.steps)} steps of {format_bytes(min(sizes))} to {format_bytes(max(sizes))}"


def _regrets(priced: PricedSetting) -> str:
    time, mean = _share(priced.time_regret), _share(priced.mean_regret)
    worst = _share(priced.worst_regret)
    return f"total time {time} over the best, mean regret {mean}, worst {worst}"


def _share(share: float) -> str:
    return f"{100.0 * share + 0.0:.2f} %" if share < float("inf") else "unbounded"
