"""One measurement through every door: the same answer, with what is known of it.

The doors are the command line, HTTP and the page; the sources measurements, a fit as a document, a
fit by where it is stored, and a profile of it. Compared are the decision, the size to set, the
codes of all warnings, and with them the premise.
"""

from __future__ import annotations

import html
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main
from app.questions.fits import fit_traces
from app.questions.traces import LoadedTrace
from domain.errors import SluiceError
from domain.fit import FitOptions
from models.records import FitRequest
from tests.app.serving import Live, wait_for_end
from tests.support.counts import is_campaign

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("examples", "examples/h100-copies", "tests/data/traces")
MESSAGE, MESSAGE_BYTES = "64KiB", 2**16
SETTING, SETTING_BYTES = "4KiB", 2**12
TARGET = "ucx"


@dataclass(frozen=True)
class Case:
    """Files of one pipeline; `as_stage` where their times are those of one stage, and `overlap`
    where it is said whether its stages overlap.
    """

    files: tuple[str, ...]
    as_stage: str | None = None
    is_uncut: bool = False
    overlap: bool | None = None

    @property
    def name(self) -> str:
        more = " as a stage" * bool(self.as_stage) + " uncut" * self.is_uncut
        if self.overlap is not None:
            more += " overlap" if self.overlap else " one after another"
        return "+".join(Path(file).name for file in self.files) + more

    @property
    def contents(self) -> tuple[bytes, ...]:
        return tuple((ROOT / file).read_bytes() for file in self.files)

    @property
    def options(self) -> FitOptions:
        return FitOptions(
            as_stage=self.as_stage, total_is_uncut=self.is_uncut, stages_overlap=self.overlap
        )

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of `sluice fit`."""
        stage = () if self.as_stage is None else ("--as-stage", self.as_stage)
        files = (str(ROOT / file) for file in self.files)
        return (*files, *stage, *["--uncut"] * self.is_uncut, *self.said)

    @property
    def said(self) -> tuple[str, ...]:
        """What a command says of the overlap."""
        words = {None: (), True: ("--stages-overlap", "yes"), False: ("--stages-overlap", "no")}
        return words[self.overlap]

    @property
    def fit_options(self) -> dict[str, Any]:
        """Of a request."""
        given = {"as_stage": self.as_stage, "total_is_uncut": self.is_uncut}
        said = {} if self.overlap is None else {"stages_overlap": self.overlap}
        return {**{name: value for name, value in given.items() if value}, **said}

    @property
    def is_bare(self) -> bool:
        """Whether these are durations alone, of which nobody says whether they overlap."""
        return self.files[0].endswith("-direct.csv") and self.overlap is None

    @property
    def is_plain(self) -> bool:
        """Whether all that has to be said goes with the one file."""
        return len(self.files) == 1 and self.as_stage is None and not self.is_uncut


OSU = ("examples/osu-latency.txt", "examples/osu-bw.txt")
EVERY_DAY = (
    Case(("examples/local-path-direct.csv",)),
    Case(("examples/local-path-direct.csv",), overlap=True),
    Case(("examples/local-path-direct.csv",), overlap=False),
    Case(("tests/data/traces/npkit.json",)),
    Case(("tests/data/traces/netgauge-loggp.out",)),
    Case(OSU),
    Case(OSU, is_uncut=True),
    Case(("tests/data/traces/osu-latency-v5.txt",), as_stage="link"),
)


def every_case() -> Iterator[Case]:
    """What can be fitted of the examples and of the tests' traces: as it is, or as one stage."""
    yield from (Case(OSU), Case(OSU, is_uncut=True))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).iterdir()):
            if not path.is_file():
                continue
            file = str(path.relative_to(ROOT))
            ways = (Case((file,)), Case((file,), as_stage="link"), Case((file,), is_uncut=True))
            yield from (case for case in ways if can_be_fitted(case))


def can_be_fitted(case: Case) -> bool:
    traces = tuple(map(LoadedTrace.of, case.contents))
    request = FitRequest(case.options, kinds=(None,) * len(traces))
    try:
        fit_traces(traces, request, sizes_used=lambda _: ()).fit.to_model()
    except SluiceError:
        return False
    return True


