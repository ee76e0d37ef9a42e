"""sluice simulate: a cut of options, its run printed, and drawn into a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.text.units import parse_counts, parse_size_or_whole
from app.ui.grammar import Arguments, Command
from app.ui.options import add_items, add_words, body_of_options
from contract.declare import words_of
from contract.simulate import SimulateIn
from domain.errors import InconsistentInput, InvalidInput, ItemsDeclined
from domain.units import parse_bytes

if TYPE_CHECKING:
    from app.questions.simulate import Cut, PricedCut, Simulation
    from app.settings import Settings
    from app.ui.terminal import Output
    from contract.simulate import ItemsRunOut

_OF_BYTES = ("message_bytes", "fragment_bytes", "levels", "delivery")
OVERLAP = words_of(SimulateIn, ("fit_options",))


def add_arguments(command: Command) -> None:
    """Add the words of the request, and those of a terminal alone."""
    command.argument("source", metavar="SOURCE", help="file, - or profile")
    add_words(command, words_of(SimulateIn, ("message_bytes",)))
    command.option(
        "--repeat", read=parse_size_or_whole, metavar="SIZE", help="cut it by this size, or whole"
    )
    add_words(command, words_of(SimulateIn, ("fragment_bytes", "fit_options")))
    add_items(command)
    command.option(
        "--cut", read=parse_counts, metavar="ENDS", help="with --items: up to which, as 2,5"
    )
    command.option(
        "--cap", read=parse_bytes, metavar="SIZE", help="with --items: what this cap gives"
    )
    command.option("--timeline", metavar="FILE", help="draw the schedule into this SVG file")


def run(arguments: Arguments, output: Output) -> int:
    """Run a cut that is given, print what it takes, and draw it where that is asked for."""
    from app.console.commands import store_for
    from app.console.files import check_timeline_file, costs_of, read_source, request_of
    from app.questions.items import run_items
    from app.questions.simulate import model_of, run_on, said_by
    from app.questions.source import Stored
    from app.schemas.source import options_of, source_of
    from app.settings import Settings
    from app.verbs.simulate.answer import sent_items
    from app.verbs.simulate.request import items_cut

    if arguments.timeline is not None:
        check_timeline_file(arguments.timeline)
    settings = Settings.from_environment()
    source = read_source(arguments.source, settings)
    options = body_of_options(OVERLAP, arguments)
    options |= {"cut": arguments.cut, "cap_bytes": arguments.cap}
    asked = request_of(
        SimulateIn, source, options, complete=lambda body: _with_items(body, arguments, settings)
    )
    costs = costs_of(source, source_of(asked))
    between = items_cut(asked)
    if between is not None:
        with store_for(costs, settings) as store:
            ran = run_items(Stored.of_store(store), costs, options_of(asked), between)
        _show_items(sent_items(ran), output)
        return 0
    with store_for(costs, settings) as store:
        found = model_of(costs, options_of(asked), Stored.of_store(store))
    cut = _given_cut(arguments, asked, len(found.model.stages or (found.model,)))
    show_run(said_by(run_on(found.model, cut), found), cut, arguments.timeline, output)
    return 0


def _with_items(body: dict[str, Any], arguments: Arguments, settings: Settings) -> dict[str, Any]:
    """Return a body with the items of options. Raises ItemsDeclined for options that cut at any
    byte.
    """
    from app.console.items import items_of

    found = items_of(arguments, settings)
    if "items" in found:
        body = {name: value for name, value in body.items() if name not in _OF_BYTES}
    body |= found
    if body.get("items") is None:
        return body
    for name in ("message_bytes", "repeat", "fragment_bytes", "timeline"):
        if getattr(arguments, name) is not None:
            raise ItemsDeclined(
                "this is of a message that may be cut at any byte, and items are given: --cut or "
                "--cap cuts them",
                field=name,
            )
    return body


def _show_items(found: ItemsRunOut, output: Output) -> None:
    """Print a run of a cut between items."""
    from app.schemas.base import dump_json
    from app.verbs.simulate.show import items_parts

    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(items_parts(found))


def _given_cut(arguments: Arguments, asked: SimulateIn, stages: int) -> Cut:
    """Return the cut of the options, or else of the request. Raises InvalidInput."""
    from app.questions.simulate import Cut
    from app.verbs.simulate.request import cut_of
    from contract.limits import MAX_SIMULATED

    if arguments.fragment_bytes is not None:
        if arguments.repeat is not None:
            raise InconsistentInput("--fragments has every size already", field="repeat")
        return Cut((tuple(arguments.fragment_bytes),), is_nested=False)
    if arguments.repeat is None:
        if (asked.fragment_bytes, asked.levels, asked.delivery) == (None, None, None):
            raise InvalidInput(
                "expected --repeat, as 64KiB or whole, or --fragments", field="repeat"
            )
        return cut_of(asked)
    given = arguments.message_bytes
    message_bytes = asked.message_bytes if given is None else given
    if message_bytes is None:
        raise InvalidInput(
            "expected --bytes, the size of the message, as 4096 or 64KiB", field="message_bytes"
        )
    repeated = message_bytes if arguments.repeat == "whole" else arguments.repeat["repeat"]
    if repeated < 1 or message_bytes < 1:
        raise InvalidInput("expected sizes of 1 byte and more", field="repeat")
    count = -(-message_bytes // repeated)
    if count * stages > MAX_SIMULATED:
        raise InvalidInput(
            f"expected at most {MAX_SIMULATED} fragments times stages, got {count * stages}",
            field="repeat",
        )
    sizes = (repeated,) * (count - 1) + (message_bytes - repeated * (count - 1),)
    return Cut((sizes,), is_nested=False)


def show_run(
    simulation: Simulation | PricedCut, cut: Cut, timeline: str | None, output: Output
) -> None:
    """Print a run, and draw it into the file that is named."""
    from app.console.files import write_timeline_svg
    from app.questions.simulate import draw
    from app.schemas.base import dump_json
    from app.verbs.simulate.answer import sent
    from app.verbs.simulate.show import parts

    picture = None if timeline is None else draw(simulation, cut)
    found = sent(simulation)
    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(parts(found, cut))
    if timeline is not None and picture is not None:
        write_timeline_svg(timeline, picture, output)
