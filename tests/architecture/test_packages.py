"""docs/architecture.md names what is there: packages, layers, the code of its three ways."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

import pytest

from tests.architecture.documents import (
    PACKAGES,
    ROOT,
    code_words,
    document,
    documents,
    python_files,
)

ARCHITECTURE = document("docs/architecture.md")
MAX_LINE = 100
# Alembic finds these files by their folder: they are no package, and have no docstring of one.
MIGRATIONS = "One reversible file a change of the schema."
WAYS = "Three ways through the code"
CODE = re.compile(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)(?:::([\w.]+))?`")


def contracts() -> list[dict[str, Any]]:
    """The import contracts of pyproject.toml."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = options["tool"]["importlinter"]["contracts"]
    return found


def layers() -> list[tuple[str, list[str]]]:
    """The layers of each container, from the top down; '' holds the top-level packages."""
    return [
        (container, one["layers"])
        for one in contracts()
        if one["type"] == "layers"
        for container in one.get("containers", [""])
    ]


def top_packages() -> list[str]:
    """The top-level packages, in the order of the layers from the bottom up."""
    ordered = dict(layers())[""]
    return [name for layer in reversed(ordered) for name in reversed(re.findall(r"\w+", layer))]


def packages() -> Iterator[str]:
    """Every package of the product by its path, each below what contains it."""
    for top in top_packages():
        folders = sorted(path.parent for path in (ROOT / top).rglob("__init__.py"))
        yield from (folder.relative_to(ROOT).as_posix() for folder in folders) if folders else [top]


def docstring(package: str) -> str:
    """What a package says of itself."""
    if package == "migrations":
        return MIGRATIONS
    text = (ROOT / package / "__init__.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(text)) or ""


def summary(package: str) -> str:
    """The first sentence of it."""
    return docstring(package).partition("\n")[0].partition(". ")[0].rstrip(".")


def others(package: str) -> str:
    """The packages of others that it may import; empty where they are those of what contains it."""
    allowed = next(one["allowed"] for one in contracts() if one["type"] == "third_party")
    table = dict(line.split(": ") for line in allowed)
    holder, above = (holder_of(one, table) for one in (package, package.rpartition("/")[0]))
    if holder:
        return "" if holder == above else str(table[holder])
    modules = {
        path.stem: table[name]
        for name in table
        if (path := ROOT / f"{name.replace('.', '/')}.py").is_file() and path.parent.name == package
    }
    return "; ".join(f"`{stem}`: {names}" for stem, names in modules.items()) or "none"


def holder_of(package: str, table: Mapping[str, str]) -> str:
    """The line of the contract that decides for a package, "" where none does."""
    module = package.replace("/", ".")
    within = (name for name in table if module == name or module.startswith(f"{name}."))
    return max(within, key=len, default="")


def table_of_packages() -> list[str]:
    """The lines of the table as they have to be: the packages on top."""
    listed = [one for one in packages() if "/" not in one]
    rows = [f"`{one}` | {summary(one)} | {others(one)}" for one in listed]
    return ["Package | What it is | Third-party imports", "---|---|---", *rows]


def lines_of_layers() -> list[str]:
    """The layers of all and of `app` as they have to be, in lines that can be read."""
    found = dict(layers())
    return [
        line
        for name in ("", "app")
        for line in wrap(
            f"{name or 'all':<5}{' > '.join(found[name])}", MAX_LINE, subsequent_indent=" " * 5
        )
    ]


def test_the_table_of_packages_is_what_the_packages_say() -> None:
    """One line each, out of the docstrings and the contract about packages of others."""
    shown = [line for line in ARCHITECTURE.section("Packages").splitlines() if "|" in line]
    expected = table_of_packages()
    assert shown == expected, "put in:\n" + "\n".join(expected)


def test_the_layers_are_those_of_the_contracts() -> None:
    """The block below the heading, line by line."""
    (shown,) = (block.text for block, _ in ARCHITECTURE.blocks() if block.text.startswith("all "))
    expected = "\n".join(lines_of_layers())
    assert shown == expected, "put in:\n" + expected


@pytest.mark.parametrize("package", list(packages()))
def test_a_package_says_in_its_first_line_what_it_is(package: str) -> None:
    """A whole sentence, which fits into one line."""
    first, _, rest = docstring(package).partition("\n")
    assert first.endswith("."), first
    assert len(first) + 2 * len('"""') <= MAX_LINE
    assert not rest.strip() or rest.startswith("\n"), "an empty line goes below the first one"


# --- the code that is named -----------------------------------------------------------------------


def defined(path: str, base: str = "") -> set[str]:
    """The functions and classes of a module, and the members of its classes as `Class.member`."""
    found: set[str] = set()
    for node in ast.parse((ROOT / base / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            members = [one for one in node.body if isinstance(one, _FUNCTIONS)]
            found |= {node.name, *(f"{node.name}.{one.name}" for one in members)}
        elif isinstance(node, _FUNCTIONS):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {one.id for one in targets if isinstance(one, ast.Name)}
    return found


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def wrong(path: str, name: str, *bases: str) -> str | None:
    """What is wrong with a named place of the code, None where it is there."""
    base = next((one for one in bases if (ROOT / one / path).is_file()), None)
    if base is None:
        return f"there is no {path}"
    if name and name not in defined(path, base):
        return f"{path} has no {name}"
    return None


def ways() -> dict[str, list[str]]:
    """The steps of each way by its heading."""
    text = ARCHITECTURE.section(WAYS)
    parts = re.split(r"^### (.+)$", text, flags=re.MULTILINE)[1:]
    return {
        heading: re.split(r"^(?=\d+\. )", body, flags=re.MULTILINE)[1:]
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.mark.parametrize("way", ways())
def test_a_way_names_code_that_is_there(way: str) -> None:
    """Every step names a module or function, and each of these exists."""
    steps = ways()[way]
    assert steps
    places = [CODE.findall(step) for step in steps]
    assert all(places), "every step names code"
    found = [wrong(path, name, "app", "") for step in places for path, name in step]
    assert [one for one in found if one] == []


def test_there_are_three_ways() -> None:
    """A question, a lookup, a job."""
    assert len(ways()) == 3


GLOSSARY = document("docs/glossary.md")


def named_in_the_product() -> set[str]:
    """Every name that is defined or used in the product, and `Class.member` of each class."""
    found: set[str] = set()
    for path in python_files(*PACKAGES):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name):
                    found.add(name)
                case ast.ClassDef(name=name):
                    found |= {name, *(f"{name}.{member}" for member in members(node))}
    return found


def members(node: ast.ClassDef) -> Iterator[str]:
    """The methods and the annotated fields of a class."""
    for one in node.body:
        match one:
            case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def test_every_identifier_of_the_glossary_is_there() -> None:
    """The last column: names of the product, or the suffix of a file."""
    cells = [row[-1] for row in GLOSSARY.rows("Glossary: one name for each thing")]
    identifiers = {word for cell in cells for word in code_words(cell)}
    assert identifiers - named_in_the_product() == {".slt"}


@pytest.mark.parametrize("name", [one.name for one in documents()])
def test_every_module_that_a_document_names_is_there(name: str) -> None:
    """Paths of files that begin with a package of the checkout, and what is named in them."""
    tops = (*top_packages(), "bench", "tests", "tools", "clients")
    found = [
        wrong(path, member, "")
        for path, member in CODE.findall(document(name).text)
        if path.partition("/")[0] in tops
    ]
    assert [one for one in found if one] == []
