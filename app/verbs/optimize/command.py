"""sluice optimize: what only a terminal has: sources, own transfers, a picture in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.console.argument_parts import condition
from app.ui.grammar import Arguments, Command
from app.ui.options import (
    add_items,
    add_most_items,
    add_words,
    body_of_options,
    says_items,
    with_most_items,
)
from contract.declare import words_of
from contract.optimize import OptimizeIn
from domain.errors import InconsistentInput, InvalidInput, ItemsDeclined
from domain.pipeline import stage_name
from domain.units import parse_bytes

if TYPE_CHECKING:
    from app.console.files import Source
    from app.questions.source import Source as CostSource
    from app.settings import Settings
    from app.ui.terminal import Output
    from contract.optimize import OptimizeOut
    from models.session import Store

# The conditions of rows are given one by one, and are those of the transfers where there are any.
_WHERE = ("fit_options", "where")
WORDS = tuple(
    word
    for word in words_of(OptimizeIn)
    if word.place[0] != "transfers" and word.place != _WHERE and word.option
)
_FIRST = ("message_bytes", "strategy", "save_as", "uncertainty")  # what most questions say
# What is said of own transfers alone, too; the other words are of a model.
_OF_TRANSFERS = (("message_bytes",), ("uncertainty", "current"))
_OF_MODELS = {
    **{
        name: name
        for name in (
            *("transfers", "memory", "timeline", "sensitivities"),
            *("items", "fill", "first_bytes", "target", "option"),
        )
    },
    **{
        word.option[2:].replace("-", "_"): "_".join(word.place)
        for word in WORDS
        if word.place not in _OF_TRANSFERS and word.place[0] != "fit_options"
    },
}


def add_arguments(command: Command) -> None:
    """Add the words of the request, and those of a terminal alone."""
    command.argument(
        "sources",
        takes_several=True,
        metavar="SOURCE",
        help="file, own transfers too, - or profile; or several files of one path, as its "
        "latencies and bandwidths",
    )
    add_words(command, [word for word in WORDS if word.place[0] in _FIRST])
    command.option(
        "--transfers", metavar="FILE", help="own transfers of this message, which decide"
    )
    command.option(
        "--memory",
        read=parse_bytes,
        metavar="SIZE",
        help="so many bytes at most between the first stage and the last: a window over all of "
        "them",
    )
    add_items(command)
    add_most_items(command)
    command.option(
        "--target",
        metavar="NAME",
        help="with items: write it for torch, megatron, lmcache, slime, verl or vllm, and no more",
    )
    command.option(
        "--option",
        read=condition,
        is_repeated=True,
        metavar="NAME=VALUE",
        help="with --target: an option of it, as form=cap; may be repeated",
    )
    command.option("--timeline", metavar="FILE", help="draw the schedule into this SVG file")
    command.flag("--sensitivities", help="say how the latency moves with the costs of each stage")
    add_words(command, [word for word in WORDS if word.place[0] not in _FIRST])
    command.option(
        "--where",
        read=condition,
        is_repeated=True,
        metavar="NAME=VALUE",
        help="of a file of several conditions: those rows, as connections=1; may be repeated",
    )


def run(arguments: Arguments, output: Output) -> int:
    """Solve one question, print its answer, and return the exit code."""
    from app.console.commands import opened_store
    from app.console.files import check_timeline_file, costs_of, read_sources
    from app.errors import INTERRUPTED
    from app.questions.source import is_stored
    from app.schemas.answers import read_answer
    from app.schemas.source import source_of
    from app.settings import Settings

    if arguments.timeline is not None:
        check_timeline_file(arguments.timeline)
    if arguments.target is not None and output.wants_json:
        raise InconsistentInput(
            "what --target writes is text: expected --json without it", field="target"
        )
    settings = Settings.from_environment()
    source = read_sources(arguments.sources, settings)
    transfers = _own_transfers(source)
    if transfers is not None:
        return _decide(transfers, arguments, output)
    asked = asked_of(arguments, source, settings)
    costs = costs_of(source, source_of(asked))
    needs_store = is_stored(costs) or asked.save_as is not None
    if needs_store:
        with opened_store(settings) as store:
            body, is_interrupted = _answer(asked, costs, settings, output, store=store)
    else:
        body, is_interrupted = _answer(asked, costs, settings, output, store=None)
    if output.wants_json:
        output.document(body)
    if arguments.target is not None:
        _write_setting(read_answer(body, items=True), arguments, output)
    elif not output.wants_json or arguments.timeline is not None:
        _show_answer(
            read_answer(body, items=True), arguments, output, fragment_cap=settings.max_fragments
        )
    if is_interrupted:
        output.note("interrupted; this is the best found so far")
    return INTERRUPTED if is_interrupted else 0


def asked_of(arguments: Arguments, source: Source, settings: Settings) -> OptimizeIn:
    """Return the request of a source and of the options, which win. Raises InvalidInput."""
    from app.console.files import TraceSource, body_of, merged, test_in_names
    from app.schemas.base import dump_json, parse_json

    options = _options_of(arguments, settings)
    if isinstance(source, TraceSource) and (test := test_in_names(arguments.sources)):
        options.setdefault("fit_options", {}).setdefault("test", test)
    body = merged(body_of(source), options)
    if says_items(arguments):
        from app.console.items import items_of

        body = _with(items_of(arguments, settings, with_errors=True), body)
        if arguments.message_bytes is None:
            body.pop("message_bytes", None)
    body = with_most_items(body, arguments)
    if body.get("items") is not None:
        _check_beside_items(arguments)
    if arguments.target is not None or arguments.option is not None:
        _fill_for_target(body, arguments)
    if arguments.memory is not None:
        body["pipeline"] = _within_memory(body, arguments.memory)
    if body.get("message_bytes") is None and body.get("items") is None:
        raise InvalidInput(
            "expected --bytes, the size of the message, as 4096 or 64KiB", field="message_bytes"
        )
    return parse_json(OptimizeIn, dump_json(body))


def _with(found: Mapping[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Return a request with what was found of its items; options win about how sure it is."""
    known = {**found.get("uncertainty", {}), **(body.get("uncertainty") or {})}
    return {**body, **found, **({"uncertainty": known} if known else {})}


