"""A proof is of a model, never of a machine: whoever reads of one reads that with it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.documents import ROOT, python_files

CLAIMS = re.compile(r"\b(proven|proofs?|proves?|optimal|optimum|certified|guarantee[sd]?)\b", re.I)
OF_MODEL = re.compile(
    r"\b(of|for)\s+(this|its|their|each|the|these)\s+(model|stages)\b|OF_MODEL|PROVEN_BOUND|NOT_OF_MACHINE"
)
SERVED = ("app/schemas", "app/api")  # docstrings there are descriptions of the interface
PACKAGES = ("app", "exports", "analysis", "solvers", "domain", "fitting", "measuring")
DOCUMENTS = (
    "README.md",
    *(
        f"docs/{name}.md"
        for name in ("audit", "c-library", "cli", "exports", "python-client", "service", "web")
    ),
)


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Strings of a source file, the parts of one together; docstrings where they are served."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    is_served = str(path.relative_to(ROOT)).startswith(SERVED)
    inside: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and not is_served:
            inside.add(node.value)
        if isinstance(node, ast.JoinedStr):
            inside.update(ast.walk(node))
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            yield node.lineno, node.value


def _said(text: str) -> bool:
    """Whether a text that claims something says of what; a code or a name claims nothing."""
    is_code = re.fullmatch(r"[\w/.:-]+", text) is not None
    return is_code or CLAIMS.search(text) is None or OF_MODEL.search(text) is not None


def test_every_text_says_what_a_proof_is_of() -> None:
    """In the sources' strings, those that the interface serves as descriptions included."""
    unsaid = [
        f"{path.relative_to(ROOT)}:{line}: {text[:100]}"
        for path in python_files(*PACKAGES)
        for line, text in _texts(path)
        if not _said(text)
    ]
    assert unsaid == []


def test_every_template_says_what_a_proof_is_of() -> None:
    """Each piece of text between two tags, or in an attribute."""
    unsaid = []
    for path in sorted((ROOT / "app").rglob("*.html")):
        page = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}", " ", path.read_text(), flags=re.DOTALL)
        pieces = [*re.findall(r">([^<>]+)", page), *re.findall(r'="([^"]*)"', page)]
        pieces = [piece.strip() for piece in pieces if " " in piece.strip()]
        unsaid += [f"{path.name}: {piece[:100]}" for piece in pieces if not _said(piece)]
    assert unsaid == []


def test_every_script_says_what_a_proof_is_of() -> None:
    """The strings of the page's own scripts."""
    unsaid = []
    for path in sorted((ROOT / "app/ui/assets").glob("*.js")):
        if path.name.endswith((".min.js", "-bundle.js")):
            continue
        for text in re.findall(r'"([^"\n]*)"|`([^`]*)`', path.read_text()):
            piece = "".join(text)
            if " " in piece and not _said(piece):
                unsaid.append(f"{path.name}: {piece[:100]}")
    assert unsaid == []


def test_documents_say_what_a_proof_is_of() -> None:
    """Each that speaks of proofs does, at least once."""
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS}
    assert [name for name, text in texts.items() if not _said(text)] == []
