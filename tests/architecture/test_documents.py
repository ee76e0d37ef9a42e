"""The documents say what the code does: errors, settings, commands, routes, fields, strategies."""

from __future__ import annotations

import ast
import re
from dataclasses import fields, is_dataclass
from typing import Any

import click
import pytest
from pydantic import BaseModel

import app.errors
import domain.errors
import models.errors
import solvers
from app.errors import KINDS
from app.http.metrics import Metrics
from app.main import create_app
from app.schemas.queries import OptimizationsQuery
from app.settings import Settings
from contract.audit import AuditIn, AuditOut, AuditRowOut
from contract.constraints import ConstraintsIn
from contract.fit import FitOut, StageFitOut
from contract.jobs import JobOut, JobProgressOut
from contract.optimize import OptimizeIn, OptimizeOut
from contract.simulate import SimulateOut
from domain.errors import LimitReached, SluiceError, SolverFailed
from domain.solution import Status, Strategy
from tests.app.serving import settings_for
from tests.architecture.documents import (
    PACKAGES,
    ROOT,
    Document,
    code_words,
    document,
    documents,
    python_files,
)
from tests.support.commands import commands, option_names

SERVICE = document("docs/service.md")
CLI = document("docs/cli.md")
OPERATIONS = document("docs/operations.md")
ERROR_MODULES = (domain.errors, models.errors, app.errors)
VARIABLE = re.compile(r"SLUICE_[A-Z][A-Z_]*[A-Z]")


def plain(cell: str) -> str:
    """A cell's text without marks of code."""
    return cell.replace("`", "")


def table(of: Document, heading: str) -> dict[str, list[str]]:
    """The rows below a heading by their first cell, as plain text."""
    rows = [[plain(cell) for cell in row] for row in of.rows(heading)]
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[1:] for row in rows}


# --- errors ---------------------------------------------------------------------------------------


def error_codes() -> set[str]:
    """The code of every error that the three modules define."""
    classes = [
        value
        for module in ERROR_MODULES
        for value in vars(module).values()
        if isinstance(value, type)
    ]
    return {kind.code for kind in classes if issubclass(kind, SluiceError)}


def test_every_error_code_has_its_row_in_the_table() -> None:
    """app/errors.py gives every code a status and an exit code, and no other."""
    assert set(KINDS) == error_codes()


def test_codes_are_given_in_the_three_modules_only() -> None:
    """An error of another module would have a code that no table knows."""
    elsewhere = [
        f"{path.relative_to(ROOT)}:{statement.lineno}"
        for path in python_files(*PACKAGES)
        if path.name != "errors.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.Assign)
        and any(
            isinstance(target, ast.Name) and target.id == "code" for target in statement.targets
        )
    ]
    assert elsewhere == []


def test_every_error_code_is_documented_with_its_status_and_exit_code() -> None:
    """docs/service.md has the table of app/errors.py."""
    rows = [(code, row) for row in SERVICE.rows("Errors") for code in code_words(row[0])]
    assert len(rows) == len({code for code, _ in rows})
    documented = {code: (row[1], row[2]) for code, row in rows}
    assert documented == {
        code: (str(kind.status), str(kind.exit_code)) for code, kind in KINDS.items()
    }


def test_every_exit_code_is_documented() -> None:
    """Those of errors, success, verdicts on audits and papers, Ctrl-C and a reader that left."""
    from app.errors import INTERRUPTED
    from app.ui.terminal import READER_LEFT
    from app.verbs.audit.command import TOO_HIGH
    from app.verbs.reproduce.command import OUTSIDE

    verdicts = {0, OUTSIDE, TOO_HIGH}
    codes = {kind.exit_code for kind in KINDS.values()} | verdicts | {INTERRUPTED, READER_LEFT}
    listed = re.findall(r"^- (\d+): ", CLI.section("Exit codes"), flags=re.MULTILINE)
    assert listed == sorted(listed, key=int)
    assert set(map(int, listed)) == codes


