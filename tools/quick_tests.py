"""Runs the tests nearest to what has changed, as many as `make quick` has time for.

    .venv/bin/python -m tools.quick_tests [--list] [options of pytest]

Changed is what differs from the merge base with the first of upstream/main, origin/main and main
that is there: commits, uncommitted and untracked files. Where nothing differs it is what the last
commit changed.

Test files are taken in the order of `Why`, those of one reason by their processor time, each that
still fits into `BUDGET_S`. The times are those of tools/test_seconds.json, which
`.venv/bin/python -m pytest -p tools.time_tests` writes anew. `make test` runs the others too.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path, PurePosixPath
from textwrap import fill

CHECKOUT = Path(__file__).resolve().parents[1]
SECONDS = "tools/test_seconds.json"
# Of two minutes on two cores, the types of a change at the bottom take 12 s, or 47 s where mypy has
# no cache, and the start of pytest 8 s; what is left to the tests is this, in twice the processors.
BUDGET_S = 100.0
# Of a file that is not in the table: new, and more than most take.
UNKNOWN_S = 5.0
MAIN = ("upstream/main", "origin/main", "main")
EVERYWHERE = {"tests/contracts", "tests/golden", "tests/architecture/test_sources.py"}
# A browser, and every command of the documents.
NEVER = ("tests/browser/", "tests/architecture/test_examples.py")


class Why(StrEnum):
    """Why a test file is run, in the order in which they get their time."""

    CHANGED = "changed"
    EVERYWHERE = "hold for every package"
    NEAR = "of a changed package; import, name or are named after what changed"
    ELSEWHERE = "of other packages; import or name what changed"
    PACKAGE = "of a changed package"


@dataclass(frozen=True, slots=True)
class Changed:
    """A changed file by its path in the checkout, whether it is still there or not."""

    path: PurePosixPath

    @property
    def module(self) -> str | None:
        """Its dotted name, None where it is no Python."""
        if self.path.suffix != ".py":
            return None
        path = self.path.parent if self.path.name == "__init__.py" else self.path.with_suffix("")
        return ".".join(path.parts).removeprefix("clients.python.src.")

    @property
    def words(self) -> set[str]:
        """What a test file may be named after: its stem, and the folders below its package."""
        words = {self.path.stem, *self.path.parent.parts[1:]} - {"__init__"}
        return {word.lower().replace("-", "_") for word in words}

    def folders(self, names: Collection[str]) -> set[str]:
        """The folders that hold its package's tests, or what uses it where it is below tests.

        What is in no package is tested with the tools. `names` are those of the folders of tests.
        """
        top, *below = self.path.parts
        if top == "tests":
            is_test = self.path.match("test_*.py")
            return set() if is_test else {str(self.path.parent)}
        if self.path.suffix == ".md" or top == "docs":
            return {"tests/architecture"}
        mirrors = {"app": [top, *below[:1]], "migrations": ["models"]}.get(top, [top])
        if top == "app" and below[0] in ("ui", "verbs"):  # pages are in them
            mirrors.append("web")
        found = {f"tests/{name}" for name in mirrors if name in names}
        return found or {"tests/tooling"}


@dataclass(frozen=True)
class Candidate:
    """A file of tests by its path in the checkout, its text, and its processor time."""

    path: str
    text: str
    seconds: float

    @cached_property
    def imports(self) -> set[str]:
        """The dotted names of modules that it imports, and of what it imports from them."""
        return set(_imported(ast.parse(self.text)))

    @property
    def words(self) -> list[str]:
        """Those of its name, without the ends of plurals."""
        return [_singular(word) for word in PurePosixPath(self.path).stem.split("_")[1:]]

    def reads(self, changed: Changed) -> bool:
        """Whether it imports the changed module, or names it or the file."""
        module = changed.module
        if module is None:
            return _stands_in(changed.path.name, self.text)
        named = "." in module and _stands_in(module, self.text)
        return named or module in self.imports or _stands_in(str(changed.path), self.text)

    def is_named_after(self, changed: Changed) -> bool:
        """Whether the words of its name hold those of the changed file's, or of its folder's."""
        mine = f"_{'_'.join(self.words)}_"
        return any(
            f"_{'_'.join(_singular(part) for part in word.split('_'))}_" in mine
            for word in changed.words
        )

    def is_below(self, paths: set[str]) -> bool:
        """Whether one of these paths is its own, or that of a folder which holds it."""
        return any(path == self.path or self.path.startswith(f"{path}/") for path in paths)


def _imported(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _stands_in(word: str, text: str) -> bool:
    return word in text and re.search(rf"(?<![\w/]){re.escape(word)}(?!\w)", text) is not None


def _singular(word: str) -> str:
    return word.removesuffix("s")


@dataclass(frozen=True, slots=True)
class Choice:
    """The test files to run with their reasons, and what has a reason too, but is left out."""

    chosen: Mapping[Why, Sequence[Candidate]]
    too_long: Sequence[Candidate]
    never: Sequence[Candidate]

    @property
    def paths(self) -> list[str]:
        """What pytest is given."""
        return [test.path for tests in self.chosen.values() for test in tests]

    @property
    def seconds(self) -> float:
        """Their processor time."""
        return sum(test.seconds for tests in self.chosen.values() for test in tests)


def choose(paths: Sequence[str], tests: Sequence[Candidate], budget_s: float = BUDGET_S) -> Choice:
    """Choose among all tests for changed paths, within seconds of processor time."""
    changed = [Changed(PurePosixPath(path)) for path in paths]
    names = {PurePosixPath(test.path).parts[1] for test in tests}
    folders = {one: one.folders(names) for one in changed}
    reasons: dict[Why, list[Candidate]] = {why: [] for why in Why}
    never = []
    for test in tests:
        why = _reason(test, folders)
        if why is not None and _is_never_run(test, why, changed):
            never.append(test)
        elif why is not None:
            reasons[why].append(test)
    chosen: dict[Why, list[Candidate]] = {why: [] for why in Why}
    too_long, left_s = [], budget_s
    for why, having_it in reasons.items():
        for test in sorted(having_it, key=lambda test: (test.seconds, test.path)):
            if test.seconds <= left_s:
                chosen[why].append(test)
                left_s -= test.seconds
            else:
                too_long.append(test)
    return Choice(chosen, too_long, never)


def _reason(test: Candidate, changed: Mapping[Changed, set[str]]) -> Why | None:
    """Why a test is run; `changed` are files with the folders of their tests."""
    if test.path in {str(one.path) for one in changed}:
        return Why.CHANGED
    beside = [one for one, folders in changed.items() if test.is_below(folders)]
    if any(test.reads(one) or test.is_named_after(one) for one in beside):
        return Why.NEAR
    if test.is_below(EVERYWHERE):
        return Why.EVERYWHERE if changed else None
    if any(test.reads(one) for one in changed):
        return Why.ELSEWHERE
    return Why.PACKAGE if beside else None


def _is_never_run(test: Candidate, why: Why, changed: Sequence[Changed]) -> bool:
    """Whether it drives a browser, runs the documents, or compiles the C library for nothing."""
    if test.path.startswith(NEVER):
        return True
    compiles = re.match(r"tests/clients/test_(?!python_)", test.path) is not None
    of_c = any(one.path.is_relative_to("clients/c") for one in changed)
    return compiles and not of_c and why is not Why.CHANGED


def candidates(checkout: Path) -> list[Candidate]:
    """Every file of tests, in the order of their paths."""
    table = checkout / SECONDS
    seconds = json.loads(table.read_text(encoding="utf-8")) if table.is_file() else {}
    found = []
    for file in sorted((checkout / "tests").rglob("test_*.py")):
        path = file.relative_to(checkout).as_posix()
        text = file.read_text(encoding="utf-8")
        found.append(Candidate(path, text, seconds.get(path, UNKNOWN_S)))
    return found


# --- what has changed -----------------------------------------------------------------------------


def changed_paths(checkout: Path) -> tuple[str, list[str]]:
    """Since when, in words, and what has changed since; raise SystemExit where git cannot say."""
    main = next((name for name in MAIN if _git(checkout, "rev-parse", "-q", "--verify", name)), "")
    base = _git(checkout, "merge-base", "HEAD", main).strip() if main else "HEAD"
    paths = _differing(checkout, base or "HEAD")
    if paths or not _git(checkout, "rev-parse", "-q", "--verify", "HEAD~1"):
        since = f"since it left {main}" if main else "since the last commit"
        return since, paths
    return "in the last commit", _differing(checkout, "HEAD~1")


def _differing(checkout: Path, base: str) -> list[str]:
    names = _git(checkout, "diff", "--name-only", "--no-renames", "-z", base)
    names += _git(checkout, "ls-files", "--others", "--exclude-standard", "-z")
    return sorted({name for name in names.split("\0") if name})


def _git(checkout: Path, *arguments: str) -> str:
    """What git prints; "" where it fails."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=checkout, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise SystemExit("sluice: make quick needs git, to see what has changed") from None
    return done.stdout if done.returncode == 0 else ""


