"""Write the Python client's generated files: python -m tools.write_client.

`core.py` is `async_core.py` without its waiting. `client.py` and `async_client.py` have a method,
with its parameters and words, for each function of `sluice_client.operations` that returns a call.
A test holds those equal to the service's OpenAPI document, another the files to what this makes.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "clients" / "python" / "src"
PACKAGE = SOURCES / "sluice_client"
sys.path.insert(0, str(SOURCES))

from sluice_client.operations import (  # noqa: E402  (of the checkout, not of what is installed)
    exporting,
    hiding,
    measuring,
    messaging,
    service,
    solving,
    storing,
)

MODULES = (solving, hiding, measuring, storing, exporting, messaging, service)
NOT_METHODS = {"job_events"}  # a stream, which the core reads
HEAD = "# Made by `python -m tools.write_client`; what is changed here is lost.\n"
UNAWAITED = (
    ("AsyncCore", "Core"),
    ("AsyncClient", "Client"),
    ("AsyncIterator", "Iterator"),
    ("asynccontextmanager", "contextmanager"),
    ("aclosing", "closing"),
    ("aiter_bytes", "iter_bytes"),
    ("aread", "read"),
    ("aclose", "close"),
    ("__aenter__", "__enter__"),
    ("__aexit__", "__exit__"),
)
ABOUT = {
    "Client": """The operations of a Sluice service, one method each; threads may share a client.

    `address` is that of SLUICE_URL where none is given, and http://localhost:8080 without that.
    `timeout_s` is how long the service may be silent beyond what an operation takes by itself;
    `retry` says how often and how long a call is tried; up to `memory_bytes` of answers are kept
    by their ETag; `headers` go with every request. `key` says who asks, where the service wants to
    know it; it is that of SLUICE_KEY where none is given. `http` is for certificates, proxies and
    the like: a client of httpx that stays the caller's to close. Raises SluiceClientError and what
    is below it.""",
    "AsyncClient": """The operations of a Sluice service, one method each to wait for.

    All tasks of one event loop may share a client. The arguments are those of Client, but for
    `http`, which is an asynchronous client of httpx. Raises SluiceClientError and what is below
    it.""",
}
EACH = "Yield every item from `cursor` on, page after page; `limit` is the length of a page."


def blocking(source: str) -> str:
    """Return the source of the half that blocks, made of the one that waits."""
    text = re.sub(r"await asyncio\.to_thread\(([\w.]+), ", r"\1(", source)
    text = text.replace("asyncio.sleep", "time.sleep").replace("import asyncio\n", "")
    text = text.replace("import os\n", "import os\nimport time\n")
    for name, other in UNAWAITED:
        text = re.sub(rf"\b{name}\b", other, text)
    text = re.sub(r"\basync (def|with|for) ", r"\1 ", text).replace("await ", "")
    text = re.sub(r"            for item in page\.items:\n +yield item\n", _YIELDED, text)
    text = text.replace("httpx.AsyncClient", "httpx.Client")
    words = '"""What the blocking client is made of."""'
    return HEAD + re.sub(r'^""".*?"""', words, text, flags=re.DOTALL)


_YIELDED = "            yield from page.items\n"


def operations(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions of a module that return calls, in their order."""
    for name, build in vars(module).items():
        if not inspect.isfunction(build) or build.__module__ != module.__name__:
            continue
        gives = str(inspect.signature(build).return_annotation)
        if gives.startswith("Call[") and not name.startswith("_") and name not in NOT_METHODS:
            yield name, build


def named_in(annotation: str) -> set[str]:
    """Return the names that an annotation is made of."""
    found = {node.id for node in ast.walk(ast.parse(annotation)) if isinstance(node, ast.Name)}
    return found - set(vars(builtins))


