"""What inputs and outputs have in common, the one function that parses a body, and shared types."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from typing import Any, Protocol, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from app.errors import field_problems, kind_of, pointer_of, problem_type
from contract.declare import Input, Output, echoed_names, wire_name
from contract.limits import MAX_REPORTED, MAX_SEED, PROFILE_NAME_RULE
from contract.notices import NoticeOut
from contract.problem import FieldProblemOut, ProblemOut
from contract.profile import ProfileRevisionOut
from contract.rules import SEED_PATTERN
from domain.errors import (
    FieldProblem,
    InvalidFields,
    InvalidInput,
    NotJson,
    SluiceError,
    UnreadableRecord,
)
from domain.profile import PROFILE_NAME_WORDS
from domain.solution import Notice

MAX_ARRAYS_AND_OBJECTS = 20_000
MAX_ELEMENTS = 300_000
MAX_EXPLAINED = 1_000  # a body with more faults than this is refused without listing them

# Names of the branches of a union that pydantic puts into an error's location.
NAMED, GIVEN = "~named", "~given"
_KEY = "[key]"  # of an object whose members clients name: then the member itself is at fault
_BRANCHES = frozenset(
    (
        *("~line", "~ranges", "~one", "~many"),
        *("~static", "~whole", "~steps", "~configuration", "~listed", "~repeated"),
        *(NAMED, GIVEN, _KEY),
    )
)


_ANOTHER_VERSION = "this was stored by an earlier version, in another form: solve it again"

T = TypeVar("T")
OutputT = TypeVar("OutputT", bound=Output)


def parse_json(model: type[T], body: bytes) -> T:
    """Return the body as this model. Raises NotJson, and InvalidInput where it breaks a rule."""
    limit: int = getattr(model, "max_members", Input.max_members)
    _check_structure(body, max_members=limit)
    made: T | None
    try:
        made, refused = _reader(model)(body), None
    except ValidationError as refusal:
        made, refused = None, _as_domain_error(refusal)
    if not isinstance(refused, NotJson):  # its keys would take longer than all else
        refuse_doubled_keys(body)
    if made is None:
        raise refused or AssertionError
    return made


def read_request(model: type[T], stored: bytes) -> T:
    """Return the request that a job keeps. Raises UnreadableRecord for one of another version."""
    try:
        return parse_json(model, stored)
    except (InvalidInput, NotJson):
        raise UnreadableRecord(_ANOTHER_VERSION) from None


def load_json(body: bytes) -> Any:
    """Return a document of any number of values, as a trace has them.

    Raises NotJson, and InvalidFields for more lists and objects than any trace has.
    """
    if body.count(b"{") + body.count(b"[") > MAX_ARRAYS_AND_OBJECTS:
        _check_structure(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as refusal:
        raise NotJson(
            f"the body is not JSON: line {refusal.lineno}, column {refusal.colno}: {refusal.msg}"
        ) from None


def dump_json(document: object) -> bytes:
    """Return a document as JSON bytes."""
    return orjson.dumps(document)


def dump_request(asked: Input) -> bytes:
    """Return a request as JSON bytes, as a job keeps it: without its fields that are null where
    that is what they are when nothing is said. Most fields of most requests are.
    """
    return orjson.dumps(_stated(asked))


def _stated(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_stated(part) for part in value]
    if not is_dataclass(value):
        return value
    # A field that has to be said may be null too: the size of a setting's last step.
    pairs = ((each, getattr(value, each.name)) for each in fields(value))
    return {
        wire_name(each.name): _stated(part)
        for each, part in pairs
        if part is not None or each.default is not None
    }


def read_output(kind: type[OutputT], body: bytes) -> OutputT:
    """Return what a stored body says. Raises UnreadableRecord for one of another version."""
    try:
        found: OutputT = _reader(kind)(body)
    except ValidationError:
        raise UnreadableRecord(_ANOTHER_VERSION) from None
    return found


def prepare_output(kind: type[Output]) -> None:
    """Build what reads stored bodies of this kind, which the first of them would wait for."""
    _reader(kind)


def read_part(kind: type[OutputT], body: bytes, name: str) -> OutputT | None:
    """Return one field of a stored body of any version; None where it is not there, or another."""
    try:
        return read_output(kind, orjson.dumps(orjson.loads(body)[name]))
    except (UnreadableRecord, orjson.JSONDecodeError, KeyError, TypeError):
        return None


def _make_reader(kind: Any) -> Callable[[bytes], Any]:
    return TypeAdapter(kind).validator.validate_json


_reader: Callable[[Any], Callable[[bytes], Any]] = cache(_make_reader)


def same_named(kind: type[OutputT], value: object) -> OutputT:
    """Return an output whose fields are the attributes of the same names of a value."""
    return kind(*_attributes(kind)(value))


def echoes(kind: type, *asked: object) -> dict[str, Any]:
    """Return what an answer of this kind repeats of the questions, those that have it, by name."""
    return {
        name: getattr(question, name)
        for name in echoed_names(kind)
        for question in asked
        if hasattr(question, name)
    }


def _attributes_of(kind: Any) -> attrgetter[tuple[Any, ...]]:
    return attrgetter(*(field.name for field in fields(kind)))


_attributes: Callable[[Any], attrgetter[tuple[Any, ...]]] = cache(_attributes_of)


def timestamp(time: datetime) -> str:
    """Return a time in UTC, as RFC 3339 with microseconds."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def notice_of(sent: NoticeOut) -> Notice:
    """Return the domain's notice."""
    return Notice(sent.code, sent.detail, sent.stage, tuple(sent.values.items()))


