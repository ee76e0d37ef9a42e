"""The example of docs/adding-an-operation.md, its modules where their first lines say."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import ModuleType

from app.operations import operation
from app.operations.operation import Report

EXAMPLE = Path(__file__).with_name("example")
MODULES = ("operation.py", "route.py", "command.py", "page.py")  # each may import those before it
KINDS = {kind.name: kind.value for kind in operation.OperationKind}
OperationKind = StrEnum("OperationKind", {**KINDS, "CURVE": "curve"})  # type: ignore[misc]


def template() -> str:
    """The page's template."""
    return (EXAMPLE / "page.html").read_text(encoding="utf-8")


@contextmanager
def installed() -> Iterator[dict[str, ModuleType]]:
    """The modules by their paths, importable in this block."""
    known = operation.OperationKind
    modules: dict[str, ModuleType] = {}
    try:
        operation.OperationKind = OperationKind  # type: ignore[misc]
        for text in ((EXAMPLE / name).read_text(encoding="utf-8") for name in MODULES):
            path = text.partition("\n")[0].removeprefix("# ")
            name = path.removesuffix(".py").replace("/", ".")
            assert name not in sys.modules, f"{path} is there already"
            module = modules[path] = sys.modules[name] = ModuleType(name)
            exec(compile(text, path, "exec"), module.__dict__)
        yield modules
    finally:
        operation.OperationKind = known  # type: ignore[misc]
        for module in modules.values():
            sys.modules.pop(module.__name__, None)


def run(work: bytes, report: Report) -> object:
    """Run a pickled operation of the page, in a worker."""
    with installed():
        return pickle.loads(work).run(report)
