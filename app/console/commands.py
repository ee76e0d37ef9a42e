"""sluice optimize, engine: use cases without a server; targets of exports."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from app.console.files import (
    Source,
    TraceSource,
    body_of,
    check_timeline_file,
    costs_of,
    merged,
    read_sources,
    read_trace,
    said_of_overlap,
    said_of_rows,
    test_in_names,
    write_timeline,
)
from app.console.own_transfers import optimize_transfers, text_of
from app.console.reports import (
    answer_parts,
    fit_summary_parts,
)
from app.console.running import run_operation, solving_line, ticking_line
from app.settings import Settings
from app.telemetry import logging_as
from app.text.units import printable, quoted
from app.ui.terminal import Output, Screen
from domain.errors import InvalidInput, NotFound
from domain.profile import ProfileReference

if TYPE_CHECKING:
    from app.questions.fits import FittedTrace
    from app.questions.question import Question
    from contract.optimize import OptimizeOut
    from domain.profile import ProfileRevision
    from models.session import Store

INTERRUPTED = 130
_NAMES = 1000  # of profiles, among which the one that was meant is looked for


# --- optimize -------------------------------------------------------------------------------------


def optimize(arguments: argparse.Namespace, output: Output) -> int:
    """Solve one question and print its answer."""
    from app.schemas.optimize import read_answer

    if arguments.timeline is not None:
        check_timeline_file(arguments.timeline)
    settings = Settings.from_environment()
    source = read_sources(arguments.sources, settings)
    transfers = text_of(source)
    if transfers is not None:
        return optimize_transfers(transfers, arguments, output)
    question = _question(arguments, source)
    needs_store = is_stored(question.source) or question.save_as is not None
    if needs_store:
        with opened_store(settings) as store:
            body, is_interrupted = _answer(question, settings, output, store=store)
    else:
        body, is_interrupted = _answer(question, settings, output, store=None)
    if output.wants_json:
        output.document(body)
    if not output.wants_json or arguments.timeline is not None:
        _show_answer(read_answer(body), arguments, output)
    if is_interrupted:
        output.note("interrupted; this is the best found so far")
    return INTERRUPTED if is_interrupted else 0


def _show_answer(answer: OptimizeOut, arguments: argparse.Namespace, output: Output) -> None:
    """Print what a person reads of an answer, and draw it into the file that is named."""
    screen, timeline = output.out, arguments.timeline
    if not output.wants_json:
        if answer.fit:
            output.parts([*fit_summary_parts(answer.fit, width=screen.width), ""])
        output.parts(
            answer_parts(
                answer,
                width=screen.width,
                ink=screen.ink,
                with_sensitivities=arguments.sensitivities,
            )
        )
    if timeline is not None:
        write_timeline(timeline, answer)
        if not output.wants_json:
            output.parts([f"timeline written to {printable(timeline)}"])


def _question(arguments: argparse.Namespace, source: Source) -> Question:
    from app.schemas.base import dump_json, parse_json
    from app.schemas.optimize import optimize_question
    from contract.optimize import OptimizeIn

    said = said_of_rows(arguments)
    if said["test"] is None and isinstance(source, TraceSource):
        said["test"] = test_in_names(arguments.sources)
    options = {
        "message_bytes": arguments.bytes,
        "strategy": arguments.strategy,
        "save_as": arguments.save_as,
        "uncertainty": {
            "current": arguments.current,
            "relative": arguments.relative,
            "robust": arguments.robust,
        },
        "fit_options": {**said_of_overlap(arguments), **said},
        **_solving_options(arguments),
    }
    if arguments.transfers is not None:
        options["fit_options"]["where"] = None  # conditions are those of the transfers
        content = read_trace(arguments.transfers, Settings.from_environment())
        text = content.decode("utf-8", errors="replace")
        options["transfers"] = {"content": text, "where": dict(arguments.where or ())}
    body = merged(body_of(source), options)
    _require_size(body)
    question = optimize_question(parse_json(OptimizeIn, dump_json(body)))
    return replace(question, source=costs_of(source, question.source))


def _answer(
    question: Question, settings: Settings, output: Output, *, store: Store | None
) -> tuple[bytes, bool]:
    """Return the answer's document, and whether Ctrl-C ended the search."""
    from app.operations.optimize import Optimize
    from app.questions.optimize import prepare
    from app.questions.source import Stored
    from app.schemas.optimize import render_answer

    with ticking_line(output.err, "fitting"):  # of a trace; nothing else takes long there
        prepared = prepare(question, Stored.of_store(store), fragment_cap=settings.max_fragments)
    operation = Optimize(prepared, unrequested)
    if store is not None:
        with store.reading() as unit:
            stored = operation.stored(unit)
        if stored is not None:
            return stored.document, False
    with solving_line(output.err) as show:
        ran = run_operation(operation, settings, show)
    if store is None:
        return render_answer(operation.answer(ran.result)), ran.is_interrupted
    with store.unit_of_work() as unit:
        return operation.keep(unit, ran.result).document, ran.is_interrupted


