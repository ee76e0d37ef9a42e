"""What holds for every export target that is registered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from xml.etree import ElementTree

import pytest

from contract.limits import MAX_NAME_LENGTH
from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting, SettingStep
from domain.pipeline import Pipeline, pipeline_of_lines
from exports.targets.registry import TARGETS, target_named
from exports.targets.target import ExportInput, Takes, Target
from tests.architecture.documents import ROOT, code_words, document
from tests.exports.given import given_for, sizes_of

OVERVIEW = document("docs/exports.md")
# What ends a comment, a string, a line, an element or an argument somewhere.
HOSTILE = (
    "*/ int main(void) { return 1; } /*",
    "// \\",
    "\nMC_SLICE_SIZE=1\r\nUCX_RNDV_FRAG_SIZE=1\n[section]\n",
    "--> <config><prop id='smpi/os' value='1'/></config> <!-- --",
    ']]> " \' ` $(reboot) ; & | "}, {"x": 1',
    "??/ ??) #define X 1",
    "\u2028#include \u2029\x85\x0b\x0c\x1b[2J\x00\u202e",
    "\ud800 drát 线",
    "x" * MAX_NAME_LENGTH,
    "=" * MAX_NAME_LENGTH,
)


def admitted(target: Target, wanted: dict[str, str]) -> dict[str, str] | None:
    """The first choice of options with these in it that the target renders; None without any."""
    free = [option for option in target.options if option.choices and option.name not in wanted]
    for values in product(*([option.default, *option.choices] for option in free)):
        chosen = {**{o.name: value for o, value in zip(free, values, strict=True)}, **wanted}
        with suppress(InvalidInput):
            target.render(given_for(target, chosen))
            return chosen
    return None


def cases() -> Iterator[object]:
    """Every target by default, and with each choice of each option, alone or with what it needs."""
    for target in TARGETS:
        first = admitted(target, {})
        assert first is not None, f"{target.name} never renders"
        yield pytest.param(target, first, id=target.name)
        for option in target.options:
            for value in option.choices:
                if (option.name, value) == ("algorithm", "none"):
                    continue  # refused, whatever the others are: tests of Open MPI say so
                chosen = admitted(target, {option.name: value})
                assert chosen is not None, f"{target.name} never takes {option.name}={value}"
                yield pytest.param(target, chosen, id=f"{target.name}-{option.name}={value}")


CASES = list(cases())


def rendered(given: ExportInput, target: Target) -> str:
    """The text, which is text: with a line feed at its end, and no other line ends or controls."""
    text = target.render(given)
    assert text.endswith("\n")
    assert text.encode()
    assert all(one.isprintable() or one in "\n\t" for one in text)
    return text


def a_renamed(names: tuple[str, ...]) -> Pipeline:
    """Stages of the same costs with these names."""
    return pipeline_of_lines([(name, 2.5, 10.0) for name in names], delay_us=1.0)


@pytest.mark.parametrize(("target", "chosen"), CASES)
def test_the_same_input_gives_the_same_bytes(target: Target, chosen: dict[str, str]) -> None:
    """Whatever the order of the options."""
    given = given_for(target, chosen)
    shuffled = dict(reversed(given.options.items()))
    assert rendered(given, target) == target.render(given_for(target, chosen))
    lines = rendered(replace(given, options=shuffled), target).splitlines()
    assert len(lines) >= 1


@pytest.mark.parametrize(("target", "chosen"), CASES)
def test_the_head_says_what_it_is_and_whether_it_was_read(
    target: Target, chosen: dict[str, str]
) -> None:
    """Where it came from, and either the program that reads it back or that none does."""
    text = rendered(given_for(target, chosen), target)
    joined = re.sub(r"\s*\n\W*", " ", text)
    assert ("UNVERIFIED" in joined) != ("Read back in tests by" in joined)
    assert target.title in joined
    assert "lab-7" in joined
    if "Read back" in joined:
        assert target.verified_by
        assert f"Read back in tests by {target.verified_by}" in joined
    for word in re.split(r"[ ,/]+", target.grammar)[:2]:
        assert word in text


@pytest.mark.parametrize(("target", "chosen"), CASES)
def test_foreign_names_stay_within_comments(target: Target, chosen: dict[str, str]) -> None:
    """What the target reads is the same whatever stages are called."""
    tame = tuple(f"stage {at}" for at in range(len(HOSTILE)))
    options = chosen
    names = tuple(map(text_of, HOSTILE)) if target.takes is Takes.TABLE else HOSTILE
    found = rendered(given_for(target, options, pipeline=a_renamed(names)), target)
    expected = rendered(given_for(target, options, pipeline=a_renamed(tame)), target)
    suffix = target.suffix_for(target.options_from(options))
    assert meaning(found, suffix) == meaning(expected, suffix)


def text_of(name: str) -> str:
    """The name without lone surrogates, which no table file takes."""
    return name.encode(errors="replace").decode()


def meaning(text: str, suffix: str) -> object:
    """What is left of a text without its comments, by the rules of its syntax."""
    if suffix == "json":
        return without_words(json.loads(text))
    if suffix == "xml":
        root = ElementTree.fromstring(text)
        return [(node.tag, node.attrib, (node.text or "").strip()) for node in root.iter()]
    if suffix in ("h", "c", "jsonc"):
        return without_c_comments(text)
    lines = [line for line in text.splitlines() if line.strip() and line[0] != "#"]
    # What names a table by its bytes differs with the names of the stages in it.
    return [re.sub(r"\b[0-9a-f]{8,64}\b", "checksum", line) for line in lines]


def without_words(document: object) -> object:
    """A JSON document with the words of its comments left out: strings in lists of strings."""
    if isinstance(document, dict):
        return {key: without_words(value) for key, value in document.items()}
    if isinstance(document, list):
        is_words = document and all(isinstance(item, str) for item in document)
        return "words" if is_words else [without_words(item) for item in document]
    return document


_C_PIECES = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|.', re.DOTALL)


def without_c_comments(text: str) -> list[str]:
    """The lines of a C text as its compiler has them, without the plan table's own bytes.

    A table holds the names of its stages; as numbers they are compared by the table's own tests.
    """
    assert "\\\n" not in text
    assert "??" not in text
    pieces = (piece for piece in _C_PIECES.findall(text) if not piece.startswith(("/*", "//")))
    lines = [line.strip() for line in "".join(pieces).splitlines()]
    return [line for line in lines if line and not re.fullmatch(r"[0-9a-fA-FxXuULl, ]+", line)]


def settings_of(target: Target) -> Iterator[FragmentSetting]:
    """Settings that the target's rule admits."""
    small, middle, large = sizes_of(target)
    if target.takes is Takes.ONE_SIZE:
        for size in (small, middle, large):
            yield FragmentSetting.always(size)
        return
    yield FragmentSetting.always(middle)
    yield FragmentSetting((SettingStep(1, small), SettingStep(300_000, large)))
    yield FragmentSetting(
        (SettingStep(1, small), SettingStep(70_000, large), SettingStep(2**20, middle))
    )


