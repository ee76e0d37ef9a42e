"""The text of a measurement without what terminals, mails and launchers put around its lines.

Output of benchmarks comes by terminals, job logs and archives of mailing lists. Here, and nowhere
else, are removed: colours and other sequences of terminals; what a carriage return overwrote; tags
and entities of HTML; quoting marks; and what launchers and build servers put before lines:

    [1,0]<stdout>:   0:   [0]   node7:   2026-05-04T10:11:12Z   09:15:22   05/04/2026 10:11:12

The first four are never part of a measurement. A prefix may look like one: NetPIPE numbers its rows
`0:`. So only one that stands before every line is removed at once; otherwise the text is tried
as it is, and then without each kind of prefix, the commonest first. Where the lines of several
writers (ranks, hosts) are in one file, those of each are a text of their own.

Every line keeps its number, but where HTML breaks a line inside of it.

Cost    linear in the text: a pass for each kind of prefix that the first 4 MiB have. Of texts above
        16 MiB only prefixes of every line are looked for.
"""

from __future__ import annotations

import codecs
import html
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

PREFIX, PASSED_OVER = "prefix", "lines_passed_over"  # entries of `understood`

_ESCAPE = "\x1b"
_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[mKJhl]"  # colours; what moves the cursor changes the text
    r"|[\]_P^X][^\x07\x1b\n]{0,1000}(?:\x07|\x1b\\)"  # titles, links and times
    r"|[()][0-9A-Za-z]|[=>78@-Z\\^_])"
)
# A row of figures: what stands before some such rows, and not before others, is no prefix of all.
_ROW = re.compile(r"[^\S\n]{0,40}[0-9][0-9.eE+]{0,30}(?:[,;|]|[^\S\n])[^\S\n]{0,40}[0-9.+-]")
_QUOTING = re.compile(r"^(?:[^\S\n]{0,8}>){1,16} ?")
_IS_HTML = re.compile(
    r"&(?:nbsp|gt|lt|amp|quot|#[0-9]{1,7});"
    r"|</?(?:br|p|pre|code|div|span|html|body|t[dhr]|table|li|font|[aib])(?:\s[^<>\n]{0,200})?/?>",
    re.IGNORECASE,
)
_BREAK = re.compile(r"</?(?:br|p|div|tr|li|pre)(?:\s[^<>\n]{0,200})?/?>", re.IGNORECASE)
_CELL = re.compile(r"</?t[dh](?:\s[^<>\n]{0,200})?>", re.IGNORECASE)
_RAISED = re.compile(r"<su[bp](?:\s[^<>\n]{0,200})?>", re.IGNORECASE)  # 10<sup>6</sup> is no 106
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")

