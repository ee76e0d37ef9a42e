"""Requests and answers as JSON, by the annotations of their dataclasses.

What a document has and a class does not is passed over, so that a service may say more than this
client knows; what it lacks takes the default. What it lacks without a default is an error that
names the place. Names of a `Literal` are any text: a service may know more of them.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from itertools import repeat
from operator import index
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from sluice_client.contract.declare import default_of, wire_name
from sluice_client.errors import InvalidRequest, UnexpectedAnswer

T = TypeVar("T")
_Read = Callable[[Any], Any]


def as_json(value: Any) -> Any:
    """Return a request, an answer or a part of one as bodies have it.

    Fields that say what their defaults say are left out, so that an older service, which does not
    know all of them, takes the rest. Whole numbers of other libraries, as NumPy's, are whole
    numbers. Raises InvalidRequest for what no body can have, naming the place by JSON pointer.
    """
    return _as_json(value, "")


def _as_json(value: Any, place: str) -> Any:
    if is_dataclass(value):
        declared = _defaults(cast(Any, type(value)))
        pairs = ((wire_name(name), getattr(value, name), default) for name, default in declared)
        return {
            name: _as_json(given, f"{place}/{name}")
            for name, given, default in pairs
            if _differs(given, default)
        }
    if isinstance(value, Mapping):
        return {name: _as_json(given, f"{place}/{name}") for name, given in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(given, f"{place}/{at}") for at, given in enumerate(value)]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    try:
        return index(value)
    except TypeError:
        raise InvalidRequest(
            f"{place}: expected numbers, texts and the classes of a request, "
            f"got {type(value).__name__}"
        ) from None


def _differs(given: Any, default: Any) -> bool:
    try:
        return bool(given != default)
    except (TypeError, ValueError):  # as of an array, which is compared item by item
        return True


@cache
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((each.name, default_of(each)) for each in fields(kind))


def from_json(kind: type[T], document: Any) -> T:
    """Return the document as this class, or as one of a union of classes.

    Of a union it is the class of which the document has all that has to be there, the one that
    wants the most where there are several. Raises UnexpectedAnswer, naming the place by JSON
    pointer.
    """
    try:
        return cast(T, _reader(cast(Any, kind))(document))
    except _Unfit as unfit:
        raise UnexpectedAnswer(f"{unfit.pointer or 'the answer'}: {unfit.detail}") from None


class _Unfit(Exception):
    """A value that is not what is expected; each reader around it adds its step to the place."""

    def __init__(self, detail: str) -> None:
        self.detail, self._steps = detail, list[object]()

    def below(self, step: object) -> _Unfit:
        self._steps.insert(0, step)
        return self

    @property
    def pointer(self) -> str:
        return "".join(f"/{step}" for step in self._steps)


@cache
def _reader(hint: Any) -> _Read:
    """Return what reads a value of this annotation; made once for each."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _reader(inner[0])
    if origin in (Union, types.UnionType):
        return _union(inner)
    if origin is tuple and inner[1:] != (...,):
        return _fixed([_reader(one) for one in inner])
    if origin in (tuple, list):
        return _many(origin, inner[0])
    if origin is dict:
        return _mapping(_reader(inner[1]))
    return _record(hint) if is_dataclass(hint) else _plain(_plain_type(hint))


def _plain_type(hint: Any) -> Any:
    """Return the type of JSON's own that values of this annotation have; None where it varies."""
    if get_origin(hint) is Annotated:
        return _plain_type(get_args(hint)[0])
    if get_origin(hint) is Literal:
        (kind,) = {type(name) for name in get_args(hint)}
        return kind
    return hint if hint in _NAMES else None


def _plain(kind: Any) -> _Read:
    if kind is None:
        return lambda value: value

    def read(value: Any) -> Any:
        if type(value) is kind:
            return value
        if kind is float and type(value) is int:
            return float(value)
        raise _Unfit(f"expected {_NAMES[kind]}")

    return read


