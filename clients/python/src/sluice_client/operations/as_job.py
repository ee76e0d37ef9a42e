"""Operations that a durable job does in place of the request."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from sluice_client.answers import Job
from sluice_client.calls import Call, reads

P = ParamSpec("P")
T = TypeVar("T")


def as_job(build: Callable[P, Call[T]], *, may_repeat: bool = False) -> Callable[P, Call[Job]]:
    """Return the same request answered at once by a durable job.

    `may_repeat`: sent twice it gives the same job; else it would make two.
    """

    @wraps(build)
    def job(*args: P.args, **kwargs: P.kwargs) -> Call[Job]:
        call = build(*args, **kwargs)
        return Call(
            call.method,
            call.path,
            reads(Job),
            call.query,
            call.content,
            {**call.headers, "Prefer": "respond-async"},
            may_repeat,
        )

    job.__name__ = f"start_{build.__name__}"
    job.__doc__ = (
        f"{(build.__doc__ or '').rstrip()}\n\n    Answered at once by the job that does it."
    )
    signature = inspect.signature(build).replace(return_annotation="Call[Job]")
    job.__signature__ = signature  # type: ignore[attr-defined]
    return job
