"""Page, command line and API take and refuse the same: a request is declared once."""

from __future__ import annotations

import contextlib
import io
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app import cli
from app.console import running
from app.console.arguments import parse
from app.console.files import read_source, request_of
from app.registry import with_door
from app.schemas.base import dump_json
from app.settings import Settings
from app.ui.forms import RequestForm
from app.ui.options import body_of_options
from app.verbs.audit.command import OF_COSTS, TOO_HIGH, options_of
from app.verbs.audit.page.form import AuditForm
from app.verbs.audit.request import audit_scope
from app.verbs.crossover import command as crossover
from contract.audit import AuditIn
from contract.declare import words_of
from contract.plan import MeasurementPlanIn
from domain.errors import SluiceError
from tests.app.serving import serving, settings_for

PLACES = {
    "audit": "/ui/audit/result",
    "hide": "/ui/hiding",
    "thresholds": "/ui/delivery",
    "crossover": "/ui/crossover",
}
SMALL = {"min_message": "4 KiB", "max_message": "8 KiB"}
BEGINNINGS = {"audit": {"profile": "myrinet-gam", "setting": "4 KiB", **SMALL}}
VIEWS = {verb.name: verb.module("page.views") for verb in with_door("page")}
# These have rules of their own: a document, a row a stage, a file.
FORMS: dict[str, RequestForm[Any]] = {
    name: views.FORM for name, views in VIEWS.items() if name not in ("layer", "compose", "fit")
}
FORM = {"content-type": "application/x-www-form-urlencoded"}
KNOWN = (
    *("", "0", "1", "-1", "2", "64", "1.5", "120", "1e999", "nan", "100 %", "50%", "x", "µ", "-x"),
    *("4 KiB", "8KiB", "0 B", "64..4KiB", "1,2", "0,1", "0, receiver copy", "sqrt", "constant"),
    *("whole", "whole, from 64 KiB: 16 KiB", "1:whole,64KiB:512KiB", "64KiB 3", "ucx", "worst"),
    *("UCX_RNDV_FRAG_SIZE=host:8192", "time", "bound", "5 s"),
    *("eager", "static", "planned", "myrinet-gam", "trapeze@1", "Bad Name", "9" * 30, "- 3", "1e3"),
)
CHARACTERS = st.characters(codec="ascii", categories=("L", "N", "P", "S", "Zs"))
TEXTS = (
    st.sampled_from(KNOWN)
    | st.integers(-3, 10**6).map(str)
    | st.floats(allow_nan=False).map(repr)
    | st.text(CHARACTERS | st.sampled_from("µ–é"), max_size=30)
)


def filled(name: str) -> st.SearchStrategy[dict[str, str]]:
    """The form as it begins, with one to three of its fields filled in anew."""
    form = FORMS[name]
    fields = st.dictionaries(
        st.sampled_from([word.name for word in form.words]), TEXTS, min_size=1, max_size=3
    )
    return fields.map(lambda texts: begun(name) | texts)


def begun(name: str) -> dict[str, str]:
    """The form as it begins; where it begins empty, as it is filled in first."""
    return FORMS[name].first_texts() | BEGINNINGS.get(name, {})


def by_page(name: str, texts: Mapping[str, str]) -> tuple[Any, Mapping[str, str]]:
    """The request that the page makes, and what it says is wrong."""
    if name != "audit":
        return FORMS[name].asked(texts)
    asked, form = AuditForm.of(texts.items()).asked()  # it has fields beside those declared
    return asked, form.mistakes


def shell(name: str, texts: Mapping[str, str]) -> str:
    """The command that the page offers."""
    if name == "audit":
        return AuditForm.of(texts.items()).command()
    return FORMS[name].shell(texts)


@contextlib.contextmanager
def with_files(name: str, texts: Mapping[str, str], folder: Path) -> Iterator[None]:
    """In a folder that has what the command reads."""
    for word in FORMS[name].words:
        if word.file:
            (folder / word.file).write_text(texts[word.name], encoding="utf-8")
    with contextlib.chdir(folder):
        yield


