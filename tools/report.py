"""Prints how long and how alike the sources are, for whoever decides what to change; gates nothing.

    .venv/bin/python -m tools.report [--name min_gain]

Lines and files by package, the longest files and functions, the median body of a function, bodies
that are the same but for the names of their variables, and the processor time of tests by folder.
With a name also the files that say it, tests and documents apart.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from statistics import median, quantiles

from tools.quick_tests import CHECKOUT, SECONDS

PRODUCT = (
    *("domain", "fitting", "measuring", "solvers", "analysis", "papers", "exports", "models"),
    *("migrations", "app", "clients"),
)
BESIDE = ("bench", "tools", "examples", "docs", "tests")
TEXTS = {".py", ".html", ".js", ".css", ".c", ".h", ".toml", ".json", ".md"}
SHOWN = 10
# Bodies of fewer nodes are alike because there is one way to write them.
MIN_NODES = 40
_NOT_OURS = {"__pycache__", "build", "node_modules"}
_NAME = re.compile(r"Name\(id='(\w+)'")


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method: where it is, and its syntax."""

    place: str
    node: ast.FunctionDef | ast.AsyncFunctionDef

    @property
    def lines(self) -> int:
        """Lines from its name to its end."""
        return (self.node.end_lineno or 0) - self.node.lineno + 1

    @property
    def body(self) -> list[ast.stmt]:
        """Its statements without the docstring."""
        return self.node.body[ast.get_docstring(self.node) is not None :]

    @property
    def body_lines(self) -> int:
        """Lines from the first statement to the last; 0 where there is only a docstring."""
        body = self.body
        return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0

    @property
    def nodes(self) -> int:
        """How many nodes the body's syntax has."""
        return sum(1 for statement in self.body for _ in ast.walk(statement))

    @property
    def shape(self) -> str:
        """The body's syntax, each variable of the function by its order of appearance."""
        body = self.body
        own = {node.arg for node in ast.walk(self.node.args) if isinstance(node, ast.arg)}
        for node in (node for statement in body for node in ast.walk(statement)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own.add(node.id)
        order: dict[str, int] = {}

        def numbered(found: re.Match[str]) -> str:
            name = found[1]
            return f"Name({order.setdefault(name, len(order))}" if name in own else found[0]

        return "\n".join(_NAME.sub(numbered, ast.dump(statement)) for statement in body)


@dataclass(frozen=True)
class Source:
    """A Python file by its path in the checkout."""

    path: PurePosixPath
    text: str

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return len(self.text.splitlines())

    @property
    def package(self) -> str:
        """The folder it is in, to two levels."""
        return "/".join(self.path.parent.parts[:2])

    @cached_property
    def functions(self) -> list[Function]:
        """Its functions and methods; none of a file that cannot be parsed."""
        try:
            return list(_functions(ast.parse(self.text), str(self.path)))
        except SyntaxError:
            return []


def _functions(node: ast.AST, place: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{place}::{child.name}")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            where = f"{place}::{child.name}"
            yield Function(where, child)
            yield from _functions(child, where)


def files(checkout: Path, folders: Sequence[str], suffixes: set[str]) -> Iterator[Path]:
    """Yield the files below these folders with these suffixes, ascending."""
    for folder in folders:
        for path in sorted((checkout / folder).rglob("*")):
            parts = path.relative_to(checkout).parts
            if path.suffix in suffixes and not _NOT_OURS & {*parts} and path.is_file():
                yield path


def sources(checkout: Path, folders: Sequence[str]) -> list[Source]:
    """Return the Python files below these folders."""
    return [
        Source(PurePosixPath(path.relative_to(checkout).as_posix()), path.read_text("utf-8"))
        for path in files(checkout, folders, {".py"})
    ]


def by_package(found: Sequence[Source]) -> Iterator[str]:
    """Yield lines and files of each package, and of all."""
    lines, counts = Counter[str](), Counter[str]()
    for source in found:
        for name in {source.package, source.path.parts[0]}:
            lines[name] += source.lines
            counts[name] += 1
    yield f"{sum(source.lines for source in found):7} lines {len(found):5} files  all"
    for name in sorted(lines):
        indent = "  " if "/" in name else ""
        yield f"{lines[name]:7} lines {counts[name]:5} files  {indent}{name}"


def alike(functions: Iterable[Function]) -> list[list[Function]]:
    """Return the groups of functions of one body, the longest first."""
    groups: defaultdict[str, list[Function]] = defaultdict(list)
    for function in functions:
        if function.nodes >= MIN_NODES:
            groups[function.shape].append(function)
    found = [group for group in groups.values() if len(group) > 1]
    return sorted(found, key=lambda group: -group[0].body_lines * (len(group) - 1))


def naming(checkout: Path, name: str, folders: Sequence[str]) -> list[str]:
    """Return the files below these folders whose text has this word."""
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return [
        path.relative_to(checkout).as_posix()
        for path in files(checkout, folders, TEXTS)
        if word.search(path.read_text("utf-8", errors="replace"))
    ]


def by_seconds(checkout: Path) -> Iterator[str]:
    """Yield the processor time of tests by folder and of the longest files, where it is known."""
    file = checkout / SECONDS
    if not file.is_file():
        return
    seconds: dict[str, float] = json.loads(file.read_text("utf-8"))
    folders: defaultdict[str, float] = defaultdict(float)
    for path, each_s in seconds.items():
        folders["/".join(PurePosixPath(path).parts[:2])] += each_s
    yield f"{sum(seconds.values()):7.0f} s  all"
    for table, most in ((folders, len(folders)), (seconds, SHOWN)):
        longest = sorted(table.items(), key=lambda row: -row[1])[:most]
        yield from (f"{each_s:7.0f} s  {name}" for name, each_s in longest)


def report(checkout: Path, name: str = "") -> Iterator[str]:
    """Yield the lines of the report on a checkout; `name` is a parameter to look for."""
    product, beside = sources(checkout, PRODUCT), sources(checkout, BESIDE)
    functions = [function for source in product for function in source.functions]
    yield from _part("Product", by_package(product))
    yield from _part("Beside it", by_package(beside))
    longest = sorted(product, key=lambda source: -source.lines)[:SHOWN]
    yield from _part("Longest files", (f"{file.lines:7}  {file.path}" for file in longest))
    largest = sorted(functions, key=lambda function: -function.lines)[:SHOWN]
    yield from _part(
        "Longest functions", (f"{function.lines:7}  {function.place}" for function in largest)
    )
    bodies = [function.body_lines for function in functions if function.body]
    if len(bodies) > 1:
        spread = f"{median(bodies):g} lines in the middle, {quantiles(bodies, n=10)[-1]:g} at 90 %"
        yield from _part(f"Bodies of {len(bodies)} functions", [spread])
    same = alike(functions)
    shown = (", ".join(body.place for body in group) for group in same)
    yield from _part(f"Bodies that are alike: {len(same)}", shown)
    yield from _part("Tests by processor time", by_seconds(checkout))
    if name:
        for what, folders in (("Product", PRODUCT), ("Beside it", BESIDE)):
            found = naming(checkout, name, folders)
            yield from _part(f"{what}: {len(found)} files say {name}", found)


def _part(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"\n{title}"
    yield from (f"  {line}" for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report on this checkout; always 0."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.report", description="Print how long and how alike the sources are."
    )
    parser.add_argument("--name", default="", help="a parameter: which files say it")
    options = parser.parse_args(arguments)
    for line in report(CHECKOUT, options.name):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
