"""Every operation of the service, once: what is asked, where, what is answered.

An operation that takes a body is made of the class of its request, from `sluice_client.contract`:
the keywords of the method are the fields of that class, with their defaults. An operation that
takes a name or an identifier has it as its first argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature, cleandoc, signature
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from sluice_client.calls import Answer, Call, get, reads, segment, send
from sluice_client.contract.answers import (
    DescriptionIn,
    ExplanationOut,
    OptimizationsOut,
    SummaryOut,
)
from sluice_client.contract.audit import AnyAuditOut, AuditIn, AuditOut, ItemsAuditOut
from sluice_client.contract.changes import ChangesOut
from sluice_client.contract.compare import AnyCompareOut, CompareIn, CompareOut, ItemsCompareOut
from sluice_client.contract.compose import ComposeIn
from sluice_client.contract.crossover import CrossoverIn, CrossoverOut
from sluice_client.contract.declare import Input
from sluice_client.contract.export import ExportQueryIn, ExportTargetsOut
from sluice_client.contract.fit import FitIn, FitOut, FitPlotOut, FitQueryIn
from sluice_client.contract.fit_options import ExcludedSampleIn, StepGroupIn
from sluice_client.contract.hide import AnyHideOut, HideIn, StoredHideOut
from sluice_client.contract.jobs import (
    AnyJobOut,
    HideJobOut,
    JobOut,
    LayerJobOut,
    ThresholdsJobOut,
)
from sluice_client.contract.keys import KeyIn, KeysOut, NewKeyOut, RotationIn
from sluice_client.contract.layer import LayersOut, PublishedLayerOut
from sluice_client.contract.layer_costs import LayerCostsIn, LayerCostsOut
from sluice_client.contract.measurements import MeasurementIn
from sluice_client.contract.optimize import OptimizeIn, OptimizeOut, StoredOptimizeOut
from sluice_client.contract.plan import MeasurementPlanIn, MeasurementPlanOut
from sluice_client.contract.profiles import (
    AnyProfileOut,
    AnyRevisionOut,
    CurrentIn,
    ProfileIn,
    ProfileOut,
    ProfilesOut,
    RevisionIn,
    RevisionOut,
    RevisionsOut,
)
from sluice_client.contract.schedule import TableScheduleOut
from sluice_client.contract.service import LimitsOut, ReadyOut
from sluice_client.contract.simulate import (
    DeliveredOut,
    ItemsRunOut,
    MachineRunOut,
    PricedCutOut,
    SimulateIn,
    SimulateOut,
)
from sluice_client.contract.table import ActivateIn, TableIn, TableOut, TablesOut
from sluice_client.contract.thresholds import ThresholdsIn, ThresholdsOut
from sluice_client.contract.transfers import TransfersOut
from sluice_client.contract.verification import VerificationIn
from sluice_client.methods import EachOf, Operation

P = ParamSpec("P")
T = TypeVar("T")
JobT = TypeVar("JobT", bound=JobOut)

# The service's own limits, of what it does not take from the request.
_LOOKUP_LIMIT_S = 10.0
_LONG_LIMIT_S = 120.0
_SAFE = ("GET", "HEAD", "OPTIONS")
_FILE_NAME = re.compile(r'filename="([^"/\\]+)"')


def _one_of(form: Any) -> Callable[[Answer], Any]:
    """Return a reader of answers that are one of several classes."""
    return reads(cast(type[Any], form))


_JOB: Callable[[Answer], JobOut] = _one_of(AnyJobOut)
_COMPARED: Callable[[Answer], CompareOut | ItemsCompareOut] = _one_of(AnyCompareOut)
_AUDITED: Callable[[Answer], AuditOut | ItemsAuditOut] = _one_of(AnyAuditOut)
_HIDDEN: Callable[[Answer], StoredHideOut] = _one_of(AnyHideOut)
_OPTIMIZED: Callable[[Answer], OptimizeOut] = _one_of(StoredOptimizeOut)
_LOOKED_UP: Callable[[Answer], TableScheduleOut | OptimizeOut] = _one_of(
    TableScheduleOut | StoredOptimizeOut
)
_PROFILE: Callable[[Answer], ProfileOut] = _one_of(AnyProfileOut)
_REVISION: Callable[[Answer], RevisionOut] = _one_of(AnyRevisionOut)
_SIMULATED: Callable[[Answer], SimulateOut | PricedCutOut] = _one_of(
    DeliveredOut | MachineRunOut | ItemsRunOut | SimulateOut | PricedCutOut
)


# --- operations of a request's class --------------------------------------------------------------


def _asks(
    about: str, path: str, request: Callable[P, Input], read: Callable[[Answer], T], **rules: Any
) -> Operation[P, T]:
    """Return the operation whose body is this request; `rules` are those of `_call`."""

    def build(*args: P.args, **kwargs: P.kwargs) -> Call[T]:
        return _call(path, request(*args, **kwargs), read, **rules)

    return Operation(_shown(build, about, request))


def _asks_at(
    about: str, path: str, request: Callable[P, Input], read: Callable[[Answer], T], **rules: Any
) -> Operation[Concatenate[str, P], T]:
    """Return the same at a path with a name or an identifier in it."""

    def build(at: str, /, *args: P.args, **kwargs: P.kwargs) -> Call[T]:
        return _call(path.format(segment(at)), request(*args, **kwargs), read, **rules)

    return Operation(_shown(build, about, request))


def _call(
    path: str,
    asked: Input,
    read: Callable[[Answer], T],
    *,
    method: str = "POST",
    may_repeat: bool = True,
    is_kept: bool = True,
    takes_s: float | None = None,
) -> Call[T]:
    """Return the call of a request; what it stores under a name, a second one would store again."""
    stores = getattr(asked, "save_as", None) is not None
    return send(
        method,
        path,
        read,
        asked,
        may_repeat=may_repeat and not stores,
        takes_s=getattr(asked, "time_limit_s", 0.0) if takes_s is None else takes_s,
        is_kept=is_kept,
    )


def _job_of(
    operation: Operation[P, Any], read: Callable[[Answer], T], *, may_repeat: bool = False
) -> Operation[P, T]:
    """Return the same request answered at once by a durable job.

    `may_repeat`: sent twice it gives the same job; else it would make two.
    """

    def build(*args: P.args, **kwargs: P.kwargs) -> Call[T]:
        call = operation.build(*args, **kwargs)
        headers = {**call.headers, "Prefer": "respond-async"}
        return Call(
            call.method, call.path, read, call.query, call.content, headers, may_repeat=may_repeat
        )

    build.__signature__ = signature(operation.build)  # type: ignore[attr-defined]
    build.__doc__ = f"{operation.__doc__}\n\nAnswered at once by the job that does it."
    return Operation(build)


def _shown(build: Callable[P, T], about: str, request: Callable[..., Input]) -> Callable[P, T]:
    """Return the function itself with the words and the parameters of its request."""
    own = [each for each in signature(build).parameters.values() if each.kind in _FIRST]
    taken = [*own, *signature(request).parameters.values()]
    build.__signature__ = Signature(taken)  # type: ignore[attr-defined]
    named = cast(type, request)
    words = (about, cleandoc(named.__doc__ or ""), f"Keywords are the fields of {named.__name__}.")
    build.__doc__ = "\n\n".join(words)
    return build


_FIRST = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


# --- operations without a request's class ---------------------------------------------------------


def _reads(
    about: str, path: str, read: Callable[[Answer], T], *, remembers: bool = False
) -> Operation[[], T]:
    """Return the operation that asks for what is at a path."""

    def build() -> Call[T]:
        return get(path, read, remembers=remembers)

    build.__doc__ = about
    return Operation(build)


def _reads_at(
    about: str,
    path: str,
    read: Callable[[Answer], T],
    *,
    method: str = "GET",
    may_repeat: bool = True,
    remembers: bool = False,
    **query: str,
) -> Operation[[str], T]:
    """Return the same at a path with a name or an identifier in it, or what ends that."""

    def build(at: str, /) -> Call[T]:
        where = path.format(segment(at))
        return Call(method, where, read, query, may_repeat=may_repeat, remembers=remembers)

    build.__doc__ = about
    return Operation(build)


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A configuration in a target's own syntax, and the name that its file goes by."""

    file_name: str
    media_type: str
    content: bytes

    @property
    def text(self) -> str:
        """The content as text."""
        return self.content.decode()