def by_command(name: str, texts: Mapping[str, str]) -> Any:
    """The request of the command that the page offers; None where that refuses."""
    form = FORMS[name]
    try:
        arguments = parse(shlex.split(shell(name, texts))[1:])
        if arguments.command == "crossover":  # of two sources
            return crossover.asked_of(arguments, Settings())[0]
        if arguments.source is None:
            return None
        source = read_source(arguments.source, Settings())
        if name == "audit":
            given = request_of(AuditIn, source, options_of(arguments), takes=OF_COSTS)
            audit_scope(given)
            return given
        options = body_of_options(words_of(form.kind), arguments)
        return request_of(form.kind, source, {**options, **form.always})
    except (SluiceError, SystemExit):
        return None


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=300)
@given(data=st.data())
def test_the_command_that_a_page_offers_asks_the_same(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Where the page takes texts; what it does not read, the command refuses."""
    texts = data.draw(filled(name))
    asked, mistakes = by_page(name, texts)
    if "expected one" in mistakes.values():
        return  # the page asks for what a command may leave out, or say by another word
    with with_files(name, texts, tmp_path_factory.getbasetemp()):
        assert by_command(name, texts) == asked, (texts, mistakes, shell(name, texts))


# --- with a service -------------------------------------------------------------------------------


class _Unheard:
    """A report that nobody hears."""

    files = ()

    def steps(self, done: int, total: int) -> None:
        pass

    def best(self, result: object) -> None:
        pass


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a service on whose database commands of this process work, too."""
    path: Path = tmp_path_factory.mktemp("doors") / "doors.db"

    def run_here(operation: Any, *_: object) -> running.OperationRun[Any]:
        found = operation.run_here()
        return running.OperationRun(operation.run(_Unheard()) if found is None else found)

    options = settings_for(f"sqlite:///{path}")
    with serving(options) as live, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLUICE_DATABASE_URL", options.database_url)
        patch.setattr(running, "run_operation", run_here)
        yield live.client


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=15)
@given(data=st.data())
def test_every_door_takes_the_same(
    name: str,
    data: st.DataObject,
    client: httpx.Client,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A page's texts, the command that it offers, and the request that it makes."""
    texts = data.draw(filled(name))
    with with_files(name, texts, tmp_path_factory.getbasetemp()):
        check(client, name, texts)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("hide", {"processes": "0"}),
        ("hide", {"processes": "-5"}),
        ("hide", {"sender": "4"}),
        ("hide", {"sender": "0", "receiver": "0"}),
        ("hide", {"message": "0 B"}),
        ("hide", {"streamed": "1", "processes": "20", "communication": "sqrt"}),
        ("thresholds", {"message": "4KiB, 8 KiB", "stages": "0,2", "rule": "static"}),
        ("thresholds", {"stages": "1..4"}),
        ("thresholds", {"stages": "9"}),
        ("thresholds", {"rule": "planned"}),
        ("crossover", {"b": "none-such"}),
        ("crossover", {"current": "0 B"}),
        ("crossover", {"min_message": "8 KiB", "max_message": "4 KiB"}),
        ("crossover", {"target": "mpich-eager-limit"}),
        ("crossover", {"target": "ucx-rndv-thresh", "current": "256 KiB"}),
        ("audit", {"time_limit": "5 s"}),
        ("audit", {"max_regret": "5"}),
        ("audit", {"max_regret": "500 %", "over": "bound", "relative": "10 %"}),
        ("audit", {"workload": "4KiB 3\n8KiB", "objective": "worst"}),
        ("audit", {"setting": "", "target": "ucx", "configuration": "UCX_RNDV_FRAG_SIZE=host:512"}),
        ("audit", {"setting": "", "target": "simgrid", "configuration": "A=1"}),
        ("audit", {"min_message": "0 B"}),
    ],
)
def test_what_was_refused_by_some(
    client: httpx.Client, name: str, texts: dict[str, str], tmp_path: Path
) -> None:
    """Or nearly: each door has its own way to the request's rules."""
    texts = begun(name) | texts
    with with_files(name, texts, tmp_path):
        check(client, name, texts)


def check(client: httpx.Client, name: str, texts: dict[str, str]) -> None:
    """Ask by every door, and compare."""
    method = "POST" if name == "audit" else "GET"  # which starts a job, and leads to its page
    page = client.request(method, PLACES[name], params=texts)
    assert page.status_code in (200, 303, 404, 422), page.text
    is_taken = page.status_code < 400
    asked, mistakes = by_page(name, texts)
    if "expected one" in mistakes.values():
        assert page.status_code == 422
        return
    if asked is None:
        assert page.status_code == 422
    else:
        answer = client.post(f"/{name}", content=dump_json(asked))
        assert (answer.status_code < 300) == is_taken, (texts, answer.text)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = cli.main(shlex.split(shell(name, texts))[1:])
    assert (code in (0, TOO_HIGH)) == is_taken, (texts, shell(name, texts), code)


def test_a_number_of_processes_is_refused_at_its_field(client: httpx.Client) -> None:
    """It was ignored, and the command that was offered refused it."""
    page = client.get("/ui/hiding", params=FORMS["hide"].first_texts() | {"processes": "0"})
    assert page.status_code == 422
    assert 'id="processes-mistake">expected a number &gt;= 1' in page.text


# --- files that are fitted ------------------------------------------------------------------------


