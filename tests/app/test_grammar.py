"""What a command of the command line takes, and how words that it does not take are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ui.grammar import Command, Entry, Group, parsed
from domain.errors import InvalidInput
from domain.units import parse_bytes


def command(**more: Any) -> Command:
    """A command of every kind of parameter."""
    made = Command("cut", summary="cut a message", example="x.json", **more)
    made.argument("source", help="a file")
    made.argument("rest", is_optional=True, takes_several=True)
    made.option("--bytes", read=parse_bytes, metavar="SIZE", help="its size")
    made.option("--sizes", "-s", read=parse_bytes, takes_several=True, help="several")
    made.option("--where", is_repeated=True, help="one or more")
    made.option("--strategy", choices=("auto", "exact"), rest="auto", help="one of two")
    made.flag("--robust", help="a mark", mark="yes", rest=None)
    return made


def test_what_is_not_given_has_what_stands_for_it() -> None:
    """None, or what the parameter says."""
    found = command().parsed(["x.json"])
    assert vars(found) == {
        "command": "cut",
        "json": False,
        "source": "x.json",
        "rest": [],
        "bytes": None,
        "sizes": None,
        "where": None,
        "strategy": "auto",
        "robust": None,
    }


def test_what_is_given_is_read() -> None:
    """Each value by its reader, in whatever order the words stand."""
    words = "--where a=1 x.json --bytes=4KiB y z --where b=2 --robust --strategy exact -"
    found = command().parsed(words.split())
    assert (found.source, found.rest, found.bytes) == ("x.json", ["y", "z", "-"], 4096)
    assert (found.where, found.robust, found.strategy) == (["a=1", "b=2"], "yes", "exact")


@pytest.mark.parametrize(
    ("words", "sizes", "rest"),
    [
        ("x --sizes 1 2KiB 3", [1, 2048, 3], []),
        ("x y --sizes 1 2 --robust", [1, 2], ["y"]),
        ("x -s 1 2 --sizes 3", [1, 2, 3], []),
        ("x --sizes=1 y", [1], ["y"]),
        ("x --sizes 1 -- y", [1], ["y"]),
        ("--sizes 1 --bytes 2 x y", [1], ["y"]),
    ],
)
def test_an_option_of_several_values(words: str, sizes: list[int], rest: list[str]) -> None:
    """It takes all words up to the next option."""
    found = command().parsed(words.split())
    assert (found.source, found.sizes, found.rest) == ("x", sizes, rest)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "missing: SOURCE (see cut --help)"),
        ("x --bytes", "option '--bytes' requires an argument (see cut --help)"),
        ("x --byte 4", "unknown: --byte; did you mean --bytes? (see cut --help)"),
        ("x --nothing", "unknown: --nothing (see cut --help)"),
        (
            "x --strategy exatc",
            "argument --strategy: expected one of auto, exact, got 'exatc'; did you mean exact? "
            "(see cut --help)",
        ),
        ("x --robust=1", "option '--robust' does not take a value (see cut --help)"),
        (
            "x --where --json",
            "option '--where' requires an argument, and --json looks like an option: "
            "--where=--json has it as one (see cut --help)",
        ),
        (
            "x --sizes --zz",
            "option '--sizes' requires an argument, and --zz looks like an option: "
            "--sizes=--zz has it as one (see cut --help)",
        ),
        (
            "x --where -- y",
            "option '--where' requires an argument, and -- looks like an option: "
            "--where=-- has it as one (see cut --help)",
        ),
        ("x -bytes 4", "unknown: -bytes; did you mean --bytes? (see cut --help)"),
        ("-.5", "unknown: -.5 (see cut --help)"),
    ],
)
def test_what_is_not_taken(words: str, said: str) -> None:
    """In one line that names the parameter, what it expects, and where help is."""
    with pytest.raises(InvalidInput) as refused:
        command().parsed(words.split())
    assert refused.value.detail == said


def test_a_value_may_begin_as_an_option_does() -> None:
    """Where it is none, or is said in one word."""
    words = ["x", "--where", "-5", "--where=--json", "--where", "- a", "--where", "-- b", "--json"]
    found = command().parsed(words)
    assert (found.where, found.json) == (["-5", "--json", "- a", "-- b"], True)


@pytest.mark.parametrize("words", ["-h --zz", "--zz --help", "x --bytes 4 -h", "--sizes 4 -h"])
def test_who_asks_for_help_gets_it(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever else is typed."""
    with pytest.raises(SystemExit) as end:
        command().parsed(words.split())
    assert end.value.code == 0
    assert "SOURCE" in capsys.readouterr().out