def _exported(answer: Answer) -> ExportedFile:
    named = _FILE_NAME.search(answer.headers.get("content-disposition", ""))
    kind = answer.headers.get("content-type", "").partition(";")[0]
    return ExportedFile(named[1] if named else "", kind, answer.body)


def _exports(
    request: Callable[P, ExportQueryIn],
) -> Operation[Concatenate[str, str, P], ExportedFile]:
    about = """Return a profile as a library's configuration; `name@2` pins a revision.

The profile comes first, then the target, as `export_targets` names it."""

    def build(name: str, target: str, /, *args: P.args, **kwargs: P.kwargs) -> Call[ExportedFile]:
        path = f"/profiles/{segment(name)}/exports/{segment(target)}"
        query = request(*args, **kwargs).said()
        return get(path, _exported, remembers=True, takes_s=_LONG_LIMIT_S, **query)

    return Operation(_shown(build, about, request))


def _fits(
    request: Callable[P, FitQueryIn],
) -> Operation[Concatenate[bytes | str, P], FitOut]:
    about = """Fit one file of measurements, as it was written; gzip too.

The service detects formats by their content."""

    def build(trace: bytes | str, /, *args: P.args, **kwargs: P.kwargs) -> Call[FitOut]:
        asked = request(*args, **kwargs)
        return Call(
            "POST",
            "/fit",
            reads(FitOut),
            {**_fit_query(asked), "exclude": list(map(_excluded_word, asked.excluded))},
            trace.encode() if isinstance(trace, str) else trace,
            {"Content-Type": "application/octet-stream"},
            may_repeat=asked.save_as is None,
            takes_s=_LONG_LIMIT_S,
        )

    return Operation(_shown(build, about, request))


