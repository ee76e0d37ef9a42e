"""Open MPI: fragment sizes by message size as a rules file of its tuned collectives.

Source    ompi/mca/coll/tuned/coll_tuned_dynamic_file.c (`ompi_coll_tuned_read_rules_config_file`)
          and coll_tuned_dynamic_rules.c of 4.1.4 and 5.0.7; numbers:
          `ompi_coll_base_file_getnext_long` in ompi/mca/coll/base/coll_base_util.c.
Exact     whole bytes; the steps of the setting as they are.
Traps     a file that it cannot read is left out in silence, and the built-in rules count. The first
          rule has to be for 0 bytes. The line rule-file-version-2 has to be the very first, and
          4.x refuses it. A communicator smaller than the first size listed takes its rules all the
          same, so that a single communicator size stands between two sizes without rules. Numbers
          with a leading 0 are octal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from contract.limits import MAX_MESSAGE_BYTES
from domain.errors import InvalidInput
from domain.fragment_setting import MAX_STEPS, FragmentSetting, SettingStep
from domain.regret import ChosenSetting
from exports.targets.commentary import check_size, commentary
from exports.targets.keyed_lines import lines_of, refuse, the_one
from exports.targets.openmpi_collectives import (
    ALGORITHM,
    COLLECTIVE,
    LIBRARY,
    NUMBERS,
    OWN_DECISION,
    PROGRAMS,
    PROGRAMS_SHOWING,
    SIZES,
    Cut,
    cut_of,
    cut_steps,
    forced,
)
from exports.targets.target import (
    OF_A_COLLECTIVE,
    Effect,
    ExportInput,
    Takes,
    Target,
    TargetOption,
)

_VERIFIED = "mpirun of Open MPI 4.1.4"
_HEADER = "rule-file-version-2"
_MAX_LISTED = 22  # collectives that Open MPI numbers
_OPTIONS = (
    TargetOption(
        "version",
        "4.1",
        "4.1: the form that every version reads; 5.0.7: the second one, which starts there",
        choices=("4.1", "5.0.7"),
    ),
    COLLECTIVE,
    ALGORITHM,
    TargetOption(
        "comm_size",
        "all",
        "the communicator size that it is for, or all",
        pattern=r"all|[1-9][0-9]{0,6}",
    ),
    PROGRAMS,
)


def steps_of(chosen: ChosenSetting | None) -> tuple[SettingStep, ...]:
    """The steps of the setting. Raises InvalidInput where the library does not take its sizes."""
    if chosen is None:
        raise InvalidInput("expected size steps", field="setting")
    for step in chosen.setting.steps:
        if step.size_bytes is not None:
            check_size(step.size_bytes, SIZES)
    return chosen.setting.steps


def _render(given: ExportInput) -> str:
    cut, steps = cut_of(given), cut_steps(steps_of(given.chosen))
    is_second = given.options["version"] == "5.0.7"
    head = commentary(given, TARGET, verified_by="" if is_second else _VERIFIED)
    rows = [f"1  # collectives\n{cut.number}  # {cut.collective}"]
    size = given.options["comm_size"]
    if size == "all":
        rows += ["1  # communicator sizes", "0  # and every greater one"]
    else:
        rows += ["3  # communicator sizes", "0  # from this one on", "0  # no rules", size]
    rows.append(f"{len(steps) + 1}  # rules: message bytes, algorithm, fan, fragment bytes")
    rows += _rules(steps, cut, tail=" 0" if is_second else "")
    if size != "all":
        rows += [f"{int(size) + 1}  # from this one on", "0  # no rules"]
    return (f"{_HEADER}\n" if is_second else "") + head + "\n".join(rows) + "\n"


def _rules(steps: tuple[SettingStep, ...], cut: Cut, *, tail: str) -> Iterator[str]:
    yield f"0 0 0 0{tail}"  # Open MPI's own decision: the first rule has to be for 0 bytes
    for step in steps:
        yield f"{step.from_bytes} {cut.algorithm_number} 0 {step.size_bytes or 0}{tail}"


def _environment(text: str, file: str) -> dict[str, str]:
    """The variables. Raises InvalidInput for what Open MPI would leave out in silence."""
    _settings(text)
    return {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": file,
    }


def _since(text: str) -> tuple[int, ...]:
    return (5, 0, 7) if text.startswith(_HEADER) else (4, 0)


_RULE = re.compile(r"(\d+) (\d+) (\d+) (\d+)((?: 0)?)", re.ASCII)
_COUNTED = re.compile(r"\d+(  # rules: .*)")


def _without(text: str, left: tuple[tuple[int, int | None], ...]) -> str | None:
    """The text with Open MPI's own decision for these messages, None where no rule is left.

    Only an export of this target is read, whose rules are the lines after their number.
    """
    lines = text.splitlines()
    at = next((number for number, line in enumerate(lines) if _COUNTED.fullmatch(line)), None)
    found = [_RULE.fullmatch(line) for line in lines[at + 1 :]] if at is not None else []
    rules = [rule.groups() for rule in takewhile(bool, found) if rule]
    if at is None or not rules:
        return None
    starts = sorted({int(rule[0]) for rule in rules} | {end for one in left for end in one if end})
    kept: list[tuple[str, ...]] = []
    for start in starts:
        rule = [one for one in rules if int(one[0]) <= start][-1]
        is_left = any(low <= start and (high is None or start < high) for low, high in left)
        what = ("0", "0", "0", rule[4]) if is_left else rule[1:]
        if not kept or kept[-1][1:] != what:
            kept.append((str(start), *what))
    if all(rule[1] == "0" for rule in kept):
        return None
    written = [f"{' '.join(rule[:4])}{rule[4]}" for rule in kept]
    head = _COUNTED.sub(rf"{len(kept)}\1", lines[at])
    return "\n".join([*lines[:at], head, *written, *lines[at + 1 + len(rules) :]]) + "\n"


# --- reading --------------------------------------------------------------------------------------

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,19}", re.ASCII)


def read(text: str) -> FragmentSetting:
    """The fragment sizes that a rules file sets, both forms. Raises InvalidInput.

    Where several collectives or communicator sizes have rules that differ it is ambiguous. A size
    of 0, and algorithm 0 (Open MPI's own choice, which cuts nothing), mean messages sent whole.
    """
    return the_one(_settings(text), what="at least one rule")


def _settings(text: str) -> dict[str, FragmentSetting]:
    """The sizes by collective and communicator size. Raises InvalidInput."""
    numbers = _Numbers(text)
    found: dict[str, FragmentSetting] = {}
    for _ in range(numbers.next("the number of collectives", maximum=_MAX_LISTED)):
        collective = numbers.next("a collective", maximum=_MAX_LISTED - 1)
        for _ in range(numbers.next("the number of communicator sizes", maximum=MAX_STEPS)):
            size = numbers.next("a communicator size")
            count = numbers.next("the number of rules", maximum=MAX_STEPS)
            if count:
                found[f"{_name(collective)} of {size} ranks"] = _size_steps(numbers, count)
    numbers.end()
    return found


def _name(collective: int) -> str:
    names = {number: name for name, number in NUMBERS.items()}
    return names.get(collective, f"collective {collective}")


def _size_steps(numbers: _Numbers, count: int) -> FragmentSetting:
    steps: list[SettingStep] = []
    for index in range(count):
        start = numbers.next("a message size", maximum=MAX_MESSAGE_BYTES)
        if index == 0 and start:
            refuse(numbers.line, "the first rule has to be for a message size of 0")
        algorithm = numbers.next("an algorithm")
        numbers.next("a fan in and out")
        size = numbers.next("a fragment size", maximum=MAX_MESSAGE_BYTES)
        numbers.rest_of_rule()
        if steps and start <= steps[-1].from_bytes and index > 1:
            refuse(numbers.line, "expected message sizes that ascend")
        if index == 1 and start <= 1:
            steps.clear()  # the rule for 0 bytes alone: no message has none
        steps.append(SettingStep(max(start, 1), size if algorithm and size else None))
    return FragmentSetting(tuple(steps))


class _Numbers:
    """The numbers of a rules file, in order, with the lines that they stand on."""

    def __init__(self, text: str) -> None:
        lines = lines_of(text)
        self.is_second = bool(lines) and lines[0].text == _HEADER and lines[0].number == 1
        self.line = 1
        self._at = 0
        self._found: list[tuple[int, int]] = []
        for line in lines[1:] if self.is_second else lines:
            for word in line.text.partition("#")[0].split():
                self._found.append((line.number, _parsed(word, line.number)))

    def next(self, what: str, *, maximum: int = 2**31 - 1) -> int:
        """The next number, which is this. Raises InvalidInput."""
        if self._at >= len(self._found):
            raise InvalidInput(f"expected {what} where the file ends", field="setting")
        self.line, value = self._found[self._at]
        self._at += 1
        if value > maximum:
            refuse(self.line, f"expected {what} of at most {maximum}")
        return value

    def rest_of_rule(self) -> None:
        """Passes over the fifth column of the second form, which may be left out."""
        if self.is_second and self._at < len(self._found) and self._found[self._at][0] == self.line:
            self._at += 1

    def end(self) -> None:
        """Raises InvalidInput where numbers are left over."""
        if self._at < len(self._found):
            refuse(self._found[self._at][0], "expected nothing after the last rule")


def _parsed(word: str, number: int) -> int:
    if _NUMBER.fullmatch(word) is None:
        refuse(number, "expected numbers, and comments after #")
    base = 16 if word[:2] in ("0x", "0X") else 8 if word.startswith("0") else 10
    try:
        return int(word, base)
    except ValueError:
        refuse(number, "expected digits of an octal number after a leading 0")


TARGET = Target(
    name="openmpi-rules",
    title="Open MPI: fragment sizes by message size, rules file of tuned collectives",
    takes=Takes.SIZE_STEPS,
    render=_render,
    suffix="conf",
    grammar="ompi/mca/coll/tuned/coll_tuned_dynamic_file.c, Open MPI 4.1.4 and 5.0.7",
    sizes=SIZES,
    options=_OPTIONS,
    verified_by=_VERIFIED,
    read=read,
    figures_note=OF_A_COLLECTIVE,
    default=lambda _: OWN_DECISION,
    unpriced=forced,
    effect=Effect(LIBRARY, PROGRAMS_SHOWING, _environment, _since, _without),
)
