"""Parts of sentences."""

from __future__ import annotations

import pytest

from app.text.notices import sentence


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("there is no such path", "There is no such path."),
        ("message_bytes is missing", "message_bytes is missing."),
        ("Is it there?", "Is it there?"),
        ("", ""),
    ],
)
def test_refusals_are_sentences(text: str, stated: str) -> None:
    assert sentence(text) == stated
