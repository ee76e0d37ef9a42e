"""The input panel and `sluice optimize` read the same texts alike, or both refuse them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.console.arguments import parse
from app.console.files import read_source
from app.schemas.items import asked_items
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


# --- items in the place of a message --------------------------------------------------------------


OF_ITEMS = {
    "current": "--current",
    "relative": "--relative",
    "first_cap": "--first-bytes",
    "fill": "--fill",
    "max_fragment": "--max-fragment-bytes",
    "max_fragments": "--max-fragments",
    "relative_gap": "--relative-gap",
    "time_limit": "--time-limit",
}
CELLS = st.sampled_from(["1", "4 KiB", "0", "2.5", "x", "", "-1", "1e400", "7 ms", "a", " b "])
HEADS = st.sampled_from(
    ["bytes", "name", "ready (us)", "ready", "copy (us)", "bytes (MiB)", "", "µ"]
)


@st.composite
def tables(draw: st.DrawFn) -> str:
    """Texts that may be tables of items."""
    heads = ["bytes", *draw(st.lists(HEADS, max_size=3))]
    rows = draw(st.lists(st.lists(CELLS, min_size=len(heads), max_size=len(heads)), max_size=4))
    return "\n".join(",".join(row) for row in [heads, *rows])


TABLES = tables() | st.sampled_from(["bytes\n4\n1", "bytes,ready (us)\n4,1\n1,2\n", "", "x\n1"])
OF_ITEMS_FILLED = st.dictionaries(
    st.sampled_from([name for name in OF_ITEMS if name != "fill"]), TEXTS, max_size=3
)


def items_by_panel(table: str, texts: dict[str, str]) -> OptimizeIn | None:
    """The request that the panel makes of these items; None where it finds a mistake."""
    pairs = [("source", "profile"), ("profile", "gms"), ("has_items", "on"), ("items", table)]
    try:
        return asked_of(InputState.of_form([*pairs, *texts.items()]))
    except InvalidForm:
        return None


def items_by_command(table: str, texts: dict[str, str], folder: Path) -> OptimizeIn | None:
    """The request of the command, with the same table in a file; None where it refuses."""
    (folder / "items.csv").write_text(table, encoding="utf-8")
    given_texts = {name: text.strip() for name, text in texts.items() if text.strip()}
    if given_texts.get("fill") == "until":
        del given_texts["fill"]  # the panel says this rule where there is more to say
    words = [f"{OF_ITEMS[name]}={text}" for name, text in given_texts.items()]
    try:
        arguments = parse(["optimize", "gms", f"--items={folder / 'items.csv'}", *words])
        source = read_source("gms", Settings())
        asked = command.asked_of(arguments, source, Settings())
        asked_items(asked)  # which has the rules of fields together
        return asked
    except (SluiceError, SystemExit):
        return None


@settings(max_examples=300)
@given(table=TABLES, texts=OF_ITEMS_FILLED, fill=st.sampled_from(["until", "before", "after"]))
@example(table="bytes\n4", texts={"first_cap": "1 MiB"}, fill="until")
@example(table="bytes\n4", texts={"current": "whole", "max_fragments": "2"}, fill="before")
def test_panel_and_command_ask_the_same_of_items(
    table: str, texts: dict[str, str], fill: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A table that is pasted is what a file is."""
    whole = {**texts, "fill": fill}
    if whole.get("relative_gap", "x").strip() == "" or whole.get("time_limit", "x").strip() == "":
        return  # the panel asks for what a command may leave out
    by_file = items_by_command(table, whole, tmp_path_factory.getbasetemp())
    assert items_by_panel(table, whole) == by_file, (table, whole)


@given(texts=FILLED)
def test_what_is_typed_of_messages_is_not_asked_of_items(texts: dict[str, str]) -> None:
    """The page hides it, and keeps it for when the switch is turned back."""
    hidden = {name: text for name, text in texts.items() if name not in OF_ITEMS}
    plain = items_by_panel("bytes\n4\n1", {})
    assert plain is not None
    assert items_by_panel("bytes\n4\n1", {"message": "x", "strategy": "fixed", **hidden}) == plain
    kept = InputState.of_form([("has_items", "on"), *hidden.items()])
    assert {name: getattr(kept, name) for name in hidden} == {
        name: text.strip() for name, text in hidden.items()
    }
