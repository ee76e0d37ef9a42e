"""From JSON to the dataclasses of this package, by their annotations.

What an answer has and a class does not is passed over, so that a service may say more than this
client knows. What a class needs and an answer lacks is an error that names the place.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from sluice_client.errors import UnexpectedAnswer
from sluice_client.shapes import FitRange, Stage

T = TypeVar("T")
_Read = Callable[[Any, str], Any]


def decoded(kind: type[T], document: Any) -> T:
    """Return the document as this class. Raises UnexpectedAnswer, naming the place by JSON
    pointer.
    """
    return cast(T, _reader(cast(Any, kind))(document, ""))


@cache
def _reader(hint: Any) -> _Read:
    """What reads a value of this annotation; made once for each."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value, place: value
    if origin in (Union, types.UnionType):
        (other,) = (one for one in inner if one is not types.NoneType)
        return _or_none(_reader(other))
    if origin is tuple and inner[1:] == (...,):
        return _many(_reader(inner[0]))
    if origin is tuple:
        return _fixed([_reader(one) for one in inner])
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(_reader(inner[1]))
    if hint is Stage:
        return _stage
    return _record(hint) if dataclasses.is_dataclass(hint) else _plain(hint)


def _or_none(read: _Read) -> _Read:
    return lambda value, place: None if value is None else read(value, place)


def _many(read: _Read) -> _Read:
    def reads(value: Any, place: str) -> Any:
        _check(value, list, place)
        return tuple([read(one, f"{place}/{at}") for at, one in enumerate(value)])

    return reads


def _fixed(readers: list[_Read]) -> _Read:
    def reads(value: Any, place: str) -> Any:
        _check(value, list, place)
        if len(value) != len(readers):
            raise UnexpectedAnswer(f"{place or 'the answer'}: expected {len(readers)} items")
        pairs = enumerate(zip(readers, value, strict=True))
        return tuple(read(one, f"{place}/{at}") for at, (read, one) in pairs)

    return reads


def _mapping(read: _Read) -> _Read:
    def reads(value: Any, place: str) -> Any:
        _check(value, dict, place)
        return {key: read(one, f"{place}/{key}") for key, one in value.items()}

    return reads


def _record(kind: Any) -> _Read:
    hints = get_type_hints(kind)
    fields = dataclasses.fields(kind)
    needed = {one.name for one in fields if one.default is one.default_factory}  # both MISSING
    readers = [(one.name, _reader(hints[one.name])) for one in fields]

    def reads(value: Any, place: str) -> Any:
        _check(value, dict, place)
        if missing := sorted(needed - value.keys()):
            raise UnexpectedAnswer(f"{place or 'the answer'}: {missing[0]} is missing")
        return kind(
            **{
                name: read(value[name], f"{place}/{name}")
                for name, read in readers
                if name in value
            }
        )

    return reads


def _stage(value: Any, place: str) -> Stage:
    """A stage in either of its two forms: one line of its own, or ranges."""
    _check(value, dict, place)
    name = _reader(str)(value.get("name"), f"{place}/name")
    handoff_bytes = _reader(int | None)(value.get("handoff_bytes"), f"{place}/handoff_bytes")
    if "ranges" in value:
        ranges = _reader(tuple[FitRange, ...])(value["ranges"], f"{place}/ranges")
    else:
        ranges = (_reader(FitRange)({**value, "up_to_bytes": None}, place),)
    return Stage(name, ranges, handoff_bytes)


def _plain(kind: Any) -> _Read:
    def reads(value: Any, place: str) -> Any:
        if kind is float and type(value) is int:
            return float(value)
        _check(value, kind, place)
        return value

    return reads


def _check(value: Any, kind: type, place: str) -> None:
    if type(value) is not kind:
        raise UnexpectedAnswer(f"{place or 'the answer'}: expected {_NAMES.get(kind, 'another')}")


_NAMES = {
    list: "a list",
    dict: "an object",
    int: "a whole number",
    float: "a number",
    str: "a string",
    bool: "true or false",
}