def _fits_together(
    request: Callable[P, FitQueryIn],
) -> Operation[Concatenate[Sequence[MeasurementIn], P], FitOut]:
    about = "Fit several files that are measurements of one pipeline."

    def build(
        measurements: Sequence[MeasurementIn], /, *args: P.args, **kwargs: P.kwargs
    ) -> Call[FitOut]:
        asked = request(*args, **kwargs)
        return send(
            "POST",
            "/fit",
            reads(FitOut),
            FitIn(measurements=list(measurements), excluded=asked.excluded),
            query=_fit_query(asked),
            may_repeat=asked.save_as is None,
            takes_s=_LONG_LIMIT_S,
        )

    return Operation(_shown(build, about, request))


def _fit_query(asked: FitQueryIn) -> dict[str, object]:
    """Return how to fit, but for samples that are left out, as a query has it."""
    said = asked.said()
    said.pop("excluded", None)
    groups = said.pop("groups", ())
    return {**said, "group": list(map(_group_word, groups))}


def _group_word(group: StepGroupIn) -> str:
    return f"{group.name}:{group.combine}:{','.join(group.steps)}"


def _excluded_word(sample: ExcludedSampleIn) -> str:
    return f"{sample.message_bytes}:{sample.time_us!r}:{sample.stage}"


