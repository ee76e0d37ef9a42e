"""How parts of requests and answers are declared: each field once, with its rule and its words.

    class RepeatIn(Input):
        "One size is repeated."

        repeat: Bytes = asked("the size to repeat, bytes")

    @output
    class RepeatOut(Output):
        "What repeating it takes."

        latency_us: float = sent("the latency, µs")

From a field come the check of a body, its words in the interface's document, and what people who
ask by other ways than JSON are asked for. pydantic finds `__get_pydantic_...__` by these names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, TypeAlias, TypeVar, dataclass_transform, overload

_ASKED = "asked"
T = TypeVar("T")
Schema: TypeAlias = dict[str, Any]
Strict: TypeAlias = Mapping[str, Any]


# --- the rule of a value --------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """Limits of a number, a text or a list, named as pydantic's core names them: ge, max_length.

    `is_whole` reads 4096.0 as 4096, since JSON knows one kind of number; of a list every item.
    """

    limits: tuple[tuple[str, Any], ...]
    is_whole: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Schema:
        schema = {**handler(source), **dict(self.limits)}
        if not self.is_whole:
            return schema
        read = whole if schema["type"] == "int" else all_whole
        function = {"type": "no-info", "function": read}
        return {"type": "function-before", "function": function, "schema": schema}


def rule(*, is_whole: bool = False, **limits: Any) -> Rule:
    """Return the rule of these limits."""
    return Rule(tuple(limits.items()), is_whole)


def whole(value: Any) -> Any:
    """Return 4096.0 as 4096: JSON knows one kind of number only."""
    return int(value) if type(value) is float and value.is_integer() else value


def all_whole(values: Any) -> Any:
    """Return the list with whole numbers as integers; a list of integers at once."""
    if isinstance(values, list) and float in set(map(type, values)):
        return [whole(value) for value in values]
    return values


@dataclass(frozen=True)
class Documented:
    """What the JSON Schema of a value says beyond its rule, where who reads it checks it later."""

    keywords: tuple[tuple[str, Any], ...]

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> Schema:
        return {**handler(core_schema), **dict(self.keywords)}


def documented(**keywords: Any) -> Documented:
    """Return what these keywords of JSON Schema say."""
    return Documented(tuple(keywords.items()))


@dataclass(frozen=True)
class OneOf:
    """The forms of a value: `choose` returns the name of the form that a given value is meant as.

    A refusal speaks of that form alone. Names begin with `~` and are left out of pointers.
    """

    choose: Callable[[Any], str]
    forms: tuple[tuple[str, Any], ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Schema:
        return {
            "type": "tagged-union",
            "choices": {name: handler.generate_schema(form) for name, form in self.forms},
            "discriminator": self.choose,
        }


def one_of(choose: Callable[[Any], str], **forms: Any) -> OneOf:
    """Return the forms by their names, which stand in a location with `~` before them."""
    return OneOf(choose, tuple((f"~{name}", form) for name, form in forms.items()))


def by_type(kind: type, form: str, otherwise: str) -> Callable[[Any], str]:
    """Return the choice of `form` for values of this type, as texts are, and of the other else."""
    return lambda value: f"~{form}" if isinstance(value, kind) else f"~{otherwise}"


def by_member(otherwise: str, **forms: str) -> Callable[[Any], str]:
    """Return the choice of the form of the first of these members that an object has."""

    def choose(value: Any) -> str:
        given = value if isinstance(value, dict) else getattr(value, "__dict__", {})
        for member, form in forms.items():
            if member in given:
                return f"~{form}"
        return f"~{otherwise}"

    return choose


# --- a field --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """One field: what it is, its unit, its option, and its place on a page.

    `means` says it in full, with its unit, for documents and clients; `help` is the option's, short
    beside its name and default; `label` is the page's. `place` is where its value stands in the
    body. `also` is a second name of the option. `mark`: the value that an option, or a box, stands
    for where it takes none. `choices` are all values that there are, `offers` those among which a
    page has one chosen where an option takes others, too. `is_repeated`: an option for each item,
    or where it `takes_several` one option for all; on a page commas part them. What `takes_several`
    and is not repeated is one text, of which an option takes the parts. `is_long`: a text of any
    length; of others a page takes `max_characters`. `file` is what the file is called that the
    option reads, where a page has its text. `needs` names the field without which this one says
    nothing. `echoes`: of an answer, which repeats what was asked. What has no `option` is not on
    the command line, and what has no `label` not on a page.
    """

    means: str
    help: str = ""
    unit: str = "text"
    option: str = ""
    also: str = ""
    metavar: str = ""
    page: str = ""
    label: str = ""
    hint: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    offers: tuple[tuple[str, str], ...] = ()
    mark: Any = None
    is_repeated: bool = False
    takes_several: bool = False
    is_long: bool = False
    max_characters: int = 200
    file: str = ""
    is_required: bool = False
    is_source: bool = False
    needs: str = ""
    begins_with: str = ""
    echoes: bool = False
    place: tuple[str, ...] = ()
    words: tuple[Asked, ...] = ()  # of a block, behind the field's own if it is asked for itself

    @property
    def name(self) -> str:
        """Its name on a page."""
        return self.page or self.place[-1]

    @property
    def usual(self) -> str:
        """What a page says where nothing is chosen, "" where nothing is to be chosen."""
        return next((value for value, _ in self.choices or self.offers), "")

    @property
    def pointer(self) -> str:
        """Its place, as refusals name it."""
        return "/" + "/".join(self.place)


def asked(
    means: str,
    *,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    block: type | None = None,
    only: tuple[str, ...] = (),
    **more: Any,
) -> Any:
    """Return the dataclass field of one value, or of a block of fields that are asked for, or of
    these `only`, in their order.
    """
    words = words_of(block, only) if block is not None else ()
    metadata = {_ASKED: Asked(means, words=words, **more)}
    if default_factory is not MISSING:
        return field(default_factory=default_factory, metadata=metadata)
    return field(default=default, metadata=metadata)


def sent(means: str, *, default: Any = MISSING, default_factory: Any = MISSING) -> Any:
    """Return the dataclass field of one value of an answer; `means` says it, with its unit."""
    return asked(means, default=default, default_factory=default_factory)


def echoed(means: str, *, default: Any = MISSING) -> Any:
    """Return the dataclass field of an answer that repeats what the question of this name says."""
    return asked(means, default=default, echoes=True)


@cache
def echoed_names(kind: type) -> tuple[str, ...]:
    """Return the names of an answer's fields that repeat what was asked."""
    declared = ((each.name, each.metadata.get(_ASKED)) for each in fields(kind))
    return tuple(name for name, word in declared if word is not None and word.echoes)