class Methods:
    """The methods of one client, and the names that they need."""

    def __init__(self, *, is_async: bool) -> None:
        self.is_async = is_async
        self.imported: set[tuple[str, str]] = set()
        self.text = ""

    def add(self, module: ModuleType) -> None:
        """Add a method for each operation of a module, and one for all items of each list."""
        short = module.__name__.rpartition(".")[2]
        for name, build in operations(module):
            gives = str(inspect.signature(build).return_annotation)[len("Call[") : -1]
            self._one(short, name, build, gives)
            if gives.startswith("Page["):
                self._each(short, name, build, gives[len("Page[") : -1])
            self._import(build, gives)

    def _one(self, short: str, name: str, build: Callable[..., Any], gives: str) -> None:
        call = f"self.send({short}.{name}({_passed(build)}))"
        head, wait = ("async def", "await ") if self.is_async else ("def", "")
        self.text += (
            f"    {head} {name}({_taken(build)}) -> {gives}:\n"
            f"{_docstring((build.__doc__ or '').strip())}        return {wait}{call}\n\n"
        )
        for parameter in inspect.signature(build).parameters.values():
            self._import(build, str(parameter.annotation))

    def _each(self, short: str, name: str, build: Callable[..., Any], item: str) -> None:
        many = "AsyncIterator" if self.is_async else "Iterator"
        self.imported.add(("collections.abc", many))
        ask = f"lambda cursor: {short}.{name}({_passed(build)})"
        self.text += (
            f"    def each_{name.removesuffix('s')}({_taken(build)}) -> {many}[{item}]:\n"
            f"{_docstring(EACH)}        return self._pages({ask}, cursor)\n\n"
        )

    def _import(self, build: Callable[..., Any], annotation: str) -> None:
        known = {**build.__globals__, **inspect.unwrap(build).__globals__}
        for name in named_in(annotation):
            self.imported.add(("typing" if name == "Any" else known[name].__module__, name))


def _taken(build: Callable[..., Any]) -> str:
    """The parameters as they are written."""
    given = inspect.signature(build).parameters.values()
    parts, is_open = ["self"], False
    for one in given:
        if one.kind is one.KEYWORD_ONLY and not is_open:
            parts.append("*")
            is_open = True
        default = "" if one.default is one.empty else f" = {one.default!r}"
        parts.append(f"{one.name}: {one.annotation}{default}")
    return ", ".join(parts) + ","


def _passed(build: Callable[..., Any]) -> str:
    """The arguments, handed on."""
    return ", ".join(
        f"{one.name}={one.name}" if one.kind is one.KEYWORD_ONLY else one.name
        for one in inspect.signature(build).parameters.values()
    )


def _docstring(*paragraphs: str) -> str:
    """A method's words, which are a function's: four columns further in but for the first line."""
    text = "\n\n".join(paragraphs)
    if "\n" not in text:
        return f'        """{text}"""\n'
    lines = [f"    {line}" if line.startswith("    ") else line for line in text.splitlines()]
    return '        """' + "\n".join(lines) + '\n        """\n'


def client(name: str, *, is_async: bool) -> str:
    """Return the source of a client."""
    methods = Methods(is_async=is_async)
    for module in MODULES:
        methods.add(module)
    core = "AsyncCore" if is_async else "Core"
    homes = {home for home, _ in methods.imported}
    lines = [
        f"from {home} import {', '.join(sorted(one for of, one in methods.imported if of == home))}"
        for home in sorted(homes)
    ]
    modules = ", ".join(sorted(module.__name__.rpartition(".")[2] for module in MODULES))
    core_module = "async_core" if is_async else "core"
    kind = "asynchronous client, for asyncio" if is_async else "blocking client"
    return (
        f'{HEAD}"""The {kind}."""\n\nfrom __future__ import annotations\n\n'
        + "\n".join(lines)
        + f"\nfrom sluice_client.{core_module} import {core}\n"
        f"from sluice_client.operations import {modules}\n\n\n"
        f'class {name}({core}):\n    """{ABOUT[name]}\n    """\n\n{methods.text}'
    )


def formatted(sources: dict[str, str]) -> dict[str, str]:
    """Return the files as the project's style has them."""
    return {name: _styled(text) for name, text in sources.items()}


def _styled(text: str) -> str:
    ruff = [str(Path(sys.executable).with_name("ruff"))]
    there = ["--stdin-filename", str(PACKAGE / "generated.py"), "-"]
    sort = [*ruff, "check", "--quiet", "--select", "I", "--fix", *there]
    for command in (sort, [*ruff, "format", "--quiet", *there]):
        text = subprocess.run(
            command, input=text, capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
    return text


def files() -> dict[str, str]:
    """Return every generated file by its name, as it should be."""
    return formatted(
        {
            "core.py": blocking((PACKAGE / "async_core.py").read_text()),
            "client.py": client("Client", is_async=False),
            "async_client.py": client("AsyncClient", is_async=True),
        }
    )


def main() -> None:
    """Write them."""
    for name, text in files().items():
        (PACKAGE / name).write_text(text)


if __name__ == "__main__":
    main()
