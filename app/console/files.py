"""Files of a command: sources that it reads, and plots and texts that it writes as a whole."""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from app.operations.fits import TIMELINE_FIELD, answer_schedules
from app.settings import Settings
from app.text.gzipped import MAGIC, expand
from app.text.units import printable, quoted
from contract.limits import MAX_TEST_LENGTH, PROFILE_NAME_RULE
from domain.conditions import named_test
from domain.errors import (
    BodyTooLarge,
    InconsistentInput,
    InvalidInput,
    ItemsDeclined,
    NotFound,
    NotJson,
    NotMeasurable,
    StrategyDeclined,
    UnitMismatch,
)
from domain.stage_table import (
    MAX_TEXT,
    Heading,
    StageColumn,
    heading_of,
    is_stage_table,
    ns_per_byte,
    overhead_us,
    read_stage_table,
)
from domain.units import parse_bytes, parse_ns_per_byte, parse_time_us

if TYPE_CHECKING:
    from app.questions.source import Source as CostSource
    from app.ui.terminal import Output
    from contract.optimize import OptimizeOut
    from contract.source import SourceIn
    from domain.fit import TraceFit
    from domain.fit_plot import FitPlot

T = TypeVar("T", bound="SourceIn")
_KEPT_EVERY_S = 1.0


def check_target(name: str, *, field: str, noun: str, example: str) -> None:
    """Refuse what cannot become a file before any work is done. Raises InvalidInput."""
    path = Path(name)
    try:
        is_folder = path.is_dir()
    except OSError as refusal:  # as of a name that is too long
        raise InvalidInput(f"the file of {noun}: {refusal.strerror}", field=field) from None
    if name in ("", "-") or is_folder:
        raise InvalidInput(f"expected the name of a file for {noun}, as {example}", field=field)
    if not path.parent.is_dir():
        raise InvalidInput(f"the folder for the file of {noun} does not exist", field=field)
    if path.exists() and not path.is_file():  # a pipe or a device, which is written itself
        if not os.access(path, os.W_OK):
            raise InvalidInput(f"the file of {noun} may not be written", field=field)
        return
    check_folder(path.parent, field=field, noun=f"the file of {noun}")


def check_folder(folder: Path, *, field: str, noun: str) -> None:
    """Refuse a folder in which no file can be made. Raises InvalidInput."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as refusal:
        reason = refusal.strerror or "no file can be made in it"
        raise InvalidInput(f"the folder for {noun}: {reason}", field=field) from None


def write_whole(name: str, content: bytes, *, field: str, noun: str) -> None:
    """Write the file. Raises InvalidInput."""
    path = Path(name).resolve()
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)  # a pipe or a device
        else:
            _replace(path, content)
    except OSError as refusal:
        reason = refusal.strerror or "it cannot be written"
        raise InvalidInput(f"the file of {noun}: {reason}", field=field) from None


def csv_of(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> bytes:
    """Return a table's file, comma separated."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(rows)
    return text.getvalue().encode()


class KeptAsItGoes:
    """A file of measurements that is on disk while they are taken: whoever is killed loses seconds.

    from app.console.files import KeptAsItGoes
    kept = KeptAsItGoes("pipe.csv", lambda: found.to_csv(...))
    kept.write()  # every second at most
    """

    def __init__(self, name: str, text: Callable[[], str]) -> None:
        self._path, self._text = Path(name).resolve(), text
        self._next_s = time.monotonic() + _KEPT_EVERY_S

    def write(self) -> None:
        """Write what there is when a second has passed. Raises NotMeasurable."""
        is_special = self._path.exists() and not self._path.is_file()  # a pipe or a device
        if time.monotonic() < self._next_s or is_special:
            return
        try:
            _replace(self._path, self._text().encode())
        except OSError as refusal:
            raise NotMeasurable(f"the measurements' file: {refusal.strerror}") from None
        self._next_s = time.monotonic() + _KEPT_EVERY_S


