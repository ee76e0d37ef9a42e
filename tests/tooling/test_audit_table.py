"""The tables of docs/audit.md are what the command makes."""

from __future__ import annotations

import pytest

from tools.audit_table import BEGIN, DOCUMENT, END, written


@pytest.mark.long
def test_the_document_holds_what_the_command_makes() -> None:
    """Byte for byte: a change of a solver, of a profile or of the workload has to be written
    down.
    """
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    assert written(text) == text
