"""What a command prints to: parts for a person, or the service's document; and its errors."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from app.console.screen import Part, Screen
from app.text.names import printable, quoted
from domain.errors import InvalidFields, SluiceError

READER_LEFT = 141  # what a shell reports for a program that a closed pipe ended


@dataclass(frozen=True, slots=True)
class Output:
    """Standard output and standard error, and whether documents are wanted."""

    out: Screen
    err: Screen
    wants_json: bool

    @classmethod
    def standard(cls, *, wants_json: bool) -> Output:
        """Return the process's own streams."""
        return cls(Screen(sys.stdout), Screen(sys.stderr), wants_json)

    def document(self, body: bytes) -> None:
        """Print a document as it is, or in ASCII where the stream has no more."""
        text = body.decode()
        if not self.out.is_unicode:
            text = json.dumps(json.loads(text), separators=(",", ":"))
        self.out.stream.write(text + "\n")
        self.out.stream.flush()

    def parts(self, parts: Iterable[Part]) -> None:
        """Print for a person."""
        self.out.show(parts)

    def note(self, text: str) -> None:
        """Something beside the result, in one line on standard error."""
        self.err.write_line(f"sluice: {text}")

    def error(self, error: SluiceError) -> None:
        """Print one line that names field and rule, or the problem document."""
        if self.wants_json:
            from app.schemas.base import ProblemOut

            self.err.write_line(json.dumps(asdict(ProblemOut.of(error))))
        else:
            self.err.write_line(f"sluice: error: {format_error(error)}")


def leave_reader() -> int:
    """Write nowhere from now on: the reader of standard output has left. Return the exit code.

    Python would otherwise complain once more when it flushes at exit.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return READER_LEFT


def format_error(error: SluiceError) -> str:
    """Return the error in one line; the field comes first where the sentence does not name it."""
    detail = printable(" ".join(error.detail.split()))
    if error.subject is not None:
        detail = f"{detail} {quoted(error.subject)}"
    if isinstance(error, InvalidFields) or error.field is None or error.field in detail:
        return detail
    return f"{error.field}: {detail}"
