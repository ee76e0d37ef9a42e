"""What a golden question is: a request, or a command of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Form(StrEnum):
    """How an answer is kept."""

    JSON = "json"
    TEXT = "txt"
    PAGE = "page.txt"  # a page's text, without its markup
    DIGEST = "sha256"  # binary: length and digest


@dataclass(frozen=True, slots=True)
class Http:
    """A request. `<name>` in the path, the body or the form is what the answer `name` is kept as.

    That is its id, or a table's digest. With `job` the answer is that of the ended job. One that is
    not `kept` only prepares others.
    """

    name: str
    method: str
    path: str
    body: Mapping[str, Any] | None = None
    text: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    form: Form = Form.JSON
    job: bool = False
    htmx: bool = False
    kept: bool = True


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the command line; `<folder>` is one of the run's own, in which it runs.

    `given` is its standard input. Of one that `writes` a file that is kept in place of what it
    prints; files that it `leaves` are texts, and are kept behind that.
    """

    name: str
    words: tuple[str, ...]
    writes: str | None = None
    leaves: tuple[str, ...] = ()
    form: Form = Form.TEXT
    environment: Mapping[str, str] = field(default_factory=dict)
    given: str = ""


def post(name: str, path: str, body: Mapping[str, Any], **more: Any) -> Http:
    """Return a request with a body in JSON."""
    return Http(name, "POST", path, body, **more)


def page(name: str, path: str, method: str = "GET", **more: Any) -> Http:
    """Return a request for a page."""
    return Http(f"page/{name}", method, path, form=Form.PAGE, **more)


def command(name: str, *words: str, **more: Any) -> Command:
    """Return a command of these words."""
    return Command(f"cli/{name}", words, **more)
