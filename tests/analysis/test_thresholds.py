"""analysis/thresholds.py: prices against the delivery, the best of all, limits on the work."""

from __future__ import annotations

from itertools import product
from statistics import mean

import pytest

from analysis import thresholds
from analysis.thresholds import (
    MessageThresholds,
    ThresholdQuestion,
    Thresholds,
    price_thresholds,
)
from app.questions.profiles import paper_profiles
from domain.delivery import Delivery, DeliveryRule, deliver, ideal_us
from domain.errors import InconsistentInput, InvalidInput, StrategyDeclined
from domain.nested import nested_latency_us
from domain.pipeline import pipeline_of_lines
from domain.schedule import latency_us

PROFILES = {one.name: one.pipeline for one in paper_profiles()}
TRAPEZE = PROFILES["trapeze"]
MYRINET = PROFILES["myrinet-gam"]
CAP = 100_000


def question(**more: object) -> ThresholdQuestion:
    given: dict[str, object] = {
        "pipeline": TRAPEZE,
        "message_bytes": (8192,),
        "rule": DeliveryRule.EAGER,
        "max_pulses": CAP,
        "time_limit_s": 60.0,
    }
    return ThresholdQuestion(**{**given, **more})  # type: ignore[arg-type]


def delivered_us(message_bytes: int, *rules: Delivery) -> float:
    return nested_latency_us(TRAPEZE, deliver(TRAPEZE, message_bytes, rules, max_pulses=CAP))


def whole(message_bytes: int) -> Delivery:
    return Delivery(DeliveryRule.STATIC, pulse_bytes=message_bytes)


@pytest.mark.parametrize("rule", [DeliveryRule.STATIC, DeliveryRule.EAGER])
def test_each_price_is_that_of_the_delivery(rule: DeliveryRule) -> None:
    """Both later stages vary; a choice names them in their order."""
    sizes = (128, 512, 1280, 8192)
    found = price_thresholds(question(rule=rule, stages=(1, 2), sizes=sizes))
    name = "pulse_bytes" if rule is DeliveryRule.STATIC else "threshold_bytes"
    expected = [
        delivered_us(8192, whole(8192), *(Delivery(rule, **{name: one}) for one in pair))
        for pair in product(sizes, repeat=2)
    ]
    assert found.question.choices == tuple(product(sizes, repeat=2))
    assert found.messages[0].latencies_us == tuple(expected)
    assert found.messages[0].best is not None
    assert expected[found.messages[0].best] == min(expected)


def test_the_published_minimum_of_thresholds() -> None:
    """Yocum97 sec. 4.2: 177 µs; of the grid of 32 bytes 177.66 at 64 and 32 bytes."""
    (message,) = price_thresholds(
        question(stages=(1, 2), sizes=tuple(range(32, 1025, 32)))
    ).messages
    assert message.best is not None
    assert question(stages=(1, 2), sizes=tuple(range(32, 1025, 32))).choices[message.best] == (
        64,
        32,
    )
    assert message.latencies_us[message.best] == pytest.approx(177.6604, abs=1e-4)
    assert message.store_and_forward_us == pytest.approx(306.2124, abs=1e-4)
    assert message.lower_bound_us == pytest.approx(174.434, abs=1e-3)
    assert message.ideal_us == pytest.approx(27.0 + 4.4 + 1.0 + 2.35 + 8192 * 15.625 / 1000.0)


def test_one_choice_for_all_messages() -> None:
    """1 to 256 KiB, from 16 B on: a threshold needs hardly any tuning, where a static size does."""
    messages = tuple(round(1024 * 2 ** (step / 2)) for step in range(17))
    sizes = tuple(2**power for power in range(4, 19))
    eager, static = (
        price_thresholds(question(message_bytes=messages, rule=rule, sizes=sizes))
        for rule in (DeliveryRule.EAGER, DeliveryRule.STATIC)
    )
    regrets = regrets_of(eager)
    assert eager.one is not None
    assert eager.question.choices[eager.one.place] == (16,)
    assert min(map(mean, regrets)) == eager.one.mean_regret == pytest.approx(0.0029, abs=5e-5)
    assert max(regrets[eager.one.place]) == eager.one.max_regret == pytest.approx(0.023, abs=5e-4)
    worst = regrets[eager.one.place].index(eager.one.max_regret)
    assert messages[worst] == eager.one.worst_message_bytes
    least = [min(us for us in one.latencies_us if us) for one in eager.messages]
    above = [
        mean([us / best - 1.0 for us, best in zip(column, least, strict=True)])
        for column in zip(*(one.latencies_us for one in static.messages), strict=True)
    ]
    assert min(above) == pytest.approx(0.132, abs=5e-4)


