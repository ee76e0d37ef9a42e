"""Draws of machines: their costs vary, what else they are does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.draw_costs import at_least_us, cut_us, repeated_us
from analysis.draws import at_estimates, draw
from analysis.premise import words_taken_as_known
from analysis.repeated_sizes import price_sizes
from domain.errors import InconsistentInput, InvalidInput
from domain.machine import Machine, StageRules, Window
from domain.nested import NestedSchedule
from domain.pipeline import Pipeline
from domain.problem import MachineProblem
from domain.uncertainty import (
    NamedCut,
    StatedInterval,
    UncertainMachine,
    seed_of,
    source_of,
    stated_model,
)
from solvers.kernels import active
from solvers.machine.costs import Costs
from tests.support.uncertain import model_of
from tests.support.uncertain_machines import line, machines, s3_connections, uncertain_machines

seeds = st.integers(0, 2**64 - 1)
sizes = st.lists(st.integers(150, 9000), min_size=1, max_size=4)
cuts = st.lists(st.integers(1, 3000), min_size=1, max_size=12).map(tuple)


def repeated(message_bytes: int, size: int) -> tuple[int, ...]:
    """The fragments of a repeated size."""
    full, rest = divmod(message_bytes, min(size, message_bytes))
    return (min(size, message_bytes),) * full + ((rest,) if rest else ())


@given(uncertain_machines(), seeds, st.integers(1, 8000), sizes, cuts)
def test_cuts_cost_what_the_machine_of_each_draw_says(
    model: UncertainMachine, seed: int, message: int, found: list[int], cut: tuple[int, ...]
) -> None:
    """In C and in NumPy: repeated sizes with their remainders, and uneven cuts, at the best lags
    of each draw.
    """
    draws = draw(model, 5, seed)
    named = NamedCut.of_fragments("cut", cut)
    kernels = {active.NATIVE, None}
    for native in kernels:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(active, "NATIVE", native)
            priced = repeated_us(draws, message, np.array(found))
            taken_us = cut_us(draws, sum(cut), named)
        for at in range(draws.count):
            one = model_of(draws, at)
            expected = [one.latency_us(repeated(message, size)) for size in found]
            assert priced[:, at] == pytest.approx(expected, rel=1e-11, abs=1e-9)
            assert taken_us[at] == pytest.approx(one.latency_us(cut), rel=1e-11, abs=1e-9)


@given(uncertain_machines(), seeds, st.integers(1, 9000), st.integers(30, 3000), st.integers(0, 99))
def test_rounds_that_repeat_are_not_gone_through(
    model: UncertainMachine, seed: int, size: int, full: int, rest: int
) -> None:
    """Of many equal fragments the latencies are still those of every one of them, by whichever
    kernels there are.
    """
    draws, total = draw(model, 9, seed), full * size + rest * size // 100
    asked = np.array([size])
    priced = repeated_us(draws, total, asked)[0]
    for at in range(draws.count):
        one = model_of(draws, at)
        assert isinstance(one, Machine)
        every = Costs(one).repeated_us(total // asked, asked, total % asked)[0] + one.delay_us
        assert priced[at] == pytest.approx(every, rel=1e-10, abs=1e-9)


@given(machines(), st.integers(1, 8000), sizes)
def test_without_a_deviation_every_draw_is_the_machine(
    machine: Machine, message: int, found: list[int]
) -> None:
    """So are the costs as they stand."""
    exact = [machine.latency_us(repeated(message, size)) for size in found]
    for draws in (draw(stated_model(machine, 0.0), 3, 1), at_estimates(machine)):
        priced = repeated_us(draws, message, np.array(found))
        for at in range(draws.count):
            assert priced[:, at] == pytest.approx(exact, rel=1e-11, abs=1e-9)


@given(uncertain_machines(), seeds, st.integers(1, 8000), sizes)
def test_bounds_of_repeated_sizes_are_below_their_latencies(
    model: UncertainMachine, seed: int, message: int, found: list[int]
) -> None:
    """In every draw."""
    draws = draw(model, 5, seed)
    ascending = np.minimum(np.unique(found), message)
    bounds_us = at_least_us(draws, message, ascending)
    assert bounds_us is not None
    assert np.all(bounds_us <= repeated_us(draws, message, ascending) * (1.0 + 1e-12))


@given(uncertain_machines(), seeds)
def test_no_draw_costs_less_than_what_its_lanes_share(model: UncertainMachine, seed: int) -> None:
    """So that each draw is a machine, and the first is that of the estimates."""
    draws = draw(model, 9, seed)
    for at in range(draws.count):
        assert model_of(draws, at).words() == model.model.words()
    assert model_of(draws, 0) == model.model


@given(machines())
def test_other_words_have_the_same_draws(machine: Machine) -> None:
    """What lanes gain is not hidden by noise; of what is shared a draw has no less."""
    plain = stated_model(machine.pipeline, 0.1)
    assert seed_of(stated_model(machine, 0.1)) == seed_of(plain)


def test_sizes_that_are_tried_have_the_best_one() -> None:
    """Of a small message each size is priced by the evaluator; those left out are far from it."""
    machine = Machine(
        Pipeline((line("read", 2.0, 1.0), line("send", 9.0, 4.0))),
        (StageRules(), StageRules(lanes=3, shared_ns_per_byte=1.0)),
        (Window(0, 1, bytes=2000),),
    )
    problem = MachineProblem(machine, 9000)
    priced = price_sizes(problem, at_estimates(machine))
    every = [machine.latency_us(repeated(9000, size)) for size in range(1, 2001)]
    assert priced.latency_us.min() == pytest.approx(min(every), rel=1e-3)
    assert priced.sizes.max() <= 2000
    assert {2000, 1000, 666} & set(priced.sizes.tolist())


def test_typed_errors_are_of_a_machines_costs() -> None:
    """By deviations and by intervals of its stages; a stage that there is not is refused."""
    machine = s3_connections()
    assert source_of(stated_model(machine, 0.1)) == "relative"
    interval = StatedInterval("connection", 0, overhead_us=(50_000.0, 80_000.0))
    stated = stated_model(machine, 0.0, (interval,))
    assert isinstance(stated, UncertainMachine)
    assert (stated.model, source_of(stated)) == (machine, "intervals")
    with pytest.raises(InconsistentInput) as refusal:
        stated_model(machine, 0.1, (StatedInterval("uplink", ns_per_byte=(0.1, 1.0)),))
    assert refusal.value.field == "intervals.0.stage"


def test_a_machine_has_one_cut_for_all_stages() -> None:
    draws = at_estimates(s3_connections())
    nested = NamedCut("cut", schedule=NestedSchedule(((4,), (2, 2))))
    with pytest.raises(InvalidInput, match="one cut for all stages"):
        cut_us(draws, 4, nested)


def test_what_no_draw_varies_is_said() -> None:
    """By what is set, and of machines alone."""
    (notice,) = words_taken_as_known(stated_model(s3_connections(), 0.1))  # type: ignore[arg-type]
    assert notice.code == "words_taken_as_known"
    assert notice.detail == (
        "how sure this is rests on draws of the costs alone: lanes, what they share and windows "
        "count as known"
    )
    assert words_taken_as_known(stated_model(s3_connections().pipeline, 0.1)) == ()
