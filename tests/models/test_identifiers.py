"""Identifiers: their form and their order."""

from __future__ import annotations

import re
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from models.identifiers import IdentifierSource, new_id
from tests.support.writers import PROCESSES, identifiers_of_a_fork


def test_an_identifier_is_a_version_7_uuid() -> None:
    """32 lower-case hexadecimal digits that begin with the time in milliseconds."""
    before = time.time_ns() // 1_000_000
    text = new_id()
    after = time.time_ns() // 1_000_000
    assert re.fullmatch(r"[0-9a-f]{32}", text)
    value = uuid.UUID(text)
    assert (value.version, value.variant) == (7, uuid.RFC_4122)
    assert before <= value.int >> 80 <= after + 1


def test_identifiers_increase_also_within_a_millisecond() -> None:
    """So a page by identifier is a page by time."""
    made = [new_id() for _ in range(20_000)]
    assert made == sorted(set(made))


def test_identifiers_increase_when_the_clock_stands_or_steps_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An adjusted clock is no reason to repeat or to go back."""
    source = IdentifierSource()
    times = [1_700_000_000_000_000_000] * 50 + [1_600_000_000_000_000_000] * 50
    monkeypatch.setattr("time.time_ns", iter(times).__next__)
    made = [source.new() for _ in times]
    assert made == sorted(set(made))


def test_threads_never_get_the_same_identifier() -> None:
    """Eight threads, and in each of them an increasing order."""
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda _: [new_id() for _ in range(2000)], range(8)))
    assert all(part == sorted(part) for part in parts)
    assert len({text for part in parts for text in part}) == 16_000


def test_a_fork_never_repeats_its_parent() -> None:
    """A child begins anew instead of with its parent's state."""
    with PROCESSES.Pool(1) as pool:
        first, second = (pool.apply(identifiers_of_a_fork, (500,)) for _ in range(2))
    assert len({*first, *second}) == 1000