def test_help_says_that_an_option_takes_several(capsys: pytest.CaptureFixture[str]) -> None:
    """By dots, as of arguments."""
    with pytest.raises(SystemExit):
        command().parsed(["-h"])
    assert "-s, --sizes TEXT..." in capsys.readouterr().out


def test_a_reader_says_what_it_expects() -> None:
    """In its own sentence."""
    with pytest.raises(InvalidInput, match="argument --sizes/-s: expected a size such as 4096"):
        command().parsed(["x", "--sizes", "4", "4QiB"])


WORDS = st.lists(
    st.sampled_from(["x", "-", "--", "--bytes", "4", "-s", "--robust", "--zz", "=", ""])
)


@given(WORDS)
def test_words_are_read_or_refused(words: list[str]) -> None:
    """Whatever they are: no other error, and a refusal in one line."""
    said = refused_of(words)
    assert said is None or (said and "\n" not in said)


def refused_of(words: list[str]) -> str | None:
    """What is said of words that are refused; None where they are read."""
    try:
        command().parsed(words)
    except InvalidInput as refusal:
        return refusal.detail
    return None


def refused_entry() -> Command:
    """Fail the test: nobody asked for this command."""
    raise AssertionError("made without need")


def group() -> Group:
    """Two commands, one of which is not to be made, and one of two words."""
    cut = command()
    entries = {
        "cut": Entry("cut a message", lambda: cut),
        "cut count": Entry("count", lambda: Command("cut count", summary="count", example="")),
        "other": Entry("never made", refused_entry),
    }
    return Group("all", {"Ask": entries}, summary="everything", epilog="THE END\n")


def test_a_group_makes_the_command_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """And lists all of them without making one."""
    assert parsed(group(), "all", ["cut", "x"]).command == "cut"
    assert parsed(group(), "all", ["cut", "count"]).command == "cut count"
    with pytest.raises(SystemExit) as end:
        parsed(group(), "all", ["--help"])
    shown = capsys.readouterr().out
    assert end.value.code == 0
    assert "never made" in shown
    assert shown.endswith("THE END\n")


def test_help_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """What it takes, in words, and an example."""
    with pytest.raises(SystemExit):
        parsed(group(), "all", ["cut", "-h"])
    shown = capsys.readouterr().out
    assert shown.startswith("Usage: all cut [OPTIONS] SOURCE [REST]...\n")
    assert "a file" in shown
    assert shown.endswith("example: all cut x.json\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "missing: COMMAND, one of cut, cut count, other (see all --help)"),
        (
            "ct x",
            "argument COMMAND: expected one of cut, cut count, other, got 'ct'; did you mean cut? "
            "(see all --help)",
        ),
    ],
)
def test_what_is_no_command(words: str, said: str) -> None:
    """Those that there are, and the one that is meant."""
    with pytest.raises(InvalidInput) as refused:
        parsed(group(), "all", words.split())
    assert refused.value.detail == said


def test_a_command_of_verbs() -> None:
    """The default one is meant where none is named."""
    made = Group("things", {"": {}}, summary="things", has_verbs=True)
    made.add("list", "list", "", is_default=True).option("--limit", help="how many")
    made.add("show", "show", "")
    for words in ("", "list"):
        found = parsed(made, "things", words.split())
        assert (found.command, found.verb, found.limit) == ("things", "list", None)
    assert parsed(made, "things", ["--limit", "4"]).limit == "4"
    assert parsed(made, "things", ["show"]).verb == "show"
    assert parsed(made, "things", ["--", "show"]).verb == "show"
    with pytest.raises(InvalidInput, match="argument VERB: expected one of list, show"):
        parsed(made, "things", ["hide"])
