"""What inputs and outputs have in common, the one function that parses a body, and shared types."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from app.errors import pointer_of
from domain.errors import MAX_REPORTED, FieldProblem, InvalidFields, InvalidInput, NotJson
from domain.pipeline import MAX_MESSAGE_BYTES
from domain.profile import PROFILE_NAME_RULE, PROFILE_NAME_WORDS

MAX_ARRAYS_AND_OBJECTS = 20_000
MAX_MEMBERS = 20_000
MAX_ELEMENTS = 300_000
MAX_EXPLAINED = 1_000  # a body with more faults than this is refused without listing them

# Names of the branches of a union that pydantic puts into an error's location.
LINE, RANGES, ONE, MANY = "~line", "~ranges", "~one", "~many"
STATIC, WHOLE, STEPS, CONFIGURATION = "~static", "~whole", "~steps", "~configuration"
_BRANCHES = frozenset((LINE, RANGES, ONE, MANY, STATIC, WHOLE, STEPS, CONFIGURATION))


class Input(BaseModel):
    """Part of a request body."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Output(BaseModel):
    """Part of an answer; every field is required."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def whole(value: Any) -> Any:
    """4096.0 is a whole number in JSON, which knows one kind of number only."""
    return int(value) if type(value) is float and value.is_integer() else value


def all_whole(values: Any) -> Any:
    """The same for a list, without a call for each item where all of them are integers."""
    if isinstance(values, list) and float in set(map(type, values)):
        return [whole(value) for value in values]
    return values


PlainBytes = Annotated[int, Field(ge=1, le=MAX_MESSAGE_BYTES, description="whole bytes")]
Bytes = Annotated[PlainBytes, BeforeValidator(whole)]
Microseconds = Annotated[float, Field(allow_inf_nan=False, description="µs")]
ProfileName = Annotated[str, Field(pattern=f"^{PROFILE_NAME_RULE}$")]

T = TypeVar("T", bound=BaseModel)


def parse_json(model: type[T], body: bytes) -> T:
    """The body as this model. Raises NotJson, and InvalidInput for JSON that breaks a rule."""
    _check_structure(body)
    try:
        return model.model_validate_json(body)
    except ValidationError as refusal:
        raise _as_domain_error(refusal) from None


def load_json(body: bytes) -> Any:
    """A document of any number of values, as a trace has them.

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
    """A document as JSON bytes."""
    return orjson.dumps(document)


def timestamp(moment: datetime) -> str:
    """A moment in UTC, as RFC 3339 with microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def invalid_fields(found: list[dict[str, Any]], *, total: int) -> InvalidFields:
    """The error for what pydantic found."""
    problems = tuple(
        FieldProblem(pointer_of(_location(error["loc"])), _rule(error))
        for error in found[:MAX_REPORTED]
    )
    first = problems[0]
    where = first.pointer or "the document"
    more = f" (and {total - 1} more)" if total > 1 else ""
    return InvalidFields(f"{where}: {first.detail}{more}", problems=problems)


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
    "missing": "this field is required",
    "model_type": "expected an object",
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


_RULES: dict[str, Callable[[dict[str, Any]], str]] = {
    "too_long": lambda limit: f"expected at most {limit['max_length']} items",
    "too_short": lambda limit: f"expected at least {limit['min_length']} items",
    "string_too_long": lambda limit: f"expected at most {limit['max_length']} characters",
    "string_too_short": lambda limit: f"expected at least {limit['min_length']} characters",
    "string_pattern_mismatch": lambda limit: _pattern_words(limit["pattern"]),
    "greater_than": lambda limit: f"expected a number > {limit['gt']}",
    "greater_than_equal": lambda limit: f"expected a number >= {limit['ge']}",
    "less_than_equal": lambda limit: f"expected a number <= {limit['le']}",
    "enum": lambda limit: f"expected one of {limit['expected']}",
    "value_error": lambda limit: str(limit["error"])[:300],  # our own validators' words
}


def _pattern_words(pattern: str) -> str:
    """Of a profile's name, which people type, in words; of what programs send the pattern."""
    if pattern.startswith(f"^{PROFILE_NAME_RULE}"):
        pinned = ", or name@2 for a revision" if "@" in pattern else ""
        return f"expected {PROFILE_NAME_WORDS}{pinned}"
    return f"expected text that matches {pattern}"


def _rule(error: dict[str, Any]) -> str:
    # The context of these errors holds the rule's own limits, never the input.
    kind = error["type"]
    if kind in _RULES:
        return _RULES[kind](error["ctx"])
    return _MESSAGES.get(kind) or str(error["msg"])[:300]


def _location(location: tuple[int | str, ...]) -> list[str]:
    return [str(step) for step in location if step not in _BRANCHES]


def _check_structure(body: bytes) -> None:
    """Refuse documents with more parts than any request has, before they become objects.

    A parser turns 4 MiB of `{},{},...` into more than a million objects. Counting characters costs
    a millisecond; only where the counts are suspicious are strings taken out and counted again.
    """
    if _excess(body) and (excess := _excess(_without_strings(body))):
        raise InvalidFields(excess, problems=(FieldProblem("", excess),))


def _without_strings(body: bytes) -> bytes:
    # Splitting at quotes is several times faster than matching strings, of which there may be a
    # million. Escaped backslashes go first, so that what is left before a quote escapes it.
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"")
    return b"".join(plain.split(b'"')[::2])


def _excess(body: bytes) -> str | None:
    if body.count(b"{") + body.count(b"[") > MAX_ARRAYS_AND_OBJECTS:
        return f"expected a document of at most {MAX_ARRAYS_AND_OBJECTS} lists and objects"
    if body.count(b":") > MAX_MEMBERS:
        return f"expected a document of at most {MAX_MEMBERS} fields"
    if body.count(b",") > MAX_ELEMENTS:
        return f"expected a document of at most {MAX_ELEMENTS} values"
    return None