CASES = tuple(every_case()) if is_campaign() else EVERY_DAY
OF_CASES = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
Run = Callable[..., bytes]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """The command's output: a store of its own, and standard input as it is given."""
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")

    def ran(*arguments: str, stdin: bytes = b"", codes: tuple[int, ...] = (0,)) -> bytes:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(arguments)
        captured = capsys.readouterr()
        assert code in codes, captured.err
        return captured.out.encode()

    return ran


@dataclass(frozen=True)
class Said:
    """What an answer says to do, and what it warns of."""

    decision: str | None
    reason: str | None
    size_bytes: int | None
    sentence: str | None
    codes: tuple[str, ...]

    @classmethod
    def by(cls, document: bytes | str) -> Said:
        answer = json.loads(document)
        known, set_this = answer["uncertainty"] or {}, answer["set_this"] or {}
        return cls(
            known.get("decision"),
            known.get("reason"),
            set_this.get("size_bytes"),
            known.get("sentence"),
            tuple(sorted(one["code"] for one in answer["warnings"])),
        )

    @property
    def has_premise(self) -> bool:
        return "total_may_be_pipelined" in self.codes


def measurements(case: Case) -> dict[str, Any]:
    """Where the costs of a request come from: the files themselves."""
    options = {"fit_options": case.fit_options} if case.fit_options else {}
    return {"measurements": files(case), **options}


def files(case: Case) -> list[dict[str, str]]:
    return [{"content": content.decode()} for content in case.contents]


def query(case: Case) -> dict[str, str]:
    """How to fit, as the query of a fit says it."""
    return {name: str(value).lower() for name, value in case.fit_options.items()}


def stored_fit(client: httpx.Client, case: Case, name: str) -> dict[str, Any]:
    """The fit as POST /fit gave it, stored as a profile."""
    wanted = {**query(case), "save_as": name}
    sent = client.post("/fit", params=wanted, json={"measurements": files(case)})
    assert sent.status_code == 200, sent.text
    found: dict[str, Any] = sent.json()
    return found


def asked(client: httpx.Client, path: str, body: dict[str, Any]) -> bytes:
    sent = client.post(path, json=body)
    assert sent.status_code == 200, sent.text
    return sent.content


def on_pages(client: httpx.Client, place: str) -> tuple[bytes, str]:
    """The answer to which a fit's page leads, and its page."""
    sent = client.post(f"{place}/optimize", data={"message": MESSAGE}, follow_redirects=False)
    assert sent.status_code == 303, sent.text
    _, _, kind, id = sent.headers["location"].partition("?")[0].split("/")
    if kind == "jobs":  # of a machine that has much to do
        id = wait_for_end(client, f"/jobs/{id}")["answer_id"]
    page = html.unescape(client.get(f"/ui/answers/{id}").text)
    return client.get(f"/optimizations/{id}").content, page


@OF_CASES
def test_an_answer_is_one(live: Live, run: Run, case: Case) -> None:
    client, ask = live.client, {"message_bytes": MESSAGE_BYTES}
    fit = stored_fit(client, case, "parity")
    printed = run("fit", *case.arguments, "--json")
    run("fit", *case.arguments, "--save-as", "parity")
    shown = client.post("/ui/fits", json={"measurements": files(case)}, params=query(case))
    pasted = client.post("/ui/fits", content=printed, headers={"content-type": "text/plain"})
    pages = {
        "page, stored fit": f"/ui/fits/{fit['fit_id']}",
        "page, measurements": shown.headers["location"],
        "page, document": pasted.headers["location"],
    }
    found = {
        "HTTP, measurements": asked(client, "/optimize", {**ask, **measurements(case)}),
        "HTTP, document": asked(client, "/optimize", {**ask, "fit": fit}),
        "HTTP, printed document": asked(client, "/optimize", {**ask, "fit": json.loads(printed)}),
        "HTTP, stored fit": asked(client, "/optimize", {**ask, "fit_id": fit["fit_id"]}),
        "HTTP, profile": asked(client, "/optimize", {**ask, "profile": "parity"}),
        "CLI, document": run("optimize", "-", "--bytes", MESSAGE, "--json", stdin=printed),
        "CLI, profile": run("optimize", "parity", "--bytes", MESSAGE, "--json"),
    }
    if case.is_plain:
        file, *said = case.arguments
        found["CLI, file"] = run("optimize", file, *said, "--bytes", MESSAGE, "--json")
    for door, place in pages.items():
        found[door], page = on_pages(client, place.partition("?")[0])
        said = Said.by(found[door])
        assert said.sentence is None or said.sentence in page, door
    answers = {door: Said.by(document) for door, document in found.items()}
    first = answers["HTTP, measurements"]
    assert {door: said for door, said in answers.items() if said != first} == {}
    assert first.has_premise == (len(case.files) == 2 and not case.is_uncut)
    assert first.decision != "set_it" or not first.has_premise
    if case.is_bare:
        assert first.decision != "set_it" or first.reason == "either_way"


