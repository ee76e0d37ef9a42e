"""sluice audit: what an existing setting costs over the optimum, as a person reads it; and sluice
apply: what a setting does to the programs of the library that is installed here.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.console.commands import INTERRUPTED, finder, fit_finder, store_for, unrequested
from app.console.files import (
    Source,
    TraceSource,
    body_of,
    check_target,
    merged,
    read_source,
    write_whole,
)
from app.console.running import counting_line, erased_line, run_operation
from app.console.screen import (
    Column,
    Facts,
    Grid,
    Output,
    Part,
    failure_lines,
    others,
    warning_parts,
)
from app.settings import Settings
from app.text.notices import format_advised_regret
from app.text.numbers import (
    format_count,
    format_percent,
    format_probability,
    format_proven_regret,
    format_regret,
    format_regret_span,
    format_step_size,
)
from app.text.units import (
    PROVEN_BOUND,
    format_time,
    parse_setting,
    parse_workload,
    printable,
    quoted,
)
from domain.errors import InvalidInput, NotFound, StrategyDeclined
from domain.units import format_bytes
from measuring.mpi import Mpi
from measuring.trials import Checked, Compared, Installed, Outcome, Trial, TrialPlan, check

if TYPE_CHECKING:
    from analysis.audit import AuditQuestion, AuditScope
    from app.questions.question import Question
    from app.schemas.audit import AuditOut, AuditRowOut, PricedOut, SettingStepOut, SpanOut
    from exports.targets.target import Effect, Target


_MAX_STEPS = 4


def audit_parts(audit: AuditOut) -> Iterator[Part]:
    """Yield the regret over the workload, the verdict, regrets at powers of two, and advice."""
    setting = audit.setting
    yield from failure_lines(audit.warnings)
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
    yield "What to change:"
    yield from (f"- {printable(change)}" for change in audit.changes)
    yield ""
    yield from warning_parts(others(audit.warnings))
    if audit.fit_warnings:
        yield f"note: the fit has {len(audit.fit_warnings)} warnings; sluice fit tells them"


def _facts(audit: AuditOut) -> Iterator[tuple[str, str]]:
    setting = audit.setting
    worst = setting.worst
    yield "mean regret", f"{_span(setting.mean)}, over {audit.workload.words}"
    at = f"at {format_bytes(worst.message_bytes)}, of {audit.worst_of} sizes"
    yield "worst regret", f"{_span(setting.worst_span)}, {at}"
    yield "best size", _priced(audit.best_size)
    if audit.best_size_steps:
        yield "best size steps", _priced(audit.best_size_steps)
    if audit.best_repeats is not None:
        yield (
            "size by lookup",
            f"mean {_advised_span(audit.repeats_span)}",
        )
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
    of = f"the {audit.objective} regret"
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


def _advised_span(span: SpanOut) -> str:
    return format_advised_regret(span.at_least, span.at_most)


def _priced(priced: PricedOut) -> str:
    mean, worst = map(_advised_span, (priced.mean, priced.worst_span))
    return f"{_format_steps(priced.steps)}: mean {mean}, worst {worst}"


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
_OURS = ("pipeline", "aggregate", "profile", "measurements", "fit_options", "uncertainty")
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
    from app.schemas.audit import AuditOut
    from app.schemas.base import dump_json

    settings = Settings.from_environment()
    scope, question = _asked(arguments, read_source(arguments.source, settings))
    wanted = _question(scope, question, settings)
    with counting_line(output.err) as show:
        ran = run_operation(AuditSetting(wanted, unrequested), settings, show)
    found = ran.result
    audited = AuditOut.of(found)
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
    from app.schemas.audit import AuditIn
    from app.schemas.base import dump_json, parse_json

    given = {name: value for name, value in body_of(source).items() if name in _OURS}
    asked = {name: getattr(arguments, name) for name in _ASKED}
    options = {
        **asked,
        "uncertainty": {"relative": arguments.relative},
        "setting": _setting(arguments),
    }
    body = merged(given, options)
    if arguments.workload is not None:
        body["workload"] = parse_workload(_text_of(arguments.workload, field="workload"))
    parsed = parse_json(AuditIn, dump_json(body))
    question = parsed.to_question()
    if isinstance(source, TraceSource):
        # The trace goes round the JSON parser: it may be a hundred times longer than any request.
        question = replace(question, source=(Measurement(source.content),))
    return parsed.to_domain(), question


def _question(scope: AuditScope, question: Question, settings: Settings) -> AuditQuestion:
    from app.questions.optimize import prepare
    from app.questions.settings import audit_question

    cap = settings.max_fragments
    with store_for(question.source, settings) as store:
        find_fit = None if store is None else fit_finder(store)
        prepared = prepare(question, finder(store), fragment_cap=cap, find_fit=find_fit)
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
    content = _text_of(arguments.config, field="config")
    return {"configuration": {"target": arguments.target, "content": content}}


def _text_of(name: str, *, field: str) -> str:
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


# --- apply ----------------------------------------------------------------------------------------


NOT_KEPT = 7  # the exit code where the setting is not kept
# What libraries read by themselves where it lies: a setting must not take effect by accident.
_TAKES_EFFECT = ("ucx.conf", "ucc.conf", "mca-params.conf", "openmpi-mca-params.conf", "nccl.conf")
_NOUN, _UCX = "the setting", "UCX"
_RULES_HEADER = "rule-file-version-2\n"  # of Open MPI: the very first line


def apply(arguments: argparse.Namespace, output: Output) -> int:
    """Try a setting over the installed library, and keep what is faster and not slower."""
    from app.schemas.base import dump_json
    from app.schemas.exports import AppliedOut, TrialOut
    from exports.targets.registry import target_named

    target = target_named(arguments.target)
    options = dict(option.partition("=")[::2] for option in arguments.option)
    name = arguments.output or f"sluice-{target.name}.{target.suffix_for(options)}"
    if not arguments.check:
        raise InvalidInput(
            "a setting is applied only where it was measured: --check; sluice export writes one",
            field="check",
        )
    check_target(name, field="output", noun=_NOUN, example="sluice-ucx.conf")
    if {one.name.lstrip(".") for one in (Path(name), Path(name).resolve())} & {*_TAKES_EFFECT}:
        raise InvalidInput(
            "libraries read a file of this name by themselves: expected another, so that nothing "
            "takes effect by accident",
            field="output",
        )
    effect = _effect_of(target)
    _check_used(arguments, effect)
    text = _setting_text(arguments, output)
    with _installed(arguments, effect) as (plan, installed), erased_line(output.err) as show:
        _check_installed(installed, effect, text)
        with tempfile.TemporaryDirectory(prefix="sluice-apply-") as folder:

            def in_force(given: str) -> Mapping[str, str]:
                file = Path(folder) / "setting"
                file.write_text(given, encoding="utf-8")
                return effect.environment(given, str(file))

            found = check(
                plan,
                installed.start,
                text,
                in_force,
                effect.without,
                lambda left, done: show(f"{done} pairs done, {left} to come"),
            )
    is_kept, reason, over = (
        found.text is not None,
        reason_of(found),
        installed.described(os.environ),
    )
    trials = tuple(map(TrialOut.of, found.trials))
    if output.wants_json:
        applied = AppliedOut(target.name, over, is_kept, reason, found.text, trials)
        output.document(dump_json(applied))
    else:
        output.parts(_applied_parts(over, found, reason))
    if found.text is None:
        return NOT_KEPT
    write_whole(name, _with_verdict(found.text, over, reason), field="output", noun=_NOUN)
    output.note(f"kept in {printable(name)}, where it takes effect only as the target's page says")
    return 0


def _effect_of(target: Target) -> Effect:
    from exports.targets.registry import TARGETS

    if target.effect is None:
        names = ", ".join(one.name for one in TARGETS if one.effect is not None)
        raise StrategyDeclined(
            f"no program here shows what {target.name} does; those that can be checked: {names}",
            field="target",
        )
    return target.effect


def _check_used(arguments: argparse.Namespace, effect: Effect) -> None:
    """Raise InvalidInput for what is given and would be passed over."""
    if arguments.config is not None:
        for name in ("option", "min_message_bytes", "max_message_bytes"):
            if getattr(arguments, name):
                raise InvalidInput("only a setting that is made of a SOURCE has it", field=name)
    if effect.library == _UCX and arguments.mpicc is None:
        for name in ("launcher", "allow_run_as_root"):
            if getattr(arguments, name):
                raise InvalidInput("only an MPI has it, which --mpicc names", field=name)


def _setting_text(arguments: argparse.Namespace, output: Output) -> str:
    """Return the configuration that is there, or one that is made of the source."""
    from app.console.table import export_scope, exported

    if (arguments.source is None) == (arguments.config is None):
        raise InvalidInput("expected a SOURCE, or --config with what is there", field="source")
    if arguments.config is not None:
        return _text_of(arguments.config, field="config")
    made = exported(arguments, export_scope(arguments), output).result
    for warning in made.warnings:
        output.note(warning)
    return made.content.decode()


@contextmanager
def _installed(
    arguments: argparse.Namespace, effect: Effect
) -> Iterator[tuple[TrialPlan, Installed]]:
    """The trial that is asked for, and the programs that it runs. UCX is run through its own tool,
    or below the MPI that is named.
    """
    from measuring.trials import SIZES, UCX_PROGRAMS, TrialPlan, mpi_programs, ucx_programs

    is_ucx = effect.library == _UCX and arguments.mpicc is None
    usual = UCX_PROGRAMS[:1] if is_ucx else effect.programs
    plan = TrialPlan(
        tuple(dict.fromkeys(arguments.programs or usual)),
        tuple(sorted(set(arguments.bytes or SIZES))),
        arguments.pairs,
        arguments.time_limit,
        arguments.seed,
    )
    mpi = Mpi(arguments.mpicc or "mpicc", arguments.launcher, arguments.allow_run_as_root)
    with ucx_programs(plan) if is_ucx else mpi_programs(mpi, plan) as installed:
        yield plan, installed


def _check_installed(installed: Installed, effect: Effect, text: str) -> None:
    """Raise InvalidInput unless the library is the target's, and reads the setting."""
    is_below = effect.library == _UCX  # of an MPI, which does not say so
    if not is_below and effect.library not in installed.library:
        raise InvalidInput(
            f"expected a wrapper of {effect.library}, this one is of {installed.library[:100]}",
            field="mpicc",
        )
    since = effect.since(text)
    is_known = bool(installed.version) and (not is_below or _UCX in installed.library)
    if is_known and installed.version < since:
        raise InvalidInput(
            f"{'.'.join(map(str, since))} and later read this setting, and here is "
            f"{installed.library[:100]}",
            field="target",
        )


