"""What the product writes for the questions, as text without what changes from run to run."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

import httpx

from app.cli import main
from app.settings import VERSION
from tests.app.serving import serving, settings_for, wait_for_end
from tests.golden.asked import Command, Form, Http
from tests.golden.commands import COMMANDS, FILES
from tests.golden.help import HELP
from tests.golden.here import work_here
from tests.golden.mistakes import MISTAKES
from tests.golden.models import ROOT
from tests.golden.questions import HTTP
from tests.golden.stand_ins import measured_here
from tests.support.long_work import long_here_engine

TRANSFERS = ROOT / "tests" / "data" / "transfers"
# With any of them what is printed may have colours.
_COLOURS = frozenset({"FORCE_COLOR", "PYTHON_COLORS"})
KEPT_AS = re.compile(r"<([a-z0-9_-]+/[a-z0-9_-]+)>")
# Members of documents that are a matter of the clock.
OF_THE_CLOCK = frozenset({"solve_ms", "audit_ms", "compile_ms", "elapsed_s", "history"})
# Elements that begin a line; the others stand inside of one.
_BLOCKS = frozenset(
    {
        *("article", "aside", "blockquote", "body", "br", "button", "caption", "dd", "details"),
        *("div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "g", "h1"),
        *("h2", "h3", "h4", "head", "header", "hr", "html", "input", "label", "legend", "li"),
        *("link", "main", "meta", "nav", "ol", "option", "p", "path", "pre", "rect", "script"),
        *("section", "select", "summary", "svg", "table", "tbody", "td", "text", "textarea"),
        *("tfoot", "th", "thead", "title", "tr", "ul"),
    }
)
_REPORTED = ("value", "placeholder", "title", "alt", "aria-label", "content")
_CHOSEN = ("checked", "selected")
_PICTURE = "data:image/svg+xml;base64,"


def all_texts() -> dict[str, str]:
    """Every question's text, by its name."""
    with tempfile.TemporaryDirectory(prefix="sluice-golden-") as folder, work_here():
        return {**_of_the_service(Path(folder)), **_of_the_commands(Path(folder))}


# --- the service ----------------------------------------------------------------------------------


def _of_the_service(folder: Path) -> dict[str, str]:
    texts: dict[str, str] = {}
    kept_as: dict[str, str] = {}
    settings = settings_for(f"sqlite:///{folder / 'service.db'}")
    with serving(settings, open_engine=long_here_engine) as live:
        for question in HTTP:
            response = _asked(live.client, question, kept_as)
            if name := _kept_as(response):
                kept_as[question.name] = name
            texts[question.name] = _text_of(response, question)
    return texts


def _asked(client: httpx.Client, question: Http, kept_as: Mapping[str, str]) -> httpx.Response:
    headers = {"prefer": "respond-async"} if question.job else {}
    if question.htmx:
        headers["hx-request"] = "true"
    elif question.form is Form.PAGE:
        headers["accept"] = "text/html"
    given: dict[str, Any] = {}
    if question.body is not None:
        given["json"] = question.body
    elif question.text is not None:
        given["content"] = question.text
        headers["content-type"] = "text/csv"
    elif question.fields:
        given["data"] = dict(question.fields)
    path = _filled(question.path, kept_as)
    response = client.request(question.method, path, headers=headers, **given)
    location = response.headers.get("location", "")
    if not question.job or response.status_code != 202:
        return response
    wait_for_end(client, location)
    return client.get(location)


def _kept_as(response: httpx.Response) -> str | None:
    if response.status_code == httpx.codes.SEE_OTHER:
        return response.headers["location"].partition("?")[0].rpartition("/")[2]
    if not response.headers.get("content-type", "").startswith("application/json"):
        return None
    document = response.json()
    return document.get("fit_id") or document.get("id") or document.get("digest")


def _text_of(response: httpx.Response, question: Http) -> str:
    kind = response.headers.get("content-type", "")
    if question.form is Form.JSON:
        document = response.json() if response.content else None
        shown = {"status": response.status_code, "type": kind, "body": timeless(document)}
        return normalised(json.dumps(shown, indent=1, ensure_ascii=False) + "\n")
    head = f"{response.status_code} {kind}\n"
    if question.form is Form.DIGEST:
        return head + _digest(response.content)
    text = response.text
    if question.form is Form.PAGE:
        text = page_text(text)
    return normalised(head + text)


# --- the command line -----------------------------------------------------------------------------


def _of_the_commands(folder: Path) -> dict[str, str]:
    for name, document in FILES.items():
        text = document if isinstance(document, str) else json.dumps(document)
        (folder / name).write_text(text, encoding="utf-8")
    for name, there in (("examples", ROOT / "examples"), ("transfers", TRANSFERS)):
        (folder / name).symlink_to(there)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("SLUICE_") and name not in _COLOURS
    }
    environment |= {"SLUICE_DATABASE_URL": f"sqlite:///{folder / 'cli.db'}", "COLUMNS": "80"}
    with (
        _standing_in(folder),
        measured_here(folder / "programs"),
        mock.patch.dict(os.environ, environment, clear=True),
    ):
        return {one.name: _of_command(one, folder) for one in (*COMMANDS, *MISTAKES, *HELP)}