def _union(hints: Sequence[Any]) -> _Read:
    """Read what an object may be by its fields, and anything else by what takes it first."""
    takes_none = types.NoneType in hints
    given: list[Any] = [_bare(hint) for hint in hints if hint is not types.NoneType]
    # The class that wants the most comes first: others are it with fewer fields.
    records: list[Any] = sorted(filter(is_dataclass, given), key=lambda kind: -len(_required(kind)))
    others = [_reader(hint) for hint in given if not is_dataclass(hint)]
    forms = [(_required(kind), _reader(kind)) for kind in records]

    def read(value: Any) -> Any:
        if value is None and takes_none:
            return None
        if forms and (type(value) is dict or not others):
            keys = set(value) if type(value) is dict else set[str]()
            return next((one for needed, one in forms if needed <= keys), forms[-1][1])(value)
        for other in others[:-1]:
            try:
                return other(value)
            except _Unfit:
                continue
        return others[-1](value)

    if len(given) > 1 or not takes_none:
        return read
    (only,) = [one for _, one in forms] or others
    return lambda value: None if value is None else only(value)


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _many(kind: Any, hint: Any) -> _Read:
    plain, read_one = _plain_type(hint), _reader(hint)

    def read(value: Any) -> Any:
        if type(value) is not list:
            raise _Unfit("expected a list")
        if set(map(type, value)) == {plain}:
            return kind(value)
        try:
            return kind([read_one(one) for one in value])
        except _Unfit as unfit:
            raise unfit.below(_first_unfit(repeat(read_one), value)) from None

    return read


def _fixed(readers: list[_Read]) -> _Read:
    def read(value: Any) -> Any:
        if type(value) is not list:
            raise _Unfit("expected a list")
        if len(value) != len(readers):
            raise _Unfit(f"expected {len(readers)} items")
        try:
            return tuple([read_one(one) for read_one, one in zip(readers, value, strict=True)])
        except _Unfit as unfit:
            raise unfit.below(_first_unfit(readers, value)) from None

    return read


def _first_unfit(readers: Iterable[_Read], values: list[Any]) -> int:
    """Return the place of the first value that its reader refuses."""
    for at, (read_one, value) in enumerate(zip(readers, values, strict=False)):
        try:
            read_one(value)
        except _Unfit:
            return at
    return len(values)


def _mapping(read_one: _Read) -> _Read:
    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise _Unfit("expected an object")
        found: dict[str, Any] = {}
        for name, one in value.items():
            try:
                found[name] = read_one(one)
            except _Unfit as unfit:
                raise unfit.below(name) from None
        return found

    return read


def _required(kind: Any) -> set[str]:
    return {wire_name(each.name) for each in fields(kind) if default_of(each) is MISSING}


def _record(kind: Any) -> _Read:
    hints = get_type_hints(kind)
    # What has the plain type is taken as it is; its reader is for the rest.
    parts = [
        (
            wire_name(each.name),
            each.name,
            _plain_type(_without_none(hints[each.name])),
            _reader(hints[each.name]),
        )
        for each in fields(kind)
    ]

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise _Unfit("expected an object")
        found: dict[str, Any] = {}
        for name, attribute, plain, read_one in parts:
            if name in value:
                one = value[name]
                if type(one) is not plain:
                    try:
                        one = read_one(one)
                    except _Unfit as unfit:
                        raise unfit.below(name) from None
                found[attribute] = one
        try:
            return kind(**found)
        except TypeError:
            missing = sorted(_required(kind) - set(map(wire_name, found)))
            raise _Unfit(f"{missing[0]} is missing") from None

    return read


def _without_none(hint: Any) -> Any:
    """Return what a value is that is not None; of several the annotation as it is."""
    given = [one for one in get_args(hint) if one is not types.NoneType]
    is_one = get_origin(hint) in (Union, types.UnionType) and len(given) == 1
    return given[0] if is_one else hint


_NAMES: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    bool: "true or false",
}