def telling_sizes(setting: FragmentSetting) -> list[int]:
    """Messages at which two settings would differ: around each step and each size, and between."""
    edges = {step.from_bytes for step in setting.steps}
    edges |= {step.size_bytes for step in setting.steps if step.size_bytes is not None}
    edges |= {1 << bit for bit in range(40)}
    return sorted(size for edge in edges for size in (edge - 1, edge, edge + 1) if size >= 1)


@pytest.mark.parametrize(("target", "chosen"), CASES)
def test_what_is_read_back_is_what_was_written(target: Target, chosen: dict[str, str]) -> None:
    """For every target with a reader, in every form."""
    if target.read is None:
        assert target.takes in (Takes.COSTS, Takes.TABLE)
        return
    for setting in settings_of(target):
        found = target.read(rendered(given_for(target, chosen, setting=setting), target))
        for message_bytes in telling_sizes(setting):
            assert found.size_at(message_bytes) == setting.size_at(message_bytes), message_bytes


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_reader_refuses_what_is_none_of_its_texts(target: Target) -> None:
    """Empty, other languages, binary junk and nesting: InvalidInput, which does not echo."""
    if target.read is None:
        return
    for text in ("", "\x00" * 100, "[" * 100_000, '{"a":' * 50_000, "<a>" * 1000, "=" * 100_000):
        with pytest.raises(InvalidInput) as refusal:
            target.read(text)
        assert len(refusal.value.detail) < 300


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_options_are_checked_and_documented(target: Target) -> None:
    """Defaults are admitted, unknown ones refused; the page of the target names each."""
    defaults = target.options_from({})
    assert set(defaults) == {option.name for option in target.options}
    with pytest.raises(InvalidInput):
        target.options_from({"no_such_option": "1"})
    for option in target.options:
        assert option.meaning
        with pytest.raises(InvalidInput):
            target.options_from({option.name: "\x00\n"})
    names = {option.name for option in target.options}
    choices = {choice for option in target.options for choice in option.choices}
    assert names | choices <= code_words((ROOT / "docs" / page_of(target)).read_text())


def rows() -> dict[str, list[str]]:
    """The rows of the overview's table of targets."""
    return {row[0].strip("`"): row[1:] for row in OVERVIEW.rows("Targets")}


def page_of(target: Target) -> str:
    """The page that the overview names for this target."""
    link = re.search(r"\]\(([^)#]+)", rows()[target.name][-1])
    assert link
    return link[1]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_the_overview_says_what_the_registry_says(target: Target) -> None:
    """What each target takes, and the program that reads it."""
    takes, read_by, *_ = rows()[target.name]
    assert takes.strip("`") == target.takes
    assert read_by == (target.verified_by or "unverified")


def test_the_overview_names_every_target_and_no_other() -> None:
    """As the registry does, each once."""
    names = [target.name for target in TARGETS]
    assert len(set(names)) == len(names)
    assert set(rows()) == set(names)
    assert [target_named(name) for name in names] == list(TARGETS)
    with pytest.raises(InvalidInput, match="simgrid"):
        target_named("no such")