_DAY = r"(?:[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}|[0-9]{1,2}[./-][0-9]{1,2}[./-]20[0-9]{2})"
_TIME = r"[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_NAMED_LEVEL = "(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR)"
_LEVEL = rf"(?:(?:[^\S\n][:-])?[^\S\n]\[?{_NAMED_LEVEL}\]?)?"
# What loggers of Python say behind the time: who logs, and at which level.
_LOGGER = (
    rf"(?: - [\w.]{{1,60}} - {_NAMED_LEVEL} -"
    rf"| \| {_NAMED_LEVEL}[^\S\n]{{1,8}}\| [\w.<>:]{{1,100}} -)"
)
_GAP = r"(?:[^\S\n]{1,8}|$)"


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of prefix. Its pattern matches at the beginning of a line; where it has a group, that
    says who wrote the line. `rest` matches it inside of lines, where it may stand there as well.
    `is_word`: tools begin lines of their own so, as "Device: mlx5_0". `is_certain`: nothing else
    looks so, and lines without it may be of the same run.
    """

    pattern: re.Pattern[str]
    rest: re.Pattern[str] | None = None
    is_word: bool = False
    is_certain: bool = False

    @property
    def has_writers(self) -> bool:
        return self.pattern.groups > 0


def _kind(
    pattern: str, rest: str | None = None, *, is_word: bool = False, is_certain: bool = False
) -> _Kind:
    begin = re.compile(rf"^[^\S\n]{{0,8}}{pattern}", re.MULTILINE)
    return _Kind(begin, re.compile(rest) if rest else None, is_word, is_certain)


_STREAM = r"<std(?:out|err|diag)>:? ?"
_DATED = rf"[A-Z][a-z]{{2}} {_MONTH} {{1,2}}[0-9]{{1,2}} {_TIME} 20[0-9]{{2}}"
_RANK = r"\[[^\[\]<>\n]{1,80}\]"
KINDS = (
    # mpirun --tag-output and --timestamp-output, also inside of rows that a program wrote in parts
    _kind(rf"(?:{_DATED})?({_RANK}){_STREAM}", rf"(?:{_DATED})?{_RANK}{_STREAM}", is_certain=True),
    _kind(rf"{_DATED}{_STREAM}", rf"{_DATED}{_STREAM}", is_certain=True),
    # programs that say where in their source they print, before some of their lines
    _kind(
        r"(?:\[[^\[\]\n]{1,60}\] tid:[0-9]{1,10}, )?[A-Za-z_][\w:~]{0,60}\(\), [\w./-]{1,80}"
        r"\.(?:c|cc|cpp|cu|h|hpp):[0-9]{1,6}, ?",
        is_certain=True,
    ),
    # build servers: job and step before the time, the number of the stream behind it
    _kind(
        rf"(?:[^\t\n]{{1,100}}\t[^\t\n]{{1,100}}\t\ufeff?)?\[?{_DAY}[T ]{_TIME}"
        rf"(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}}| UTC)?\]?(?: std(?:out|err) [FP]| [0-9]{{2}}[OE][+ ]?)?"
        rf"(?:{_LOGGER}|{_LEVEL}(?:[^\S\n]?[:-])?){_GAP}"
    ),
    _kind(rf"\[?{_TIME}(?: [AP]M)?\]?[A-Z]?{_LEVEL}(?:[^\S\n]?[:-])?{_GAP}"),
    # a year stands behind a day of the week alone: 2048 may be a size
    _kind(rf"{_MONTH} {{1,2}}[0-9]{{1,2}} {_TIME}:?{_GAP}"),
    _kind(
        rf"[A-Z][a-z]{{2}} {_MONTH} {{1,2}}[0-9]{{1,2}} {_TIME} "
        rf"(?:[A-Z]{{3,4}} )?20[0-9]{{2}}:?{_GAP}"
    ),
    # the logger of Google's libraries; seconds and milliseconds since 1970
    _kind(
        rf"[IWEF](?:20[0-9]{{2}})?[0-9]{{4}} {_TIME} {{1,8}}[0-9]{{1,9}} "
        r"[\w./-]{1,80}:[0-9]{1,6}\] ?",
        is_certain=True,
    ),
    _kind(rf"1[5-9][0-9]{{8}}(?:\.[0-9]{{3,9}}|[0-9]{{3}}){_GAP}"),
    _kind(r"\[[^\S\n]{0,12}[0-9]{1,10}\.[0-9]{3,9}\]:?[^\S\n]{0,8}"),
    _kind(r"(\[[^\[\]\n]{1,80}\]):?[^\S\n]{0,8}"),
    _kind(rf"([0-9]{{1,6}}:){_GAP}"),
    _kind(r"((?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]{1,5})?:)[^\S\n]{1,8}"),
    _kind(rf"([A-Za-z][\w.-]{{0,63}} [\w./-]{{1,64}}(?:\[[0-9]{{1,10}}\])?:){_GAP}", is_word=True),
    _kind(r"([A-Za-z][\w./-]{0,80}(?:\[[0-9]{1,10}\])?[^\S\n]{0,8}:)[^\S\n]{0,8}", is_word=True),
    _kind(r"([\w.-]{1,64}[^\S\n]{0,20}\|)[^\S\n]{0,8}", is_word=True),
    _kind(r"([0-9]{1,6}[:>])"),
    _kind(r"(\([^()\n]{0,40}\b(?:pid|ip|rank)[= ][^()\n]{1,60}\))[^\S\n]{0,8}"),
    # colours whose first character was lost on the way
    _kind(r"(?:\[[0-9;]{0,12}m){1,4}", r"\[[0-9;]{0,12}m"),
)
_MAX_SEARCHED = 2**24  # bytes of a text that prefixes are looked for in, 3 s each MiB at worst
_LOOKED_AT = 2**22  # characters in which kinds of prefixes are counted
_MAX_KINDS, _MAX_DEPTH, _MAX_WRITERS, _MIN_LINES = 5, 3, 16, 2
_WRITER_SHARE = 4  # a writer has so many lines on average, or what is there is no prefix
_MAX_SHOWN = 40
_OF_HTML = "tags and entities removed from"


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text to be tried, what was removed from it for `understood`, and whether from most of its
    lines. `writer` is whose lines it has, where there are others.
    """

    content: bytes
    removed: tuple[tuple[str, str], ...] = ()
    is_stripped: bool = False
    writer: str = ""


