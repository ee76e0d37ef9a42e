"""sluice audit: what an existing setting costs over the optimum, as a person reads it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from app.console.commands import INTERRUPTED, store_for, unrequested
from app.console.files import (
    Source,
    TraceSource,
    body_of,
    merged,
    read_source,
    said_of_overlap,
    said_of_rows,
)
from app.console.running import counting_line, run_operation
from app.settings import Settings
from app.text.numbers import (
    format_count,
    format_percent,
    format_probability,
    format_proven_regret,
    format_regret,
    format_regret_span,
    format_step_size,
)
from app.text.regrets import REGRET_OF, format_advised_regret, format_averages
from app.text.units import (
    PROVEN_BOUND,
    format_time,
    parse_setting,
    parse_workload,
    printable,
    quoted,
)
from app.ui.notices import failures, noted, others
from app.ui.parts import Column, Facts, Grid, Part
from app.ui.terminal import Output
from domain.errors import InvalidInput, NotFound
from domain.units import format_bytes

if TYPE_CHECKING:
    from analysis.audit import AuditQuestion, AuditScope
    from app.questions.question import Question
    from contract.audit import AuditOut, AuditRowOut, PricedOut, SpanOut
    from contract.setting import SettingStepOut


_MAX_STEPS = 4


def audit_parts(audit: AuditOut) -> Iterator[Part]:
    """Yield the regret over the workload, the verdict, regrets at powers of two, and advice."""
    from app.schemas.audit import title_of_changes

    setting = audit.setting
    yield from failures(audit.warnings)
    yield f"{_format_steps(setting.steps)}{_of(audit)}"
    yield ""
    if audit.uncertainty:
        yield printable(audit.uncertainty.sentence)
        yield ""
    yield Facts(tuple(_facts(audit)))
    yield ""
    yield "By message size:"
    yield _powers(audit.at_powers)
    yield ""
    yield f"{title_of_changes(audit)}:"
    yield from (f"- {printable(change)}" for change in audit.changes)
    yield ""
    yield from noted(others(audit.warnings))
    if audit.fit_warnings:
        yield f"note: the fit has {len(audit.fit_warnings)} warnings; sluice fit tells them"


def _facts(audit: AuditOut) -> Iterator[tuple[str, str]]:
    setting = audit.setting
    worst = setting.worst
    if setting.time is not None:
        yield "total time", f"{_span(setting.time)} over the best, of {audit.workload.words}"
    yield "mean regret", _span(setting.mean)
    at = f"at {format_bytes(worst.message_bytes)}, of {audit.worst_of} sizes"
    yield "worst regret", f"{_span(setting.worst_span)}, {at}"
    yield "best size", _priced(audit.best_size)
    if audit.best_size_steps:
        yield "best size steps", _priced(audit.best_size_steps)
    if audit.best_repeats is not None:
        yield "size by lookup", format_averages(audit.best_repeats_time, audit.repeats_span)
    if known := audit.uncertainty:
        regret = known.settings[0].regret
        figures = f"mean {format_regret(regret.mean)}, at most {format_regret(regret.p95)} in 95 %"
        yield f"in {known.draws} draws", f"{figures}, over the best repeated sizes"
    if audit.verdict:
        yield "verdict", _verdict(audit)
    if known and audit.in_draws is not None:
        kept = format_probability(known.settings[0].kept or 0.0)
        yield "in draws", f"kept {kept}, asked for {format_percent(audit.in_draws)} of them"


def _verdict(audit: AuditOut) -> str:
    of = f"the {REGRET_OF[audit.objective]}"
    limit = f"{'within' if audit.is_kept else 'over'} {format_percent(audit.max_regret or 0.0)}"
    if audit.verdict != "between":
        return f"{limit}: {of}"
    rule = {"best": "the best schedule found", "bound": f"the {PROVEN_BOUND}"}[audit.over]
    return f"{limit}, by {rule}, which decides: {of}"


def _powers(rows: Sequence[AuditRowOut]) -> Grid:
    columns = tuple(
        Column(heading)
        for heading in ("message", "fragments", "takes", "best", "at least", "at most")
    )
    return Grid(columns, tuple(map(_row, rows)))


def _row(row: AuditRowOut) -> tuple[str, ...]:
    return (
        format_bytes(row.message_bytes),
        format_count(row.fragments),
        format_time(row.latency_us),
        format_time(row.best_us),
        format_regret(row.regret.at_least),
        format_proven_regret(row.regret.at_most, row.regret.at_least),
    )


def _priced(priced: PricedOut) -> str:
    averages = format_averages(priced.time, priced.mean)
    worst = format_advised_regret(priced.worst_span.at_least, priced.worst_span.at_most)
    return f"{_format_steps(priced.steps)}: {averages}, worst {worst}"


def _format_steps(steps: Sequence[SettingStepOut]) -> str:
    if len(steps) == 1:
        return format_step_size(steps[0].size_bytes)
    shown = [
        f"from {format_bytes(step.from_bytes)} {format_step_size(step.size_bytes)}"
        for step in steps[:_MAX_STEPS]
    ]
    more = len(steps) - len(shown)
    return ", ".join(shown) + (f" and {more} more steps" if more else "")


def _of(audit: AuditOut) -> str:
    return f", profile {audit.profile.reference}" if audit.profile else ""


def _span(span: SpanOut) -> str:
    return format_regret_span(span.at_least, span.at_most)


# --- the command ----------------------------------------------------------------------------------


TOO_HIGH = 7  # the exit code where the regret is above --max-regret
MAX_FILE_CHARACTERS = 2**20
_ASKED = (
    "min_message_bytes",
    "max_message_bytes",
    "objective",
    "max_regret",
    "in_draws",
    "over",
    "time_limit_s",
)


def audit(arguments: argparse.Namespace, output: Output) -> int:
    """Audit, print, and return the exit code, which shows whether the limit is kept."""
    from app.operations.compare import AuditSetting
    from app.schemas.audit import audit_out
    from app.schemas.base import dump_json

    settings = Settings.from_environment()
    scope, question = _asked(arguments, read_source(arguments.source, settings))
    wanted = _question(scope, question, settings)
    with counting_line(output.err) as show:
        ran = run_operation(AuditSetting(wanted, unrequested), settings, show)
    found = ran.result
    audited = audit_out(found)
    if output.wants_json:
        output.document(dump_json(audited))
    else:
        output.parts(audit_parts(audited))
    if ran.is_interrupted:
        output.note("interrupted; this is by what was solved so far")
        return INTERRUPTED
    return 0 if found.is_kept else TOO_HIGH


def _asked(arguments: argparse.Namespace, source: Source) -> tuple[AuditScope, Question]:
    """Return what to audit, and the question that finds or fits its model. Raises InvalidInput."""
    from dataclasses import replace

    from app.questions.question import Measurement
    from app.schemas.audit import audit_question_of, audit_scope
    from app.schemas.base import dump_json, parse_json
    from contract.audit import AuditIn
    from contract.source import SOURCE_FIELDS

    ours = (*SOURCE_FIELDS, "uncertainty")
    given = {name: value for name, value in body_of(source).items() if name in ours}
    asked = {name: getattr(arguments, name) for name in _ASKED}
    options = {
        **asked,
        "uncertainty": {"relative": arguments.relative},
        "fit_options": {**said_of_overlap(arguments), **said_of_rows(arguments)},
        "setting": _setting(arguments),
    }
    body = merged(given, options)
    if arguments.workload is not None:
        body["workload"] = parse_workload(text_of(arguments.workload, field="workload"))
    parsed = parse_json(AuditIn, dump_json(body))
    question = audit_question_of(parsed)
    if isinstance(source, TraceSource):
        # The trace goes round the JSON parser: it may be a hundred times longer than any request.
        question = replace(question, source=(Measurement(source.content),))
    return audit_scope(parsed), question


def _question(scope: AuditScope, question: Question, settings: Settings) -> AuditQuestion:
    from app.questions.optimize import prepare
    from app.questions.settings import audit_question
    from app.questions.source import Stored

    cap = settings.max_fragments
    with store_for(question.source, settings) as store:
        prepared = prepare(question, Stored.of_store(store), fragment_cap=cap)
    return audit_question(prepared, scope, fragment_cap=cap)


def _setting(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the `setting` of a request. Raises InvalidInput."""
    if (arguments.setting is None) == (arguments.config is None):
        raise InvalidInput("expected --setting, or --config with --target", field="setting")
    if arguments.setting is not None:
        if arguments.target is not None:
            raise InvalidInput("--target names the syntax of a --config", field="target")
        return parse_setting(arguments.setting)
    if arguments.target is None:
        raise InvalidInput("expected --target, whose syntax --config has", field="target")
    content = text_of(arguments.config, field="config")
    return {"configuration": {"target": arguments.target, "content": content}}


def text_of(name: str, *, field: str) -> str:
    """Return the text of a file that an option names. Raises NotFound and InvalidInput."""
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read(MAX_FILE_CHARACTERS + 1)
    except FileNotFoundError:
        raise NotFound(f"there is no file {quoted(name)}", field=field) from None
    except OSError as refusal:
        reason = refusal.strerror or "it cannot be read"
        raise InvalidInput(f"{quoted(name)}: {reason}", field=field) from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{quoted(name)} is no text in UTF-8", field=field) from None
    if len(text) > MAX_FILE_CHARACTERS:
        raise InvalidInput(f"expected at most {MAX_FILE_CHARACTERS} characters", field=field)
    return text
