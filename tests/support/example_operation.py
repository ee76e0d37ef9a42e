"""The modules of docs/adding-an-operation.md, as if they stood where their first lines say."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from types import ModuleType

from app.operations import operation
from app.operations.operation import Report
from tests.architecture.documents import document

PAGE = document("docs/adding-an-operation.md")
KINDS = {kind.name: kind.value for kind in operation.OperationKind}
OperationKind = StrEnum("OperationKind", {**KINDS, "CURVE": "curve"})  # type: ignore[misc]


def template() -> str:
    """The page's template."""
    (found,) = [block.text for block, _ in PAGE.blocks() if block.language == "html"]
    return found


@contextmanager
def installed() -> Iterator[dict[str, ModuleType]]:
    """The modules by their paths, importable in this block."""
    known = operation.OperationKind
    modules: dict[str, ModuleType] = {}
    try:
        operation.OperationKind = OperationKind  # type: ignore[misc]
        for block, _ in PAGE.blocks():
            if block.language == "python":
                path = block.text.partition("\n")[0].removeprefix("# ")
                name = path.removesuffix(".py").replace("/", ".")
                assert name not in sys.modules, f"{path} is there already"
                module = modules[path] = sys.modules[name] = ModuleType(name)
                exec(compile(block.text, path, "exec"), module.__dict__)
        yield modules
    finally:
        operation.OperationKind = known  # type: ignore[misc]
        for module in modules.values():
            sys.modules.pop(module.__name__, None)


def run(work: bytes, report: Report) -> object:
    """Run a pickled operation of the page, in a worker."""
    with installed():
        return pickle.loads(work).run(report)
