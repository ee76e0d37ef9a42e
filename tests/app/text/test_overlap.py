"""Fits of traces and files, and what an answer says of what of their stages overlaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.uncertainty import assess
from app.questions.fits import fit_measurements
from app.questions.traces import Measurement
from app.text.notices import decision_sentence
from app.text.overlap import sweep_command
from domain.fit import FitOptions, TraceFit
from domain.structure import KnownOverlap, StructureKind
from models.fit_documents import dump_fit, load_fit
from models.records import FitRequest
from tests.support.measured import question_of, trace

TRACES = Path(__file__).parents[2] / "data" / "movers"
TOTAL = 1 << 20


def fitted(text: str, **options: Any) -> TraceFit:
    request = FitRequest(FitOptions(**options), None)
    return fit_measurements((Measurement(text),), request, sizes_used=lambda _: ()).fit


def said(fit: TraceFit, current: int) -> str:
    question = question_of(fit, TOTAL, current)
    return decision_sentence(assess(question), question)


def recorded(kind: str) -> TraceFit:
    return fitted((TRACES / f"{kind}.csv").read_text())


def test_stages_that_do_not_overlap_are_one() -> None:
    fit = recorded("serial")
    assert fit.overlap.structure is not None
    assert fit.overlap.structure.kind is StructureKind.SERIAL
    assert [stage.name for stage in fit.stages] == ["hash + check + link"]
    assert fit.events is None


def test_what_was_found_is_kept_with_the_fit() -> None:
    for kind in ("serial", "bucket", "window_of_four"):
        fit = recorded(kind)
        assert load_fit(dump_fit(fit)).overlap == fit.overlap != KnownOverlap()


def test_what_is_not_priced_is_said_with_the_command() -> None:
    text = said(recorded("one_core"), 65536)
    assert text.startswith("Your trace fits no structure known here: ")
    assert "`sluice sweep --bytes 1MiB --current 64KiB -- PROGRAM … {bytes}`" in text


def test_the_command_leaves_out_a_setting_that_is_not_known() -> None:
    assert sweep_command(1000) == "sluice sweep --bytes 1000B -- PROGRAM … {bytes}"


SIZES = tuple(2**power for power in range(13, 21))


@pytest.fixture(scope="module")
def bare() -> str:
    """Stage times of two stages, without begins."""
    return trace(SIZES, 12, (lambda size: 20.0 + size / 1000.0, lambda size: 10.0 + size / 500.0))


def test_durations_alone_are_said_with_their_condition(bare: str) -> None:
    fit = fitted(bare, several_at_once=False)
    assert fit.overlap == KnownOverlap(is_bare=True, several_at_once=False)
    assert said(fit, TOTAL).startswith("If these stages overlap: ")
    assert said(fitted(bare), TOTAL).startswith("If these stages overlap: ")
    unsaid = fitted(bare)
    assert unsaid.overlap == KnownOverlap(is_bare=True)
    assert said(unsaid, 8192).startswith("Does a stage handle several fragments at once? If none ")
    several = fitted(bare, several_at_once=True)
    assert said(several, 8192).startswith("Measure first: of stages that handle several ")


def test_what_holds_either_way_is_set(bare: str) -> None:
    text = said(fitted(bare, several_at_once=False), 8192)
    assert text.startswith("Set ")
    assert " faster than your 8 KiB if stages overlap, " in text
    as_pipeline = fitted(bare, stages_overlap=True)
    assert as_pipeline.overlap == KnownOverlap()
    assert "if stages overlap" not in said(as_pipeline, 8192)


def test_a_file_of_one_stage_says_what_it_lacks() -> None:
    one = trace(SIZES, 12, (lambda size: 20.0 + size / 1000.0,))
    assert "what overlaps with it is not known" in said(fitted(one, several_at_once=False), 8192)
