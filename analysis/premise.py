"""What is decided where a model rests on a premise that nobody has confirmed: nothing is set.

Source    docs/theory.md, "From outside". The latency of a library that cuts messages on their way
          is less than that of an uncut one, and what a cut gains over that is not what it gains
          over what is in use.
"""

from __future__ import annotations

from dataclasses import replace

from domain.model import CostModel
from domain.solution import Notice
from domain.structure import KnownOverlap, Structure
from domain.uncertain_answer import Decision, DecisionCode, Reason
from domain.uncertainty import UncertainMachine, UncertainModel

OVERLAP_NOT_KNOWN = "overlap_not_known"  # the code of what a model takes for granted of its stages


def held_back(decision: Decision, model: CostModel) -> Decision:
    """Return the decision; `measure_first` in the place of `set_it` where the model has a premise.

    The cut and its gain stay: what is to be measured is whether the premise holds.
    """
    if not (model.premise and decision.code is DecisionCode.SET_IT):
        return decision
    return replace(decision, code=DecisionCode.MEASURE_FIRST, reason=Reason.PREMISE, measure=None)


def words_taken_as_known(model: UncertainModel) -> tuple[Notice, ...]:
    """Return what of a machine no draw varies; nothing of other models."""
    if not isinstance(model, UncertainMachine):
        return ()
    rules = model.rules
    said = {
        "lanes": any(one.lanes > 1 for one in rules),
        "what they share": any(one.shared_ns_per_byte > 0.0 for one in rules),
        "delays": any(one.delay_us > 0.0 for one in rules),
        "processors": any(one.processor is not None for one in rules),
        "windows": bool(model.windows),
    }
    *others, last = (name for name, is_said in said.items() if is_said)
    names = f"{', '.join(others)} and {last}" if others else last
    return (
        Notice(
            "words_taken_as_known",
            f"how sure this is is of the costs alone: the {names} of these stages count as known",
        ),
    )


def contradicted(structure: Structure, stages_overlap: bool | None) -> tuple[Notice, ...]:
    """Return that the user says something else of the stages' overlap than begins show, where that
    is so: what was measured counts. `stages_overlap` None: nothing was said.
    """
    if stages_overlap is None or len(structure.stages) < 2:
        return ()
    said = "overlap" if stages_overlap else "do not overlap"
    if not structure.is_known:
        return (
            Notice(
                "overlap_contradicted",
                f"you said that the stages {said}; begins in the trace show no structure that is "
                "known here, and what you said is not used",
            ),
        )
    if stages_overlap is not structure.is_priced_as_a_sum:
        return ()
    return (
        Notice(
            "overlap_contradicted",
            f"you said that the stages {said}; begins in the trace show something else, and count",
        ),
    )


def unknown_overlap(overlap: KnownOverlap, stages: int) -> tuple[Notice, ...]:
    """Return what a pipeline's model of so many stages takes for granted of their overlap."""
    premise = overlap.premise(stages)
    return (Notice("overlap_not_known", f"taken for granted: {premise}"),) if premise else ()


def doubt_of(overlap: KnownOverlap, stages: int) -> Reason | None:
    """Return why what a pipeline's model sets for many messages is to be measured first, else None.

    That it is faster if stages overlap alone is looked at further.
    """
    if overlap.structure is not None:
        return None if overlap.structure.is_priced else Reason.STRUCTURE
    if not overlap.is_bare:
        return None
    if overlap.several_at_once:
        return Reason.SEVERAL_AT_ONCE
    return Reason.IF_OVERLAPPING if stages > 1 else None
