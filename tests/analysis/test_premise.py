"""Where a model rests on a premise, nothing is set before it is confirmed."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from analysis.settings_in_draws import SettingsQuestion, repeated_by, settings_in_draws
from analysis.uncertainty import UncertaintyQuestion, assess
from domain.aggregate import Aggregate
from domain.fragment_setting import FragmentSetting
from domain.uncertain_answer import DecisionCode, Reason
from domain.uncertainty import KnownErrors, NamedCut, UncertainAggregate, stated_model
from domain.workload import Workload
from tests.support.records import an_aggregate


def known(relative: float, *, is_uncut: bool) -> UncertainAggregate:
    model = stated_model(replace(an_aggregate(), total_is_uncut=is_uncut), relative)
    assert isinstance(model, UncertainAggregate)
    return model


@given(
    st.floats(0.001, 0.3),
    st.integers(2**10, 2**20),
    st.none() | st.integers(1, 2**20),
)
def test_one_message_is_decided_alike_but_for_what_is_to_be_set(
    relative: float, message_bytes: int, current_bytes: int | None
) -> None:
    current = None if current_bytes is None else NamedCut("current", current_bytes)
    said, taken = (
        assess(
            UncertaintyQuestion(
                known(relative, is_uncut=is_uncut), message_bytes, current=current, draws=50
            )
        )
        for is_uncut in (True, False)
    )
    if said.decision.code is DecisionCode.SET_IT:
        assert taken.decision.code is DecisionCode.MEASURE_FIRST
        assert taken.decision.reason is Reason.PREMISE
        as_set = replace(
            said.decision, code=DecisionCode.MEASURE_FIRST, reason=Reason.PREMISE, measure=None
        )
        assert replace(said, decision=as_set) == taken
    else:
        assert said == taken


def test_so_are_settings_of_many_messages() -> None:
    workload = Workload.log_uniform(2**12, 2**20)
    settings = tuple(
        (name, repeated_by(FragmentSetting.always(size)))
        for name, size in (("whole", None), ("cut", 4096))
    )
    said, taken = (
        settings_in_draws(
            SettingsQuestion(KnownErrors(known(0.02, is_uncut=is_uncut)), workload, settings)
        )
        for is_uncut in (True, False)
    )
    assert said.code is DecisionCode.SET_IT
    first = replace(said, code=DecisionCode.MEASURE_FIRST, reason=Reason.PREMISE)
    assert first == taken
    assert (taken.advised, taken.is_gain_certain) == ("cut", True)


def test_the_premise_is_that_of_the_costs_with_their_errors() -> None:
    for is_uncut in (True, False):
        model = known(0.1, is_uncut=is_uncut).model
        assert isinstance(model, Aggregate)
        assert bool(model.premise) is not is_uncut