def notices_out(notices: Iterable[Notice]) -> tuple[NoticeOut, ...]:
    """Return the notices of an answer, in their order."""
    return tuple(
        NoticeOut(notice.code, notice.detail, notice.stage, dict(notice.values))
        for notice in notices
    )


class _NamedRevision(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def revision(self) -> int: ...


def revision_out(profile: _NamedRevision | None) -> ProfileRevisionOut | None:
    """Return the revision of an answer, None for costs that no profile holds."""
    return ProfileRevisionOut(profile.name, profile.revision) if profile else None


def invalid_fields(found: list[dict[str, Any]], *, total: int) -> InvalidFields:
    """Return the error for what pydantic found."""
    problems = tuple(
        FieldProblem(pointer_of(_location(error["loc"])), _rule(error))
        for error in found[:MAX_REPORTED]
    )
    return refused_fields(problems, total=total)


def refused_fields(problems: Sequence[FieldProblem], *, total: int | None = None) -> InvalidFields:
    """Return the error for these problems, of `total`; the first one is said in its sentence."""
    first, total = problems[0], len(problems) if total is None else total
    where = first.pointer or "the document"
    more = f" (and {total - 1} more)" if total > 1 else ""
    return InvalidFields(f"{where}: {first.detail}{more}", problems=tuple(problems[:MAX_REPORTED]))


def _as_domain_error(refusal: ValidationError) -> InvalidInput | NotJson:
    total = refusal.error_count()
    if total > MAX_EXPLAINED:
        return InvalidInput(f"{total} fields break rules, too many to list")
    found: list[dict[str, Any]] = refusal.errors(include_url=False, include_input=False)  # type: ignore[assignment]
    if found[0]["type"] != "json_invalid":
        return invalid_fields(found, total=total)
    reason = str(found[0]["ctx"]["error"])
    if reason.startswith("recursion limit exceeded"):
        return InvalidInput("the document is nested too deeply")
    if reason.startswith("number out of range"):
        return InvalidInput("the document holds a number that is beyond every limit")
    return NotJson(f"the body is not JSON: {reason}")


_MESSAGES = {
    "extra_forbidden": "unknown field",
    "unexpected_keyword_argument": "unknown field",
    "missing": "this field is required",
    "model_type": "expected an object",
    "dataclass_type": "expected an object",
    "model_attributes_type": "expected an object",
    "dict_type": "expected an object",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_parsing_size": "expected a whole number within the limits",
    "float_type": "expected a number",
    "finite_number": "expected a finite number",
    "string_type": "expected a string",
    "bool_type": "expected true or false",
}


_UNKNOWN = frozenset(("extra_forbidden", "unexpected_keyword_argument"))
# Fields that are known elsewhere: why they are not here.
_ELSEWHERE = {
    (
        "items",
    ): "only optimize, simulate, compare, audit and hide take items: they are one message, "
    "so that there are no tables of them, and no sizes for all messages",
}


_RULES: dict[str, Callable[[dict[str, Any]], str]] = {
    "too_long": lambda limit: f"expected at most {limit['max_length']} items",
    "too_short": lambda limit: f"expected at least {limit['min_length']} items",
    "string_too_long": lambda limit: f"expected at most {limit['max_length']} characters",
    "string_too_short": lambda limit: f"expected at least {limit['min_length']} characters",
    "string_pattern_mismatch": lambda limit: _format_pattern(limit["pattern"]),
    "greater_than": lambda limit: f"expected a number > {limit['gt']}",
    "greater_than_equal": lambda limit: f"expected a number >= {limit['ge']}",
    "less_than": lambda limit: f"expected a number < {limit['lt']}",
    "less_than_equal": lambda limit: f"expected a number <= {limit['le']}",
    "enum": lambda limit: f"expected one of {limit['expected']}",
    "literal_error": lambda limit: _format_choices(limit["expected"]),
    "value_error": lambda limit: str(limit["error"])[:300],  # our own validators' words
}


def _format_choices(expected: str) -> str:
    """Return the values that there are, those of enumerations without their names in Python."""
    words = re.sub(r"<[\w.]+: ('[^']*')>", r"\1", expected)
    if words in ("True", "False"):
        return f"expected {words.lower()}"
    return f"expected one of {words}" if " or " in words else f"expected {words}"


def _format_pattern(pattern: str) -> str:
    """Return the rule of a profile's name or a seed in words; of other texts the pattern."""
    if pattern == SEED_PATTERN:
        return f"expected the digits of a whole number <= {MAX_SEED}"
    if pattern.startswith(f"^{PROFILE_NAME_RULE}"):
        pinned = ", or name@2 for a revision" if "@" in pattern else ""
        return f"expected {PROFILE_NAME_WORDS}{pinned}"
    return f"expected text that matches {pattern}"


def _rule(error: dict[str, Any]) -> str:
    # The context of these errors holds the rule's own limits, never the input.
    kind = error["type"]
    if kind in _UNKNOWN and error["loc"] in _ELSEWHERE:
        return _ELSEWHERE[error["loc"]]
    if kind in _RULES:
        return _RULES[kind](error["ctx"])
    return _MESSAGES.get(kind) or str(error["msg"])[:300]


def _location(location: tuple[int | str, ...]) -> list[str]:
    return [str(step) for step in location if step not in _BRANCHES]


def _check_structure(body: bytes, *, max_members: int = Input.max_members) -> None:
    """Refuse documents with more parts than any request has, before they become objects.

    A parser turns 4 MiB of `{},{},...` into more than a million objects. To count characters takes
    half a millisecond a megabyte once all others are left out; only where the counts are suspicious
    are strings taken out and counted again.
    """
    if len(body) <= MAX_ARRAYS_AND_OBJECTS:  # of all limits the lowest
        return
    if _excess(body.translate(None, _OTHERS), max_members) and (
        excess := _excess(_without_strings(body), max_members)
    ):
        raise InvalidFields(excess, problems=(FieldProblem("", excess),))


_OTHERS = bytes(sorted(set(range(256)) - set(b"{[:,")))


def _without_strings(body: bytes) -> bytes:
    # Splitting at quotes is several times faster than matching strings, of which there may be a
    # million. Escaped backslashes go first, so that what is left before a quote escapes it.
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"")
    return b"".join(plain.split(b'"')[::2])


