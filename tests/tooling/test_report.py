"""What `make report` says of a planted checkout."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from tools.quick_tests import SECONDS
from tools.report import Function, alike, main, report, sources

SUM = '''
    def total(rows, limit):
        """Say something."""
        found = 0
        for row in rows:
            if row.size > limit:
                found += row.size * 2 + row.rest - row.start
            else:
                found -= row.size * 3 + row.rest - row.start
        return found
'''
OTHER_NAMES = """
    class Rows:
        def summed(self, of, most):
            out = 0
            for one in of:
                if one.size > most:
                    out += one.size * 2 + one.rest - one.start
                else:
                    out -= one.size * 3 + one.rest - one.start
            return out
"""
OTHER_NUMBER = SUM.replace("* 3", "* 4").replace("total", "other")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Three packages, a document, a test and its seconds."""
    planted = {
        "domain/sums.py": SUM,
        "domain/empty.py": "",
        "app/web/rows.py": OTHER_NAMES,
        "solvers/broken.py": "def half(:\n",
        "solvers/other.py": OTHER_NUMBER,
        "app/web/page.html": "<p>limit</p>",
        "app/__pycache__/old.py": "limit = 1\n",
        "docs/limits.md": "`limit` and `limits`\n",
        "tests/domain/test_sums.py": "limits = 1\n",
        SECONDS: json.dumps({"tests/domain/test_sums.py": 3.2}),
    }
    for name, text in planted.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip(), encoding="utf-8")
    return tmp_path


def functions(checkout: Path) -> list[Function]:
    found = sources(checkout, ("domain", "app", "solvers"))
    return [function for source in found for function in source.functions]


def part(checkout: Path, title: str, name: str = "") -> list[str]:
    """The lines below this title, without their indent."""
    text = "\n" + "\n".join(report(checkout, name))
    below = text.split(f"\n\n{title}", 1)[1].split("\n\n", 1)[0]
    return [line.strip() for line in below.splitlines()[1:]]


def test_bodies_are_alike_whatever_their_variables_are_called(checkout: Path) -> None:
    """But not with another number in them."""
    groups = alike(functions(checkout))
    assert [[one.place for one in group] for group in groups] == [
        ["domain/sums.py::total", "app/web/rows.py::Rows::summed"]
    ]


def test_a_docstring_is_no_part_of_a_body(checkout: Path) -> None:
    """Seven lines of eight below the first."""
    found = {one.place: (one.lines, one.body_lines) for one in functions(checkout)}
    assert found["domain/sums.py::total"] == (9, 7)
    assert found["app/web/rows.py::Rows::summed"] == (8, 7)


def test_lines_and_files_are_counted_by_package_to_two_levels(checkout: Path) -> None:
    """Neither what a compiler left nor what is no Python."""
    assert part(checkout, "Product") == [
        "28 lines     5 files  all",
        "9 lines     1 files  app",
        "9 lines     1 files    app/web",
        "9 lines     2 files  domain",
        "10 lines     2 files  solvers",
    ]


def test_a_name_is_found_as_a_word_in_all_kinds_of_text(checkout: Path) -> None:
    """In product and documents apart."""
    product = part(checkout, "Product: 3 files say limit", "limit")
    assert product == ["domain/sums.py", "solvers/other.py", "app/web/page.html"]
    assert part(checkout, "Beside it: 1 files say limit", "limit") == ["docs/limits.md"]


def test_seconds_of_tests_are_there_where_they_are_known(checkout: Path) -> None:
    """By folder, then the longest files; nothing without the table."""
    assert part(checkout, "Tests by processor time") == [
        "3 s  all",
        "3 s  tests/domain",
        "3 s  tests/domain/test_sums.py",
    ]
    (checkout / SECONDS).unlink()
    assert part(checkout, "Tests by processor time") == []


def test_an_empty_checkout_has_a_report_too(tmp_path: Path) -> None:
    """It never fails."""
    assert part(tmp_path, "Product") == ["0 lines     0 files  all"]


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Of this checkout; it ends well."""
    assert main(["--name", "max_regret"]) == 0
    printed = capsys.readouterr().out
    assert "Longest functions" in printed
    assert "files say max_regret" in printed
