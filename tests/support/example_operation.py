"""The example of docs/adding-an-operation.md, its modules where their first lines say."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import ModuleType

from app import registry
from app.operations import operation
from app.operations.operation import Report
from app.registry import Verb

EXAMPLE = Path(__file__).with_name("example")
MODULES = (  # each may import those before it
    "analysis",
    "contract",
    "request",
    "answer",
    "operation",
    "show",
    "routes",
    "command",
    "views",
)
VERB = Verb(
    "curve",
    summary="say what messages of every power of two take",
    example="myrinet-gam --max-message 1MiB",
    doing="Solving",
    counts="solves",
)
KINDS = {kind.name: kind.value for kind in operation.OperationKind}
OperationKind = StrEnum("OperationKind", {**KINDS, "CURVE": "curve"})  # type: ignore[misc]


def template() -> str:
    """The page's template."""
    return (EXAMPLE / "curve.html").read_text(encoding="utf-8")


@contextmanager
def installed() -> Iterator[dict[str, ModuleType]]:
    """The modules by their paths, importable in this block, and the entry in the registry."""
    known = operation.OperationKind
    modules: dict[str, ModuleType] = {}
    try:
        operation.OperationKind = OperationKind  # type: ignore[misc]
        for text in ((EXAMPLE / f"{name}.py").read_text(encoding="utf-8") for name in MODULES):
            path = text.partition("\n")[0].removeprefix("# ")
            name = path.removesuffix(".py").replace("/", ".")
            assert name not in sys.modules, f"{path} is there already"
            module = modules[path] = sys.modules[name] = ModuleType(name)
            exec(compile(text, path, "exec"), module.__dict__)
        registry.VERBS[VERB.name] = VERB
        yield modules
    finally:
        operation.OperationKind = known  # type: ignore[misc]
        registry.VERBS.pop(VERB.name, None)
        for module in modules.values():
            sys.modules.pop(module.__name__, None)


def run(work: bytes, report: Report) -> object:
    """Run a pickled operation of the page, in a worker."""
    with installed():
        return pickle.loads(work).run(report)
