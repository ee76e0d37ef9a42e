"""sluice compose: what only a terminal has: stages by the names of files, a picture in a file."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.ui.options import add_words, body_of_options
from contract.compose import ComposedStageIn, ComposeIn
from contract.declare import words_of
from contract.fit import KIND_HELP, KINDS
from contract.measurements import MeasurementIn
from domain.errors import InvalidInput

if TYPE_CHECKING:
    from app.ui.terminal import Output

WORDS = words_of(ComposeIn)
OF_STAGES = words_of(ComposedStageIn)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the words of the request and of its stages, and those of a terminal alone."""
    add_words(parser, OF_STAGES, required=("--stage",))
    kinds = [kind for kind, _ in KINDS]
    parser.add_argument("--kind", choices=kinds, metavar="KIND", help=KIND_HELP)
    add_words(parser, WORDS)
    parser.add_argument("--plot", metavar="OUT", help="draw the fit into this SVG file")


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Fit every stage to its own files, and store, draw and print the pipeline of all."""
    from app.console.fit import NamedFile, check_targets, fit_together
    from app.settings import Settings
    from app.verbs.compose.request import composed_options
    from domain.measurement import TraceKind
    from models.records import FitRequest

    asked, names = asked_of(arguments)
    kind = None if arguments.kind is None else TraceKind(arguments.kind)
    request = FitRequest(composed_options(asked), kinds=(kind,))
    check_targets(arguments, names)
    files = tuple(NamedFile(name, is_named=True) for name in names)
    return fit_together(files, arguments, request, Settings.from_environment(), output)


def asked_of(arguments: argparse.Namespace) -> tuple[ComposeIn, tuple[str, ...]]:
    """Return the request, without what is in the files, and the names of these, those of the first
    stage first. Raises InvalidInput.
    """
    from app.schemas.fit_requests import parse_excluded

    named = [_named(text, "stage") for text in arguments.measurements]
    said = _said_of_stages(arguments, [name for name, _ in named])
    stages = [
        ComposedStageIn(
            name=name,
            measurements=[MeasurementIn(content="") for _ in files],
            **{field: given[name] for field, given in said.items() if name in given},
        )
        for name, files in named
    ]
    body = body_of_options(WORDS, arguments)
    body["excluded"] = tuple(map(parse_excluded, body.get("excluded", ())))
    return ComposeIn(stages=stages, **body), tuple(file for _, files in named for file in files)


def _said_of_stages(
    arguments: argparse.Namespace, names: Sequence[str]
) -> Mapping[str, Mapping[str, Any]]:
    """Return what the options say by field, and there by stage. Raises InvalidInput."""

    def given(field: str) -> list[tuple[str, tuple[str, ...]]]:
        return [_named(text, field) for text in getattr(arguments, field) or ()]

    said: dict[str, Mapping[str, Any]] = {
        field: {name: ",".join(words) for name, words in given(field)}
        for field in ("step", "columns", "test", "run", "where")
    }
    said["processor"] = {stage: name for name, stages in given("processor") for stage in stages}
    for field, by_stage in said.items():
        unknown = next((name for name in by_stage if name not in names), None)
        if unknown is not None:
            raise InvalidInput(
                f"there is no stage {unknown}; expected one of {', '.join(names)}", field=field
            )
    return {**said, "run": {name: _run(text) for name, text in said["run"].items()}}


def _named(text: str, field: str) -> tuple[str, tuple[str, ...]]:
    """Return a name and what is of it, of `name=one,other`. Raises InvalidInput naming `field`."""
    name, _, rest = text.partition("=")
    words = tuple(rest.split(","))
    if not name or not all(words):
        raise InvalidInput("expected name=one or name=one,other", field=field)
    return name, words


def _run(text: str) -> int:
    """Return the number of a run. Raises InvalidInput."""
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise InvalidInput("expected the number of a run, as NAME=2", field="run")
    return int(text)
