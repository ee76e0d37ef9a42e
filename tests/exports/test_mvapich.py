"""MVAPICH2's block size: what is written and read."""

from __future__ import annotations

import pytest

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting
from exports.targets.mvapich import TARGET, read
from tests.exports.given import given_for


def rendered(size: int, **options: str) -> str:
    """The export of one size."""
    return TARGET.render(given_for(TARGET, options, setting=FragmentSetting.always(size)))


@pytest.mark.parametrize("form", ["env", "shell"])
@pytest.mark.parametrize("size", [65536, 524_288, 2**24])
def test_what_is_written_is_read(form: str, size: int) -> None:
    """Powers of two alone, unverified."""
    text = rendered(size, form=form)
    assert text.endswith(f"MV2_CUDA_BLOCK_SIZE={size}\n")
    assert "UNVERIFIED" in text
    assert read(text) == FragmentSetting.always(size)


@pytest.mark.parametrize("size", [32768, 65536 + 64, 2**25])
def test_sizes_that_nobody_names_are_not_written(size: int) -> None:
    """Its limits are not known."""
    with pytest.raises(InvalidInput):
        rendered(size)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a line MV2_CUDA_BLOCK_SIZE=262144, and found none"),
        ("MV2_CUDA_BLOCK_SIZE=0", "line 1: expected a size of at least 1 byte"),
        ("\nMV2_CUDA_BLOCK_SIZE=big", "line 2: expected a size"),
    ],
)
def test_what_is_no_size_is_refused(text: str, reason: str) -> None:
    """The line and the rule are named."""
    with pytest.raises(InvalidInput, match=reason):
        read(text)


def test_the_last_one_wins() -> None:
    """As in any environment."""
    text = "MV2_USE_CUDA=1\nMV2_CUDA_BLOCK_SIZE=1\nexport MV2_CUDA_BLOCK_SIZE=512K\n"
    assert read(text) == FragmentSetting.always(524_288)
