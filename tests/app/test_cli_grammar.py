"""What the command line says of itself: versions, examples, and names that are nearly right."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path

import pytest

from app.cli import main
from app.console.arguments import parse
from app.registry import command_words
from app.settings import VERSION
from app.ui.grammar import Command
from tests.support.commands import commands

EXAMPLES = Path(__file__).parents[2] / "examples"
COMMANDS = [" ".join(words) for words, made in commands() if isinstance(made, Command)]


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of its own."""
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")


class Terminal(io.StringIO):
    """Standard input where somebody sits."""

    def isatty(self) -> bool:
        return True


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that is not understood says."""
    assert main(arguments) == 2
    return capsys.readouterr().err


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    """As the interface's document has it."""
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"sluice {VERSION}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """That the command line understands, of files that are there."""
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    shown = " ".join(capsys.readouterr().out.partition("example: ")[2].split())
    words = shlex.split(shown)
    assert words[: 1 + len(command.split())] == ["sluice", *command.split()]
    read = parse(words[1:])
    named = (command_words(read.command), getattr(read, "verb", None))
    assert " ".join(filter(None, named)) == command
    for word in words:
        assert not word.startswith("examples/") or (EXAMPLES.parent / word).is_file()


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("optimise x", "optimize"),
        ("optimize x --strategy exatc", "exact"),
        ("compare x --strategies auto,fixd", "fixed"),
        ("export x --objective wurst", "worst"),
        ("profiles lst", "list"),
        ("optimize x --bytes 4 --strategi exact", "--strategy"),
        ("profiles delete x --yess", "--yes"),
        ("--versio", "--version"),
        ("model --hepl", "--help"),
        ("export gms --target ucs", "ucx"),
        ("apply mpch gms --check", "mpich"),
    ],
)
def test_what_is_meant(line: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest name, and no word of Python's."""
    said = refusal(capsys, *line.split())
    assert f"did you mean {meant}?" in said
    assert "<" not in said
    assert "invalid choice" not in said


def test_nothing_near_is_not_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    """The names that there are."""
    said = refusal(capsys, "optimize", "x", "--strategy", "9")
    assert "did you mean" not in said
    assert "expected one of auto, exact" in said


def test_what_stands_behind_two_hyphens_is_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    """But the name of a source, which may look like one; who is refused is told so in words."""
    assert main(["simulate", "--bytes", "4", "--", "--json"]) == 4
    assert capsys.readouterr().err == "sluice: error: source: there is no file '--json'\n"


def test_no_option_takes_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of its name would be written, and the option passed over."""
    monkeypatch.chdir(tmp_path)
    said = refusal(capsys, "table", "gms", "--to", "1KiB", "--output", "--accept-missed")
    assert "option '--output' requires an argument" in said
    assert not list(tmp_path.glob("--*"))


def test_profiles_alone_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    """As its verb does."""
    assert main(["profiles"]) == 0
    alone = capsys.readouterr().out
    assert main(["profiles", "list"]) == 0
    assert alone == capsys.readouterr().out
    assert "myrinet-gam" in alone


def test_a_deletion_is_asked_about(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nobody sits it takes --yes; at a terminal only yes deletes."""
    assert main(["profiles", "save", "mine", str(EXAMPLES / "myrinet-gam.json")]) == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert "--yes" in refusal(capsys, "profiles", "delete", "mine")
    monkeypatch.setattr(sys, "stdin", Terminal("no\n"))
    assert "not deleted" in refusal(capsys, "profiles", "delete", "mine")
    assert main(["profiles", "show", "mine"]) == 0
    monkeypatch.setattr(sys, "stdin", Terminal("yes\n"))
    assert main(["profiles", "delete", "mine"]) == 0
    assert main(["profiles", "show", "mine"]) == 4
