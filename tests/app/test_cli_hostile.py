"""Command lines that no one means: each is refused in a line of plain words, in no time."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli import main
from app.errors import INTERNAL

# Of Python and its libraries; a person who mistypes knows none of them.
INTERNALS = re.compile(
    r"Traceback|Error\b|NoneType|invalid \w+ value|invalid choice|<class|object at|function-|Errno|"
    r"\b(int|str|float|dict|tuple|NaN)\b(?! \w+ is)|pydantic|argparse|unhashable|subscript"
)
LINES = """\
''
--
-x
--json
optimize
optimize gms --bytes -5
optimize gms --bytes 0
optimize gms --bytes 4KiB --bytes
optimize gms --bytes 99999999999999999999TiB
optimize gms --bytes 1e9
optimize gms --bytes ４KiB
optimize gms --bytes 4 --max-fragments 999999999999999999999999
optimize gms --bytes 4 --max-fragments -1
optimize gms --bytes 4 --max-fragments 1_0
optimize gms --bytes 4 --time-limit nan
optimize gms --bytes 4 --time-limit -1
optimize gms --bytes 4 --relative-gap 1e999
optimize gms --bytes 4 --strategy Strategy.AUTO
optimize gms --bytes 4 --current wole
optimize gms --bytes 4 --relative 5
optimize gms --bytes 4 --timeline .
optimize gms --bytes 4 --save-as ../x
optimize gms@0 --bytes 4
optimize gms@999999999999999999999999 --bytes 4
optimize gms extra --bytes 4
optimize --byte 4 gms
optimize nan.json
optimize deep.json
optimize list.json --bytes 4
optimize text.json
optimize long.json
optimize binary.csv --bytes 4
optimize empty.csv --bytes 4
fit
fit - -
fit ''
plan ''
fit one.csv --group x
fit one.csv --exclude 1:1:copy
fit one.csv --columns size=#9,time=#9:us
fit one.csv --max-ranges 99999999999999999
fit one.csv --separately --plot x.svg
compose --stage x=one.csv --step y=z
measure nosuch
measure memcpy --cpus 99999999999999999999
measure --listen x:y
verify gms --stage nosuch
tune --target nosuch
sweep
sweep --
sweep --bytes 4 -- ''
sweep --bytes 4 --json -- nosuch {bytes}
sweep --bytes 99999999999999999999 -- true {bytes}
sweep --bytes 4 --current 0 -- true {bytes}
sweep --bytes 4 --max-runs 999999999999999 -- true {bytes}
sweep --bytes 4 --time '(?P<a>(' -- true {bytes}
sweep --bytes 4 --time '(?<=a+)(b)' -- true {bytes}
sweep --bytes 4 --env {bytes} -- true
sweep --bytes 4 --out . -- true {bytes}
sweep --bytes 4 --continue binary.csv -- true {bytes}
sweep --bytes 4 --continue . -- true {bytes}
compare gms --bytes 4 --strategies auto,,fixed
simulate gms --fragments ,
simulate gms --repeat 1 --bytes 1TiB
plan --tolerance 900%
plan --min-message 4 --max-message 5
table gms --from 5 --to 4
table gms --gap 5
export gms --target ucs
export gms --target ucx --option nosuch=1
apply ucx gms
audit gms --setting 1:whole,0:4
audit gms --config binary.csv --target ucx
layer cmam-finite --bytes 64 --cycles x=y
layer cmam-finite --bytes 64 --packet-words 0
layer check binary.csv
mover heat --columns 99999999999999999
reproduce wang98 --only nosuch
hide gms --bytes 4 --calculation 1 --sender-stage 99
hide --software 0 --hardware 0
deliver gms --bytes 4 --rules static=0,same,same,same
thresholds gms --bytes 8KiB --stages 99
profiles nosuch
profiles use gms 1.5
profiles save a@b gms
profiles activate gms zz
answers list --limit 0
answers show ' '
jobs list --state wait
jobs show ../../x
open a/b
completion tcsh
keys create x --scope read --days 1e300
keys rotate '%n'
serve --port 70000
work --workers -1
collect --keep jobs=1x
restore binary.csv
""".splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that are none of what is asked for."""
    folder = tmp_path_factory.mktemp("hostile")
    stages = '{"pipeline": {"stages": [{"name": "a", "overhead_us": %s, "ns_per_byte": 1}]}}'
    (folder / "nan.json").write_text(stages % "NaN")
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "list.json").write_text("[1, 2]")
    (folder / "text.json").write_text('{"pipeline": "x", "message_bytes": "many"}')
    (folder / "long.json").write_text(json.dumps({"profile": "gms", "message_bytes": 10**30}))
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 10)
    (folder / "empty.csv").touch()
    (folder / "one.csv").write_text("bytes,copy\n1,2\n")
    return folder


@pytest.mark.parametrize("line", LINES)
def test_it_is_refused_in_plain_words(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that begins as every error does, or a problem document, and never a defect."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{folder / 'hostile.db'}")
    words = shlex.split(line)
    code = main(words)
    streams = capsys.readouterr()
    assert code not in (0, 1, INTERNAL.exit_code)
    assert streams.out == ""
    assert streams.err.count("\n") == 1
    assert streams.err.startswith("{" if "--json" in words else "sluice: error: ")
    said = streams.err.replace(line, "")
    assert not INTERNALS.search(re.sub(r"'[^']*'", "", said)), said


@pytest.mark.parametrize(
    ("words", "closed", "code"),
    [
        ("optimize -", "<&-", 2),
        ("profiles delete gms", "<&-", 2),
        ("export --list", ">&-", 0),
        ("profiles show nosuch", "2>&-", 4),
        ("export --list", ">/dev/full", 2),
        ("admin completion fish", ">/dev/full", 2),
        ("--version", ">/dev/full", 2),
        ("audit --help", ">/dev/full", 2),
    ],
)
def test_streams_that_are_closed_or_full(
    words: str, closed: str, code: int, tmp_path: Path
) -> None:
    """As a shell may leave them."""
    url = f"sqlite:///{tmp_path / 'closed.db'}"
    # Else every write is one to the file, and none is left for the end.
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m app.cli {words} {closed}"],
        cwd=Path(__file__).parents[2],
        env={**kept, "SLUICE_DATABASE_URL": url},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == (code != 0 and "2>" not in closed)
