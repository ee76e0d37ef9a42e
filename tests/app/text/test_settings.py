"""Settings as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from app.text.units import parse_setting
from domain.errors import InvalidInput

WHOLE: dict[str, Any] = {"whole": True}
HALF_MIB: dict[str, Any] = {"static_bytes": 512 * 1024}
TWO_STEPS: dict[str, Any] = {
    "steps": [
        {"from_bytes": 1, "size_bytes": None},
        {"from_bytes": 64 * 1024, "size_bytes": 16 * 1024},
    ]
}


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("512KiB", HALF_MIB),
        ("512 k", HALF_MIB),
        ("0.5M", HALF_MIB),
        ("always 512 KiB", HALF_MIB),
        ("512 KiB for every message", HALF_MIB),
        ("512 KB", {"static_bytes": 512_000}),
        ("whole", WHOLE),
        ("Never cut", WHOLE),
        ("every message whole", WHOLE),
        ("1:whole,64KiB:16KiB", TWO_STEPS),
        ("whole, from 64 KiB: 16 KiB", TWO_STEPS),
        ("from 64 KiB: 16 KiB", TWO_STEPS),
        ("whole from 1 B, 16 KiB from 64 KiB", TWO_STEPS),
        ("2:4K", {"steps": [{"from_bytes": 2, "size_bytes": 4096}]}),
    ],
)
def test_a_setting_in_many_words(text: str, setting: dict[str, Any]) -> None:
    """What results say of a setting is read back as that setting."""
    assert parse_setting(text) == setting


@pytest.mark.parametrize(
    "text",
    ["", "lots", "-4", "64KiB:", "from 64 KiB", "x from 4 KiB", "4 KiB,", "k", "1:4KiB:2KiB"],
)
def test_what_is_none_is_told_by_example(text: str) -> None:
    """One rule for all of them."""
    with pytest.raises(InvalidInput, match="as 512 KiB, or whole, or steps as whole, from 64 KiB"):
        parse_setting(text)


@pytest.mark.parametrize("text", ["0", "1:0", "0 K"])
def test_nothing_is_no_size(text: str) -> None:
    """A size of 0 says nothing."""
    with pytest.raises(InvalidInput, match="at least 1 byte"):
        parse_setting(text)
