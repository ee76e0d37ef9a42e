"""Page, command line and API take and refuse the same: a request is declared once."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app import cli
from app.console import running
from app.console.arguments import parse
from app.console.files import read_source, request_of
from app.http.service import Service
from app.registry import with_door
from app.schemas.base import dump_json
from app.schemas.layer import given_layer
from app.settings import Settings
from app.ui.forms import RequestForm
from app.ui.options import body_of_options
from app.verbs.audit.command import OF_COSTS, TOO_HIGH, options_of
from app.verbs.audit.page.form import AuditForm
from app.verbs.audit.request import audit_scope
from app.verbs.crossover import command as crossover
from app.verbs.export import command as export
from app.verbs.export.page import form as export_page
from app.verbs.layer import command as layer
from app.verbs.layer.page import form as layer_form
from app.verbs.layer.page.form import LayerForm
from app.verbs.table import command as table
from app.verbs.table.page import form as table_page
from app.verbs.table.request import scope_of
from contract.audit import AuditIn
from contract.declare import Asked, words_of
from contract.layer_costs import LayerCostsIn
from contract.plan import MeasurementPlanIn
from domain.errors import Overloaded, SluiceError
from tests.app.serving import serving, settings_for
from tests.golden.verbs.layer import MINE

PLACES = {
    "audit": "/ui/audit/result",
    "hide": "/ui/hiding",
    "thresholds": "/ui/delivery",
    "crossover": "/ui/crossover",
    "layer": "/ui/layers/result",
}
ASKED_AT = {"layer": "/layer-costs"}  # of others their name
SMALL = {"min_message": "4 KiB", "max_message": "8 KiB"}
BEGINNINGS = {
    "audit": {"profile": "myrinet-gam", "setting": "4 KiB", **SMALL},
    "layer": {"layer": "cmam-finite", "bytes": "64, 4 KiB", "clock": "33 MHz", "time_limit": "2"},
}
VIEWS = {verb.name: verb.module("page.views") for verb in with_door("page")}
# Others have rules of their own: a row a stage, a file. The forms of tables and exports are on a
# page of a profile, and start jobs.
FORMS: dict[str, RequestForm[Any]] = {
    **{name: VIEWS[name].FORM for name in PLACES if name != "layer"},
    "layer": layer_form.FORM,
}
FORM = {"content-type": "application/x-www-form-urlencoded"}
KNOWN = (
    *("", "0", "1", "-1", "2", "64", "1.5", "120", "1e999", "nan", "100 %", "50%", "x", "µ", "-x"),
    *("4 KiB", "8KiB", "0 B", "64..4KiB", "1,2", "0,1", "0, receiver copy", "sqrt", "constant"),
    *("whole", "whole, from 64 KiB: 16 KiB", "1:whole,64KiB:512KiB", "64KiB 3", "ucx", "worst"),
    *("UCX_RNDV_FRAG_SIZE=host:8192", "time", "bound", "5 s"),
    *("eager", "static", "planned", "myrinet-gam", "trapeze@1", "Bad Name", "9" * 30, "- 3", "1e3"),
    *("cmam-single", "33MHz", "250 ns", "reg=1,mem=2", "reg=1, dev=5", "4..128", "16,4", "all"),
    *("none", "in_order", "in_order, reliable_delivery", "packet", "transfer", "64,", ",", "."),
    *(json.dumps(MINE), json.dumps({"layer": MINE}), '{"name": "a", "name": "b"}', "{}", "[]"),
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
    return some_of([*words_on(name)]).map(lambda texts: begun(name) | texts)


def some_of(names: Sequence[str]) -> st.SearchStrategy[dict[str, str]]:
    """One to three of these fields, filled in."""
    return st.dictionaries(st.sampled_from(names), TEXTS, min_size=1, max_size=3)


def words_on(name: str) -> Mapping[str, Asked]:
    """The fields of the page, by name: that of layers has a document beside those declared."""
    return layer_form.WORDS if name == "layer" else {word.name: word for word in FORMS[name].words}


def begun(name: str) -> dict[str, str]:
    """The form as it begins; where it begins empty, as it is filled in first."""
    return FORMS[name].first_texts() | BEGINNINGS.get(name, {})


def by_page(name: str, texts: Mapping[str, str]) -> tuple[Any, Mapping[str, str]]:
    """The request that the page makes, and what it says is wrong."""
    if name == "audit":
        asked, form = AuditForm.from_pairs(
            texts.items()
        ).asked()  # it has fields beside those declared
        return asked, form.mistakes
    if name == "layer":
        of_layer, shown = LayerForm.from_pairs(texts.items()).asked()
        return known(of_layer), shown.mistakes
    return FORMS[name].asked(texts)


def known(asked: LayerCostsIn | None) -> LayerCostsIn | None:
    """The request; None of a layer that there is not."""
    if asked is not None:
        try:
            given_layer(asked.layer)
        except SluiceError:
            return None
    return asked


def shell(name: str, texts: Mapping[str, str]) -> str:
    """The command that the page offers."""
    if name == "audit":
        return AuditForm.from_pairs(texts.items()).command()
    if name == "layer":
        return LayerForm.from_pairs(texts.items()).command()
    return FORMS[name].shell(texts)


@contextlib.contextmanager
def with_files(name: str, texts: Mapping[str, str], folder: Path) -> Iterator[None]:
    """In a folder that has what the command reads."""
    for word in words_on(name).values():
        if word.file:
            (folder / word.file).write_text(texts.get(word.name, ""), encoding="utf-8")
    with contextlib.chdir(folder):
        yield


def by_command(name: str, texts: Mapping[str, str]) -> Any:
    """The request of the command that the page offers; None where that refuses."""
    form = FORMS[name]
    try:
        arguments = parse(shlex.split(shell(name, texts))[1:])
        if arguments.command == "crossover":  # of two sources
            return crossover.asked_of(arguments, Settings())[0]
        if arguments.command == "layer":  # of none
            return known(layer.asked_of(arguments, Settings()))
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
        ("layer", {"bytes": "64..4 KiB"}),
        ("layer", {"bytes": "4 KiB, 64, 64"}),
        ("layer", {"bytes": ""}),
        ("layer", {"bytes": "64,"}),
        ("layer", {"features": "none"}),
        ("layer", {"features": "in_order, flow_control"}),
        ("layer", {"features": "quantum"}),
        ("layer", {"mapping": "bundle"}),
        ("layer", {"tune": "1", "clock": ""}),
        ("layer", {"tune": "1", "features": "in_order"}),
        ("layer", {"layer": "none-such"}),
        ("layer", {"layer": "none-such", "document": json.dumps(MINE)}),
        ("layer", {"document": json.dumps(MINE), "cycles": "reg=1, mem=2"}),
        ("layer", {"document": '{"name": "a", "name": "b"}'}),
        ("layer", {"wire": "-1 us"}),
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
    method = "POST" if name in ("audit", "layer") else "GET"  # which may take a while
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
        answer = client.post(ASKED_AT.get(name, f"/{name}"), content=dump_json(asked))
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


# --- what starts a job of a profile ---------------------------------------------------------------


JOBS: dict[str, RequestForm[Any]] = {"table": table_page.FORM, "export": export_page.FORM}
PROFILE, TARGET = "gms", "ucx"
OPTIONS = ("option.form", "option.version", "option.memory_types", "option.none", "option.BAD")
# Exit codes of what was prepared and would be done now, and of limits that exclude each other,
# which a service finds out when it compiles.
TAKEN, INFEASIBLE = 69, 3


def filled_job(name: str) -> st.SearchStrategy[dict[str, str]]:
    """The form as it begins, with one to three of its fields filled in anew."""
    names = [word.name for word in JOBS[name].words]
    return some_of([*names, *OPTIONS] if name == "export" else names).map(
        lambda texts: JOBS[name].first_texts() | texts
    )


def job_by_page(name: str, texts: Mapping[str, str]) -> tuple[Any, Mapping[str, str], str]:
    """What the page prepares, what it says is wrong, and the command that it offers."""
    if name == "export":
        form = export_page.export_form(TARGET, texts)
        return form.scope, form.mistakes, form.command(PROFILE)
    asked, filled = table_page.TableForm.from_texts(texts).asked()
    prepared = None if asked is None else (scope_of(asked), asked.activate)
    return prepared, filled.mistakes, filled.command(PROFILE)


def job_by_command(name: str, line: str) -> Any:
    """What this command prepares; None where it refuses."""
    try:
        arguments = parse(shlex.split(line)[1:])
        if name == "export":
            return export.scope_of(arguments)
        source = read_source(arguments.source, Settings())
        return table._asked(arguments, source)[0], arguments.activate
    except (SluiceError, SystemExit):
        return None


@contextlib.contextmanager
def with_workload(texts: Mapping[str, str], folder: Path) -> Iterator[None]:
    """In a folder that has the workload that the form has."""
    (folder / "workload.txt").write_text(texts.get("workload", ""), encoding="utf-8")
    with contextlib.chdir(folder):
        yield


@pytest.mark.parametrize("name", JOBS)
@settings(max_examples=300)
@given(data=st.data())
def test_the_command_that_a_job_is_offered_with_asks_the_same(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Where the page takes texts; what it does not read, the command refuses."""
    texts = data.draw(filled_job(name))
    prepared, mistakes, line = job_by_page(name, texts)
    with with_workload(texts, tmp_path_factory.getbasetemp()):
        assert job_by_command(name, line) == prepared, (texts, mistakes, line)