def _replace(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_set(folder: Path, files: Sequence[tuple[str, bytes]], *, field: str, noun: str) -> None:
    """Write all of these files into the folder, or none of them where an error or Ctrl-C ends it.

    All are written first, below the folder, since what is beside it may be on another disk or not
    ours; then they are renamed into it in order. Raises InvalidInput.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=".part-", dir=folder) as part:
            for name, content in files:
                (Path(part) / name).write_bytes(content)
            _exchange(folder, [name for name, _ in files], Path(part))
    except OSError as refusal:
        reason = refusal.strerror or "it cannot be written"
        raise InvalidInput(f"the files of {noun}: {reason}", field=field) from None


def _exchange(folder: Path, names: Sequence[str], new: Path) -> None:
    """Rename files in place of old ones, which are kept until the last, to be put back."""
    old = new / "old"
    old.mkdir()
    try:
        for name in names:
            if (folder / name).is_file():
                os.replace(folder / name, old / name)
            os.replace(new / name, folder / name)
    except BaseException:
        for name in names:
            if (old / name).exists():
                os.replace(old / name, folder / name)
            elif not (new / name).exists():
                (folder / name).unlink(missing_ok=True)
        raise


# --- plots ----------------------------------------------------------------------------------------


_FIELD = "plot"
_NOUN = "the plot"


def check_plot_file(name: str) -> None:
    """Refuse what cannot become a file before any work is done. Raises InvalidInput."""
    check_target(name, field=_FIELD, noun=_NOUN, example="fit.svg")


def write_drawing(name: str, drawn: str, output: Output) -> None:
    """Write a picture into this file, and say so to a person. Raises InvalidInput."""
    write_whole(name, drawn.encode(), field=_FIELD, noun=_NOUN)
    if not output.wants_json:
        output.parts([f"plot written to {printable(name)}"])


def write_plot(name: str, fit: TraceFit, plot: FitPlot) -> None:
    """Draw the fit into this file, in place of what it held. Raises InvalidInput."""
    from app.plots.fit_svg import render_fit_svg

    write_whole(name, render_fit_svg(fit, plot).encode(), field=_FIELD, noun=_NOUN)


# --- timelines ------------------------------------------------------------------------------------


_TIMELINE = "the timeline"


def check_timeline_file(name: str) -> None:
    """Refuse what cannot become a file before any work is done. Raises InvalidInput."""
    check_target(name, field=TIMELINE_FIELD, noun=_TIMELINE, example="schedule.svg")


def write_timeline(name: str, answer: OptimizeOut) -> None:
    """Draw an answer into this file, in place of what it held: its schedule above, the
    best fixed size below it. Raises InvalidInput, StrategyDeclined for an aggregate, LimitReached.
    """
    from app.plots.timeline_svg import render_timeline_svg

    if answer.pipeline is None:
        raise StrategyDeclined(
            "a timeline shows every stage, and an aggregate does not know their times",
            field=TIMELINE_FIELD,
        )
    schedules = list(answer_schedules(answer))
    write_whole(name, render_timeline_svg(schedules).encode(), field=TIMELINE_FIELD, noun=_TIMELINE)


def write_timeline_svg(name: str, drawn: bytes, output: Output) -> None:
    """Write a timeline into this file, and say so to a person. Raises InvalidInput."""
    write_whole(name, drawn, field=TIMELINE_FIELD, noun=_TIMELINE)
    if not output.wants_json:
        output.parts([f"timeline written to {printable(name)}"])


# --- sources: JSON, a trace, or a stored profile --------------------------------------------------


STANDARD_INPUT = "-"
_LOOKED_AT = 4096  # bytes at the beginning that distinguish JSON from a trace
_DEEPEST = 8  # levels of a request's document in which costs are
_QUANTITIES: Mapping[str, Callable[[str], float]] = {
    "overhead_us": parse_time_us,
    "delay_us": parse_time_us,
    "return_us": parse_time_us,
    "ns_per_byte": parse_ns_per_byte,
    "shared_ns_per_byte": parse_ns_per_byte,
    "message_bytes": parse_bytes,
    "static_bytes": parse_bytes,
    "up_to_bytes": parse_bytes,
    "min_fragment_bytes": parse_bytes,
    "max_fragment_bytes": parse_bytes,
    "alignment_bytes": parse_bytes,
}
# Of these an object has one or more that is costs, or asks about them.
_REQUESTED = frozenset(
    (
        *("stages", "total", "pipeline", "aggregate", "profile", "measurements", "fit", "fit_id"),
        *("message_bytes", "setting", "granularity"),
    )
)
_PROFILE_REFERENCE = re.compile(rf"{PROFILE_NAME_RULE}(@[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class RequestSource:
    """A request body, or a pipeline, an aggregate or a fit made into one."""

    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TraceSource:
    """The content of a trace, and of those that are fitted together with it."""

    content: bytes
    further: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileSource:
    """A stored profile by name, or name@revision."""

    reference: str


Source: TypeAlias = RequestSource | TraceSource | ProfileSource


def is_there(name: str) -> bool:
    """Return whether a file or a folder has this name, or standard input is meant."""
    try:
        return name == STANDARD_INPUT or Path(name).exists()
    except OSError:  # no file can have a name of this length
        return False


def read_source(name: str, settings: Settings) -> Source:
    """Return what this name stands for. Raises NotFound, NotJson, BodyTooLarge,
    UnsupportedMediaType.
    """
    is_found = is_there(name)
    if not is_found or Path(name).is_dir():  # a profile may have the name of a folder here
        if _PROFILE_REFERENCE.fullmatch(name) and not name.endswith((".json", ".csv")):
            return ProfileSource(name)
        if not is_found:
            raise NotFound(f"there is no file {quoted(name)}", field="source")
    raw = _read(name, settings.max_trace_bytes)
    if raw[:_LOOKED_AT].removeprefix(codecs.BOM_UTF8).lstrip()[:1] not in (b"{", b"["):
        return _stages_of(raw) or TraceSource(raw)
    from app.schemas.base import refuse_doubled_keys

    document = _document_of(raw)
    if document is None:
        return TraceSource(raw)
    if len(raw) > settings.max_body_bytes:
        raise BodyTooLarge(f"expected JSON of at most {settings.max_body_bytes} bytes")
    refuse_doubled_keys(raw.removeprefix(codecs.BOM_UTF8))
    if isinstance(document, dict) and "understood" in document:
        return RequestSource({"fit": document})
    return RequestSource(in_plain_units(_request_of(document)))


def read_sources(names: Sequence[str], settings: Settings) -> Source:
    """Return what these names stand for: one source, or several files of measurements of one path.

    Raises as `read_source` does, NotFound for one of several that is no file, and
    InconsistentInput for several of which one is no measurement.
    """
    if len(names) == 1:
        return read_source(names[0], settings)
    if names.count(STANDARD_INPUT) > 1:
        raise InvalidInput("expected - only once", field="source")
    contents = []
    for name in names:
        source = read_source(name, settings)
        if isinstance(source, ProfileSource) and not is_there(name):
            raise NotFound(
                f"there is no file {quoted(name)}; several sources are files of measurements of "
                "one path, and a profile is given alone",
                field="source",
            )
        if not isinstance(source, TraceSource) or is_of_own_transfers(source):
            raise InconsistentInput(
                "several files are measurements of one path, as latencies and bandwidths, and "
                f"{quoted(name)} holds none",
                field="source",
            )
        contents.append(source.content)
    return TraceSource(contents[0], tuple(contents[1:]))


def is_of_own_transfers(source: TraceSource) -> bool:
    """Return whether a text is a file of a user's own transfers."""
    from fitting.own_transfers import is_own_transfers

    return is_own_transfers(source.content.decode("utf-8", errors="replace"))


def _stages_of(raw: bytes) -> RequestSource | None:
    """Return the stages of a table of their costs; None of another text. Raises InvalidInput."""
    from app.schemas.base import dump_json
    from app.schemas.stages import pipeline_out

    text = raw[: MAX_TEXT + 1].decode("utf-8", errors="replace")
    if not is_stage_table(text):
        return None
    return RequestSource({"pipeline": _json_of(dump_json(pipeline_out(read_stage_table(text))))})


def read_trace(name: str, settings: Settings) -> bytes:
    """Return the content of a trace file or of standard input, expanded."""
    if not is_there(name):
        raise NotFound(f"there is no file {quoted(name)}", field="source")
    return _read(name, settings.max_trace_bytes)


def _read(name: str, limit: int) -> bytes:
    if name == STANDARD_INPUT:
        raw = sys.stdin.buffer.read(limit + 1)
    else:
        try:
            with open(name, "rb") as file:
                raw = file.read(limit + 1)
        except OSError as refusal:
            reason = refusal.strerror or "it cannot be read"
            raise InvalidInput(f"{quoted(name)}: {reason}", field="source") from None
    if len(raw) > limit:
        raise BodyTooLarge(f"expected at most {limit} bytes (SLUICE_MAX_TRACE_BYTES)")
    if not raw.startswith(MAGIC):
        return raw
    return expand(raw, limit)


def _document_of(raw: bytes) -> object:
    """Return the JSON of a request or of costs; None of a trace, whose first line begins like JSON
    or which is JSON itself: in our own format, or in that of a tool. Raises NotJson.
    """
    from fitting import is_of_a_tool

    is_object = raw[:_LOOKED_AT].removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"{"
    try:
        document = _json_of(raw)
    except NotJson:
        if not is_object or is_of_a_tool(raw):
            return None  # a line may begin with [0]; it is refused as every trace is
        raise
    names = document.keys() if isinstance(document, dict) else ()
    if "understood" in names:
        return document
    is_ours = any(name in _REQUESTED for name in names)
    return None if "kind" in names or (not is_ours and is_of_a_tool(raw)) else document


def _json_of(raw: bytes) -> object:
    import orjson

    try:
        document: object = orjson.loads(raw.removeprefix(codecs.BOM_UTF8))
    except orjson.JSONDecodeError as refusal:
        raise NotJson(
            f"not JSON, line {refusal.lineno}, column {refusal.colno}: {refusal.msg}"
        ) from None
    return document


def _request_of(document: object) -> dict[str, Any]:
    if isinstance(document, list) and document and all(isinstance(one, dict) for one in document):
        return {"pipeline": {"stages": document}}
    if not isinstance(document, dict):
        raise InvalidInput("expected a pipeline or a request body, a JSON object", field="source")
    if "stages" in document:
        return {"pipeline": document}
    if "total" in document and "bottleneck" in document:
        return {"aggregate": document}
    return document


def in_plain_units(document: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """Return the document with costs and sizes that are texts, as "12 GB/s", as plain numbers.

    Raises UnitMismatch, naming the field.
    """
    return {name: _plain(name, value, depth) for name, value in document.items()}


def _plain(name: str, value: Any, depth: int) -> Any:
    read = _QUANTITIES.get(name)
    if read is not None and isinstance(value, str):
        try:
            return read(value)
        except UnitMismatch as refusal:
            raise UnitMismatch(refusal.detail, field=name) from None
    if depth >= _DEEPEST:
        return value
    if isinstance(value, dict):
        return in_plain_units(value, depth + 1)
    if isinstance(value, list):
        read_one = _FORMS.get(name, lambda one: one)
        return [_plain("", read_one(one), depth + 1) for one in value]
    return value


def _with_columns(stage: Any) -> Any:
    return plain_stage(stage) if isinstance(stage, dict) else stage


def _window(given: Any) -> Any:
    """A window whose bytes may be a text, as "256 MiB": elsewhere `bytes` is another word."""
    if not isinstance(given, dict) or not isinstance(given.get("bytes"), str):
        return given
    try:
        return {**given, "bytes": parse_bytes(given["bytes"])}
    except UnitMismatch as refusal:
        raise UnitMismatch(refusal.detail, field="bytes") from None


_FORMS: Mapping[str, Callable[[Any], Any]] = {
    "stages": _with_columns,
    "ranges": _with_columns,
    "windows": _window,
}


def plain_stage(stage: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stage of a JSON document with its costs in the contract's words and units.

    A member that a stage table could have as a column, as "bandwidth": "24 GB/s" or
    "bw (GB/s)": 24, is that column's. Raises UnitMismatch naming the member.
    """
    found: dict[str, Any] = {}
    for name, value in stage.items():
        heading = None if name in _PLAIN_MEMBERS else heading_of(name)
        if heading is None or heading.column is StageColumn.NAME:
            found[name if heading is None else "name"] = value
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number and not isinstance(value, str):
            found[name] = value  # refused by name, as any field that is not known
            continue
        try:
            member, cost = _member(heading, repr(value) if is_number else value)
        except UnitMismatch as refusal:
            raise UnitMismatch(refusal.detail, field=name) from None
        if member in found:
            raise UnitMismatch(f"expected {member} once", field=name)
        found[member] = cost
    return found


_PLAIN_MEMBERS = frozenset(
    (
        *("name", "overhead_us", "ns_per_byte", "up_to_bytes", "ranges", "handoff_bytes"),
        *("lanes", "shared_ns_per_byte", "delay_us", "processor"),
    )
)


def _member(heading: Heading, text: str) -> tuple[str, float | int]:
    if heading.column is StageColumn.OVERHEAD:
        return "overhead_us", overhead_us(text, heading)
    if heading.column is StageColumn.COST:
        return "ns_per_byte", ns_per_byte(text, heading)
    return "up_to_bytes", parse_bytes(text)


def merged(body: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the body with the options that were given; options win, those of `constraints`,
    `uncertainty` and `fit_options` one by one.
    """
    given = {name: value for name, value in options.items() if value is not None}
    for group in ("constraints", "uncertainty", "fit_options"):
        inside = given.pop(group, {})
        inside = {name: value for name, value in inside.items() if value is not None}
        if inside:
            before = body.get(group)
            given[group] = {**(before if isinstance(before, dict) else {}), **inside}
    return {**body, **given}


def test_in_names(names: Sequence[str]) -> str | None:
    """Return the test that these files are called after, or that of each in their order; None for
    none.
    """
    found = [named_test(Path(name).name) or "" for name in names]
    if len(set(found)) == 1:
        return found[0] or None
    joined = ",".join(found)
    is_each = not any(Path(name).is_dir() for name in names)
    return joined if is_each and len(joined) <= MAX_TEST_LENGTH else None


def json_body(name: str, settings: Settings, *, field: str) -> dict[str, Any]:
    """Return a document of a file, in JSON. Raises NotFound and InvalidInput."""
    source = read_source(name, settings)
    if isinstance(source, ProfileSource):  # a name that is no file
        raise NotFound(f"there is no file {quoted(name)}", field=field)
    if not isinstance(source, RequestSource):
        raise InvalidInput("expected a document in JSON", field=field)
    return source.body


def request_of(
    kind: type[T],
    source: Source | None,
    options: dict[str, Any],
    *,
    needs_message: bool = False,
    takes_messages: bool = False,
    takes: Collection[str] = (),
    complete: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> T:
    """Return the request of a source's body and of these options, which win.

    What this request has no field for is left out of the body, so that a file serves several
    commands; so is what it does not `take`, where that is said. Where several messages are taken a
    single one is a list of it. `complete` puts in what this command asks where nobody has said it.
    Raises InvalidInput.
    """
    from app.schemas.base import dump_json, parse_json

    given = {} if source is None else body_of(source)
    if "items" not in (each.name for each in fields(kind)):
        refuse_items(given)
    known = takes or {each.name for each in fields(kind)}
    base = {name: value for name, value in given.items() if name in known}
    if takes_messages and isinstance(base.get("message_bytes"), int):
        base["message_bytes"] = [base["message_bytes"]]
    body = merged(base, options)
    if needs_message and body.get("message_bytes") is None and body.get("items") is None:
        raise InvalidInput(
            "expected --bytes, the size of the message, as 4096 or 64KiB", field="message_bytes"
        )
    return parse_json(kind, dump_json(body if complete is None else complete(body)))


def refuse_items(body: Mapping[str, Any]) -> None:
    """Raise ItemsDeclined where a request has items, for commands that would leave them out."""
    if body.get("items") is not None:
        raise ItemsDeclined(
            "only optimize, simulate, compare, audit and hide take items: they are one message, so "
            "that there are no tables of them, and no sizes for all messages",
            field="items",
        )


def costs_of(source: Source | None, asked: CostSource) -> CostSource:
    """Return where the costs of a question come from, that was asked by `body_of` of this source.

    A trace goes round the JSON parser: it may be a hundred times longer than any request.
    """
    from app.questions.traces import Measurement

    if not isinstance(source, TraceSource):
        return asked
    return tuple(map(Measurement, (source.content, *source.further)))


def body_of(source: Source) -> dict[str, Any]:
    """Return the request body that a source stands for; a trace is put in later."""
    if isinstance(source, RequestSource):
        return source.body
    if isinstance(source, ProfileSource):
        return {"profile": source.reference}
    return {"measurements": {"content": ""}}
