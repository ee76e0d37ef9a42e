"""sluice audit: what an existing setting costs over the optimum, with an exit code for CI."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from app.console.audit_reports import audit_parts
from app.console.commands import finder, store_for, unrequested
from app.console.output import Output
from app.console.progress import counting_line
from app.console.running import run_operation
from app.console.sources import Source, TraceSource, body_of, read_source
from app.schemas.audit_texts import mix_of_text, setting_of_text
from app.settings import Settings
from app.text.names import quoted
from domain.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from analysis.audit import AuditQuestion, AuditScope
    from app.flows.questions import Question

TOO_HIGH = 7  # the exit code where the regret is above --max-regret
MAX_FILE_CHARACTERS = 2**20
_OURS = ("pipeline", "aggregate", "profile", "measurements", "fit_options")
_ASKED = ("least_bytes", "greatest_bytes", "objective", "max_regret", "over", "time_limit_s")


def audit(arguments: argparse.Namespace, output: Output) -> int:
    """Audit, print, and say by the exit code whether the limit is kept."""
    from app.operations.audits import AuditSetting
    from app.schemas.audit import AuditOut
    from app.schemas.base import dump_json

    settings = Settings.from_environment()
    scope, question = _asked(arguments, read_source(arguments.source, settings))
    wanted = _question(scope, question, settings)
    with counting_line(output.err) as show:
        found = run_operation(AuditSetting(wanted, unrequested), settings, show).result
    audited = AuditOut.of(found)
    if output.wants_json:
        output.document(dump_json(audited))
    else:
        output.parts(audit_parts(audited))
    return 0 if found.is_kept else TOO_HIGH


def _asked(arguments: argparse.Namespace, source: Source) -> tuple[AuditScope, Question]:
    """What is audited, and the question that finds or fits its model. Raises InvalidInput."""
    from dataclasses import replace

    from app.flows.questions import Measurement
    from app.schemas.audit import AuditIn
    from app.schemas.base import dump_json, parse_json

    given = {name: value for name, value in body_of(source).items() if name in _OURS}
    asked = {name: getattr(arguments, name) for name in _ASKED}
    body = {
        **given,
        **{name: value for name, value in asked.items() if value is not None},
        "setting": _setting(arguments),
    }
    if arguments.mix is not None:
        body["mix"] = mix_of_text(_text_of(arguments.mix, field="mix"))
    parsed = parse_json(AuditIn, dump_json(body))
    question = parsed.to_question()
    if isinstance(source, TraceSource):
        # The trace goes round the JSON parser: it may be a hundred times longer than any request.
        question = replace(question, source=(Measurement(source.content),))
    return parsed.to_domain(), question


def _question(scope: AuditScope, question: Question, settings: Settings) -> AuditQuestion:
    from app.flows.audit_setting import audit_question
    from app.flows.solve_message import prepare

    cap = settings.max_fragments
    with store_for(question.source, settings) as store:
        prepared = prepare(question, finder(store), fragment_cap=cap)
    return audit_question(prepared, scope, fragment_cap=cap)


def _setting(arguments: argparse.Namespace) -> dict[str, Any]:
    """The `setting` of a request. Raises InvalidInput."""
    if (arguments.setting is None) == (arguments.config is None):
        raise InvalidInput("expected --setting, or --config with --target", field="setting")
    if arguments.setting is not None:
        if arguments.target is not None:
            raise InvalidInput("--target names the syntax of a --config", field="target")
        return setting_of_text(arguments.setting)
    if arguments.target is None:
        raise InvalidInput("expected --target, whose syntax --config has", field="target")
    content = _text_of(arguments.config, field="config")
    return {"configuration": {"target": arguments.target, "content": content}}


def _text_of(name: str, *, field: str) -> str:
    """The text of a file that an option names. Raises NotFound and InvalidInput."""
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