# --- the command ----------------------------------------------------------------------------------


def report(since: str, paths: Sequence[str], choice: Choice) -> str:
    """What has changed, which tests are run for it and why, and what is left to `make test`."""
    lines = [f"changed {since}: {len(paths)} files"]
    lines += [f"  {path}" for path in paths[:10]]
    lines += [f"  and {len(paths) - 10} more"] if len(paths) > 10 else []
    number = len(choice.paths)
    lines += [f"{number} files of tests, about {choice.seconds:.0f} s of processor time:"]
    for why, tests in choice.chosen.items():
        lines += [f"{why} ({sum(test.seconds for test in tests):.0f} s)"] if tests else []
        lines += _by_folder(tests)
    for what, tests in (
        (f"past {BUDGET_S:.0f} s, left to `make test`", choice.too_long),
        ("browser, documents' commands, C library: left to `make test`", choice.never),
    ):
        lines += [f"{what}: {len(tests)} files"] if tests else []
    return "\n".join(lines)


def _by_folder(tests: Sequence[Candidate]) -> Iterator[str]:
    folders: dict[str, list[str]] = {}
    for test in tests:
        folder, _, name = test.path.rpartition("/")
        folders.setdefault(folder, []).append(name.removesuffix(".py").removeprefix("test_"))
    for folder, names in folders.items():
        yield fill(
            f"  {folder}: {' '.join(names)}",
            width=100,
            subsequent_indent="    ",
            break_on_hyphens=False,
            break_long_words=False,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the choice and run it; give pytest's exit status, 0 where there is nothing to run."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.quick_tests", description="Run the tests nearest to what has changed."
    )
    parser.add_argument("--list", action="store_true", help="print which, run nothing")
    options, of_pytest = parser.parse_known_args(arguments)
    since, paths = changed_paths(CHECKOUT)
    choice = choose(paths, candidates(CHECKOUT))
    print(report(since, paths, choice), flush=True)
    if options.list or not choice.paths:
        return 0
    command = [sys.executable, "-m", "pytest", *of_pytest, *choice.paths]
    return subprocess.run(command, cwd=CHECKOUT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
