"""What shells complete the words of `sluice` by: each script in the shell that it is for."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from app.cli import main
from app.console.arguments import COMPLETE, PROGRAM, grammar
from app.ui.grammar import CONTEXT, Group
from app.verbs.completion.command import SHELLS
from domain.solution import Strategy
from tests.architecture.documents import ROOT
from tests.support.commands import commands, option_names
from tests.support.system import require_system

GUARD_S = 60.0  # against a shell that hangs
COMMANDS = dict(commands())
# What a shell shows: what it offers, one a line, between marks. zsh completes at its own prompt
# alone, so there the functions that take offers print them.
ASKING = {
    "bash": """\
ask() {
    COMP_WORDS=("${@:2}"); COMP_CWORD=$(($# - 2)); COMPREPLY=()
    _sluice_completion sluice 2>/dev/null; echo "? $1"; printf '%s\\n' "${COMPREPLY[@]}"
}
""",
    "zsh": """\
compdef() { }
compadd() { local name=${@[-1]}; print -l -- ${(P)name} }
_describe() { local name=$3 each; for each in ${(P)name}; do print -- ${each%%:*}; done }
_path_files() { echo FILES }
ask() { local name=$1; shift; words=("$@"); CURRENT=$#; echo "? $name"; _sluice_completion }
""",
    "fish": """\
function ask
    echo "? $argv[1]"
    complete -C (string join -- ' ' $argv[2..])
end
""",
}


def shell(name: str) -> str:
    """The shell; where it is missing the test is skipped, and in CI it fails."""
    found = shutil.which(name)
    require_system(found, name, f"apt-get install {name}")
    assert found is not None
    return found


def script_of(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What `sluice admin completion` prints."""
    assert main(["admin", "completion", name]) == 0
    return capsys.readouterr().out


def folder_of_programs(folder: Path) -> Path:
    """A folder in which `sluice` is."""
    programs = folder / "programs"
    programs.mkdir()
    program = programs / PROGRAM
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m app.cli "$@"\n')
    program.chmod(0o755)
    return programs


def offers(
    name: str, script: str, folder: Path, asked: dict[str, list[str]]
) -> dict[str, list[str]]:
    """What a shell offers for each of these lines, all in one run; a line's last word is begun."""
    questions = [
        f"ask {key} sluice {' '.join(word or chr(39) * 2 for word in words)}"
        for key, words in asked.items()
    ]
    parts = [ASKING[name], script] if name == "zsh" else [script, ASKING[name]]
    file = folder / f"completion.{name}"
    file.write_text("\n".join([*parts, *questions, ""]))
    run = [shell(name), *{"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[name]]
    done = subprocess.run(
        [*run, str(file)],
        cwd=folder,
        env={**os.environ, "PATH": f"{folder_of_programs(folder)}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=GUARD_S,
        check=False,
    )
    assert done.stderr == ""
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("? "):
            current = found.setdefault(line[2:], [])
        elif line:
            current.append(line.split("\t")[0])
    return found


def offered(*words: str) -> list[str]:
    """What is offered for the last of these words, which is begun; FILE for files."""
    completion = ShellComplete(grammar(), dict(CONTEXT), PROGRAM, COMPLETE)
    found = completion.get_completions(list(words[:-1]), words[-1])
    return ["FILE" if item.type == "file" else str(item.value) for item in found]


@pytest.mark.parametrize("words", COMMANDS)
def test_every_option_of_a_command_is_completed(words: tuple[str, ...]) -> None:
    """All of its long options, or of the verb that is meant, and those of help."""
    typed = " ".join(words).split()
    made = COMMANDS[words]
    if isinstance(made, Group) and made.default:
        made = COMMANDS[(*words, made.default)]
    options = {name for name in option_names(made) if name.startswith("--")}
    assert set(offered(*typed, "--")) == options | {"--help"}


def test_every_command_is_completed() -> None:
    """All at the start, and below each word those that stand there."""
    assert offered("") == list(grammar().entries)
    assert set(offered("-")) == {"-h", "--help", "--version"}
    for words, made in COMMANDS.items():
        if isinstance(made, Group):
            below = dict.fromkeys(name.split()[0] for name in made.entries)
            assert offered(*words, "") == list(below), words
    assert offered("opt") == ["optimize"]
    assert offered("model", "layer", "count", "--mp") == ["--mpicc"]
    assert offered("model", "layer", "") == ["FILE", "count", "check"]
    assert offered("model", "layer", "--bytes", "4", "--json", "ch") == ["FILE"]


def test_a_default_verb_is_completed_by_the_word_above_it() -> None:
    """Its options, and what they take."""
    assert offered("jobs", "--st") == ["--state"]
    assert offered("jobs", "--state", "r") == ["running"]
    assert offered("jobs", "") == ["list", "show"]
    assert "--owner" in offered("answers", "-")


def test_values_and_files() -> None:
    """Names that an option takes; files where it takes one, and none where it takes a number."""
    begun = [str(strategy) for strategy in Strategy if strategy.startswith("e")]
    assert offered("optimize", "pipeline.json", "--strategy", "e") == begun
    assert offered("optimize", "--strategy", "exact", "--js") == ["--json"]
    assert offered("optimize", "--time-limit", "") == []
    assert offered("profiles", "rev") == ["revisions"]
    assert offered("admin", "completion", "") == list(SHELLS)
    assert offered("fit", "") == offered("fit", "x", "--plot", "") == ["FILE"]


@pytest.mark.parametrize(
    "environment",
    [
        {COMPLETE: "garbage"},
        {COMPLETE: "ksh_complete"},
        {COMPLETE: "bash"},
        {COMPLETE: "bash_complete"},
        {COMPLETE: "zsh_complete", "COMP_WORDS": "sluice ", "COMP_CWORD": "x"},
        {COMPLETE: "bash_complete", "COMP_WORDS": "sluice ", "COMP_CWORD": "-1"},
        {COMPLETE: "fish_complete", "COMP_WORDS": "sluice "},
    ],
)
def test_what_no_shell_asks_is_refused(
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In one line: a variable that stands in an environment must not make a command say nothing."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main(["optimize", "x"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("sluice: error: ")
    assert said.err.count("\n") == 1


def together(name: str, option: str, value: str) -> list[str]:
    """An option and its value behind `=`, which bash takes for three words."""
    return [option, "=", value] if name == "bash" else [f"{option}={value}"]


def test_an_offer_has_no_comma_in_fish(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its script would cut what the option means there."""
    monkeypatch.setenv(COMPLETE, "fish_complete")
    monkeypatch.setenv("COMP_WORDS", "sluice jobs list --st")
    monkeypatch.setenv("COMP_CWORD", "--st")
    assert main([]) == 0
    assert capsys.readouterr().out.rstrip() == (
        "plain,--state\tqueued; running; done; failed or cancelled ones alone"
    )


def test_a_word_that_is_no_text(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """As a name of a file may be: it goes back to the shell as it came."""
    monkeypatch.setenv(COMPLETE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "sluice fit \udcff")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert main([]) == 0
    assert capfdbinary.readouterr().out.startswith(b"file,\xff")


@pytest.mark.parametrize("name", SHELLS)
def test_a_shell_offers_them(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the script that the command prints."""
    (tmp_path / "pipeline.json").write_text("{}")
    asked = {
        "start": ["opt"],
        "verb": ["profiles", "rev"],
        "option": ["optimize", "--strat"],
        "strategy": ["optimize", "pipeline.json", "--strategy", "exa"],
        "number": ["optimize", "--time-limit", ""],
        "together": ["optimize", *together(name, "--strategy", "exa")],
        "quoted": ["optimize", "'$(>ran)'", "--strat"],
    }
    found = offers(name, script_of(name, capsys), tmp_path, asked)
    assert found == {
        "start": ["optimize"],
        "verb": ["revisions"],
        "option": ["--strategy"],
        "strategy": ["exact"],
        "number": [],
        "together": ["exact" if name == "bash" else "--strategy=exact"],
        "quoted": ["--strategy"],
    }
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["bash", "zsh"])
def test_a_person_presses_tab(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At a prompt, in a folder with one file."""
    (tmp_path / "measured.csv").write_text("")
    (tmp_path / "script").write_text(script_of(name, capsys))
    programs = folder_of_programs(tmp_path)
    plain = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}[name]
    begin = {"bash": "", "zsh": "autoload -Uz compinit; compinit -u -D"}[name]
    with Prompt([shell(name), *plain], tmp_path) as prompt:
        prompt.send(f"PS1=; PATH={programs}:$PATH; {begin}\nsource ./script\n")
        prompt.send("echo ready$((40+2))\n")
        prompt.wait("ready42")
        prompt.send("sluice optimize --strat\t")
        prompt.wait("--strategy ")
        prompt.send("repe\t")
        prompt.wait("repeat ")
        prompt.send("meas\t")
        prompt.wait("measured.csv")
        prompt.send("\x03")


class Prompt:
    """A shell at a terminal of its own."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._number, self._file = pty.fork()
        if self._number == 0:  # the shell's own process
            os.chdir(folder)
            os.execve(command[0], command, {**os.environ, "TERM": "dumb", "HOME": str(folder)})
        self._shown = ""

    def __enter__(self) -> Prompt:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)  # hangs up: an interactive shell ends
        os.waitpid(self._number, 0)

    def send(self, text: str) -> None:
        """Type this."""
        os.write(self._file, text.encode())

    def wait(self, text: str) -> None:
        """Return once it shows this, behind what was waited for before."""
        end_s = time.monotonic() + GUARD_S
        while text not in self._shown:
            assert time.monotonic() < end_s, self._shown
            if select.select([self._file], [], [], 0.1)[0]:
                self._shown += os.read(self._file, 65_536).decode(errors="replace")
        self._shown = self._shown.partition(text)[2]
