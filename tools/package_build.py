"""Build the distribution `sluice`: one importable package that holds all of the checkout's.

Hatchling calls this when a wheel is built, from the checkout or from the sdist. In the checkout the
packages stand side by side at the top (`domain`, `solvers`, `app`, ...), names too plain for
site-packages. So they are copied below one package `sluice`, and each import of one of them, and
each string that names one of their modules, is rewritten to say so. Where a C compiler is found the
kernels are compiled into the wheel, which is then for this platform alone; without one it is for
every platform, and the solvers run on NumPy.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "analysis",
    "app",
    "contract",
    "domain",
    "exports",
    "fitting",
    "measuring",
    "migrations",
    "models",
    "papers",
    "solvers",
)
DATA = ("clients/c/include", "clients/c/src", "clients/c/mover", "examples")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "build", "*.pyc", "*.pyo")


class PackageBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Stages the package in a temporary folder, and takes it away when the wheel is written."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the staged package to the wheel. Raises ValueError for what cannot be rewritten."""
        self._stage = Path(tempfile.mkdtemp(prefix="sluice-wheel-"))
        package = self._stage / "sluice"
        stage(ROOT, package)
        build_data["force_include"][str(package)] = "sluice"
        if compile_kernels(package):
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the staged package."""
        shutil.rmtree(self._stage, ignore_errors=True)


def stage(root: Path, package: Path) -> None:
    """Copy the packages and their data below `package`, with imports rewritten."""
    present = [name for name in PACKAGES if (root / name).is_dir()]
    for name in present:
        shutil.copytree(root / name, package / name, ignore=LEFT_OUT)
    for name in DATA:
        shutil.copytree(root / name, package / name, ignore=LEFT_OUT)
    shutil.copy(root / "tools" / "build_kernels.py", package / "build_kernels.py")
    shutil.copy(root / "tools" / "package_init.py", package / "__init__.py")
    (package / "py.typed").touch()
    for path in sorted(package.rglob("*.py")):
        if path.parent != package:
            text = path.read_text(encoding="utf-8")
            path.write_text(rewritten(text, present, root, str(path)), encoding="utf-8")


def rewritten(text: str, packages: list[str], root: Path, name: str) -> str:
    """Return a module's text with `sluice.` before each module of ours that it names."""
    lines = text.splitlines(keepends=True)
    encoded = [line.encode() for line in lines]
    for row, column, old, new in sorted(_edits(text, packages, root, name), reverse=True):
        line = encoded[row - 1]
        before, after = line[:column], line[column:]
        if old.encode() not in after:
            raise ValueError(f"{name}:{row}: cannot rewrite {old!r}")
        encoded[row - 1] = before + after.replace(old.encode(), new.encode(), 1)
    return b"".join(encoded).decode()


def _edits(
    text: str, packages: list[str], root: Path, name: str
) -> list[tuple[int, int, str, str]]:
    edits = []
    for node in ast.walk(ast.parse(text, name)):
        if isinstance(node, ast.ImportFrom) and _is_ours(node.module, packages):
            edits.append((node.lineno, node.col_offset, f"from {node.module}", _from(node.module)))
        elif isinstance(node, ast.Import):
            edits += _plain_imports(node, packages, name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            module = node.value.partition(":")[0]
            if _is_ours(module, packages) and _is_reference(node.value, root):
                old = node.value
                edits.append((node.lineno, node.col_offset, old, f"sluice.{old}"))
    return edits


def _from(module: str | None) -> str:
    return f"from sluice.{module}"


def _plain_imports(
    node: ast.Import, packages: list[str], name: str
) -> list[tuple[int, int, str, str]]:
    ours = [alias for alias in node.names if _is_ours(alias.name, packages)]
    if not ours:
        return []
    if len(node.names) > 1:
        raise ValueError(f"{name}:{node.lineno}: import one module of ours a line")
    alias = ours[0]
    old, at = f"import {alias.name}", (node.lineno, node.col_offset)
    new = f"import sluice.{alias.name}"
    if alias.asname:
        return [(*at, old, new)]
    first = alias.name.partition(".")[0]  # the name that it binds
    binds = f"from sluice import {first}"
    return [(*at, old, binds if first == alias.name else f"{new}; {binds}")]


def _is_ours(module: str | None, packages: list[str]) -> bool:
    return module is not None and module.partition(".")[0] in packages


def _is_reference(value: str, root: Path) -> bool:
    """Whether a string names a module that there is, alone or with a name in it."""
    module, colon, _ = value.partition(":")
    if not colon and "." not in module:
        return False  # "app" or "domain" alone is a word
    path = root.joinpath(*module.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def compile_kernels(package: Path) -> bool:
    """Compile the kernels inside the staged package; whether all of them are there."""
    script = package / "build_kernels.py"
    subprocess.run([sys.executable, str(script)], check=True)
    script.unlink()
    folders = (package / "solvers/kernels/native/build", package / "exports/native/build")
    return all(any(folder.glob("*")) for folder in folders if folder.parent.is_dir())