# --- settings -------------------------------------------------------------------------------------


def variables_of_the_service() -> set[str]:
    """What Settings reads from the environment."""
    asked: set[str] = set()

    class Watched(dict[str, str]):
        def get(self, key: str, default: Any = None) -> Any:
            asked.add(key)
            return super().get(key, default)

    Settings.from_environment(Watched())
    return asked


def default_of(variable: str) -> str:
    """The default of a variable as it would be written."""
    value = getattr(Settings(), variable.removeprefix("SLUICE_").lower())
    if variable == "SLUICE_DATABASE_URL":
        return "var/sluice.db in the checkout"
    return str(int(value) if isinstance(value, bool) else value)


def test_every_setting_is_documented_with_its_default() -> None:
    """The table of docs/operations.md is what Settings reads."""
    documented = {name: row[0] for name, row in table(OPERATIONS, "Settings").items()}
    assert documented == {name: default_of(name) for name in variables_of_the_service()}


def test_every_variable_in_the_checkout_is_documented() -> None:
    """Also those that only tests, benchmarks and Compose read."""
    files = [
        *python_files(*PACKAGES, "migrations", "bench", "tools"),
        *python_files("tests/support"),
        ROOT / "clients/python/src/sluice_client/http.py",
        *(ROOT / name for name in ("Makefile", "Dockerfile", "docker-compose.yml", ".env.example")),
    ]
    read = {name for path in files for name in VARIABLE.findall(path.read_text())}
    # The names of the C library are in the programs that the page offers.
    read -= set(VARIABLE.findall((ROOT / "clients/c/include/sluice.h").read_text()))
    assert read >= variables_of_the_service()
    assert read == {name for name in code_words(OPERATIONS.prose()) if VARIABLE.fullmatch(name)}


def test_the_example_of_the_environment_shows_settings_and_defaults() -> None:
    """All that Compose does not set itself is in `.env.example`, commented out with its default."""
    lines = (ROOT / ".env.example").read_text().splitlines()
    offered = dict(line[1:].split("=", 1) for line in lines if line.startswith("#SLUICE_"))
    assert offered.pop("SLUICE_PUBLISH") == "127.0.0.1"
    assert offered.pop("SLUICE_KERNELS") == "auto"
    assert {offered.pop(f"SLUICE_CONTAINER_{one}") for one in ("MEMORY", "CPUS")} == {"4g", "2"}
    assert offered.pop("SLUICE_AUTH") == "keys"  # it listens beyond loopback
    fixed = {"SLUICE_DATABASE_URL", "SLUICE_HOST", "SLUICE_AUTH"}
    assert offered == {name: default_of(name) for name in variables_of_the_service() - fixed}


# --- the command line -----------------------------------------------------------------------------


COMMANDS = dict(commands())
COMMON = {"-h", "--help", "--json"}


def test_every_command_has_a_heading_and_every_heading_a_command() -> None:
    """`sluice optimize`, `sluice profiles list` and so on."""
    documented = {head for head in CLI.headings() if head.startswith("sluice ")}
    assert documented == {" ".join(("sluice", *words)) for words in COMMANDS}


def documented_options(words: tuple[str, ...]) -> set[str]:
    """Those that the section of a command names."""
    section = CLI.section(" ".join(("sluice", *words)))
    return {word.split()[0] for word in code_words(section) if word.startswith("--")}


@pytest.mark.parametrize("words", COMMANDS)
def test_every_option_of_a_command_is_documented(words: tuple[str, ...]) -> None:
    """Its section names each option that it has, or that of a command which it says it is as of;
    and none that it has not.
    """
    section = CLI.section(" ".join(("sluice", *words)))
    below = [command for name, command in COMMANDS.items() if name[: len(words)] == words]
    options = set().union(*map(option_names, below))
    arguments = {
        str(parameter.metavar).strip("[].")
        for command in below
        for parameter in command.params
        if isinstance(parameter, click.Argument)
    }
    documented = documented_options(words)
    assert documented - COMMON <= options
    like = [name for name in COMMANDS if re.search(rf"\bas of {' '.join(name)}\b", section)]
    assert options - COMMON <= documented.union(*map(documented_options, like))
    assert arguments <= set(re.findall(r"[A-Z]+", section))