def reason_of(found: Checked) -> str:
    """Return why a setting is kept or not, in one sentence."""
    last = found.trials[-1]
    if found.text is not None:
        undecided, first = len(last.of(Outcome.UNDECIDED)), found.trials[-2]
        return (
            f"kept: faster at {_most(last, Outcome.FASTER)}; none is seen to be slower, "
            f"{undecided} are undecided; confirmed, in trials of {first.pairs} and {last.pairs} "
            "pairs"
        )
    if last.failure:
        return f"not kept: with it the programs do not end as they should: {last.failure}"
    if wrong := last.of(Outcome.WRONG):
        at = f"{wrong[0].program} of {format_bytes(wrong[0].message_bytes)}"
        return f"not kept: with it {at} gives wrong data"
    if last.of(Outcome.SLOWER):
        return f"not kept: slower at {_most(last, Outcome.SLOWER)}"
    if not last.is_harmless:
        return f"not kept: it looks slower at {_most(last, Outcome.UNDECIDED)}, undecided"
    if len(found.trials) > 1 and found.trials[-2].is_gain:
        return "not kept: a second trial is not faster where the first was"
    return "not kept: it is faster nowhere; it may not be in use by these programs"


def _most(trial: Trial, outcome: Outcome) -> str:
    """At how many programs and sizes it is so, and where most."""
    found = trial.of(outcome)
    at = (min if outcome is Outcome.FASTER else max)(found, key=lambda one: one.ratio)
    span = f"{at.low:.3g} to {at.high:.3g}"
    return (
        f"{len(found)} of {len(trial.compared)} programs and sizes, most at {at.program} of "
        f"{format_bytes(at.message_bytes)}: {at.ratio:.3g} times as long ({span})"
    )


