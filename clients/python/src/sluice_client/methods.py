"""Methods that are written once and that both clients have: one blocks, one is waited for.

A type checker knows the parameters and the answer of each: those of the function, or of the
request's constructor, that the method is made of.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import replace
from types import MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    overload,
)

from sluice_client.calls import Call

if TYPE_CHECKING:
    from sluice_client.client import AsyncClient, Client
    from sluice_client.core import Core

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
CoreT = TypeVar("CoreT", bound="Core[Any]")


class _Method:
    """What a class holds in the place of a function, with the words and parameters of one."""

    def __init__(self, begin: Callable[..., Any], shown: Callable[..., Any]) -> None:
        self._begin, self._shown = begin, shown
        self.__doc__ = inspect.getdoc(shown)

    def __set_name__(self, owner: type, name: str) -> None:
        self.__name__ = name
        self.__qualname__ = f"{owner.__name__}.{name}"

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._shown)


class Both(_Method, Generic[P, T]):
    """A method that gives one thing."""

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        return self if client is None else MethodType(self, client)

    def __call__(self, client: Any, *args: Any, **kwargs: Any) -> Any:
        """Have this client do it."""
        return client._finish(self._begin(client, *args, **kwargs))


class EachOfBoth(_Method, Generic[P, T]):
    """A method that yields one thing after the other."""

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        return self if client is None else MethodType(self, client)

    def __call__(self, client: Any, *args: Any, **kwargs: Any) -> Any:
        """Have this client do it."""
        return client._finish_each(self._begin(client, *args, **kwargs))


def both(work: Callable[Concatenate[CoreT, P], Coroutine[Any, Any, T]]) -> Both[P, T]:
    """Return the method of both clients that does what this coroutine of theirs does."""
    return Both(work, work)


def each_of_both(
    work: Callable[Concatenate[CoreT, P], AsyncGenerator[T, None]],
) -> EachOfBoth[P, T]:
    """Return the method of both clients that yields what this generator of theirs yields."""
    return EachOfBoth(work, work)


# --- operations -----------------------------------------------------------------------------------


class Operation(Both[P, T]):
    """A method that sends the call which `build` makes, and gives its answer."""

    def __init__(self, build: Callable[P, Call[T]]) -> None:
        super().__init__(
            lambda client, *args, **kwargs: client._sent(build(*args, **kwargs)), build
        )
        self.build = build

    @property
    def __signature__(self) -> inspect.Signature:
        return _with_client(super().__signature__)


class PageOf(Protocol[T_co]):
    """A page of a list; `next_cursor` asks for the next one and is None at the end."""

    @property
    def items(self) -> tuple[T_co, ...]: ...
    @property
    def next_cursor(self) -> str | None: ...


class EachOf(EachOfBoth[P, T]):
    """A method that yields every item of a list, page after page."""

    def __init__(self, build: Callable[P, Call[PageOf[T]]]) -> None:
        def begin(client: Core[Any], *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
            return _items(client, build(*args, **kwargs))

        super().__init__(begin, build)
        self.__doc__ = (
            f"{self.__doc__}\n\nYields every item from `cursor` on, page after page; `limit` is "
            "the length of a page."
        )

    @property
    def __signature__(self) -> inspect.Signature:
        return _with_client(super().__signature__)


async def _items(client: Core[Any], call: Call[PageOf[T]]) -> AsyncGenerator[T, None]:
    while True:
        page = await client._sent(call)
        for item in page.items:
            yield item
        if page.next_cursor is None:
            return
        call = replace(call, query={**call.query, "cursor": page.next_cursor})


def _with_client(taken: inspect.Signature) -> inspect.Signature:
    client = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    return taken.replace(parameters=[client, *taken.parameters.values()])