def test_the_best_of_each_message_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once a choice, each of which would look at all of them: 20 000 took half a minute."""
    looked = []
    best = MessageThresholds.best.fget

    def counted(message: MessageThresholds) -> int | None:
        looked.append(message.message_bytes)
        return best(message)  # type: ignore[misc]

    monkeypatch.setattr(MessageThresholds, "best", property(counted))
    found = price_thresholds(question(message_bytes=(512, 8192), sizes=tuple(range(64, 96))))
    assert found.one is not None
    assert looked == [512, 8192]


def regrets_of(found: Thresholds) -> list[list[float]]:
    """Of each choice on each message."""
    rows = []
    for one in found.messages:
        least = min(us for us in one.latencies_us if us is not None)
        rows.append([us / least - 1.0 for us in one.latencies_us if us is not None])
    return [list(column) for column in zip(*rows, strict=True)]


def test_a_first_stage_that_hands_nothing_on_is_cut_too() -> None:
    """Else nothing overlaps: one size in all stages is the repeated size, as Wang has it."""
    found = price_thresholds(
        question(pipeline=MYRINET, message_bytes=(4096,), rule=DeliveryRule.STATIC, sizes=(1024,))
    )
    four = (1024,) * 4
    assert found.messages[0].latencies_us == (pytest.approx(latency_us(MYRINET, four)),)


def test_sizes_of_too_many_pulses_are_left_out() -> None:
    found = price_thresholds(question(rule=DeliveryRule.STATIC, sizes=(1, 4096), max_pulses=100))
    assert found.messages[0].latencies_us[0] is None
    assert found.messages[0].best == 1
    assert not found.cut_off
    (notice,) = found.notices
    assert (notice.code, notice.value("evaluations")) == ("too_many_pulses", 1)


def test_time_ends_with_the_smallest_sizes_unpriced(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is priced by then counts, and a notice says how much is not."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(thresholds, "monotonic", lambda: float(next(ticks)))
    found = price_thresholds(question(time_limit_s=5.0))
    priced = [us is not None for us in found.messages[0].latencies_us]
    assert priced == [False] * 11 + [True] * 3
    assert found.cut_off
    assert [one.code for one in found.notices] == ["time_limit"]
    assert found.notices[0].value("evaluations") == 11
    assert found.one is not None
    nothing = price_thresholds(question(time_limit_s=0.0))
    assert nothing.one is None
    assert nothing.messages[0].best is None
    assert 0.0 < nothing.messages[0].lower_bound_us < found.messages[0].lower_bound_us


def test_half_of_the_time_gives_a_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr(thresholds, "monotonic", lambda: float(next(clock)))
    reported: list[Thresholds] = []
    found = price_thresholds(question(time_limit_s=20.0), on_best=reported.append)
    (best,) = reported
    assert best.cut_off
    assert [one.code for one in best.notices] == ["time_limit"]
    (half,), (whole_,) = best.messages, found.messages
    known = [us for us in half.latencies_us if us is not None]
    assert 0 < len(known) < sum(us is not None for us in whole_.latencies_us)
    assert set(known) < set(whole_.latencies_us)


def test_what_may_be_possible_but_not_in_time_is_out_of_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No single delivery goes on much longer than the time that is left."""
    monkeypatch.setattr(thresholds, "_PULSES_PER_S", 1.0)
    found = price_thresholds(question(rule=DeliveryRule.STATIC, sizes=(1, 4096), max_pulses=9000))
    assert found.messages[0].latencies_us[0] is None
    assert found.messages[0].best == 1
    assert found.cut_off
    assert [one.code for one in found.notices] == ["time_limit"]


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    price_thresholds(question(message_bytes=(64,) * 40), lambda *one: told.append(one))
    assert told == [(64, 280), (128, 280), (192, 280), (256, 280)]


def test_the_ideal_has_each_overhead_once() -> None:
    pipeline = pipeline_of_lines([("a", 1.0, 2.0), ("b", 3.0, 8.0)], delay_us=5.0)
    assert ideal_us(pipeline, 1000) == 5.0 + 4.0 + 8.0


@pytest.mark.parametrize(
    ("more", "error", "field"),
    [
        ({"rule": DeliveryRule.SAME}, InvalidInput, "rule"),
        ({"stages": (3,)}, InvalidInput, "stages.0"),
        ({"stages": (1, -1)}, InvalidInput, "stages.1"),
        ({"stages": (1, 1)}, InvalidInput, "stages"),
        ({"stages": (0, 1, 2), "sizes": tuple(range(1, 30))}, InconsistentInput, "sizes"),
        ({"pipeline": pipeline_of_lines([("a", 1.0, 2.0)])}, StrategyDeclined, "pipeline"),
    ],
)
def test_what_is_wrong_names_its_field(
    more: dict[str, object], error: type[InvalidInput], field: str
) -> None:
    with pytest.raises(error) as caught:
        question(**more)
    assert caught.value.field == field