def _applied_parts(library: str, found: Checked, reason: str) -> Iterator[Part]:
    columns = (
        Column("program", is_number=False),
        Column("message"),
        Column("before"),
        Column("after/before"),
        Column("interval", is_number=False),
        Column("", is_number=False),
    )
    yield printable(library)
    for number, trial in enumerate(found.trials, start=1):
        yield ""
        yield f"trial {number}, {trial.pairs} pairs:"
        yield Grid(columns, tuple(map(_compared_row, trial.compared)))
    yield ""
    yield printable(reason)


def _compared_row(one: Compared) -> tuple[str, ...]:
    if one.outcome is Outcome.WRONG:
        ratio, interval = "", ""
    else:
        ratio, interval = f"{one.ratio:.3f}", f"{one.low:.3f} to {one.high:.3f}"
    size, before = format_bytes(one.message_bytes), format_time(one.before_us)
    return one.program, size, before, ratio, interval, one.outcome


def _with_verdict(text: str, over: str, reason: str) -> bytes:
    """The setting, with what was found in its first lines, which are comments to each library."""
    said = textwrap.wrap(printable(f"Measured over {over}: {reason}"), 97)
    head = _RULES_HEADER if text.startswith(_RULES_HEADER) else ""
    rest = text.removeprefix("\ufeff").removeprefix(head)
    return (head + "".join(f"# {line}\n" for line in said) + rest).encode()