# --- shared ---------------------------------------------------------------------------------------


def fit_source(source: TraceSource, settings: Settings, screen: Screen) -> FittedTrace:
    """Return the fit of a trace, as it is made where no options are given."""
    from app.questions.fits import fit_traces
    from app.questions.optimize import sizes_used_for
    from app.questions.question import LoadedTrace
    from models.records import FitRequest

    with ticking_line(screen, "fitting"):
        return fit_traces(
            (LoadedTrace.of(source.content),),
            FitRequest(kinds=(None,)),
            sizes_used=sizes_used_for(None, fragment_cap=settings.max_fragments),
        )


def unrequested(profile: ProfileRevision | None) -> bytes:
    """Return no request: the operation is no job."""
    return b""


@contextmanager
def opened_store(settings: Settings) -> Iterator[Store]:
    """Return the store, up to date and with the papers' profiles in it."""
    from app.questions.profiles import seed_paper_profiles
    from models.records import ChangedBy
    from models.session import create_store

    store = create_store(settings.database_url)
    try:
        store.upgrade()
        seed_paper_profiles(store)
        yield store.of(store.owner, ChangedBy("command line"))
    except NotFound as missing:
        raise _with_nearest(missing, store) from None
    finally:
        store.dispose()


def _with_nearest(missing: NotFound, store: Store) -> NotFound:
    """Return that there is no such profile, with the name that is nearly this one."""
    from app.questions.profiles import list_profiles

    if missing.field != "profile" or missing.subject is None:
        return missing
    names = [one.name for one in list_profiles(store, limit=_NAMES).profiles]
    near = get_close_matches(missing.subject, names, n=1)
    if not near or near[0] == missing.subject:
        return missing
    what = f"{missing.detail} {quoted(missing.subject)}"
    return NotFound(f"{what}; did you mean {near[0]}?", field=missing.field)


def is_stored(source: object) -> bool:
    """Return whether a question's source is in the store: a profile or a fit."""
    from app.questions.question import FitReference

    return isinstance(source, ProfileReference | FitReference)


@contextmanager
def store_for(source: object, settings: Settings) -> Iterator[Store | None]:
    """Return the store where the source is in it; a question about a file opens none."""
    if is_stored(source):
        with opened_store(settings) as store:
            yield store
    else:
        yield None


def _solving_options(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "static_bytes": arguments.static_bytes,
        "allow_refragmentation": arguments.allow_refragmentation,
        "relative_gap": arguments.relative_gap,
        "time_limit_s": arguments.time_limit,
        "constraints": {
            "min_fragment_bytes": arguments.min_fragment_bytes,
            "max_fragment_bytes": arguments.max_fragment_bytes,
            "alignment_bytes": arguments.alignment_bytes,
            "max_fragments": arguments.max_fragments,
        },
    }


def _require_size(body: dict[str, Any]) -> None:
    if body.get("message_bytes") is None:
        raise InvalidInput(
            "expected --bytes, the size of the message, as 4096 or 64KiB", field="message_bytes"
        )


# --- what a cluster is made of --------------------------------------------------------------------


def engine(arguments: argparse.Namespace, output: Output) -> int:
    """Be the scheduler or a worker of a cluster until Ctrl-C or SIGTERM."""
    from app.operations.tasks import SOLVE_WARM_UP, cluster_options
    from solvers.kernels.native import asked, load_library

    settings = Settings.from_environment()
    options = cluster_options(settings)
    from app.execution import node

    def ready(address: str) -> None:
        if output.wants_json:
            output.document(json.dumps({"address": address}).encode())
        else:
            output.parts([f"Sluice's {arguments.verb} is at {address}", "Ctrl-C stops it"])

    with logging_as(settings.log, text_level=logging.INFO):
        if arguments.verb == "scheduler":
            node.run_scheduler(options, ready)
            return 0
        settings = with_workers(settings, arguments)
        load_library(asked())
        node.run_worker(
            options,
            ready,
            slots=settings.worker_count,
            warm_up=SOLVE_WARM_UP,
            drain_s=settings.work_drain_s,
        )
    return 0


def with_workers(settings: Settings, arguments: argparse.Namespace) -> Settings:
    """Return the settings with as many workers as a command says. Raises InvalidInput."""
    if arguments.workers is None:
        return settings
    if not 0 <= arguments.workers <= 1024:
        rule = "expected 0 <= workers <= 1024 (0: one fewer than cores)"
        raise InvalidInput(rule, field="workers")
    return replace(settings, workers=arguments.workers)
