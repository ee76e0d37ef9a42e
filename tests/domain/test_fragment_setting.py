"""Settings: the size of a message by its step, and what is no setting."""

from __future__ import annotations

import pytest

from contract.limits import MAX_MESSAGE_BYTES
from domain.errors import InvalidInput
from domain.fragment_setting import MAX_STEPS, FragmentSetting, SettingStep


def test_a_step_holds_from_its_size_to_just_before_the_next() -> None:
    """Below 100 bytes whole, then 40, then 7."""
    setting = FragmentSetting((SettingStep(1, None), SettingStep(100, 40), SettingStep(1000, 7)))
    sizes = {1: 1, 99: 99, 100: 40, 999: 40, 1000: 7, MAX_MESSAGE_BYTES: 7}
    assert {message: setting.size_at(message) for message in sizes} == sizes


def test_a_message_below_the_size_is_sent_whole() -> None:
    """The size that is repeated is never above the message."""
    setting = FragmentSetting.always(64)
    assert [setting.size_at(message) for message in (1, 63, 64, 65)] == [1, 63, 64, 64]


def test_always_whole_is_whole_at_every_size() -> None:
    """None stands for the message itself."""
    setting = FragmentSetting.always(None)
    assert [setting.size_at(message) for message in (1, MAX_MESSAGE_BYTES)] == [
        1,
        MAX_MESSAGE_BYTES,
    ]


@pytest.mark.parametrize(
    ("steps", "rule"),
    [
        ((), "1 to 4096 steps"),
        (tuple(SettingStep(i + 1, 1) for i in range(MAX_STEPS + 1)), "1 to 4096 steps"),
        ((SettingStep(2, 1),), "begin at 1"),
        ((SettingStep(1, 1), SettingStep(1, 2)), "ascend"),
        ((SettingStep(1, 1), SettingStep(9, 2), SettingStep(8, 2)), "ascend"),
        ((SettingStep(1, 0),), "sizes of 1 to"),
        ((SettingStep(1, -5),), "sizes of 1 to"),
        ((SettingStep(1, MAX_MESSAGE_BYTES + 1),), "sizes of 1 to"),
        ((SettingStep(1, 1), SettingStep(MAX_MESSAGE_BYTES + 1, 1)), "sizes of 1 to"),
        ((SettingStep(1, 1.5),), "whole numbers"),  # type: ignore[arg-type]
        ((SettingStep(True, 4),), "whole numbers"),
        ((SettingStep("1", 4),), "whole numbers"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_setting_is_refused(steps: tuple[SettingStep, ...], rule: str) -> None:
    """The rule is named, and the field."""
    with pytest.raises(InvalidInput, match=rule) as refusal:
        FragmentSetting(steps)
    assert refusal.value.field == "setting"


def test_as_many_steps_as_there_may_be() -> None:
    """The limit itself is allowed."""
    setting = FragmentSetting(tuple(SettingStep(i + 1, i + 1) for i in range(MAX_STEPS)))
    assert setting.size_at(MAX_STEPS) == MAX_STEPS
