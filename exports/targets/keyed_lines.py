"""Lines of the form NAME=VALUE, as people keep them: checked, with their numbers and sections.

Cost      linear.
Exact     nothing is guessed: what two programs would read differently is refused, naming the line.
Traps     text from anywhere: every refusal is InvalidInput, and none quotes the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from contract.limits import MAX_MESSAGE_BYTES
from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting

MAX_CHARACTERS = 2**20
MAX_LINES = 20_000
MAX_IN_A_LINE = 8192
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SIZE = re.compile(r"([0-9]{1,18})([KMGT]?)B?", re.IGNORECASE | re.ASCII)
_UNITS = ".KMGT"  # powers of 1024, by their places
_QUOTED = re.compile(r"""(["'])(.*)\1""")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a text: its number from 1, whether a space begins it, and its text, stripped."""

    number: int
    indented: bool
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What one line sets. `section` is "" before the first `[section]`."""

    number: int
    section: str
    name: str
    value: str


def refuse(number: int, rule: str) -> NoReturn:
    """Raise InvalidInput naming the line and the rule that it breaks."""
    raise InvalidInput(f"line {number}: {rule}", field="setting")


def lines_of(text: str) -> list[Line]:
    """Every line that is not blank. Raises InvalidInput for what is no configuration at all."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"expected at most {MAX_CHARACTERS} characters", field="setting")
    if text.count("\n") > MAX_LINES:
        raise InvalidInput(f"expected at most {MAX_LINES} lines", field="setting")
    lines = []
    for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        line = raw.removesuffix("\r")
        if len(line) > MAX_IN_A_LINE:
            refuse(number, f"expected at most {MAX_IN_A_LINE} characters")
        if _CONTROLS.search(line):
            refuse(number, "expected printable characters")
        if line.strip():
            lines.append(Line(number, line[0] in " \t", line.strip()))
    return lines


def ini_entries(text: str, wanted: str) -> list[Entry]:
    """The assignments to wanted names in an INI file, or an environment as a list or a script.

    `wanted` is a regular expression of whole names.

    Comments begin a line with `#` or `;`, or follow a value after a space. `export` and quotes
    are taken as a shell takes them. Lines that name none of them are passed over. Refused is what
    names one and is no assignment to it alone on its line, and an indented line after it: for inih
    (src/ucs/config/ini.c of UCX 1.13.1) that replaces its value.
    """
    name, named = re.compile(wanted), re.compile(rf"\b(?:{wanted})\b")
    section, before, entries = "", "", []
    for line in lines_of(text):
        if line.text[0] in "#;":
            continue
        if line.text[0] == "[":
            section, before = line.text[1:].partition("]")[0], ""
            continue
        found, value, is_export = _assignment(line.text)
        if line.indented and before and not is_export:
            if name.fullmatch(before) or named.search(line.text):
                refuse(line.number, "a line that begins with a space continues the one before it")
            continue
        before = found or before
        if found and name.fullmatch(found):
            entries.append(Entry(line.number, section, found, bare_value(value)))
        elif named.search(line.text):
            refuse(line.number, "expected NAME=VALUE alone on its line")
    return entries


def variables(text: str, wanted: str) -> dict[str, str]:
    """The names and values that an environment sets, of whole names that match. Raises
    InvalidInput where it sets none, or several sections do, which are for different machines.
    """
    entries = ini_entries(text, wanted)
    if not entries:
        raise InvalidInput("expected lines NAME=VALUE of this library", field="setting")
    if len({entry.section for entry in entries}) > 1:
        raise InvalidInput(
            "ambiguous: several sections set variables; keep the one that is for this machine",
            field="setting",
        )
    return {entry.name: entry.value for entry in entries}


def _assignment(text: str) -> tuple[str, str, bool]:
    """The name ("" where there is none), the value, and whether `export` stands before them."""
    parts = re.split("[=:]", text, maxsplit=1)
    words = parts[0].split(maxsplit=1)
    is_export = len(words) == 2 and words[0] == "export"
    name = words[1] if is_export else parts[0]
    return (name.strip() if len(parts) == 2 else ""), parts[-1], is_export


def bare_value(text: str) -> str:
    """The value without the comment after it and without the quotes around it."""
    value = re.split(r"\s[#;]", text, maxsplit=1)[0].strip().removesuffix(";")
    quoted = _QUOTED.fullmatch(value)
    return quoted[2].strip() if quoted else value


def last_in_each_section(entries: Iterable[Entry], name: str) -> list[Entry]:
    """The entry that counts, the last of this name, for each section that has one."""
    found = {entry.section: entry for entry in entries if entry.name == name}
    return list(found.values())


def binary_size(value: str, number: int) -> int:
    """A size with K, M, G or T for powers of 1024, with or without a B. Raises InvalidInput."""
    match = _SIZE.fullmatch(value)
    if match is None:
        refuse(number, "expected a size such as 524288, 512K or 4M")
    return in_range(int(match[1]) << 10 * _UNITS.find(match[2].upper()), number)


def in_range(size_bytes: int, number: int) -> int:
    """The size, where it is one that a message can have. Raises InvalidInput."""
    if size_bytes > MAX_MESSAGE_BYTES:
        refuse(number, f"expected a size of at most {MAX_MESSAGE_BYTES} bytes")
    return size_bytes


def the_one(found: Mapping[str, FragmentSetting], *, what: str) -> FragmentSetting:
    """The setting that all of them agree on. Raises InvalidInput naming those that differ."""
    if not found:
        raise InvalidInput(f"expected {what}, and found none", field="setting")
    if len(set(found.values())) > 1:
        named = sorted(found)
        shown = ", ".join(named[:8]) + (" and more" if len(named) > 8 else "")
        raise InvalidInput(
            f"ambiguous: {shown} differ; keep the one that carries these messages", field="setting"
        )
    return next(iter(found.values()))
