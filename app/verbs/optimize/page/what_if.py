"""What if a cost were another: the costs that can be changed, and the question with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from analysis.size_curve import ChangedCost, with_cost
from app.schemas.answers import with_unique_names
from app.schemas.stages import pipeline_out, stored_pipeline, stored_stages
from app.text.numbers import format_figure, without_zeros
from app.ui.panel.choices import ShownUnits
from app.ui.panel.request import uncertainty_of
from app.ui.panel.state import InputState
from app.verbs.optimize.page.question import question_of
from contract.optimize import OptimizeOut
from contract.pipeline import StageOut
from domain.errors import InvalidInput, StrategyDeclined
from domain.machine import Machine

_EXPONENTS = {"half": -1.0, "double": 1.0}
_MAX_EXPONENT = 2.0


@dataclass(frozen=True, slots=True)
class WhatIfCost:
    """A cost of a stage as it is; `name` is how a form calls it."""

    words: str
    value: str
    name: str


@dataclass(frozen=True, slots=True)
class WhatIfRow:
    """A stage: its costs, both together last."""

    stage: str
    costs: tuple[WhatIfCost, ...]


def what_if(answer: OptimizeOut) -> tuple[WhatIfRow, ...]:
    """Return every stage with costs that can be changed; none of a machine's, which is not asked
    again from here.
    """
    if answer.pipeline is None or isinstance(stored_stages(answer.pipeline), Machine):
        return ()
    stages = with_unique_names(answer).pipeline
    return tuple(
        WhatIfRow(stage.name, tuple(_what_if_costs(place, stage)))
        for place, stage in enumerate(stages.stages if stages else ())
    )


def _what_if_costs(place: int, stage: StageOut) -> Iterator[WhatIfCost]:
    first, last = stage.parts[0], stage.parts[-1]
    overheads, per_bytes = (
        dict.fromkeys(without_zeros(format_figure(value)) for value in values)
        for values in (
            (first.overhead_us, last.overhead_us),
            (first.ns_per_byte, last.ns_per_byte),
        )
    )
    for cost, words, value in (
        (ChangedCost.OVERHEAD, "overhead", f"{' to '.join(overheads)} µs"),
        (ChangedCost.PER_BYTE, "cost a byte", f"{' to '.join(per_bytes)} ns/B"),
        (ChangedCost.BOTH, "both costs", ""),
    ):
        yield WhatIfCost(words, value, f"{place}.{cost}")


def changed_costs(fields: Mapping[str, str]) -> dict[str, float]:
    """Return the costs that a form changes, as "1.per_byte", each with its factor.

    A button halves or doubles one: `what` is "1.per_byte.half". Without one, sliders have the
    factors' binary logarithms, from -2 to 2. Raises InvalidInput.
    """
    given = {name: text for name, text in fields.items() if name != "what"}
    if what := fields.get("what"):
        name, _, factor = what.rpartition(".")
        given = {name: str(_EXPONENTS.get(factor, ""))}
    try:
        exponents = {name: float(text) for name, text in given.items()}
    except ValueError:
        exponents = {"": 0.0}
    for name, exponent in exponents.items():
        stage, _, cost = name.partition(".")
        known = stage.isascii() and stage.isdigit() and len(stage) < 4 and cost in set(ChangedCost)
        if not known or not abs(exponent) <= _MAX_EXPONENT:
            raise InvalidInput("expected a stage, a cost and half or double, as 1.per_byte.half")
    return {name: 2.0**exponent for name, exponent in exponents.items() if exponent}


def changed_question(
    answer: OptimizeOut, factors: Mapping[str, float], units: ShownUnits
) -> dict[str, Any]:
    """Return the same question with these costs of stages, counted from 0, times their factors.

    `units` have what an address keeps of the question. Raises InvalidInput where there are none,
    and StrategyDeclined where no stages are known.
    """
    if answer.pipeline is None:
        raise StrategyDeclined("no stages are known of a pipeline that is seen from outside")
    if not factors:
        raise InvalidInput("expected a cost that is another")
    pipeline = stored_pipeline(answer.pipeline)
    for name, factor in factors.items():
        stage, _, cost = name.partition(".")
        pipeline = with_cost(pipeline, int(stage), ChangedCost(cost), factor)
    typed = replace(answer, profile=None, fit=None, pipeline=pipeline_out(pipeline))
    question = question_of(typed)
    uncertainty = uncertainty_of(InputState.of_answer(answer).keeping(units.kept))
    question.pop("uncertainty", None)
    question |= {"strategy": "auto"} | ({"uncertainty": uncertainty} if uncertainty else {})
    question.pop("static_bytes", None)
    return question