def _excess(body: bytes, max_members: int) -> str | None:
    if body.count(b"{") + body.count(b"[") > MAX_ARRAYS_AND_OBJECTS:
        return f"expected a document of at most {MAX_ARRAYS_AND_OBJECTS} lists and objects"
    if body.count(b":") > max_members:
        return f"expected a document of at most {max_members} fields"
    if body.count(b",") > MAX_ELEMENTS:
        return f"expected a document of at most {MAX_ELEMENTS} values"
    return None


# --- keys that an object has twice ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Doubled:
    """In the place of an object in which this key stands more than once."""

    key: str


def refuse_doubled_keys(body: bytes) -> None:
    """Raise InvalidFields where an object has a key more than once: parsers take the last of them.

    What is no JSON is left to the parser. RFC 8259, section 4.
    """
    # Other parsers take numbers that this one refuses: then nothing is known yet.
    with suppress(orjson.JSONDecodeError, orjson.JSONEncodeError):
        kept = orjson.dumps(orjson.loads(body))
        # Colons are in texts, which stay, or behind keys; only an escaped one is another in texts.
        if kept.count(b":") == body.count(b":") and not _ESCAPED_COLON.search(body):
            return
    try:
        document = json.loads(str(body, "utf-8"), object_pairs_hook=_once, parse_int=str)
        pointer = pointer_of(_doubled_in(document))
        pointer.encode()  # a lone surrogate is no JSON for the parser
    except (ValueError, RecursionError):
        return
    if pointer:
        rule = "the key is given more than once"
        raise InvalidFields(f"{pointer}: {rule}", problems=(FieldProblem(pointer, rule),))


_ESCAPED_COLON = re.compile(rb"\\u003[aA]")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Doubled:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    (key, _), *_ = Counter(key for key, _ in pairs).most_common(1)
    return _Doubled(key)


def _doubled_in(document: Any) -> list[str]:
    """Return the place of the first key that stands twice, from the outside in; empty if none."""
    waiting: deque[tuple[Any, list[str]]] = deque([([document], [])])
    while waiting:
        found, place = waiting.popleft()
        if isinstance(found, _Doubled):
            return [*place[1:], found.key]
        inner = found.items() if isinstance(found, dict) else enumerate(found)
        waiting.extend(
            (one, [*place, str(step)])
            for step, one in inner
            if isinstance(one, (dict, list, _Doubled))
        )
    return []


# --- problem documents (RFC 9457) -----------------------------------------------------------------


def problem_out(error: SluiceError) -> ProblemOut:
    """Return the document of an error."""
    kind = kind_of(error.code)
    return ProblemOut(
        type=problem_type(error.code),
        title=kind.title,
        status=kind.status,
        code=error.code,
        detail=error.detail,
        errors=tuple(same_named(FieldProblemOut, problem) for problem in field_problems(error)),
    )
