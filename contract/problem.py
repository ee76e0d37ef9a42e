"""Problem documents (RFC 9457): why a request was not honoured."""

from __future__ import annotations

from typing import Annotated

from .declare import Output, output, rule, sent
from .limits import MAX_REPORTED


@output
class FieldProblemOut(Output):
    """Where in the body (JSON pointer; query parameters by name) and which rule was broken."""

    pointer: str = sent("the field: a JSON pointer, or the name of a query parameter")
    detail: str = sent("the rule that it breaks; the input is never repeated")


@output
class ProblemOut(Output):
    """Why a request was not honoured. `type` and `code` are stable; the input is never repeated."""

    type: str = sent("the kind of problem as an address, which is stable")
    title: str = sent("the kind of problem in words")
    status: int = sent("the status of the response")
    code: str = sent("the kind of problem as a name, which is stable")
    detail: str = sent("what is wrong here, in a sentence")
    errors: Annotated[tuple[FieldProblemOut, ...], rule(max_length=MAX_REPORTED)] = sent(
        "the fields that break rules; empty where none does"
    )
