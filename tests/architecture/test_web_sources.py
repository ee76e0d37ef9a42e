"""What the page is made of keeps to its policy by the letter: templates, scripts and sheets.

The browser enforces the policy where a test opens a page; these rules hold everywhere else too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.documents import ROOT, python_files

FOLDER = ROOT / "app" / "ui" / "assets"
TEMPLATES = sorted((ROOT / "app").rglob("*.html"))
ASSETS = sorted(FOLDER.iterdir())
OTHERS = set(re.findall(r"^\| `([^`]+)`", (FOLDER / "README.md").read_text(), re.MULTILINE))
OWN = [path for path in ASSETS if path.suffix in (".js", ".css") and path.name not in OTHERS]
SCRIPTS = [path for path in OWN if path.suffix == ".js"]
SHEETS = [path for path in OWN if path.suffix == ".css"]
# Names of XML, which nobody loads.
NAMES = re.compile(r"http://www\.w3\.org/[0-9]{4}/(?:svg|xlink|xhtml)")

JINJA = re.compile(r"\{%.*?%\}|\{#.*?#\}|\{\{.*?\}\}", re.DOTALL)
TAG = re.compile(r"<[a-zA-Z][^>]*>", re.DOTALL)
LOADED = re.compile(r'<script(?=[^>]*\ssrc=")[^>]*>')
DATA = re.compile(r'<script(?=[^>]*\stype="application/json")[^>]*>')
HANDLER = re.compile(r"\s(?:hx-)?on[a-z:-]+\s*=", re.IGNORECASE)
STYLE = re.compile(r"\sstyle\s*=", re.IGNORECASE)
ELSEWHERE = re.compile(r"""https?:|\s(?:src|href|action|hx-\w+)\s*=\s*["']//""")
EVALUATED = re.compile(r"""["']js:|\bhx-trigger="[^"]*\[""")
# Only drawings of app/plots, which escape what they are given, come as markup.
UNESCAPED = re.compile(r"(?<!svg)(?<!svg )\|\s*safe\b|autoescape\s+false")

NOT_IN_SCRIPTS = {
    "evaluates text": r"\beval\s*\(|\bnew\s+Function\b|set(?:Timeout|Interval)\s*\(\s*[\"'`]",
    "makes elements of text": (
        r"\b(?:innerHTML|outerHTML)\s*\+?=|insertAdjacentHTML|document\.write"
    ),
    "writes style attributes": r"setAttribute\(\s*[\"']style[\"']|cssText",
    "writes handlers": r"setAttribute\(\s*[\"']on",
    "names another host": r"https?://|[\"'`]//[a-z]",
    "keeps data that no address shows": r"\bdocument\.cookie\b",
}


def breaches(text: str) -> Iterator[str]:
    """Which rules a template breaks."""
    for tag in TAG.findall(JINJA.sub("", text)):
        if tag.startswith("<script") and not (LOADED.match(tag) or DATA.match(tag)):
            yield f"inline script: {tag}"
        if tag.lower().startswith("<style"):
            yield "inline style sheet"
        for rule, found in (("handler", HANDLER), ("style attribute", STYLE)):
            if found.search(tag):
                yield f"{rule}: {tag}"
    for rule, found in (
        ("another host", ELSEWHERE),
        ("evaluated attribute", EVALUATED),
        ("text that is not escaped", UNESCAPED),
    ):
        if found.search(NAMES.sub("", text)):
            yield rule


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_nothing_inline_and_names_no_host(path: Path) -> None:
    """Scripts and styles are files, data is JSON, addresses begin on this server."""
    assert list(breaches(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "text",
    [
        "<script>go()</script>",
        "<script type='module'>go()</script>",
        '<a onclick="go()">',
        '<a hx-on:click="go()">',
        '<p class="x" style="color: red">',
        "<style>p {}</style>",
        '<script src="https://elsewhere/x.js"></script>',
        '<img src="//elsewhere/x.png">',
        "<a hx-vals='js:{a: 1}'>",
        '<a hx-trigger="click[event.ctrlKey]">',
        "{{ text | safe }}",
        "{{ text|safe }}",
    ],
)
def test_each_rule_finds_what_it_is_about(text: str) -> None:
    """The rules are not met by looking away."""
    assert len(list(breaches(text))) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "<script src=\"{{ asset('a.js') }}\" defer></script>",
        '<script type="application/json" id="d">{{ data|tojson }}</script>',
        '<svg xmlns="http://www.w3.org/2000/svg">',
        '<option value="x" selected>on = 1</option>',
        "{{ timeline.svg | safe }}",
        '<input value="x"{% if one == other %} checked{% endif %}>',
    ],
)
def test_what_is_meant_to_be_there_breaks_no_rule(text: str) -> None:
    """Loaded scripts, data, names of XML, text."""
    assert list(breaches(text)) == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_makes_nothing_of_text(path: Path) -> None:
    """Neither code nor elements nor styles, and it speaks with this server alone."""
    text = NAMES.sub("", path.read_text(encoding="utf-8"))
    assert [rule for rule, found in NOT_IN_SCRIPTS.items() if re.search(found, text)] == []
    assert '"use strict";' in text


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.name)
def test_a_sheet_loads_nothing(path: Path) -> None:
    """No imports, no addresses, no fonts."""
    text = path.read_text(encoding="utf-8")
    assert re.search(r"@import|url\(|@font-face|https?:", text) is None


def test_every_template_and_every_own_asset_is_used() -> None:
    """By a view, or by a template."""
    texts = [path.read_text(encoding="utf-8") for path in (*TEMPLATES, *python_files("app"))]
    unused = [
        path.name
        for path in (*TEMPLATES, *OWN)
        if not any(f'"{path.name}"' in text or f"'{path.name}'" in text for text in texts)
    ]
    assert unused == []


def test_a_fragment_is_called_a_fragment_on_the_page_too() -> None:
    """The word that the packages do not use is not shown either."""
    own = [*TEMPLATES, *OWN]
    assert [path.name for path in own if "segment" in path.read_text("utf-8").lower()] == []


def test_no_view_makes_markup_of_text() -> None:
    """Templates escape, and so does the one module that writes parts of answers as HTML."""
    users = [
        str(path.relative_to(ROOT / "app"))
        for path in python_files("app")
        if re.search(r"\bMarkup\b", path.read_text(encoding="utf-8"))
    ]
    assert users == ["ui/html.py"]
