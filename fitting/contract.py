"""What a reader is. Shared by every module of this package."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from domain.measurement import Reading, TraceKind


@dataclass(frozen=True, slots=True)
class Mark:
    """What every file of a format has: in words that follow "lacks", and as a line of it holds."""

    words: str
    pattern: re.Pattern[str]


# A first column of sizes.
FIRST_SIZE = r'^"?((message|msg)[_ ]?)?(bytes|size)\b"?\s*,'
CSV_BEGINS = re.compile(
    r'^"?(?:(?:message|msg|packet|block|buffer|transfer|data)[_ ]?)?'
    r'(?:bytes?|size|length|len)(?:[_ ][(\[]?(?:b|bytes?)[)\]]?)?"?,',
    re.MULTILINE | re.IGNORECASE,
)
JSON_BEGINS = re.compile(r'^[^\S\n]{0,8}\{(?=\s{0,80}["}])', re.MULTILINE)


def mark(words: str, pattern: str) -> Mark:
    """Return a mark that is recognised whatever its case."""
    return Mark(words, re.compile(pattern, re.IGNORECASE))


@dataclass(frozen=True, slots=True)
class NamedTests:
    """The tests of a tool that a user may name where a file does not: what their names match, an
    example, and how the file is then read.
    """

    names: re.Pattern[str]
    example: str
    read: Callable[[bytes, TraceKind | None, str], Reading]


@dataclass(frozen=True, slots=True)
class ReaderSpec:
    """A registered file format.

    `about` says what it holds or which program writes it, and `layout` how to recognise it ("a
    header line message_bytes,..."), in a few words each; `marks`, one or more, are for a file that
    nothing recognises, to say what it lacks. `detects(text)` is given plain text
    (`fitting.plain_text`), its first 64 KiB or all of it, undecodable bytes replaced; it answers
    whether the file claims this format, and never raises. A format that is known by how it begins,
    and not wherever it stands, has `begins`: what its first line matches, for files with other
    lines before it. `read(content, kind)` is given the whole file, in plain text; it raises
    UnreadableTrace naming line and rule. Where a file may leave out which test it is of, and that
    decides how it is read, `named` says how it is read by one that the user names; it may then be
    given what nothing else claims.
    """

    format: str
    about: str
    layout: str
    marks: tuple[Mark, ...]
    detects: Callable[[str], bool]
    read: Callable[[bytes, TraceKind | None], Reading]
    begins: re.Pattern[str] | None = None
    named: NamedTests | None = None

    def read_test(self, test: str) -> Callable[[bytes, TraceKind | None], Reading]:
        """Return `read`, told that what the file does not name is this test, if it knows such."""
        if self.named is None or self.named.names.search(test) is None:
            return self.read
        read = self.named.read
        return lambda content, kind: read(content, kind, test)
