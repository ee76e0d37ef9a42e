"""Operations as methods: the signature and the words of a function, on both clients."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def dress(method: Callable[..., Any], build: Callable[..., Any], owner: str) -> None:
    """Give a method the name, the words and the parameters of what makes its call."""
    method.__name__ = build.__name__
    method.__qualname__ = f"{owner}.{build.__name__}"
    method.__doc__ = build.__doc__
    signature = inspect.signature(build)
    told = str(signature.return_annotation)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[itself, *signature.parameters.values()],
        return_annotation=told.removeprefix("Call[").removesuffix("]"),
    )
