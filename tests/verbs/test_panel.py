"""The input panel and `sluice optimize` read the same texts alike, or both refuse them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.console.arguments import parse
from app.console.files import read_source
from app.settings import Settings
from app.ui.panel.form import InvalidForm, asked_of
from app.ui.panel.state import InputSource, InputState
from app.verbs.optimize import command
from app.verbs.optimize.request import optimize_question
from contract.optimize import OptimizeIn
from domain.errors import SluiceError
from domain.solution import Strategy
from tests.verbs.test_doors import TEXTS

OPTIONS = {
    "message": "--bytes",
    "current": "--current",
    "relative": "--relative",
    "min_fragment": "--min-fragment-bytes",
    "max_fragment": "--max-fragment-bytes",
    "alignment": "--alignment-bytes",
    "max_fragments": "--max-fragments",
    "static_size": "--static-bytes",
    "relative_gap": "--relative-gap",
    "time_limit": "--time-limit",
    "strategy": "--strategy",
}
NAMES = [name for name in OPTIONS if name not in ("message", "strategy")]
FILLED = st.dictionaries(st.sampled_from(NAMES), TEXTS, min_size=1, max_size=3)
STRATEGIES = st.sampled_from(["auto", "exact", "static", "single"])
SIZES = st.sampled_from(["4 KiB", "64", "1MB"]) | TEXTS


def by_panel(texts: dict[str, str]) -> OptimizeIn | None:
    """The request that the panel makes; None where it finds a mistake."""
    entry = InputState(source=InputSource.PROFILE, profile="gms")
    given_texts = {name: text.strip() for name, text in texts.items()}
    try:
        return asked_of(replace(entry, **given_texts))
    except InvalidForm:
        return None


def by_command(texts: dict[str, str]) -> OptimizeIn | None:
    """The request of the command with these texts as its options; None where it refuses."""
    words = [f"{OPTIONS[name]}={text.strip()}" for name, text in texts.items() if text.strip()]
    try:
        arguments = parse(["optimize", "gms", *words])
        source = read_source("gms", Settings())
        asked = command.asked_of(arguments, source, Settings())
        optimize_question(asked)  # which has the rules of fields together
        return asked
    except (SluiceError, SystemExit):
        return None


@settings(max_examples=400)
@given(texts=FILLED, message=SIZES, strategy=STRATEGIES)
@example(texts={"max_fragments": "4 KiB"}, message="1 MiB", strategy="auto")
@example(texts={"current": "whole"}, message="1 MiB", strategy="auto")
@example(texts={"current": "Whole"}, message="1 MiB", strategy="auto")
@example(texts={"static_size": "4 KiB"}, message="1 MiB", strategy="static")
@example(texts={"relative_gap": "1 %", "time_limit": "0"}, message="1 MiB", strategy="auto")
def test_panel_and_command_ask_the_same(texts: dict[str, str], message: str, strategy: str) -> None:
    """Of every field but where the costs come from, which each says in its own way."""
    whole = {"message": message, "strategy": strategy, **texts}
    if whole.get("relative_gap", "x").strip() == "" or whole.get("time_limit", "x").strip() == "":
        return  # the panel asks for what a command may leave out
    assert by_panel(whole) == by_command(whole), whole


@pytest.mark.parametrize("strategy", Strategy)
def test_every_strategy_is_at_both(strategy: Strategy) -> None:
    """By its name."""
    texts = {"message": "4 KiB", "strategy": str(strategy)}
    if strategy is Strategy.STATIC:
        texts["static_size"] = "512"
    assert by_panel(texts) == by_command(texts) is not None