@dataclass(slots=True)
class _Cleaned:
    """The lines of a text from which parts are taken, and what was."""

    lines: list[str]
    removed: list[tuple[str, str]] = field(default_factory=list)

    def change(self, name: str, what: str, change: Callable[[str], str]) -> None:
        """Change every line, and count those that differ."""
        changed = list(map(change, self.lines))
        count = sum(line != before for line, before in zip(changed, self.lines, strict=True))
        if count:
            self.lines = "\n".join(changed).split("\n")
            self.removed.append((name, f"{what} {lines_counted(count)}"))

    def plain(self) -> PlainText:
        """Return the text as it is now."""
        return PlainText(_encoded("\n".join(self.lines)), tuple(self.removed))

    def plain_of(self, before: PlainText) -> PlainText:
        """Return it as what became of this one; the same where nothing was removed."""
        if len(self.removed) == len(before.removed):
            return before
        return replace(before, content=self.plain().content, removed=tuple(self.removed))


def lines_counted(count: int) -> str:
    """Return "1 line", or as many as there are."""
    return "1 line" if count == 1 else f"{count} lines"


def cleaned(content: bytes) -> PlainText:
    """Return the text without what is never part of a measurement."""
    return _without_markup(_without_sequences(content))


def without_prefix(content: bytes, plain: PlainText) -> Iterator[Sequence[PlainText]]:
    """Yield the texts without a prefix that stands before every line, of a page of HTML or in one.

    `plain` is the content as `cleaned` returns it. Each item has the texts that stand side by side:
    those of several writers, or a single one.
    """
    source = _without_sequences(content)
    for texts in _prefix_everywhere(source):
        yield [_without_markup(text) for text in texts]
    if source.content != plain.content:
        yield from _prefix_everywhere(plain)


def _without_sequences(content: bytes) -> PlainText:
    """Return the text without colours, and as a terminal shows it after carriage returns; the same
    bytes where there is nothing of it.
    """
    has_returns = content.count(b"\r") > content.count(b"\r\n")
    if not has_returns and _ESCAPE.encode() not in content:
        return PlainText(content)
    text = _decoded(content)
    if has_returns and "\n" not in text:  # they are the ends of lines
        text, has_returns = text.replace("\r", "\n"), False
    found = _Cleaned(text.split("\n"))
    if _ESCAPE in text:
        found.change("colours", "removed from", partial(_SEQUENCE.sub, ""))
    if has_returns:
        found.change("overwritten", "by carriage returns, in", _last_shown)
    return found.plain()


def _without_markup(plain: PlainText) -> PlainText:
    """Return the text without HTML and quoting marks; the same where there is nothing of it. JSON
    keeps its tags: they may stand in a name.
    """
    content = plain.content
    has_tags = (b"<" in content or b"&" in content) and not _is_like_json(content)
    if not (has_tags or b">" in content):
        return plain
    text = _decoded(content)
    found = _Cleaned(text.split("\n"), list(plain.removed))
    if has_tags and _IS_HTML.search(text):
        found.change("html", _OF_HTML, _without_html)
    is_page = len(found.removed) > len(plain.removed)  # of an archive of mails, perhaps
    if is_page or (b">" in content and _are_quoted(found.lines)):
        found.change("quoting_marks", "removed from", partial(_QUOTING.sub, ""))
    return found.plain_of(plain)


def _are_quoted(lines: Sequence[str]) -> bool:
    """Whether all rows of figures are quoted alike, in a text of which other lines are quoted too,
    or all lines. Rows that are quoted more often are another run, and ">64" alone is more than 64.
    """
    depths, others, bare = set[int](), 0, 0
    for line in lines:
        found = _QUOTING.match(line)
        depth = 0 if found is None else found[0].count(">")
        if _ROW.match(line if found is None else line[found.end() :]):
            depths.add(depth)
        elif line.strip():
            others += depth > 0
            bare += depth == 0
    return len(depths) <= 1 and (others > 0 or bare == 0)


def with_json_cleaned(plain: PlainText) -> PlainText | None:
    """Return a text that begins like JSON without its HTML; None where it has none."""
    if not _is_like_json(plain.content) or b"<" not in plain.content:
        return None
    text = _decoded(plain.content)
    if not _IS_HTML.search(text):
        return None
    found = _Cleaned(text.split("\n"), list(plain.removed))
    found.change("html", _OF_HTML, _without_html)
    return found.plain_of(plain)


