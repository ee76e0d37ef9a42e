"""sluice model reproduce: the tables and figures of papers, published beside computed, as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command
from domain.errors import InconsistentInput, InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

    from app.ui.terminal import Output
    from papers.items import ItemSpec, Paper

OUTSIDE = 1  # the exit code where a number is outside its tolerance
_ALL = "all"
_FIELD, _NOUN = "output", "the report"


def add_arguments(command: Command) -> None:
    """Add the paper, and what of it."""
    command.argument(
        "paper", metavar="PAPER", help="wang98, yocum97, strumpen94, culler96, karamcheti94 or all"
    )
    command.option("--only", metavar="ITEM", help="one table or figure")
    command.flag("--measure", help="measure strumpen94's figures on this machine")
    command.option("--between", metavar="PLACE", help="there: namespaces, as a/b/10.0.0.2")
    command.option("--output", metavar="DIR", help="folder for CSV, SVG, HTML and JSON")


def run(arguments: Arguments, output: Output) -> int:
    """Compute everything, then write it; exit with 1 where a number is outside its tolerance."""
    import orjson

    from app.console.files import write_set
    from app.console.running import ticking_line
    from app.verbs.reproduce import show
    from app.verbs.reproduce.answer import ReproducedOut

    chosen = _chosen(arguments.paper, arguments.only, _measured(arguments))
    folder = _folder(arguments.output)
    doing = "measuring" if arguments.measure else "computing"
    with ticking_line(output.err, f"{doing} {arguments.paper}"):
        computed = [(paper, [spec.compute() for spec in specs]) for paper, specs in chosen]
    results = [
        row
        for paper, items in computed
        for item in items
        for row in ReproducedOut.from_item(paper.name, item)
    ]
    body = orjson.dumps(results, option=orjson.OPT_INDENT_2) + b"\n"
    if folder is not None:
        write_set(folder, show.files(computed, body), field=_FIELD, noun=_NOUN)
    if output.wants_json:
        output.document(body)
    else:
        output.parts(show.lines(computed))
    return 0 if all(item.ok for _, items in computed for item in items) else OUTSIDE


def _measured(arguments: Arguments) -> tuple[ItemSpec, ...]:
    """What is measured here in place of computed; nothing where that is not asked for."""
    if not arguments.measure:
        if arguments.between is not None:
            raise InconsistentInput("only what is measured has a place", field="between")
        return ()
    if arguments.paper != "strumpen94":
        raise InconsistentInput("only strumpen94 is measured here", field="measure")
    from papers.measured import measured_items

    return measured_items(arguments.between)


def _chosen(
    name: str, only: str | None, measured: tuple[ItemSpec, ...]
) -> list[tuple[Paper, list[ItemSpec]]]:
    from dataclasses import replace

    from app.text.units import quoted
    from papers.registry import PAPERS

    if name != _ALL and name not in PAPERS:
        known = ", ".join((*PAPERS, _ALL))
        raise InvalidInput(f"no paper is named {quoted(name)}; there are {known}", field="paper")
    papers = list(PAPERS.values()) if name == _ALL else [PAPERS[name]]
    if measured:
        papers = [replace(papers[0], items=measured)]
    chosen = [
        (paper, [spec for spec in paper.items if only in (None, spec.name)]) for paper in papers
    ]
    if not any(specs for _, specs in chosen):
        known = ", ".join(spec.name for paper in papers for spec in paper.items)
        raise InvalidInput(
            f"no item is named {quoted(only or '')}; there are {known}", field="only"
        )
    return [(paper, specs) for paper, specs in chosen if specs]


def _folder(name: str | None) -> Path | None:
    from pathlib import Path

    if name is None:
        return None
    folder = Path(name)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as refusal:
        reason = refusal.strerror or "it cannot be made"
        raise InvalidInput(f"the report's folder: {reason}", field=_FIELD) from None
    return folder