@pytest.fixture
def preparing(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> httpx.Client:
    """The service, which prepares what it is asked for and then has no time for it."""

    async def prepared(service: Service, make: Any, asker: Any, *_: object) -> Any:
        await service.prepare(make, asker)
        raise Overloaded("prepared")

    def begun(*_: object, **__: object) -> Any:
        raise Overloaded("prepared")

    for method in ("start_job", "perform", "remembered"):
        monkeypatch.setattr(Service, method, prepared)
    monkeypatch.setattr(table, "_compiled", begun)
    monkeypatch.setattr(export, "_made", begun)
    return client


def check_job(client: httpx.Client, name: str, texts: dict[str, str]) -> None:
    """Ask by every door, and compare: what is taken is prepared, and then refused for now."""
    if name == "export":
        place = f"/ui/profiles/{PROFILE}/exports/{TARGET}/text"
        page = client.post(place, params=texts)
        form = export_page.export_form(TARGET, texts)
        answer = client.get(
            f"/profiles/{PROFILE}/exports/{TARGET}",
            params=list(form.query()) if form.asked else [("min_message_bytes", "0")],
        )
        line = form.command(PROFILE)
    else:
        page = client.post(f"/ui/profiles/{PROFILE}/tables", data=texts)
        asked, filled = table_page.TableForm.from_texts(texts).asked()
        body = b"[]" if asked is None else dump_json(asked)
        answer = client.post(f"/profiles/{PROFILE}/tables", content=body)
        line = filled.command(PROFILE)
    assert page.status_code in (422, 503), page.text
    assert answer.status_code == page.status_code, (texts, answer.text)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = cli.main(shlex.split(line)[1:])
    assert (code in (TAKEN, INFEASIBLE)) == (page.status_code == 503), (texts, line, code)


@pytest.mark.parametrize("name", JOBS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_door_to_a_job_takes_the_same(
    name: str,
    data: st.DataObject,
    preparing: httpx.Client,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A page's texts, the command that it offers, and the request that it makes."""
    texts = data.draw(filled_job(name))
    with with_workload(texts, tmp_path_factory.getbasetemp()):
        check_job(preparing, name, texts)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("table", {"max_fragments": "4 KiB"}),
        ("table", {"tolerance": "200 %"}),
        ("table", {"min_message": "32 MiB"}),
        ("table", {"min": "8 KiB", "max": "4 KiB"}),
        ("table", {"activate": "1"}),
        ("export", {"max_fragments": "4 KiB"}),
        ("export", {"objective": "wurst"}),
        ("export", {"option.none": "x"}),
        ("export", {"option.memory_types": "x" * 300}),
        ("export", {"min_message": "8 KiB", "max_message": "4 KiB"}),
        ("export", {"workload": "4KiB 3\n8KiB", "objective": "worst"}),
        ("export", {"workload": "4KiB 3", "min_message": "1 KiB"}),
    ],
)
def test_what_a_job_was_refused_by_some(
    preparing: httpx.Client, name: str, texts: dict[str, str], tmp_path: Path
) -> None:
    """The page read some fields by rules of its own, and left out what it did not know."""
    texts = JOBS[name].first_texts() | texts
    with with_workload(texts, tmp_path):
        check_job(preparing, name, texts)


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