def _fill_for_target(body: dict[str, Any], arguments: Arguments) -> None:
    """Have items filled by the rule of the target, where none is given. Raises InvalidInput for
    what is no target or option of it, and InconsistentInput without items.
    """
    from app.schemas.item_settings import chosen_target

    if arguments.target is None:
        raise InconsistentInput("--option is of a --target", field="option")
    target, options = chosen_target(arguments.target, dict(arguments.option or ()))
    if body.get("items") is None:
        raise InconsistentInput(
            "--target is given a cut between items: expected --items, or for a message that may be "
            "cut at any byte: sluice export",
            field="target",
        )
    rule = target.rule(options)
    if rule is not None:
        body.setdefault("fill", {"rule": rule.value})


def _write_setting(answer: OptimizeOut, arguments: Arguments, output: Output) -> None:
    """Print what the target is given, and nothing else."""
    from app.schemas.item_settings import item_setting

    setting = item_setting(answer, arguments.target, dict(arguments.option or ()))
    output.out.stream.write(setting.text)
    output.out.stream.flush()


def _check_beside_items(arguments: Arguments) -> None:
    """Raise ItemsDeclined for what only a terminal has, and items cannot have."""
    rules = {
        "timeline": "a timeline needs a message that may be cut at any byte",
        "sensitivities": "of items it is not known how the latency moves with the costs",
    }
    for name, rule in rules.items():
        if getattr(arguments, name) not in (None, False):
            raise ItemsDeclined(f"{name} does not go with items: {rule}", field=name)