@OF_CASES
def test_an_audit_is_one(live: Live, run: Run, case: Case) -> None:
    client = live.client
    fit = stored_fit(client, case, "parity-audit")
    printed = run("fit", *case.arguments, "--json")
    run("fit", *case.arguments, "--save-as", "parity-audit")
    sizes = {"min_message_bytes": MESSAGE_BYTES, "max_message_bytes": MESSAGE_BYTES}
    body = {"setting": {"static_bytes": SETTING_BYTES}, **sizes}
    messages = ("--min-message", MESSAGE, "--max-message", MESSAGE)
    command = ("--setting", SETTING, *messages, "--json")
    found = {
        "HTTP, measurements": asked(client, "/audit", {**body, **measurements(case)}),
        "HTTP, document": asked(client, "/audit", {**body, "fit": fit}),
        "HTTP, stored fit": asked(client, "/audit", {**body, "fit_id": fit["fit_id"]}),
        "HTTP, profile": asked(client, "/audit", {**body, "profile": "parity-audit"}),
        "CLI, document": run("audit", "-", *command, stdin=printed),
        "CLI, profile": run("audit", "parity-audit", *command),
    }
    if case.is_plain:
        file, *said = case.arguments
        found["CLI, file"] = run("audit", file, *said, *command)
    audits = {door: _audited(document) for door, document in found.items()}
    first = audits["HTTP, measurements"]
    assert {door: audit for door, audit in audits.items() if audit != first} == {}
    codes = [one["code"] for one in (*first["warnings"], *first["fit_warnings"])]
    has_premise = len(case.files) == 2 and not case.is_uncut
    assert ("total_may_be_pipelined" in codes) == has_premise
    known = first["uncertainty"]
    assert not has_premise or known["decision"] != "set_it"


def _audited(document: bytes) -> dict[str, Any]:
    """An audit but for the time that it took, and what its costs are called."""
    audit: dict[str, Any] = json.loads(document)
    return {name: part for name, part in audit.items() if name not in ("audit_ms", "profile")}


@OF_CASES
def test_an_export_is_one(live: Live, run: Run, case: Case) -> None:
    client = live.client
    fit = stored_fit(client, case, "parity-export")
    printed = run("fit", *case.arguments, "--json")
    run("fit", *case.arguments, "--save-as", "parity-export")
    sizes = {"min_message_bytes": MESSAGE_BYTES, "max_message_bytes": MESSAGE_BYTES}
    sent = client.get(f"/profiles/parity-export/exports/{TARGET}", params=sizes)
    assert sent.status_code == 200, sent.text
    command = ("--target", TARGET, "--min-message", MESSAGE, "--max-message", MESSAGE)
    found = {
        "HTTP, profile": sent.content,
        "CLI, document": run("export", "-", *command, stdin=printed),
        "CLI, fetched document": run("export", "-", *command, stdin=json.dumps(fit).encode()),
        "CLI, profile": run("export", "parity-export", *command),
    }
    if case.is_plain:
        file, *said = case.arguments
        found["CLI, file"] = run("export", file, *said, *command)
    texts = {door: _unnamed(text) for door, text in found.items()}
    first = texts["HTTP, profile"]
    assert {door: text for door, text in texts.items() if text != first} == {}
    has_premise = len(case.files) == 2 and not case.is_uncut
    assert ("premise: " in first) == has_premise
    if case.is_bare:  # not to cut holds whether stages overlap or not
        assert f"size for every message: {MESSAGE_BYTES} bytes" in first


def _unnamed(text: bytes) -> str:
    """An export's lines but for those that say what its costs are called."""
    lines = text.decode().splitlines()
    named = ("parity-export", "a pipeline without a name")
    return "\n".join(line for line in lines if not any(name in line for name in named))
