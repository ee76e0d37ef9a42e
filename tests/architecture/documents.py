"""Markdown as the tests of the documents read it: sections, tables, blocks of code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "contract",
    "domain",
    "fitting",
    "measuring",
    "solvers",
    "analysis",
    "papers",
    "exports",
    "models",
    "app",
)
_NOT_OURS = {".git", ".venv", "var", "node_modules", "__pycache__"}
_INDENT = "    "
# A block that begins with one of these is for a shell, also where its fence does not say so.
_SHELL_WORDS = (".venv/bin/", "curl ", "make ", "docker ", "cp ", "python")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code: the language that its fence names, its text, and the programs it needs.

    A fence names programs that not every machine has behind its language: `sh needs mpicc.mpich`.
    """

    language: str
    text: str
    programs: tuple[str, ...] = ()

    @classmethod
    def fenced(cls, fence: str, text: str) -> Block:
        """Return the block below this fence."""
        language, _, programs = fence.partition(" needs ")
        return cls(language.strip(), text, tuple(programs.split()))

    @property
    def is_shell(self) -> bool:
        """Whether it holds commands."""
        unnamed = self.language == "" and self.text.startswith(_SHELL_WORDS)
        return self.language in ("sh", "bash", "shell", "console") or unnamed


@dataclass(frozen=True, slots=True)
class Document:
    """One Markdown file."""

    path: Path

    @property
    def name(self) -> str:
        """Its path in the checkout."""
        return str(self.path.relative_to(ROOT))

    @property
    def text(self) -> str:
        """All of it."""
        return self.path.read_text(encoding="utf-8")

    def prose(self) -> str:
        """The text without fenced blocks."""
        return _FENCED.sub("", self.text)

    def headings(self) -> list[str]:
        """Headings without their marks."""
        return re.findall(r"^#+ (.+)$", self.prose(), flags=re.MULTILINE)

    def section(self, heading: str) -> str:
        """The prose below this heading, up to the next one of its level or above."""
        found = re.search(rf"^(#+) {re.escape(heading)}$", self.prose(), flags=re.MULTILINE)
        assert found, f"{self.name} has no heading {heading!r}"
        rest = self.prose()[found.end() :]
        end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, flags=re.MULTILINE)
        return rest[: end.start()] if end else rest

    def rows(self, heading: str) -> list[list[str]]:
        """The cells of the tables below this heading, without their header lines.

        Pipes at both ends of a line may be left out; cells that are missing at its end are empty.
        """
        rows: list[list[str]] = []
        width = 0  # of the table that the line belongs to
        before = ""
        for line in self.section(heading).splitlines():
            if _DELIMITERS.fullmatch(line):
                width = len(_cells(before))
            elif not line.strip():
                width = 0
            elif width:
                cells = _cells(line)
                rows.append(cells + [""] * (width - len(cells)))
            before = line
        return rows

    def blocks(self) -> Iterator[tuple[Block, Block | None]]:
        """Each block of code, with the block right below it: its output, if it has one."""
        pieces = list(_pieces(self.text))
        for here, below in zip(pieces, [*pieces[1:], ""], strict=True):
            if isinstance(here, Block):
                yield here, below if isinstance(below, Block) else None


def _cells(line: str) -> list[str]:
    """The cells of a line of a table."""
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in inner.split("|")]


_DELIMITERS = re.compile(r"\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?")
_FENCED = re.compile(r"^```.*?^```$", flags=re.MULTILINE | re.DOTALL)


def _pieces(text: str) -> Iterator[Block | str]:
    """Blocks and paragraphs in order."""
    lines = iter(text.splitlines())
    prose = indented = ""
    for line in lines:
        if line.startswith("```"):
            yield from _flushed(prose, indented)
            prose = indented = ""
            body = iter(lambda: next(lines), "```")
            yield Block.fenced(line[3:].strip(), "\n".join(body))
        elif line.startswith(_INDENT) and not prose.strip():
            indented += line.removeprefix(_INDENT) + "\n"
        elif line:
            yield from _flushed("", indented)
            prose, indented = prose + line, ""
        else:
            yield from _flushed(prose, indented)
            prose = indented = ""
    yield from _flushed(prose, indented)


def _flushed(prose: str, indented: str) -> Iterator[Block | str]:
    if prose:
        yield prose
    if indented:
        yield Block("", indented.rstrip("\n"))


def documents() -> list[Document]:
    """Every Markdown file of the checkout."""
    paths = [
        path for path in ROOT.rglob("*.md") if not _NOT_OURS & set(path.relative_to(ROOT).parts)
    ]
    return [Document(path) for path in sorted(paths)]


def document(name: str) -> Document:
    """The document at this path."""
    return Document(ROOT / name)


def code_words(text: str) -> set[str]:
    """What stands between backticks."""
    return set(re.findall(r"`([^`\n]+)`", text))


def python_files(*folders: str) -> list[Path]:
    """The Python files below these folders of the checkout."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