def _is_like_json(content: bytes) -> bool:
    return content[:4096].removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"{"


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", errors="surrogateescape").removeprefix("\ufeff")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogateescape")


def _last_shown(line: str) -> str:
    """What a terminal shows of a line in the end; rows of figures are lines of their own. The
    return of a line's end stays.
    """
    *parts, last = line.rstrip("\r").split("\r")
    if not parts:
        return line
    return "\n".join([*(part for part in parts if _ROW.match(part)), last])


def _without_html(line: str) -> str:
    """A line without tags and entities, broken where the page breaks it inside of its text."""
    line = _RAISED.sub("^", line)
    parts = [_TAG.sub("", _CELL.sub(" ", part)) for part in _BREAK.split(line)]
    text = "\n".join([part for part in parts if part.strip()]) if len(parts) > 1 else parts[0]
    return _ENTITY.sub(lambda found: html.unescape(found[0]), text).replace("\xa0", " ")


def _prefix_everywhere(plain: PlainText) -> Iterator[Sequence[PlainText]]:
    """Yield the texts without the prefixes that stand before every line, if there are any."""
    head = _decoded(plain.content[:4096]).split("\n")[:-1] or [_decoded(plain.content[:4096])]
    kinds = [kind for kind in KINDS if _is_prefix(kind, head)]
    if not kinds:
        return
    lines = _decoded(plain.content).split("\n")
    for kind in kinds:
        if _is_prefix(kind, lines):
            yield from _alternatives(plain, lines, kind)
            return


def prefix_somewhere(plain: PlainText) -> Iterator[Sequence[PlainText]]:
    """Yield the texts without a kind of prefix, of the commonest kinds first; each item as in
    `without_prefix`.
    """
    if len(plain.content) > _MAX_SEARCHED:
        return
    text = _decoded(plain.content)
    counted = Counter({at: _count(kind, text) for at, kind in enumerate(KINDS)})
    common = [KINDS[at] for at, count in counted.most_common(_MAX_KINDS) if count >= _MIN_LINES]
    lines = text.split("\n") if common else []
    for kind in common:
        yield from _alternatives(plain, lines, kind)


def _count(kind: _Kind, text: str) -> int:
    return sum(1 for _ in kind.pattern.finditer(text, 0, _LOOKED_AT))


