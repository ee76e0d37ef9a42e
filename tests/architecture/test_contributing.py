"""CONTRIBUTING.md names the verbs, programs and packages that there are."""

from __future__ import annotations

import re
from importlib.util import find_spec

from tests.architecture.documents import ROOT, code_words, document

PAGE = document("CONTRIBUTING.md")
VERBS = {"demo", "fmt", "check", "quick", "test", "report", "campaign", "bench"}
THERE_ALREADY = {"gcc", "python3", "python3-venv"}  # CI needs a compiler, the tests a Python


def test_the_verbs_have_a_row_each_and_are_there() -> None:
    """Those that a contributor needs; any other that is named is in the Makefile too."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    there = set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))
    assert {row[0] for row in PAGE.rows("Commands")} == {f"`make {verb}`" for verb in VERBS}
    assert set(re.findall(r"`make (\w+)`", PAGE.text)) <= there


def test_the_modules_that_are_run_are_there() -> None:
    """`python -m tests.golden.write` and the like."""
    modules = re.findall(r"python -m ([\w.]+)", PAGE.text)
    assert {"tests.golden.write", "bench"} <= set(modules)
    assert [name for name in modules if find_spec(name) is None] == []


def test_the_packages_are_those_that_ci_installs() -> None:
    """Each in the row of what is not tested without it."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    listed = re.search(r"^packages=\((.*?)^\)", script, flags=re.MULTILINE | re.DOTALL)
    assert listed
    installed = set(re.sub(r"#.*", "", listed[1]).split())
    named = {name for row in PAGE.rows("What is skipped") for name in code_words(row[2])}
    assert named - THERE_ALREADY == installed - THERE_ALREADY
