"""Lines that a pattern or a reader may take long for, and how its time grows with their length."""

from __future__ import annotations

import contextlib
import re
import re._constants as codes  # what the parser of patterns names
import re._parser as parser
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from domain.errors import SluiceError

# What is repeated: the characters of tables and logs, and what readers look for.
SHAPES = (
    *'1 \t#,.|-+e<>&{"[_x\n\r',
    *("1 ", "1,", "a,", "a b\n", "# ", "| ", "1e", "0.", "&gt;", "> ", "us ", "(us)", "1\n"),
    *("1,1\n", "[1,", '{"a":', "# OSU ", '""'),
)
_TIMES = 8  # a line is so many times longer: three doublings
_MAX_RATIO = 2.5**3
_MIN_S = 0.002  # below it a ratio says nothing
_CATEGORIES = {"SPACE": " ", "DIGIT": "1", "WORD": "w", "NOT_SPACE": "z", "NOT_WORD": "-"}


@dataclass(frozen=True, slots=True)
class Crafted:
    """A text that repeats a piece."""

    before: str
    piece: str
    after: str

    def of(self, count: int) -> str:
        """Return it with so many pieces."""
        return f"{self.before}{self.piece * count}{self.after}"


def grows_too_fast(work: Callable[[str], object], crafted: Crafted, count: int) -> bool:
    """Return whether work on `count` pieces takes more than 2.5 times as long for each doubling of
    the pieces, three doublings on. Three tries: others want the processor as well.
    """
    for _ in range(3):
        short_s, long_s = (_seconds(work, crafted.of(count * times)) for times in (1, _TIMES))
        if long_s <= _MIN_S + _MAX_RATIO * short_s:
            return False
    return True


def _seconds(work: Callable[[str], object], text: str) -> float:
    begun = time.thread_time()
    with contextlib.suppress(SluiceError):
        work(text)
    return time.thread_time() - begun


def crafted_for(pattern: re.Pattern[str]) -> Iterator[Crafted]:
    """Yield every shape, and for each part of the pattern that repeats what comes before it and
    then that part, so that it fails at the end.
    """
    pieces = [("", shape) for shape in SHAPES]
    pieces += _repeated(parser.parse(pattern.pattern, pattern.flags), "")
    for before, piece in dict.fromkeys(pieces):
        for after in ("\0", ""):
            yield Crafted(before, piece, after)


def _repeated(tree: Iterable[tuple[object, object]], before: str) -> list[tuple[str, str]]:
    found = list[tuple[str, str]]()
    for code, argument in tree:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            _, most, body = argument
            piece = _example(body) or "a"
            if most >= 16:
                found += [(before, piece), ("", before or piece)]
            found += _repeated(body, before)
            before += piece
            continue
        if code is codes.SUBPATTERN:
            found += _repeated(argument[3], before)
        if code is codes.BRANCH:
            found += [one for branch in argument[1] for one in _repeated(branch, before)]
        before += _example([(code, argument)])
    return found


def _example(tree: Iterable[tuple[object, object]]) -> str:
    """A text that this part of a pattern takes, as far as its first choices go."""
    found = ""
    for code, argument in tree:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            found += _example(argument[2]) * argument[0]
        elif code is codes.SUBPATTERN:
            found += _example(argument[3])
        elif code is codes.BRANCH:
            found += _example(argument[1][0])
        elif code is codes.LITERAL:
            found += chr(argument)
        elif code is codes.IN:
            found += _member(argument)
        elif code in (codes.ANY, codes.NOT_LITERAL):
            found += "q"
    return found


def _member(members: list[tuple[object, object]]) -> str:
    for code, argument in members:
        if code is codes.NEGATE:
            return "b"
        if code is codes.LITERAL:
            return chr(argument)
        if code is codes.RANGE:
            return chr(argument[0])
        if code is codes.CATEGORY:
            return _CATEGORIES.get(str(argument).removeprefix("CATEGORY_"), "a")
    return ""
