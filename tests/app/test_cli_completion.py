"""What shells complete the words of `sluice` by: each script in the shell that it is for."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from app.cli import main
from app.console.argument_parts import SHELLS, completion_of
from app.console.arguments import grammar
from domain.solution import Strategy
from tests.architecture.test_documents import commands
from tests.support.system import require_system

GUARD_S = 60.0  # against a shell that hangs
COMMANDS = dict(commands(grammar()))
LINES = [" ".join(words) for words in COMMANDS]
# What a shell shows: what it offers, one a line, between marks. zsh completes at its own prompt
# alone, so there the functions that take offers print them.
ASKING = {
    "bash": """\
ask() {
    COMP_WORDS=("${@:2}"); COMP_CWORD=$(($# - 2)); COMPREPLY=()
    _sluice 2>/dev/null; echo "? $1"; printf '%s\\n' "${COMPREPLY[@]}"
}
""",
    "zsh": """\
compdef() { }; compset() { }; compadd() { shift; print -l -- "$@" }; _files() { echo FILES }
ask() { local name=$1; shift; words=("$@"); CURRENT=$#; echo "? $name"; _sluice }
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


def offers(name: str, folder: Path, asked: dict[str, list[str]]) -> dict[str, list[str]]:
    """What a shell offers for each of these lines, all in one run; a line's last word is begun."""
    lines = [ASKING[name]] if name != "zsh" else []
    script = completion_of(grammar(), name)
    questions = [
        f"ask {key} sluice {' '.join(word or chr(39) * 2 for word in words)}"
        for key, words in asked.items()
    ]
    before = [ASKING[name]] if name == "zsh" else []
    text = "\n".join([*before, script, *lines, *questions, ""])
    file = folder / f"completion.{name}"
    file.write_text(text)
    run = [shell(name), *{"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[name]]
    done = subprocess.run(
        [*run, str(file)], cwd=folder, capture_output=True, text=True, timeout=GUARD_S, check=False
    )
    assert done.stderr == ""
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("? "):
            current = found.setdefault(line[2:], [])
        elif line:
            current.append(line.split("\t")[0])
    return found


def _key(line: str) -> str:
    """Return a question's name, which is one word."""
    return line.replace(" ", "-")


@pytest.mark.parametrize("name", SHELLS)
def test_every_command_and_option_is_completed(name: str, tmp_path: Path) -> None:
    """Of each command its long options; of each group its verbs; all commands at the start."""
    asked = {f"o{place}": [*line.split(), "--"] for place, line in enumerate(LINES)}
    groups = {" ".join(words[:-1]) for words in COMMANDS if len(words) > 1} | {"model layer"}
    asked |= {f"v{_key(line)}": [*line.split(), ""] for line in groups} | {"start": [""]}
    found = offers(name, tmp_path, asked)
    for place, words in enumerate(COMMANDS):
        options = {
            one
            for action in COMMANDS[words]._actions
            for one in action.option_strings
            if one.startswith("--")
        }
        assert options <= set(found[f"o{place}"]), words
        assert {one for one in found[f"o{place}"] if one.startswith("--")} == options, words
    for line in groups:
        below = [one[len(line) + 1 :] for one in LINES if one.startswith(f"{line} ")]
        assert {words.split()[0] for words in below} <= set(found[f"v{_key(line)}"]), line
    assert set(found["start"]) - {"FILES"} == {line.split()[0] for line in LINES}


@pytest.mark.parametrize("name", SHELLS)
def test_values_and_files(name: str, tmp_path: Path) -> None:
    """Names that an option takes; files where it takes one, and none where it takes a number."""
    (tmp_path / "pipeline.json").write_text("{}")
    asked = {
        "strategy": ["optimize", "pipeline.json", "--strategy", "e"],
        "after": ["optimize", "--strategy", "exact", "--js"],
        "number": ["optimize", "--time-limit", ""],
        "verb": ["profiles", "rev"],
        "shell": ["admin", "completion", ""],
        "value": ["profiles", "show", "list", "--"],
    }
    found = offers(name, tmp_path, asked)
    begun = {one for one in Strategy if name == "zsh" or one.startswith("e")}
    assert set(found["strategy"]) == begun  # zsh itself leaves out what does not fit
    assert "--json" in found["after"]
    assert found["number"] == []
    assert "revisions" in found["verb"]
    assert set(found["shell"]) == set(SHELLS)
    assert "--json" in found["value"]
    if name == "bash":
        return  # its own completion of files is the default of `complete`, and needs a prompt
    files = offers(name, tmp_path, {"file": ["fit", ""], "option": ["fit", "x", "--plot", ""]})
    for key in files:
        assert {"pipeline.json", "FILES"} & set(files[key]), key


@pytest.mark.parametrize("name", ["bash", "zsh"])
def test_a_person_presses_tab(name: str, tmp_path: Path) -> None:
    """At a prompt, in a folder with one file."""
    (tmp_path / "measured.csv").write_text("")
    (tmp_path / "script").write_text(completion_of(grammar(), name))
    plain = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}[name]
    begin = {"bash": "", "zsh": "autoload -Uz compinit; compinit -u -D"}[name]
    with Prompt([shell(name), *plain], tmp_path) as prompt:
        prompt.send(f'PS1=; {begin}\nsluice() {{ echo "ran $*."; }}\nsource ./script\n')
        prompt.send("echo ready$((40+2))\n")
        prompt.wait("ready42")
        prompt.send("sluice optimize --strat\t")
        prompt.wait("--strategy ")
        prompt.send("repe\t")
        prompt.wait("repeat ")
        prompt.send("meas\t")
        prompt.wait("measured.csv")
        prompt.send("\n")
        prompt.wait("ran optimize --strategy repeat measured.csv.")


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


def test_the_command_prints_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    """As it is, for `source` and for a file."""
    for name in SHELLS:
        assert main(["admin", "completion", name]) == 0
        assert capsys.readouterr().out == completion_of(grammar(), name)
