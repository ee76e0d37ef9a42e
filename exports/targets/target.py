"""What every export target is: a name, the sizes it takes, and how its text is written and read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting
from domain.model import CostModel
from domain.pipeline import Pipeline
from domain.regret import ChosenSetting, SizeRule
from domain.structure import ONE_AT_A_TIME, KnownOverlap
from domain.uncertain_answer import Reason, SettingsInDraws
from exports.table.stored import StoredTable


class Takes(StrEnum):
    """What a target takes, and so what has to be chosen or looked up before it is written."""

    ONE_SIZE = "one_size"  # one size for every message: `ExportInput.chosen` has one step
    SIZE_STEPS = (
        "size_steps"  # a size for each range of messages: `chosen` has a step an octave or fewer
    )
    COSTS = "costs"  # the fitted costs of the stages alone; `chosen` and `table` are None
    TABLE = "table"  # the whole table file: `table` and `table_bytes` are there


@dataclass(frozen=True, slots=True)
class TargetOption:
    """A choice that the caller may make. `choices` empty: any text that matches `pattern`."""

    name: str
    default: str
    meaning: str
    choices: tuple[str, ...] = ()
    pattern: str = r"[A-Za-z0-9_.,:+ -]{1,64}"


@dataclass(frozen=True, slots=True)
class ExportInput:
    """What an export is made of. `profile` "" and `revision` 0 where the model has no name."""

    profile: str
    revision: int
    model: CostModel
    options: Mapping[str, str]  # every option of the target, checked
    chosen: ChosenSetting | None = None
    table: StoredTable | None = None
    table_digest: str = ""
    table_bytes: bytes = b""
    over_draws: SettingsInDraws | None = None  # of the chosen sizes, where errors are known
    over_default: SettingsInDraws | None = None  # the default, and the chosen sizes instead of it
    verified: str = ""  # what transfers said of the model, where there were any
    refused: str = ""  # why they leave no size of the model to be set
    measured_bytes: tuple[int, int] | None = None  # the least and the greatest size of every stage
    overlap: KnownOverlap = field(default_factory=KnownOverlap)  # what is known of the stages'
    holds_either_way: bool = False  # what is set of one message, whether stages overlap or not

    @property
    def premises(self) -> tuple[str, ...]:
        """What the model takes for granted, and nobody has confirmed."""
        return tuple(one for one in (self.model.premise, self._of_overlap()) if one)

    def _of_overlap(self) -> str:
        """What is taken for granted of the stages' overlap, unless it is faster both ways."""
        stages = len(self.model.stages or ())
        found = self.overlap.premise(stages)
        if not self.overlap.is_unsaid(stages):
            return found
        over = self.over_default.reason if self.over_default else None
        if over is Reason.ONE_AT_A_TIME:
            return ONE_AT_A_TIME
        return "" if self.holds_either_way or over is Reason.EITHER_WAY else found

    @property
    def pipeline(self) -> Pipeline:
        """The model's stages. Raises InvalidInput where they are not distinguished."""
        if not isinstance(self.model, Pipeline):
            raise InvalidInput("expected the stages of a pipeline", field="profile")
        return self.model


OF_A_COLLECTIVE = (
    "these regrets are of one message from one process to the next, through the stages above; what "
    "a collective adds, its tree of ranks and its arithmetic, is no part of them"
)
PLAIN_TEXT = "text/plain; charset=utf-8"
_MEDIA_TYPES = {"json": "application/json", "xml": "application/xml"}


@dataclass(frozen=True, slots=True)
class LibraryDefault:
    """What a library does where nothing is set, and the file or program that says so.

    `setting` None: it is no repeated size that the stages could price; `words` say what it is.
    """

    words: str
    source: str
    setting: FragmentSetting | None = None


@dataclass(frozen=True, slots=True)
class Unpriced:
    """What the figures of an export leave out.

    `may_lose`: it may make what is written slower than the default, whatever the figures say.
    """

    name: str
    may_lose: bool