@cache
def words_of(kind: type, only: tuple[str, ...] = ()) -> tuple[Asked, ...]:
    """Return each field of a request that is asked for, or of these, in their order; blocks are
    entered.
    """
    if not only:
        return tuple(_words(kind))
    wanted = [word for word in _words(kind) if word.place[0] in only]
    return tuple(sorted(wanted, key=lambda word: only.index(word.place[0])))


def _words(kind: Any) -> Iterator[Asked]:
    for each in fields(kind):
        declared: Asked | None = each.metadata.get(_ASKED)
        if declared is None:
            continue
        if not declared.words or declared.option:
            yield replace(declared, place=(each.name,), words=())
        for inner in declared.words:
            yield replace(inner, place=(each.name, *inner.place))


def document_of(words: Sequence[Asked], values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """Return the body of these values by place; what is None is left out."""
    found: dict[str, Any] = {}
    for word in words:
        value = values.get(word.place)
        if value is None:
            continue
        at = found
        for step in word.place[:-1]:
            at = at.setdefault(step, {})
        at[word.place[-1]] = value
    return found


# --- parts of a body ------------------------------------------------------------------------------


def wire_name(name: str) -> str:
    """Return the name that a field of this name has in a body: a keyword of Python, as `from`, is
    declared with `_` behind it.
    """
    return name.removesuffix("_")


class _Part:
    """A part of a body, whose schema has the words of its fields."""

    __slots__ = ()

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> Any:
        schema = handler(core_schema)
        found = handler.resolve_ref_schema(schema)
        found.update(getattr(cls, "schema_rules", {}))
        properties = found.get("properties", {})
        for each in fields(cls):  # type: ignore[arg-type]
            declared: Asked | None = each.metadata.get(_ASKED)
            name = wire_name(each.name)
            if declared is not None:
                properties[name]["description"] = declared.means
            if isinstance(made := default_of(each), (list, dict)):
                properties[name].setdefault("default", made)
        return schema


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(asked, field))
class Input(_Part):
    """A part of a request: every subclass is a frozen dataclass, made by keywords, read strictly.

    `max_members` is how many fields a body may have, over all its parts, `schema_rules` what its
    JSON Schema says of fields together.
    """

    __pydantic_config__: ClassVar[Strict] = {
        "extra": "forbid",
        "strict": True,
        "allow_inf_nan": False,
        "alias_generator": wire_name,
    }
    max_members: ClassVar[int] = 20_000
    schema_rules: ClassVar[Schema] = {}

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    def said(self) -> dict[str, Any]:
        """Return the fields that say something else than their defaults."""
        pairs = ((each, getattr(self, each.name)) for each in fields(self))  # type: ignore[arg-type]
        return {each.name: value for each, value in pairs if value != default_of(each)}


def default_of(declared: Field[Any]) -> Any:
    """Return the default of a field, MISSING where it has none."""
    made = declared.default_factory
    return declared.default if made is MISSING else made()


class Output(_Part):
    """A part of an answer: the base of frozen dataclasses.

    Their fields are the only declaration of what is sent: orjson writes them in their order, the
    OpenAPI document takes its schemas from them, and stored bodies are read by them. They have no
    slots, because orjson writes a dataclass that has a `__dict__` five times as fast.
    """

    __slots__ = ()
    # What has a default for bodies of earlier versions is always sent.
    __pydantic_config__: ClassVar[Strict] = {
        "extra": "forbid",
        "strict": True,
        "allow_inf_nan": False,
        "json_schema_serialization_defaults_required": True,
    }


class Sparse(Output):
    """A part of an answer that has a field with a default only where it says something else, so
    that bodies which say nothing of it are as they were before there was such a field.

    What is left out of an object's `__dict__` is not written, and reads as its class has it.
    """

    __slots__ = ()
    __pydantic_config__: ClassVar[Strict] = {
        **Output.__pydantic_config__,
        "json_schema_serialization_defaults_required": False,
    }

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            if vars(self)[each.name] == each.default:
                del vars(self)[each.name]


@overload
def output(kind: type[T], /) -> type[T]: ...
@overload
def output(*, kw_only: bool) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(sent, echoed, field))
def output(kind: type[T] | None = None, /, *, kw_only: bool = False) -> Any:
    """Return a part of an answer as a frozen dataclass, whose fields may be `sent(meaning)`."""
    made = dataclass(frozen=True, kw_only=kw_only)
    return made if kind is None else made(kind)


def exactly_one(*names: str) -> list[Any]:
    """Return the JSON Schema `oneOf` by which exactly one of these fields is not null."""
    null = {"type": "null"}
    return [
        {
            "required": [name],
            "properties": {other: {"not": null} if other == name else null for other in names},
        }
        for name in names
    ]
