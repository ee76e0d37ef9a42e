"""Operations as methods: the signature and the words of a function, on both clients."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

_EACH = """Every item from `cursor` on, page after page; `limit` is the length of a page.

    """


def dress(
    method: Callable[..., Any], build: Callable[..., Any], owner: str, *, is_list: bool = False
) -> None:
    """Give a method the name, the words and the parameters of the function that makes its call."""
    name = f"each_{build.__name__.removesuffix('s')}" if is_list else build.__name__
    signature = inspect.signature(build)
    returned = str(signature.return_annotation).removeprefix("Call[").removesuffix("]")
    if is_list:
        returned = f"Iterator[{returned.removeprefix('Page[').removesuffix(']')}]"
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    method.__name__, method.__qualname__ = name, f"{owner}.{name}"
    method.__doc__ = (_EACH if is_list else "") + (build.__doc__ or "")
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[itself, *signature.parameters.values()], return_annotation=returned
    )