def _of_command(command: Command, folder: Path) -> str:
    def filled(text: str) -> str:
        return text.replace("<folder>", str(folder))

    out, err = _stream(), _stream()
    environment = {name: filled(value) for name, value in command.environment.items()}
    with (
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "stdin", _stream(command.given)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = _exit_code([filled(word) for word in command.words])
    printed, said = (_written(one).replace(str(folder), "<folder>") for one in (out, err))
    if command.form is Form.JSON:
        shown = {"exit code": code, "output": timeless(json.loads(printed))}
        if said:
            shown["standard error"] = said.splitlines()
        return normalised(json.dumps(shown, indent=1, ensure_ascii=False) + "\n")
    head = f"exit code {code}\n"
    if command.writes is None:
        left = "".join(f"file {name}:\n{(folder / name).read_text()}" for name in command.leaves)
        said = f"standard error:\n{said}" if said else ""
        return normalised(head + printed + said + left)
    content = (folder / command.writes).read_bytes()
    if command.form is Form.DIGEST:
        return head + _digest(content)
    return normalised(head + page_text(content.decode()))


def _exit_code(words: list[str]) -> object:
    try:
        return main(words)
    except SystemExit as ended:  # of help
        return ended.code


def _stream(text: str = "") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8", write_through=True)


def _written(stream: io.TextIOWrapper) -> str:
    held = stream.buffer
    assert isinstance(held, io.BytesIO)
    return held.getvalue().decode()


@contextlib.contextmanager
def _standing_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


# --- what is left of them -------------------------------------------------------------------------


def normalised(text: str) -> str:
    """Without identifiers, moments, durations, versions and digests of assets."""
    for pattern, instead in _VOLATILE:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


_VOLATILE = (
    (re.compile(r"/ui/assets/[0-9a-f]+/"), "/ui/assets/"),
    (re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])"), "[id]"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?UTC|Z|\+00:00)?"), "[moment]"),
    (re.compile(r"\d{4}-\d\d-\d\d at \d\d:\d\d:\d\d UTC"), "[moment]"),
    (re.compile(r"(?<=[Ii]n )\d+(\.\d+)? (µs|ms|s)(?= on |$)", re.MULTILINE), "[duration]"),
    (re.compile(r"It took \d+(\.\d+)? (µs|ms|s)"), "It took [duration]"),
    (re.compile(r"^\d+(\.\d+)? s(?= of at most |$)", re.MULTILINE), "[duration]"),
    (re.compile(r'"(history)": \[[^\]]*\]'), r'"\1": "[of the clock]"'),
    (re.compile(r'"(elapsed_s)": \d+(\.\d+)?'), r'"\1": "[duration]"'),
    # Of a solve's improvements the last: how many are seen is a matter of the clock.
    (re.compile(r"(?<=\nGap at most\n)(?:\[duration\]\n(?:.+\n){3})+(?=\[duration\]\n)"), ""),
    (re.compile(r"(?<=sluice: )\d+ s(?= in all)"), "[duration]"),
    (re.compile(r"(?<=sluice: )\S+ s( a run: about \d+ runs), .*"), r"[duration]\1, [duration]"),
    (re.compile(r"(?<=\bon)([\s#]+)\d{4}-\d\d-\d\d"), r"\1[the date]"),  # of as many letters
    (re.compile(r'("(?:machine|kernel)": )"[^"]*"'), r'\1"[here]"'),
    (
        re.compile(r"^((?:# )?(?:machine|kernel):? +).*(?:\n {9,}\S.*)*$", re.MULTILINE),
        r"\1[here]",
    ),
    (re.compile(r"^(# host: ).*$", re.MULTILINE), r"\1[here]"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), "[origin]"),
    (re.compile(r"127\.0\.0\.1:\d+"), "[origin]"),
    (re.compile(r"(?<![\d.])" + re.escape(VERSION) + r"(?![\d.])"), "[version]"),
)


def timeless(document: Any) -> Any:
    """A document without what the clock has put into it; a schema says what such a member is."""
    if isinstance(document, dict):
        return {
            name: "[of the clock]"
            if name in OF_THE_CLOCK and not isinstance(value, dict)
            else timeless(value)
            for name, value in document.items()
        }
    if isinstance(document, list):
        return [timeless(value) for value in document]
    return document


def page_text(markup: str) -> str:
    """What a page says: its words and figures, a line a block, without its markup.

    Of attributes those that people read or send; of scripts the data that they draw; of pictures
    inside the page their own words.
    """
    reader = _PageReader()
    reader.feed(markup)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line) + "\n"


class _PageReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._skips = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._skips = tag == "style" or (
            tag == "script" and given.get("type") != "application/json"
        )
        if tag in _BLOCKS:
            self.parts.append("\n")
        if tag == "meta":
            return
        stated = [f"[{name}: {given[name]}]" for name in _REPORTED if given.get(name)]
        stated += [f"[{name}]" for name in _CHOSEN if name in given]
        if stated:
            self.parts.append("\n" + " ".join(stated) + "\n")
        source = given.get("src") or ""
        if source.startswith(_PICTURE):
            self.parts.append(page_text(base64.b64decode(source.removeprefix(_PICTURE)).decode()))

    def handle_endtag(self, tag: str) -> None:
        self._skips = False
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._skips:
            self.parts.append(data)


def _digest(content: bytes) -> str:
    return f"{len(content)} bytes\nsha256 {hashlib.sha256(content).hexdigest()}\n"


def _filled(text: str, kept_as: Mapping[str, str]) -> str:
    return KEPT_AS.sub(lambda found: kept_as[found[1]], text)