def repeats(size_bytes: int | None, source: str) -> LibraryDefault:
    """Return a default of one size in bytes for every message; None: messages are sent whole."""
    words = "messages sent whole" if size_bytes is None else f"{size_bytes} bytes"
    return LibraryDefault(words, source, FragmentSetting.always(size_bytes))


def _no_default(_: Mapping[str, str]) -> LibraryDefault:
    """Return that of a target for which no sizes are chosen."""
    return LibraryDefault("no sizes are chosen", "this target")


def _all_priced(_: Mapping[str, str]) -> tuple[Unpriced, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Effect:
    """How an export takes effect in programs that are started with it, and in no others.

    `library`: as the installed one names itself. `environment(text, file)`: the variables that put
    the text into effect, `file` being where it lies; raises InvalidInput. `since(text)`: the oldest
    version that reads it. `programs`: what shows its effect, of those that can be run. `without`:
    the text that leaves messages of these sizes, in ranges [from, before), to the library; None
    where nothing of it is left. A target of one size has no such part.
    """

    library: str
    programs: tuple[str, ...]
    environment: Callable[[str, str], Mapping[str, str]]
    since: Callable[[str], tuple[int, ...]]
    without: Callable[[str, tuple[tuple[int, int | None], ...]], str | None] | None = None


OF_COLLECTIVES = Unpriced("the collective's tree of ranks and its arithmetic", may_lose=True)
Render: TypeAlias = Callable[[ExportInput], str]
Read: TypeAlias = Callable[[str], FragmentSetting]


@dataclass(frozen=True, slots=True)
class Target:
    """One library's configuration. `read` is None where a setting cannot be read back.

    `verified_by` names the program that reads the export back in the tests, with its version; empty
    where none does, and then the text says in its own head that it is unverified, and cites the
    `grammar`: the source file and version that it follows.
    """

    name: str
    title: str
    takes: Takes
    render: Render
    suffix: str  # of a file that holds it: "conf", "json", "xml", "h", "c", "sh"
    grammar: str
    media_type: str = PLAIN_TEXT
    sizes: SizeRule = field(default_factory=SizeRule)
    options: tuple[TargetOption, ...] = ()
    verified_by: str = ""
    read: Read | None = None
    figures_note: str = ""  # what the figures of the head leave out, where that is not plain
    suffixes: Mapping[str, str] = field(default_factory=dict)  # by option `form`, where they differ
    default: Callable[[Mapping[str, str]], LibraryDefault] = _no_default  # by the options
    unpriced: Callable[[Mapping[str, str]], tuple[Unpriced, ...]] = _all_priced  # by the options
    effect: Effect | None = None  # None where no program here shows it

    def suffix_for(self, options: Mapping[str, str]) -> str:
        """The suffix of a file with these options."""
        return self.suffixes.get(options.get("form", ""), self.suffix)

    def media_type_for(self, options: Mapping[str, str]) -> str:
        """The media type of a text with these options."""
        suffix = self.suffix_for(options)
        return self.media_type if suffix == self.suffix else _MEDIA_TYPES.get(suffix, PLAIN_TEXT)

    def options_from(self, given: Mapping[str, str]) -> dict[str, str]:
        """Every option, as given or by default. Raises InvalidInput naming the first bad one."""
        return checked_options(self.name, self.options, given)


def checked_options(
    name: str, options: Sequence[TargetOption], given: Mapping[str, str]
) -> dict[str, str]:
    """Return every option of what has this name, as given or by default. Raises InvalidInput naming
    the first bad one.
    """
    import re

    known = {option.name: option for option in options}
    for one in given:
        if one not in known:
            raise InvalidInput(f"{name} has no option {one[:64]!r}", field="options")
    chosen = {one: given.get(one, option.default) for one, option in known.items()}
    for one, value in chosen.items():
        option = known[one]
        if option.choices and value not in option.choices:
            raise InvalidInput(
                f"expected {one} to be one of {', '.join(option.choices)}", field="options"
            )
        if not option.choices and re.fullmatch(option.pattern, value) is None:
            raise InvalidInput(f"expected {one} to match {option.pattern}", field="options")
    return chosen
