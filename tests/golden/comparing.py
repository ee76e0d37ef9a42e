"""Golden files beside what is written today, through the table of renamed words.

renames.json: for files (a pattern as `cli/*`, or `*` for all) the words that were renamed, old to
new. A word is whole: neither letters, digits nor `_` go on before or behind it; a space in it is
any white space. Files that a rename touches are compared without regard to where lines are broken
and filled, which a word of another length moves; others to the letter.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from tests.golden.asked import Command, Form, Http

FOLDER = Path(__file__).parent / "files"
RENAMES = Path(__file__).parent / "renames.json"
# Another processor's square roots and solvers of linear equations may end in another digit.
RELATIVE_TOLERANCE = 1e-9
# What is below is what rounding left of a difference.
ABSOLUTE_TOLERANCE = 1e-12
# Numbers of a text are compared as numbers where one is written to this many digits.
LONG_NUMBER = 12
# Questions whose texts have the digest of a table of fitted costs, which has all their digits.
DIGESTS_OF_FITS = frozenset({"cli/table-profile", "cli/profiles-tables"})
# Documents that have the digest of a trace whose head names the processor.
DIGESTS_OF_MACHINES = frozenset({"cli/measure-json", "cli/measure-signature-json"})
# What is solved to that only, whatever the processor: by the name of the member.
SOLVED_TO = {"sensitivities": 1e-5}
# What a warning has gained since its golden files were written, beside its code and sentence.
GAINED = frozenset({"stage", "values"})
_NUMBER = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w.])")
_SHA256 = re.compile(r'"[0-9a-f]{64}"')
_DIGEST = re.compile(r"\b[0-9a-f]{16}(?:[0-9a-f]{48})?\b")


def path_of(question: Http | Command) -> Path:
    """The golden file of a question."""
    return FOLDER / f"{question.name}.{question.form}"


@cache
def renames() -> Mapping[str, Mapping[str, str]]:
    """The table: file patterns, and words of theirs, old to new."""
    table: Mapping[str, Mapping[str, str]] = json.loads(RENAMES.read_text(encoding="utf-8"))
    return table


def renamed(text: str, name: str, table: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """The golden text with the new words, each put in place once and at once."""
    words: dict[str, str] = {}
    for pattern, some in (renames() if table is None else table).items():
        if fnmatchcase(name, pattern):
            words.update(some)
    if not words:
        return text
    ordered = sorted(words, key=len, reverse=True)
    new = {" ".join(old.split()): word for old, word in words.items()}
    choices = "|".join(r"\s+".join(map(re.escape, old.split())) for old in ordered)
    found = re.compile(rf"(?<!\w)(?:{choices})(?!\w)")
    return found.sub(lambda match: new[" ".join(match[0].split())], text)


def difference(golden: str, written: str, question: Http | Command) -> str:
    """What differs, as a readable difference; empty where nothing does but names."""
    expected = renamed(golden, question.name)
    if question.name in DIGESTS_OF_MACHINES:
        expected, written = _SHA256.sub('"digest"', expected), _SHA256.sub('"digest"', written)
    if question.form is Form.JSON:
        before, after = json.loads(expected), json.loads(written)
        if are_equal(before, after):
            return ""
        return _reported(_sorted(before), _sorted(after), question.name)
    if question.name in DIGESTS_OF_FITS:
        expected, written = _DIGEST.sub("[digest]", expected), _DIGEST.sub("[digest]", written)
    if question.form is Form.PAGE or expected != golden:
        if _same_text(expected.split(), written.split()):
            return ""
        if _words(expected) == _words(written) and question.form is not Form.PAGE:
            return ""
    elif _same_text([expected], [written]):
        return ""
    return _reported(expected, written, question.name)


def are_equal(before: Any, after: Any, tolerance: float = RELATIVE_TOLERANCE) -> bool:
    """Whether documents say the same: members in any order, numbers to the last digits.

    Warnings may have what they gained.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        if {"code", "detail"} <= before.keys():
            after = {name: after[name] for name in after if name in before or name not in GAINED}
        return before.keys() == after.keys() and all(
            are_equal(before[name], after[name], SOLVED_TO.get(name, tolerance)) for name in before
        )
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(
            are_equal(one, other, tolerance) for one, other in zip(before, after, strict=True)
        )
    if isinstance(before, float) and isinstance(after, float):
        return math.isclose(before, after, rel_tol=tolerance, abs_tol=ABSOLUTE_TOLERANCE)
    return type(before) is type(after) and bool(before == after)


def _same_text(before: list[str], after: list[str]) -> bool:
    """Whether words are the same, those numbers to the last digits that are written in full."""
    return len(before) == len(after) and all(
        one == other or _same_numbers(_NUMBER.split(one), _NUMBER.split(other))
        for one, other in zip(before, after, strict=True)
    )


def _same_numbers(before: list[str], after: list[str]) -> bool:
    return len(before) == len(after) and all(
        one == other or (place % 2 == 1 and _same_number(one, other))
        for place, (one, other) in enumerate(zip(before, after, strict=True))
    )


def _same_number(before: str, after: str) -> bool:
    in_full = max(sum(map(str.isdigit, text)) for text in (before, after)) >= LONG_NUMBER
    return in_full and are_equal(float(before), float(after))


def _words(text: str) -> list[str]:
    """Words without rules, whose length is that of the columns."""
    return [word for word in text.split() if word.strip("─-")]


def _sorted(document: Any) -> str:
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)


def _reported(before: str, after: str, name: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"{name} golden", f"{name} today", lineterm=""
    )
    return "\n".join(lines) or "white space differs"