def _is_prefix(kind: _Kind, lines: Sequence[str]) -> bool:
    """Whether it stands before every line that is not empty, and writers have lines enough."""
    writers, count = dict[str, None](), 0
    match, has_writers = kind.pattern.match, kind.has_writers
    for line in lines:
        found = match(line)
        if found is None:
            if line.strip():
                return False
            continue
        count += 1
        writers[found[1] if has_writers else ""] = None
    is_counted = len(writers) == count and _are_numbers_of_lines(writers)
    return count >= _MIN_LINES and (is_counted or len(writers) <= max(1, count // _WRITER_SHARE))


def _are_numbers_of_lines(prefixes: Collection[str]) -> bool:
    """Whether they count, each higher than the one before by one."""
    numbers = [int(prefix[:-1]) for prefix in prefixes if prefix[:-1].isdigit()]
    if not numbers or len(numbers) < len(prefixes):
        return False
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


@dataclass(frozen=True, slots=True)
class _Strip:
    """A kind of prefix in these lines: who wrote each, what it was first, and the lines without."""

    lines: list[str]
    writers: list[str | None]  # None for a line that does not have it
    shown: str

    @property
    def members(self) -> list[int]:
        return [at for at, writer in enumerate(self.writers) if writer is not None]


def _stripped(lines: Sequence[str], kind: _Kind) -> _Strip:
    bare, writers, shown = list[str](), list[str | None](), ""
    match, has_writers = kind.pattern.match, kind.has_writers
    for line in lines:
        found = match(line)
        if found is None:
            bare.append(line)
            writers.append(None)
            continue
        rest = line[found.end() :]
        bare.append(kind.rest.sub("", rest) if kind.rest else rest)
        writers.append(found[1] if has_writers else "")
        shown = shown or _short(found[0], has_others=not has_writers)
    return _Strip(bare, writers, shown)


def _short(prefix: str, *, has_others: bool) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in prefix).strip()
    shown = plain if len(plain) <= _MAX_SHOWN else f"{plain[:_MAX_SHOWN]}…"
    return f"{shown} and the like" if has_others else shown


def _alternatives(
    plain: PlainText, lines: Sequence[str], kind: _Kind
) -> Iterator[Sequence[PlainText]]:
    """Yield the texts without this kind of prefix and what stands before all lines behind it, the
    barest first.
    """
    chain = [_stripped(lines, kind)]
    members = chain[0].members
    if not members:
        return
    while len(chain) <= _MAX_DEPTH:
        behind = [chain[-1].lines[at] for at in members]
        inner = next((other for other in KINDS if _is_prefix(other, behind)), None)
        if inner is None:
            break
        found = _stripped(behind, inner)
        bare, writers = list(chain[-1].lines), list[str | None]([None] * len(lines))
        for at, line, writer in zip(members, found.lines, found.writers, strict=True):
            bare[at], writers[at] = line, writer
        chain.append(_Strip(bare, writers, found.shown))
    filled = sum(1 for line in lines if line.strip())
    for depth in range(len(chain), 0, -1):
        shown = ", ".join(strip.shown for strip in chain[:depth])
        is_most = 2 * len(members) > filled
        of = _Part(
            plain,
            shown,
            is_stripped=is_most,
            has_writers=is_most or not kind.is_word,
            keeps_others=kind.is_certain,
        )
        writers = next((s.writers for s in chain[:depth] if _has_several(s)), chain[0].writers)
        yield from of.texts(chain[depth - 1].lines, writers)


def _has_several(strip: _Strip) -> bool:
    return len({writer for writer in strip.writers if writer is not None}) > 1


@dataclass(frozen=True, slots=True)
class _Part:
    """How texts are made of lines without prefixes."""

    plain: PlainText
    shown: str
    is_stripped: bool
    has_writers: bool
    keeps_others: bool  # lines without the prefix

    def texts(
        self, lines: Sequence[str], writers: Sequence[str | None]
    ) -> Iterator[Sequence[PlainText]]:
        """Yield those of each writer, and that of all where one of them wrote all rows of figures.

        Lines without the prefix are passed over, unless it is certain. Where rows of figures are
        among them there is nothing to yield: what stands before the others says how they differ.
        """
        counts = Counter(writer for writer in writers if writer is not None)
        several = [name for name, count in counts.most_common(_MAX_WRITERS) if count >= _MIN_LINES]
        by = {writer for line, writer in zip(lines, writers, strict=True) if _ROW.match(line)}
        if None in by and not self.keeps_others:
            return
        if self.has_writers and len(counts) > 1 and several:
            yield [self._of(name, lines, writers, counts) for name in several]
        if len(by - {None}) > 1 and several:
            return
        own = self._lines(lines, writers, {*counts})
        yield [self._text(own, f"{self.shown} removed from {lines_counted(counts.total())}")]

    def _of(
        self,
        name: str,
        lines: Sequence[str],
        writers: Sequence[str | None],
        counts: Counter[str],
    ) -> PlainText:
        own = self._lines(lines, writers, {name})
        others = counts.total() - counts[name]
        said = (
            f"{_short(name, has_others=False)} removed from {lines_counted(counts[name])}; "
            f"{lines_counted(others)} of other writers passed over"
        )
        return self._text(own, said, name)

    def _lines(
        self, lines: Sequence[str], writers: Sequence[str | None], names: Collection[str]
    ) -> list[str]:
        """The lines of these writers, the others emptied."""
        kept = {*names, None} if self.keeps_others else {*names}
        return [line if by in kept else "" for line, by in zip(lines, writers, strict=True)]

    def _text(self, lines: Sequence[str], said: str, writer: str = "") -> PlainText:
        removed = (*self.plain.removed, (PREFIX, said))
        return PlainText(_encoded("\n".join(lines)), removed, self.is_stripped, writer)


def from_place(plain: PlainText, text: str, start: int, *, with_comments: bool) -> PlainText:
    """Return the text from the line on that begins at `start`, the number of every line kept.

    Lines before it are emptied; comments stay where they may say what the rows mean.
    """
    before = text[:start].split("\n")[:-1]
    kept = [line if with_comments and line.lstrip().startswith("#") else "" for line in before]
    dropped = sum(1 for line, other in zip(before, kept, strict=True) if line != other)
    if not dropped:
        return plain
    said = (PASSED_OVER, f"{lines_counted(dropped)} before line {len(before) + 1}")
    content = _encoded("\n".join([*kept, text[start:]]))
    return PlainText(content, (*plain.removed, said), plain.is_stripped, plain.writer)