def _within_memory(body: Mapping[str, Any], memory_bytes: int) -> dict[str, Any]:
    """Return the pipeline of a request with a window of so many bytes over all its stages. Raises
    InconsistentInput for other costs, and for stages without names of their own.
    """
    pipeline = body.get("pipeline")
    stages = pipeline.get("stages") if isinstance(pipeline, dict) else None
    if not isinstance(pipeline, dict) or not isinstance(stages, list) or not stages:
        raise InconsistentInput(
            "expected stages beside --memory, which is a window over them: a file with a pipeline",
            field="memory",
        )
    names = [stage.get("name") if isinstance(stage, dict) else None for stage in stages]
    names = [name or stage_name(number) for number, name in enumerate(names, start=1)]
    window = {"from": names[0], "to": names[-1], "bytes": memory_bytes}
    return {**pipeline, "windows": [*(pipeline.get("windows") or ()), window]}


def _options_of(arguments: Arguments, settings: Settings) -> dict[str, Any]:
    from app.console.files import read_trace

    options = body_of_options(WORDS, arguments)
    conditions = arguments.where or ()
    if arguments.transfers is not None:
        text = read_trace(arguments.transfers, settings).decode("utf-8", errors="replace")
        options["transfers"] = {"content": text, "where": dict(conditions)}
    elif conditions:
        options.setdefault("fit_options", {})["where"] = ",".join(map("=".join, conditions))
    return options


def _answer(
    asked: OptimizeIn,
    costs: CostSource,
    settings: Settings,
    output: Output,
    *,
    store: Store | None,
) -> tuple[bytes, bool]:
    """Return the answer's document, and whether Ctrl-C ended the search."""
    from app.console.running import OperationRun, run_operation, solving_line, ticking_line
    from app.questions.source import Stored
    from app.schemas.base import dump_json
    from app.verbs.optimize.operation import operation

    with ticking_line(output.err, "fitting"):  # of a trace; nothing else takes long there
        prepared = operation(asked, Stored.of_store(store), settings, costs)
    if store is not None:
        with store.reading() as unit:
            stored = prepared.stored(unit)
        if stored is not None:
            return stored.document, False
    with solving_line(output.err) as show:
        ran: OperationRun[Any] = run_operation(prepared, settings, show)
    if store is None:
        return dump_json(prepared.document(ran.result)), ran.is_interrupted
    with store.unit_of_work() as unit:
        return prepared.keep(unit, ran.result).document, ran.is_interrupted


def _show_answer(
    answer: OptimizeOut, arguments: Arguments, output: Output, *, fragment_cap: int
) -> None:
    """Print what a person reads of an answer, and draw it into the file that is named."""
    from app.console.files import write_timeline
    from app.text.units import printable
    from app.ui.fit_parts import fit_summary_parts
    from app.verbs.optimize.show import count_parts, parts

    timeline = arguments.timeline
    if not output.wants_json:
        if answer.fit:
            output.parts([*fit_summary_parts(answer.fit, width=output.out.width), ""])
        output.parts(
            parts(
                answer,
                with_sensitivities=arguments.sensitivities,
                by_count=tuple(count_parts(answer, fragment_cap=fragment_cap)),
            )
        )
    if timeline is not None:
        write_timeline(timeline, answer)
        if not output.wants_json:
            output.parts([f"timeline written to {printable(timeline)}"])


# --- own transfers alone --------------------------------------------------------------------------


def _own_transfers(source: Source) -> str | None:
    """Return the text of a file of own transfers, None for another source."""
    from app.console.files import TraceSource, is_of_own_transfers

    if not isinstance(source, TraceSource) or not is_of_own_transfers(source):
        return None
    return source.content.decode("utf-8", errors="replace")


def _decide(text: str, arguments: Arguments, output: Output) -> int:
    """Decide by the transfers in this text, and print that. Raises InconsistentInput for what is
    asked of models.
    """
    from app.console.own_transfers import show_decided
    from app.questions.transfers import TransfersQuestion, decide

    for name, dest in _OF_MODELS.items():
        if getattr(arguments, dest) not in (None, False):
            raise InconsistentInput(
                "this is of a model of stages: own transfers decide among the sizes that were "
                "transferred",
                field=name,
            )
    current = arguments.uncertainty_current
    question = TransfersQuestion(
        text,
        arguments.message_bytes,
        current["repeat"] if isinstance(current, dict) else None,
        current == "whole",
        tuple(arguments.where or ()),
    )
    return show_decided(decide(question), output)
