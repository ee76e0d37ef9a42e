"""Rules for source files that no tool checks: names, letters, docstrings.

Which package may import which are contracts in pyproject.toml, run by `make check`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

from tests.architecture.documents import PACKAGES, ROOT, python_files

LETTERS = frozenset("gGoLBk")  # Wang's and LogP's: they mean different things
LETTERED = ("solvers", "fitting", "measuring")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def tree(path: Path) -> ast.Module:
    """The parsed file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def names(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Every identifier, key of a dictionary and option of a command line, with its line."""
    for node in ast.walk(module):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.Dict(keys=keys):
                yield from ((key.lineno, str(key.value)) for key in keys if _is_text(key))
            case ast.Constant(value=str(text)) if text.startswith("-"):
                yield node.lineno, text.lstrip("-")


def _is_text(key: ast.expr | None) -> TypeGuard[ast.Constant]:
    return isinstance(key, ast.Constant) and isinstance(key.value, str)


PUBLIC = frozenset({"analysis", "domain", "fitting", "measuring", "solvers"})


def undocumented(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Public definitions without a docstring, those inside classes included."""
    for node in body:
        if not isinstance(node, Definition) or node.name.startswith("_"):
            continue
        if ast.get_docstring(node) is None:
            yield f"{prefix}{node.name}, line {node.lineno}"
        if isinstance(node, ast.ClassDef):
            yield from undocumented(node.body, f"{prefix}{node.name}.")


def imported(module: ast.Module) -> Iterator[str]:
    """The top-level packages that a file imports, wherever it does."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the package"
            yield (node.module or "").partition(".")[0]


@pytest.mark.parametrize("package", PACKAGES)
def test_everything_public_has_a_docstring(package: str) -> None:
    """Every module says what it is; in the public interface each class, function and method."""
    missing = []
    for path in python_files(package):
        module = tree(path)
        if module.body and ast.get_docstring(module) is None:
            missing.append(f"{path.relative_to(ROOT)}")
        if package not in PUBLIC:
            continue
        missing += [f"{path.relative_to(ROOT)}: {where}" for where in undocumented(module.body)]
    assert missing == []


def test_domain_imports_the_standard_library_alone() -> None:
    """Its types need nothing, so that every package can use them."""
    allowed = {*sys.stdlib_module_names, "contract", "domain"}
    found = {path.name: set(imported(tree(path))) - allowed for path in python_files("domain")}
    assert found
    assert not any(found.values()), found


UNITS_OF_SIZES = {("units.py", "B"), ("units.py", "G")}  # as in 64 B and 1 G


@pytest.mark.parametrize("package", [one for one in PACKAGES if one not in LETTERED])
def test_the_letters_of_papers_stay_where_they_are_explained(package: str) -> None:
    """g, G, o, L, B and k are no identifiers, keys, columns or options outside the solvers."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in [*python_files(package), *python_files("migrations")]
        for line, name in names(tree(path))
        if name in LETTERS and (path.name, name) not in UNITS_OF_SIZES
    ]
    assert found == []


def test_letters_are_explained_in_a_notation_header() -> None:
    """A module that uses them opens with their meaning and unit."""
    lettered = {
        path: ast.get_docstring(tree(path)) or ""
        for path in python_files(*LETTERED)
        if any(name in LETTERS for _, name in names(tree(path)))
    }
    assert lettered
    unexplained = [str(path) for path, text in lettered.items() if "Notation" not in text]
    assert unexplained == []


def test_a_fragment_is_called_a_fragment() -> None:
    """Others say segment; here no name does, but those of Open MPI's parameters."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in python_files(*PACKAGES, "migrations", "bench")
        for line, name in names(tree(path))
        if re.search(r"segment(?!_?size)", name, re.IGNORECASE)
    ]
    assert found == []


# What the field calls otherwise: docs/glossary.md.
REPLACED = {
    *("least", "greatest", "judge", "course", "crest", "ladder", "rival", "rivals", "yardstick"),
    *("told", "untold", "desk", "errand"),
}


def test_names_use_the_words_of_the_glossary() -> None:
    """`min`, `max`, `evaluator`, `timeline`, ...; words of idioms and theorems stay."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in python_files(*PACKAGES, "bench", "tools", "clients/python/src")
        for line, name in names(tree(path))
        if REPLACED & set(name.lower().replace("at_least", "").split("_"))
        and name != "_least_absolute"  # least absolute deviations
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("g = 1", ["g"]),
        ("def f(L): ...", ["f", "L"]),
        ("call(k=1)", ["call", "k"]),
        ("row.G", ["row", "G"]),
        ("add('--o')", ["add", "o"]),
    ],
)
def test_names_are_found_wherever_they_stand(source: str, expected: list[str]) -> None:
    """Variables, parameters, keywords, attributes and options."""
    assert sorted(name for _, name in names(ast.parse(source))) == sorted(expected)
