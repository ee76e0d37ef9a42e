"""The tables of docs/audit.md are what the command makes."""

from __future__ import annotations

from functools import cache

import pytest

import solvers
from app.questions.profiles import paper_profiles
from domain.fragment_setting import FragmentSetting
from domain.model import CostModel
from tests.support.counts import is_campaign
from tools import audit_table
from tools.audit_table import BEGIN, DEFAULT, DOCUMENT, END, PUBLISHED, SHOWN, TRACE, written

PAPERS = [f"`{profile.name}`" for profile in paper_profiles() if profile.name in PUBLISHED]
OF_A_TRACE = f"`{TRACE}`"


@cache
def models() -> dict[str, CostModel]:
    """What has a table, by its name there."""
    return dict(audit_table._models())


def tables_of_the_document() -> dict[str, str]:
    """What the document has of each pipeline, by its name."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    parts = text.split(BEGIN)[1].split(END)[0].strip().split("\n\n**")
    named = (part.removeprefix("**").split("**", 1) for part in parts)
    return {name: f"**{name}**{rest}" for name, rest in named}


def test_the_document_has_a_table_of_each_pipeline() -> None:
    """In the order in which they are made, and nothing else between the marks."""
    assert list(tables_of_the_document()) == list(models()) == [*PAPERS, OF_A_TRACE]


@pytest.mark.parametrize("name", PAPERS)
def test_the_document_holds_what_the_command_makes(name: str) -> None:
    """Byte for byte: a change of a solver, of a profile or of the workload has to be written
    down.
    """
    studied = audit_table._studied(name, models()[name])
    assert tables_of_the_document()[name] == "\n".join(audit_table._table(studied))


def test_the_document_holds_what_the_command_makes_of_a_trace() -> None:
    """Each message that is shown, under each default and with a size of its own.

    The other columns need twenty times as many solves, on ranges: those are for a campaign.
    """
    table = tables_of_the_document()[OF_A_TRACE]
    rows = [line.split(" | ") for line in table.splitlines() if " | " in line]
    shown = {first: cells[-len(SHOWN) :] for first, *cells in rows}
    for setting, cells in cells_of(models()[OF_A_TRACE]).items():
        assert shown[setting] == cells, setting


def cells_of(model: CostModel) -> dict[str, list[str]]:
    """What stands in the columns of messages, by the name of the row."""
    best = audit_table._best(model, set(SHOWN))
    settings = {
        f"always {audit_table.format_bytes(size)}": FragmentSetting.always(size) for size in DEFAULT
    }
    settings["always whole"] = FragmentSetting.always(None)
    cells = {
        name: [audit_table._percent(one.over_best) for one in solvers.regrets(model, setting, best)]
        for name, setting in settings.items()
    }
    repeats = [audit_table._percent(audit_table._repeat_regret(one)) for one in best]
    return {**cells, "a size a message": repeats}


if is_campaign():

    @pytest.mark.long
    def test_the_whole_document_is_what_the_command_makes() -> None:
        """Byte for byte, every table."""
        text = DOCUMENT.read_text(encoding="utf-8")
        assert written(text) == text
