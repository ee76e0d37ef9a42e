"""Shares as they are typed: never read as hundreds of per cent in silence."""

from __future__ import annotations

import pytest

from app.web.shares import share_given, share_in
from domain.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "share"),
    [("5 %", 0.05), ("5%", 0.05), ("0.05", 0.05), ("1e-6", 1e-6), (".5", 0.5), ("0", 0.0)],
)
def test_a_sign_means_per_cent_and_a_number_alone_a_share(text: str, share: float) -> None:
    assert share_in(text) == pytest.approx(share, rel=1e-15)


@pytest.mark.parametrize("text", ["1", "5", "1.0", "500", "1e3"])
def test_a_bare_number_from_one_on_is_refused_with_both_ways_to_write_it(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"write 5 % or 0\.05"):
        share_in(text)


@pytest.mark.parametrize(
    "text", ["", "%", "low", "nan", "inf %", "-1", "1e999 %", "5 % %", "1" * 99]
)
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="expected a share"):
        share_in(text)


@pytest.mark.parametrize("share", [0.0, 1e-6, 0.05, 1 / 3, 1.0, 5.0])
def test_what_is_shown_of_a_share_is_read_as_it(share: float) -> None:
    assert share_in(share_given(share)) == share
