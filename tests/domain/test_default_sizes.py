"""Defaults of systems: which are compared with, in which sizes, and that each says its source."""

from __future__ import annotations

import pytest

from domain.default_sizes import DEFAULT_SIZES, MAX_DEFAULTS, MAX_PIECES, default_sizes
from domain.pipeline import pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.units import format_bytes
from tests.architecture.documents import ROOT

PLAIN = pipeline_of_lines([("copy", 7.2, 7.0), ("wire", 7.5, 24.3)])
KIB, MIB = 2**10, 2**20


def sizes(message_bytes: int, current_bytes: int | None = None, **limits: int) -> list[int]:
    problem = Problem(PLAIN, message_bytes, FragmentLimits(**limits))
    return [one.fragment_bytes for one in default_sizes(problem, current_bytes=current_bytes)]


@pytest.mark.parametrize(
    ("message_bytes", "expected"),
    [
        (100, []),
        (128, []),
        (4 * KIB, [128, 1500]),
        (64 * KIB, [1500, 4 * KIB]),
        (64 * KIB + 1, [1500, 4 * KIB, 64 * KIB]),
        (16 * MIB, [512 * KIB, MIB, 4 * MIB, 8 * MIB]),
        (64 * MIB, [512 * KIB, MIB, 4 * MIB, 8 * MIB]),
        (1024 * MIB, [8 * MIB]),
        (2**36, [8 * MIB]),
        (2**40, []),
    ],
)
def test_defaults_fit_the_message(message_bytes: int, expected: list[int]) -> None:
    """The largest that cut it, not into very many pieces."""
    assert sizes(message_bytes) == expected


def test_defaults_keep_the_limits() -> None:
    """Sizes, remainders and counts that the limits forbid are left out."""
    assert sizes(MIB, max_fragment_bytes=100_000) == [64 * KIB]
    assert sizes(MIB, min_fragment_bytes=100 * KIB) == [128 * KIB, 256 * KIB, 512 * KIB]
    assert sizes(MIB + 1, min_fragment_bytes=2) == [1500]
    assert sizes(MIB, max_fragments=4) == [256 * KIB, 512 * KIB]
    assert sizes(MIB, current_bytes=128 * KIB)[-3:] == [64 * KIB, 256 * KIB, 512 * KIB]


def test_defaults_are_in_units_of_the_alignment() -> None:
    """Rounded up; where two become one size the nearer default is named."""
    problem = Problem(PLAIN, MIB, FragmentLimits(alignment_bytes=14_336))
    found = {one.fragment_bytes: one for one in default_sizes(problem)}
    assert list(found) == [71_680, 143_360, 272_384, 530_432]
    assert found[71_680].default_bytes == 64 * KIB
    assert sizes(100_000, alignment_bytes=14_336) == [14_336, 71_680]
    small = Problem(PLAIN, 100_000, FragmentLimits(alignment_bytes=14_336))
    assert default_sizes(small)[0].name == "GAM"


def test_every_default_says_where_it_is_written() -> None:
    """And all ascend, one system a size."""
    every = [one.default_bytes for one in DEFAULT_SIZES]
    assert every == sorted(set(every))
    assert len({one.name for one in DEFAULT_SIZES}) == len(DEFAULT_SIZES)
    for one in DEFAULT_SIZES:
        assert one.source.startswith(("https://", "http://", "Wang et al. 1998"))


def test_the_service_document_lists_them_all() -> None:
    """With the parameter and the source of each, and the rule by which they are chosen."""
    document = (ROOT / "docs/service.md").read_text(encoding="utf-8")
    for one in DEFAULT_SIZES:
        parameter = f"`{one.parameter}`" if one.parameter else ""
        row = f"{one.name} | {format_bytes(one.default_bytes)} | {parameter} | {one.source}"
        assert row.replace("|  |", "| |") in document
    assert f"2 to {MAX_PIECES} fragments" in document
    assert MAX_DEFAULTS == 4
    assert "at most four" in document
