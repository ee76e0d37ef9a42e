"""Two contracts for import-linter that it does not bring: third-party packages, and no cycles.

`make check` runs them with the contracts of pyproject.toml, which names both.
"""

from __future__ import annotations

import sys
from graphlib import CycleError, TopologicalSorter
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class ThirdPartyContract(Contract):
    """Allows packages of others by module: lines `module: package, package`.

    The longest name of a module above the importer decides; one that is in no line may import the
    standard library alone. A line that allows what nobody imports is refused too.
    """

    allowed = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Return the imports that no line allows, and the allowances that nothing uses."""
        lines = [str(line).partition(":") for line in self.allowed]  # type: ignore[attr-defined]
        table = {
            module.strip(): {name.strip() for name in names.split(",")}
            for module, _, names in lines
        }
        unused = {(module, name) for module, names in table.items() for name in names}
        found = []
        for importer in sorted(graph.modules):
            if graph.is_module_squashed(importer):
                continue
            holder = max((one for one in table if is_within(importer, one)), key=len, default="")
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                name = imported.partition(".")[0]
                if not graph.is_module_squashed(imported) or name in sys.stdlib_module_names:
                    continue
                if name in table.get(holder, set()):
                    unused.discard((holder, name))
                else:
                    found.append(f"{importer} imports {name}")
        stale = [f"{module} does not import {name}" for module, name in sorted(unused)]
        return ContractCheck(kept=not found and not stale, metadata={"found": [*found, *stale]})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print what was found, a line each."""
        render(check.metadata)


class NoCyclesContract(Contract):
    """No module imports itself through others, at whatever place of a file an import stands."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Return one cycle where there is one."""
        ours = {one for one in graph.modules if not graph.is_module_squashed(one)}
        imports = {one: graph.find_modules_directly_imported_by(one) & ours for one in ours}
        try:
            TopologicalSorter(imports).prepare()
        except CycleError as error:
            return ContractCheck(kept=False, metadata={"found": [" -> ".join(error.args[1])]})
        return ContractCheck(kept=True, metadata={"found": []})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the cycle."""
        render(check.metadata)


def is_within(module: str, package: str) -> bool:
    """Return whether the module is the package or lies in it."""
    return module == package or module.startswith(f"{package}.")


def render(metadata: dict[str, Any]) -> None:
    """Print what a check has found."""
    for line in metadata["found"]:
        output.print_error(line, bold=False)
    output.new_line()