def _optimizations(
    *,
    profile: str | None = None,
    revision: int | None = None,
    message_bytes: int | None = None,
    strategy: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[OptimizationsOut]:
    """Return a page of stored answers, newest first."""
    return get(
        "/optimizations",
        reads(OptimizationsOut),
        profile=profile,
        revision=revision,
        message_bytes=message_bytes,
        strategy=strategy,
        cursor=cursor,
        limit=limit,
    )


def _explanation(id: str, *, cheaper_by: float | None = None) -> Call[ExplanationOut]:
    """Return where the latency of a stored answer is spent, and what cheaper stages would buy."""
    path = f"/optimizations/{segment(id)}/explanation"
    return get(path, reads(ExplanationOut), takes_s=_LOOKUP_LIMIT_S, cheaper_by=cheaper_by)


def _export_items(id: str, target: str, *, option: tuple[str, ...] = ()) -> Call[ExportedFile]:
    """Return a stored answer about items as this target's setting; options are name:value."""
    path = f"/optimizations/{segment(id)}/exports/{segment(target)}"
    return get(path, _exported, remembers=True, takes_s=_LOOKUP_LIMIT_S, option=option or None)


def _schedule(name: str, message_bytes: int) -> Call[TableScheduleOut | OptimizeOut]:
    """Return the run-time lookup: from the profile's active table, or solved where there is none.

    `name@2` pins a revision. The answer is kept, and asked for again only if it has changed.
    """
    path = f"/profiles/{segment(name)}/schedule"
    return get(path, _LOOKED_UP, remembers=True, takes_s=_LOOKUP_LIMIT_S, bytes=message_bytes)


def _profiles(*, cursor: str | None = None, limit: int | None = None) -> Call[ProfilesOut]:
    """Return a page of profiles by name, each at its current revision."""
    return get("/profiles", reads(ProfilesOut), cursor=cursor, limit=limit)


def _tables(name: str, *, cursor: str | None = None, limit: int | None = None) -> Call[TablesOut]:
    """Return a page of a profile's compiled tables, newest first; `name@2` for those of a
    revision.
    """
    path = f"/profiles/{segment(name)}/tables"
    return get(path, reads(TablesOut), cursor=cursor, limit=limit)


def _changes(
    *, subject: str | None = None, cursor: str | None = None, limit: int | None = None
) -> Call[ChangesOut]:
    """Return a page of who changed what, the newest first; takes the scope `admin`."""
    return get("/changes", reads(ChangesOut), subject=subject, cursor=cursor, limit=limit)


def _request(
    method: str,
    path: str,
    *,
    json: Mapping[str, Any] | None = None,
    query: Mapping[str, object] | None = None,
    may_repeat: bool | None = None,
) -> Call[Any]:
    """Call any operation by its path; the answer as JSON, None for an empty one.

    It is sent again after a failure if it is a GET or a POST, which then has a key under which the
    service does it once, or if `may_repeat` says that it may be.
    """
    verb = method.upper()
    repeats = verb in _SAFE if may_repeat is None else may_repeat
    if json is None:
        return Call(verb, path, _any, query or {}, may_repeat=repeats)
    return send(verb, path, _any, json, query=query, may_repeat=repeats)


def _any(answer: Answer) -> Any:
    return answer.json() if answer.body else None


def _body(answer: Answer) -> bytes:
    return answer.body


def _nothing(answer: Answer) -> None:
    return None


# --- all of them ----------------------------------------------------------------------------------


class Operations:
    """The operations of a service, a method of both clients each."""

    # --- schedules
    optimize = _asks(
        "Cut a message of this size, with a proof of how good the cut is.",
        "/optimize",
        OptimizeIn,
        _OPTIMIZED,
    )
    start_optimize = _job_of(optimize, _JOB)
    optimize_transfers = _asks(
        "Have own transfers of a message decide its size, without a model.",
        "/optimize",
        OptimizeIn,
        reads(TransfersOut),
    )
    compare = _asks(
        "Return what each strategy gives on each message size.", "/compare", CompareIn, _COMPARED
    )
    start_compare = _job_of(compare, _JOB)
    simulate = _asks(
        "Return when each fragment is in each stage; of an aggregate what one cut takes at most.",
        "/simulate",
        SimulateIn,
        _SIMULATED,
    )
    thresholds = _asks(
        "Return latencies by threshold or by pulse size, and the best ones.",
        "/thresholds",
        ThresholdsIn,
        reads(ThresholdsOut),
    )
    start_thresholds = _job_of(thresholds, reads(ThresholdsJobOut), may_repeat=True)
    crossover = _asks(
        "Return the sizes from which one path of a message overtakes another, and what to set.",
        "/crossover",
        CrossoverIn,
        reads(CrossoverOut),
    )
    hide = _asks(
        "Return what hiding a message behind a calculation gains, and the fragments for it.",
        "/hide",
        HideIn,
        _HIDDEN,
    )
    start_hide = _job_of(hide, reads(HideJobOut), may_repeat=True)
    schedule = Operation(_schedule)

    # --- stored answers
    optimization = _reads_at("Return a stored answer.", "/optimizations/{}", _OPTIMIZED)
    optimizations = Operation(_optimizations)
    each_optimization = EachOf(_optimizations)
    describe_optimization = _asks_at(
        "Give a stored answer a name and a note.",
        "/optimizations/{}",
        DescriptionIn,
        reads(SummaryOut),
        method="PATCH",
    )
    explanation = Operation(_explanation)
    export_items = Operation(_export_items)
    hidden = _reads_at("Return a stored answer about hiding.", "/hide/{}", _HIDDEN)

    # --- measurements
    fit = _fits(FitQueryIn)
    fit_together = _fits_together(FitQueryIn)
    compose = _asks(
        "Fit a pipeline of stages that were measured each by itself, in files of their own.",
        "/compose",
        ComposeIn,
        reads(FitOut),
        takes_s=_LONG_LIMIT_S,
    )
    stored_fit = _reads_at("Return a stored fit, by its `fit_id`.", "/fits/{}", reads(FitOut))
    fit_plot = _reads_at(
        "Return what a plot of a stored fit shows.", "/fits/{}/plot", reads(FitPlotOut)
    )
    trace = _reads_at(
        "Return a stored trace, byte for byte as it was measured.", "/traces/{}", _body
    )
    plan_measurements = _asks(
        "Return which message sizes to measure next, from outside.",
        "/measurement-plans",
        MeasurementPlanIn,
        reads(MeasurementPlanOut),
    )

    # --- profiles
    profiles = Operation(_profiles)
    each_profile = EachOf(_profiles)
    profile = _reads_at("Return a profile at its current revision.", "/profiles/{}", _PROFILE)
    create_profile = _asks(
        "Create a profile with revision 1.", "/profiles", ProfileIn, _PROFILE, may_repeat=False
    )
    revise_profile = _asks_at(
        "Add a revision, which becomes the current one. Sent twice it would add two.",
        "/profiles/{}",
        RevisionIn,
        _PROFILE,
        method="PUT",
        may_repeat=False,
    )
    delete_profile = _reads_at(
        "Delete a profile with its revisions; answers that name it stay.",
        "/profiles/{}",
        _nothing,
        method="DELETE",
        may_repeat=False,
    )
    revisions = _reads_at(
        "Return every revision, and where its stages came from.",
        "/profiles/{}/revisions",
        reads(RevisionsOut),
    )
    set_current = _asks_at(
        "Roll back or forward to a revision that exists; its active table comes with it.",
        "/profiles/{}/current",
        CurrentIn,
        _PROFILE,
    )
    verify = _asks_at(
        "Compare recorded transfers with a profile's model, and keep the verdict.",
        "/profiles/{}/verification",
        VerificationIn,
        _REVISION,
    )

    # --- compiled tables
    compile_table = _asks_at(
        "Compile a table for a range of message sizes; the stored one where there is one.",
        "/profiles/{}/tables",
        TableIn,
        reads(TableOut),
        takes_s=_LONG_LIMIT_S,
    )
    start_compile_table = _job_of(compile_table, _JOB, may_repeat=True)  # joins the first
    tables = Operation(_tables)
    each_table = EachOf(_tables)
    table = _reads_at(
        "Return the description of a compiled table.",
        "/tables/{}",
        reads(TableOut),
        remembers=True,
        format="summary",
    )
    table_file = _reads_at(
        "Return the table file, for `Table.from_bytes`.",
        "/tables/{}",
        _body,
        remembers=True,
        format="slt",
    )
    table_twin = _reads_at(
        "Return the JSON twin of a table file, as it is.",
        "/tables/{}",
        Answer.json,
        remembers=True,
        format="json",
    )
    active_table = _reads_at(
        "Return the description of the table that lookups of a profile are answered from.",
        "/profiles/{}/table",
        reads(TableOut),
        remembers=True,
        format="summary",
    )
    active_table_file = _reads_at(
        "Return the file of the active table; `fetch_table` keeps one on disk fresh.",
        "/profiles/{}/table",
        _body,
        remembers=True,
        format="slt",
    )
    activate_table = _asks_at(
        "Make a compiled table of the profile its active one; the way back is the same.",
        "/profiles/{}/table",
        ActivateIn,
        reads(TableOut),
    )

    # --- configurations of libraries
    export_targets = _reads(
        "Return every target: what it takes, its options, and what verifies it.",
        "/exports",
        reads(ExportTargetsOut),
        remembers=True,
    )
    export = _exports(ExportQueryIn)
    start_export = _job_of(export, _JOB, may_repeat=True)
    audit = _asks(
        "Return what an existing setting costs over the optimum, and what to change.",
        "/audit",
        AuditIn,
        _AUDITED,
        takes_s=_LONG_LIMIT_S,
    )
    start_audit = _job_of(audit, _JOB, may_repeat=True)

    # --- messaging layers
    layers = _reads("Return the published messaging layers.", "/layers", reads(LayersOut))
    layer = _reads_at(
        "Return a published layer, and where its publication contradicts itself.",
        "/layers/{}",
        reads(PublishedLayerOut),
    )
    layer_costs = _asks(
        "Return what a layer costs on messages of these sizes.",
        "/layer-costs",
        LayerCostsIn,
        reads(LayerCostsOut),
    )
    start_layer_costs = _job_of(layer_costs, reads(LayerJobOut))

    # --- jobs
    job = _reads_at("Return where a job stands.", "/jobs/{}", _JOB)
    cancel_job = _reads_at(
        "Stop a job; its best answer so far is kept. It may still be stopping.",
        "/jobs/{}",
        _JOB,
        method="DELETE",
    )

    # --- the service, keys and changes
    limits = _reads(
        "Return everything that a request is measured against.", "/limits", reads(LimitsOut)
    )
    is_alive = _reads(
        "Return whether the process answers; raises where it does not.",
        "/healthz",
        lambda answer: answer.status == 200,
    )
    readiness = _reads(
        "Check that the database and the workers answer. Raises Unavailable while they do not.",
        "/readyz",
        reads(ReadyOut),
    )
    metrics = _reads(
        "Return the counters, in Prometheus' text format.",
        "/metrics",
        lambda answer: answer.body.decode(),
    )
    keys = _reads(
        "Return every key of the owner who asks; takes the scope `admin`, as the next three do.",
        "/keys",
        reads(KeysOut),
    )
    create_key = _asks(
        "Make a key of the scope `read`, `write`, `admin` or `metrics`; its secret is sent once.",
        "/keys",
        KeyIn,
        reads(NewKeyOut),
        may_repeat=False,
        is_kept=False,
    )
    rotate_key = _asks_at(
        "Make a key like this one, which goes on for `kept_s`, an hour without it.",
        "/keys/{}/rotation",
        RotationIn,
        reads(NewKeyOut),
        may_repeat=False,
        is_kept=False,
    )
    revoke_key = _reads_at(
        "End a key, and the browsers that signed in by it, at once.",
        "/keys/{}",
        _nothing,
        method="DELETE",
        may_repeat=False,
    )
    changes = Operation(_changes)
    each_change = EachOf(_changes)
    request = Operation(_request)