SIZES = [2**power for power in range(8, 14)]
ONE, OTHER, TOO_FEW, NONE = "one.csv", "other.csv", "few.csv", "none.csv"
STEPS = "message_bytes,copy_us,crc_us\n"
FILES = {
    ONE: "message_bytes,copy_us\n"
    + "".join(f"{size},{5 + size / 1000 + noise}\n" for size in SIZES for noise in (0, 0.01, 0.03)),
    OTHER: STEPS
    + "".join(
        f"{size},{5 + size / 900 + noise},{2 + size / 400 - noise}\n"
        for size in SIZES
        for noise in (0, 0.01, 0.03)
    ),
    TOO_FEW: "message_bytes,copy_us\n64,1\n",
    NONE: "size,time\n64,1\n",
}
SHORT = st.sampled_from(["a", "b", "in + sum", "µ", "x" * 100, "x" * 101])
ROWS = st.lists(
    st.fixed_dictionaries(
        {"name": SHORT, "file": st.sampled_from([ONE, OTHER, OTHER, TOO_FEW, NONE])},
        optional={
            "step": st.sampled_from(["copy", "crc", "x" * 101]),
            "processor": st.sampled_from(["cpu0", "µ", "x" * 101]),
        },
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda row: row["name"],  # an option names its stage
)
HOW = st.fixed_dictionaries(
    {},
    optional={
        "method": st.sampled_from(["robust", "weighted", "ordinary", "best", "Robust"]),
        "shape": st.sampled_from(["ranges", "line", "narrowed", "x"]),
    },
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that are fitted."""
    folder = tmp_path_factory.mktemp("fitted")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def is_taken(words: list[str], folder: Path) -> bool:
    """Whether the command ends well."""
    silent = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(silent),
        contextlib.redirect_stderr(silent),
    ):
        return cli.main(words) == 0


@settings(max_examples=25)
@given(rows=ROWS, how=HOW)
def test_every_door_composes_the_same(
    client: httpx.Client, files: Path, rows: list[dict[str, str]], how: dict[str, str]
) -> None:
    """The form's rows, the request's stages, and the options that name them."""
    cells: list[tuple[str, str]] = list(how.items())
    stages, words = [], [word for name, text in how.items() for word in (f"--{name}", text)]
    for row in rows:
        name, file = row["name"], row["file"]
        cells += [("name", name), ("trace", FILES[file]), ("stored", "")]
        cells += [(field, row.get(field, "")) for field in ("step", "processor")]
        said = {field: row[field] for field in ("step", "processor") if field in row}
        stages.append({"name": name, "measurements": {"content": FILES[file]}, **said})
        words += ["--stage", f"{name}={file}"]
        if "step" in row:
            words += ["--step", f"{name}={row['step']}"]
        if "processor" in row:
            words += ["--processor", f"{row['processor']}={name}"]
    answer = client.post("/compose", json={"stages": stages, **how})
    page = client.post("/ui/compose", content=urlencode(cells), headers=FORM)
    assert page.status_code in (303, 422), page.text
    expected = answer.status_code == 200
    assert (page.status_code == 303) == expected, answer.text
    assert is_taken(["compose", *words], files) == expected, answer.text


SAID = st.sampled_from(["true", "false", "maybe"])
AGAIN = st.fixed_dictionaries(
    {},
    optional={
        "method": st.sampled_from(["robust", "weighted", "ordinary", "best"]),
        "shape": st.sampled_from(["ranges", "line", "narrowed", "x"]),
        "max_ranges": st.sampled_from(["1", "3", "16", "17", "0", "-1", "1.5", "x", "9" * 20]),
        "stages_overlap": SAID,
        "several_at_once": SAID,
        "as_stage": st.sampled_from(["copy", "x" * 101]),
    },
)


@settings(max_examples=25)
@given(said=AGAIN, file=st.sampled_from([ONE, OTHER]))
def test_every_door_fits_the_same(
    client: httpx.Client, files: Path, said: dict[str, str], file: str
) -> None:
    """The form that fits again, the request's query, and the options."""
    first = client.post("/ui/fits", content=FILES[file])
    page = client.post(f"{first.headers['location']}/again", content=urlencode(said), headers=FORM)
    assert page.status_code in (303, 422), page.text
    answer = client.post("/fit", content=FILES[file], params=said)
    expected = answer.status_code == 200
    assert (page.status_code == 303) == expected, (page.text, answer.text)
    yes_or_no = {"true": "yes", "false": "no"}
    words = [
        f"--{name.replace('_', '-')}={yes_or_no.get(text, text)}" for name, text in said.items()
    ]
    assert is_taken(["fit", file, *words], files) == expected, answer.text


RANGE = {"min_message_bytes": 64, "max_message_bytes": 2**20}  # what the command begins with
WITHIN = st.fixed_dictionaries(
    {},
    optional={
        "min_message_bytes": st.sampled_from([-1, 0, 1, 64, 2**17, 2**18, 2**48, 2**60]),
        "max_message_bytes": st.sampled_from([0, 511, 512, 2**20, 2**48, 2**48 + 1]),
        "tolerance": st.sampled_from([-0.1, 0.0, 0.0009, 0.001, 0.03, 0.5, 0.51, 3.0]),
    },
)
OF_PLAN = {word.place[0]: word.option for word in words_of(MeasurementPlanIn)}


@settings(max_examples=40)
@given(within=WITHIN, file=st.sampled_from(["", ONE, NONE]))
def test_every_door_plans_the_same(
    client: httpx.Client, files: Path, within: dict[str, float], file: str
) -> None:
    """The request and the options; there is no page of plans."""
    body: dict[str, Any] = {**RANGE, **within}
    if file:
        body["measurements"] = {"content": FILES[file]}
    answer = client.post("/measurement-plans", json=body)
    words = [f"{OF_PLAN[name]}={value}" for name, value in within.items()]
    taken = is_taken(["plan", *filter(None, [file]), *words], files)
    assert taken == (answer.status_code == 200), answer.text
