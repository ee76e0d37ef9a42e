"""The import contracts of pyproject.toml catch what they are there for: violations are planted."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from copy import deepcopy
from pathlib import Path

import grimp
import pytest
from importlinter import Contract, configuration
from importlinter.application import use_cases
from importlinter.domain.contract import registry

from tests.architecture.documents import ROOT

PLANTED = """
    contract.limits domain.units
    contract.limits pydantic
    domain.units numpy
    domain.schedule solvers.contract
    domain.pipeline domain.problem
    domain.fit domain.uncertainty
    domain.uncertainty domain.uncertain_fit
    fitting.line fastapi
    fitting.stage solvers.bounds
    fitting.samples fitting.stage
    measuring.planning scipy
    measuring.planning fitting.line
    solvers.exact.dual httpx
    solvers.exact.dual analysis.audit
    solvers.kernels.recurrence solvers.exact.dual
    solvers.heuristics.ramp solvers.nested.search
    analysis.explain models.records
    analysis.audit exports.targets.registry
    analysis.explanation scipy
    analysis.draws analysis.uncertainty
    analysis.decision analysis.measure_next
    exports.table.slt numpy
    exports.table.slt exports.targets.ucx
    exports.targets.ucx solvers
    models.base fastapi
    models.records models.session
    models.session migrations.env
    app.settings app.ui.terminal
    app.registry app.settings
    app.registry app.verbs.hide.operation
    app.errors app.schemas.base
    app.text.numbers app.plots.svg
    app.plots.svg fastapi
    app.plots.svg app.questions.tables
    app.execution.worker app.operations.work
    app.execution.child sqlalchemy
    app.questions.question fastapi
    app.questions.question pydantic
    app.questions.question app.ui.terminal
    app.questions.simulate app.operations.work
    app.schemas.base app.ui.terminal
    app.schemas.jobs app.jobs.runner
    app.schemas.base app.operations.operation
    app.operations.work app.jobs.ledger
    app.verbs.optimize.operation sqlalchemy
    app.jobs.runner app.http.service
    app.jobs.runner fastapi
    app.http.bodies app.ui.pages
    app.http.fastpath.fast_path app.api.service
    app.api.respond app.web.routes
    app.ui.pages app.console.commands
    app.ui.pages app.web.routes
    app.ui.pages app.verbs.hide.show
    app.ui.terminal app.ui.forms
    app.ui.parts app.ui.html
    app.ui.words app.ui.options
    app.ui.parts rich
    app.ui.new_module app.settings
    app.web.routes app.verbs.hide.page.views
    app.api.openapi app.verbs.hide.routes
    app.operations.tasks app.verbs.hide.operation
    app.verbs.hide.request app.verbs.hide.answer
    app.verbs.hide.answer app.verbs.hide.operation
    app.verbs.hide.operation app.verbs.hide.show
    app.verbs.hide.show app.verbs.hide.command
    app.verbs.hide.routes app.verbs.hide.command
    app.verbs.hide.page.views app.verbs.hide.routes
    app.verbs.hide.show markupsafe
    app.verbs.hide.new_module app.settings
    app.verbs.thresholds.show app.verbs.hide.show
    app.verbs.thresholds.request app.verbs.hide.operation
    app.verbs.deliver.command app.verbs.hide.request
    app.verbs.simulate.command app.verbs.deliver.command
    app.verbs.compare.operation app.verbs.optimize.operation
    app.verbs.optimize.page.answer app.verbs.answers.page.compare
    app.verbs.answers.routes app.verbs.optimize.routes
    app.ui.panel.form app.verbs.optimize.request
    app.ui.pages app.ui.panel.page
    app.verbs.new_module.request app.verbs.new_module.show
    app.console.commands app.main
    app.console.commands app.api.respond
    app.main app.serving
    app.serving app.cli
    app.new_module app.settings
"""
PAIRS = [tuple(line.split()) for line in PLANTED.strip().splitlines()]


@pytest.fixture(scope="module")
def options() -> dict[str, list[str]]:
    """What pyproject.toml says of the linter."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, list[str]] = tomllib.loads(text)["tool"]["importlinter"]
    return found


@pytest.fixture(scope="module")
def graph(options: dict[str, list[str]]) -> grimp.ImportGraph:
    """The imports of the whole product."""
    packages = options["root_packages"]
    return grimp.build_graph(*packages, include_external_packages=True, cache_dir=None)


@pytest.fixture(scope="module")
def contracts() -> list[Contract]:
    """All of them, as `lint-imports` reads them."""
    configuration.configure()
    read = use_cases.read_user_options(str(ROOT / "pyproject.toml"))
    use_cases._register_contract_types(read)
    return [
        registry.get_contract_class(one["type"])(
            name=one["name"], session_options=read.session_options, contract_options=one
        )
        for one in read.contracts_options
    ]


def broken(graph: grimp.ImportGraph, contracts: list[Contract]) -> list[str]:
    """The names of the contracts that these imports break."""
    return [one.name for one in contracts if not one.check(deepcopy(graph), verbose=False).kept]


def test_nothing_is_broken(graph: grimp.ImportGraph, contracts: list[Contract]) -> None:
    """So that what is caught below is what was planted."""
    assert broken(graph, contracts) == []


@pytest.mark.parametrize(("importer", "imported"), PAIRS, ids=[" ".join(one) for one in PAIRS])
def test_a_planted_import_is_caught(
    graph: grimp.ImportGraph, contracts: list[Contract], importer: str, imported: str
) -> None:
    """One import that there must not be, or one module that is in no layer."""
    planted = deepcopy(graph)
    ours = {one.partition(".")[0] for one in graph.modules if not graph.is_module_squashed(one)}
    for name in (importer, imported):
        steps = name.split(".")
        for module in (".".join(steps[:count]) for count in range(1, len(steps) + 1)):
            if module not in planted.modules:
                assert steps[0] not in ours or "new_module" in steps, name
                planted.add_module(module, is_squashed=steps[0] not in ours)
    planted.add_import(importer=importer, imported=imported)
    assert broken(planted, contracts) != []


def test_every_package_of_the_product_is_checked(options: dict[str, list[str]]) -> None:
    """A new folder of the product comes under a contract, or this fails."""
    product = {path.parent.name for path in ROOT.glob("*/__init__.py")} | {"migrations"}
    assert set(options["root_packages"]) == product - {"bench", "tests"}


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("app/questions/question.py", "from app.api import service"),
        ("app/text/units.py", "def late() -> None:\n    import app.main"),
        ("domain/units.py", "if TYPE_CHECKING:\n    import numpy"),
        ("app/loose.py", "import sys"),
    ],
)
def test_the_command_catches_it_in_a_file(
    options: dict[str, list[str]], tmp_path: Path, place: str, line: str
) -> None:
    """Wherever it stands in a file: `lint-imports` on a copy of the product."""
    for folder in (*options["root_packages"], "tools"):
        shutil.copytree(
            ROOT / folder,
            tmp_path / folder,
            ignore=lambda _, names: [
                name for name in names if Path(name).suffix not in ("", ".py")
            ],
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / place).open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    assert re.search(r"\b[1-3] broken", done.stdout), done.stdout