@pytest.mark.parametrize("words", COMMANDS)
def test_help_says_what_every_option_means(words: tuple[str, ...]) -> None:
    """In words of its own, not by its name again; sections leave the plain ones to it."""
    for parameter in COMMANDS[words].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.opts
            said = re.sub(r"[^a-z]", "", parameter.help.lower())
            assert said not in {re.sub(r"[^a-z]", "", name) for name in parameter.opts}


def test_the_common_options_are_documented() -> None:
    """They are said once, before the commands."""
    assert code_words(CLI.section("The command line")) >= COMMON


# --- the interface --------------------------------------------------------------------------------

COMMON_STATUSES = {"403", "422", "503"}
BODY_STATUSES = {"400", "408", "413", "415"}  # of all that takes a body


@pytest.fixture(scope="module")
def interface() -> dict[str, Any]:
    """The OpenAPI document; nothing is opened for it."""
    return create_app(settings_for("sqlite:///unused.db")).openapi()


def test_every_operation_is_documented_with_its_statuses(interface: dict[str, Any]) -> None:
    """The table of docs/service.md is the OpenAPI document's, but for those said above it once."""
    said = dict.fromkeys(("POST", "PUT", "PATCH"), COMMON_STATUSES | BODY_STATUSES)
    documented = {
        operation: set(row[-1].split(", ")) - said.get(operation.split()[0], COMMON_STATUSES)
        for operation, row in table(SERVICE, "All operations").items()
    }
    published = {
        f"{method.upper()} {path}": set(reported["responses"])
        - said.get(method.upper(), COMMON_STATUSES)
        for path, operations in interface["paths"].items()
        for method, reported in operations.items()
    }
    assert documented == published


def test_what_is_said_once_of_statuses_holds_of_all(interface: dict[str, Any]) -> None:
    """Every POST, PUT and PATCH may end as the document says above its table."""
    stated = SERVICE.section("All operations")
    assert all(status in stated for status in COMMON_STATUSES | BODY_STATUSES)
    for path, operations in interface["paths"].items():
        for method in {"post", "put", "patch"} & set(operations):
            assert set(operations[method]["responses"]) >= BODY_STATUSES, (method, path)


def test_every_field_of_a_question_is_documented() -> None:
    """The table below POST /optimize, and the constraints."""
    words = {word for row in SERVICE.rows("POST /optimize") for word in code_words(row[0])}
    assert words >= fields_of(OptimizeIn)
    assert all(name in SERVICE.section("POST /optimize") for name in fields_of(ConstraintsIn))


def fields_of(model: type) -> set[str]:
    """The fields of an output, or of the parameters of an operation."""
    if is_dataclass(model):
        return {field.name for field in fields(model)}
    assert issubclass(model, BaseModel)
    return set(model.model_fields)


def test_every_field_of_an_answer_is_documented() -> None:
    """The table of the answer has each field of it, and no other."""
    words = {word for row in SERVICE.rows("The answer") for word in code_words(row[0])}
    assert words | {"message_bytes"} == fields_of(OptimizeOut)


@pytest.mark.parametrize(
    ("model", "heading"),
    [
        (AuditIn, "POST /audit"),
        (AuditOut, "POST /audit"),
        (AuditRowOut, "POST /audit"),
        (FitOut, "POST /fit"),
        (StageFitOut, "POST /fit"),
        (SimulateOut, "POST /simulate"),
        (JobProgressOut, "Jobs"),
        (OptimizationsQuery, "Stored answers"),
    ],
)
def test_the_fields_of_other_documents_are_in_their_sections(model: type, heading: str) -> None:
    """In words or in the example."""
    stated = SERVICE.text.split(f"# {heading}\n", 1)[1].split("\n## ", 1)[0]
    common = {"pipeline", "profile", "name"}
    implied = {"overhead_us_interval", "ns_per_byte_interval"}
    implied |= {"overhead_std_error_us", "ns_per_byte_std_error"}
    assert {name for name in fields_of(model) if name not in stated} <= common | implied


def test_the_fields_of_a_job_are_documented() -> None:
    """But for the times and counts that explain themselves."""
    stated = SERVICE.text.split("## Jobs\n", 1)[1].split("\n## ", 1)[0]
    plain_ones = {"created_at", "started_at", "finished_at", "attempts", "cancel_requested"}
    assert {name for name in fields_of(JobOut) if name not in stated} <= plain_ones


def test_every_strategy_is_documented_with_what_it_needs() -> None:
    """The table of docs/service.md is the registry's, and that of machines; two more name all."""
    documented = {name: row[-1] for name, row in table(SERVICE, "Strategies").items()}
    needs = {str(spec.name): spec.needs for spec in solvers.registered_strategies()}
    of_machines = {"ramp_repeat": "a [machine](machines.md)"}
    assert documented == {**needs, "auto": "nothing", **of_machines}
    for name in ("docs/README.md", "docs/cli.md"):
        assert set(Strategy) <= code_words(document(name).text)


def test_every_status_is_documented() -> None:
    """In the service's document and in the map of documents."""
    for name in ("docs/README.md", "docs/service.md"):
        assert set(Status) <= code_words(document(name).text)


def notice_codes() -> set[str]:
    """The codes that are written at every `Notice(...)` and `Notice.of_stage(...)`."""
    places = {"Notice": 0, "Notice.of_stage": 1}
    return {
        str(code.value)
        for path in python_files(*PACKAGES)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in places
        for code in node.args[places[ast.unparse(node.func)] :][:1]
        if isinstance(code, ast.Constant)
    }


def test_every_warning_is_documented() -> None:
    """Those that are written out, and those that say how a solve was ended."""
    kinds: list[type[SluiceError]] = [*LimitReached.__subclasses__(), SolverFailed]
    ended = {kind.code for kind in kinds}
    tables = (
        (SERVICE, "Warnings"),
        (document("docs/fitting.md"), "What is said about the data"),
        (document("docs/measurements.md"), "What is said about files"),
    )
    documented = {
        word for of, heading in tables for row in of.rows(heading) for word in code_words(row[0])
    }
    assert documented == notice_codes() | ended


def test_every_metric_is_documented() -> None:
    """The names of the exposition, counters and gauges."""
    names = ("http/service.py", "http/metrics.py", "jobs/metrics.py")
    sources = ((ROOT / "app" / name).read_text() for name in names)
    gauges = {name for text in sources for name in re.findall(r'"(sluice_\w+)": \(', text)}
    counters = set(
        re.findall(r"^# TYPE (sluice_\w+)", Metrics().exposition({}), flags=re.MULTILINE)
    )
    documented = {word for word in code_words(OPERATIONS.text) if word.startswith("sluice_")}
    assert gauges
    assert documented == gauges | counters


# --- links ----------------------------------------------------------------------------------------


def anchor(heading: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("name", [document.name for document in documents()])
def test_every_relative_link_leads_somewhere(name: str) -> None:
    """To a file of the checkout, and where it names one, to a heading in it."""
    source = document(name)
    for link in re.findall(r"\]\(([^)\s]+)\)", source.prose()):
        if "://" in link or link.startswith("mailto:"):
            continue
        file, _, heading = link.partition("#")
        target = (source.path.parent / file).resolve() if file else source.path
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if heading:
            assert heading in map(anchor, Document(target).headings()), link
