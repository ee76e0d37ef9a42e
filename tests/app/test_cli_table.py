"""sluice table, by main(argv); judged by meaning, not by layout."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import solvers
from app.cli import main
from app.console import running
from app.console.arguments import parse
from app.console.running import Show
from app.execution.engine import Started
from app.operations import table_work
from app.questions.tables import TableQuestion
from exports.table.slt import decode, digest_of
from exports.table.twin import decode_json
from solvers import compile_table
from tests.support.in_process_engine import InProcessEngine
from tests.support.long_work import note_questions
from tests.support.plan_tables import whole_messages

EXAMPLES = Path(__file__).parents[2] / "examples"
MYRINET = str(EXAMPLES / "myrinet-gam.json")
TRACE = str(EXAMPLES / "local-path-direct.csv")


@pytest.fixture(autouse=True)
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[TableQuestion]:
    """A database of its own, and compilations in this process, of whole messages."""
    for name in [name for name in os.environ if name.startswith("SLUICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(solvers, "compile_table", whole_messages)
    monkeypatch.setattr(running, "open_local_engine", InProcessEngine)
    return note_questions(monkeypatch, table_work, "compile_table")


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """main(argv): (exit code, standard output, standard error); missed tolerances accepted.

    Tables of whole messages miss nearly every tolerance.
    """

    def run(*arguments: str) -> tuple[int, str, str]:
        accepted = ("--accept-missed",) if arguments[0] == "table" else ()
        code = main((*arguments, *accepted))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_ctrl_c_finishes_the_table_with_the_gaps_reached(
    printed: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is printed and written with its mark; the profile's lookups do not get it."""

    def until_ended(
        *given: Any, is_ended: Callable[[], bool], on_cut_off: Callable[[], None], **named: Any
    ) -> Any:
        while not is_ended():
            time.sleep(0.001)
        on_cut_off()
        return whole_messages(*given, **named)

    @contextmanager
    def interrupting(*_: Any) -> Iterator[Show]:
        pressed = iter([KeyboardInterrupt])

        def show(event: object, _elapsed_s: float) -> None:
            if isinstance(event, Started):
                raise next(pressed)

        yield show

    monkeypatch.setattr(solvers, "compile_table", until_ended)
    monkeypatch.setattr("app.console.running.share_line", interrupting)
    written = tmp_path / "table.slt"
    code, out, err = printed("table", "myrinet-gam", "--to", "64KiB", "--output", str(written))
    assert code == 130
    assert "interrupted; gaps are those reached by then" in err
    assert "(time_limit)" in out
    assert decode(written.read_bytes()).table.max_message_bytes == 65_536
    _, tables, _ = printed("profiles", "tables", "myrinet-gam", "--json")
    assert json.loads(tables)["items"] == []


def test_a_missed_tolerance_is_an_exit_code(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Unless it is accepted; the table is written in either case, and with --json alike."""
    out = tmp_path / "myrinet.slt"
    asked = ("table", MYRINET, "--to", "64KiB", "--output", str(out))
    assert main(asked) == 7
    file = out.read_bytes()
    assert main((*asked, "--json")) == 7
    assert "the tolerance is missed for" in capsys.readouterr().err
    assert main((*asked, "--accept-missed")) == 0
    assert "the tolerance is missed for" not in capsys.readouterr().err
    assert out.read_bytes() == file


def test_a_file_is_compiled_and_touches_no_database(printed: Any, tmp_path: Path) -> None:
    """The table file lies where it was asked for; the report names its digest."""
    out = tmp_path / "myrinet.slt"
    code, reported, _ = printed("table", MYRINET, "--to", "64KiB", "--output", str(out))
    assert code == 0
    stored = decode(out.read_bytes())
    assert (stored.profile, stored.revision) == ("", 0)
    assert (stored.table.min_message_bytes, stored.table.max_message_bytes) == (1, 65536)
    assert stored.table.relative_gap == 0.001
    for word in ("1 B … 64 KiB", "25 %", "0.1 %", str(out)):
        assert word in " ".join(reported.split())
    assert digest_of(out.read_bytes()) in "".join(reported.split())
    assert not (tmp_path / "cli.db").exists()


def test_a_profile_is_compiled_once_and_stored(
    printed: Any, tmp_path: Path, compiled: list[TableQuestion]
) -> None:
    """The second time the stored table is told and written, byte for byte."""
    files = [tmp_path / "one.slt", tmp_path / "two.slt"]
    documents = []
    for file in files:
        code, reported, _ = printed("table", "gms", "--to", "4KiB", "--output", str(file), "--json")
        assert code == 0
        documents.append(reported)
    assert documents[0] == documents[1]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert len(compiled) == 1
    reported = json.loads(documents[0])
    assert reported["digest"] == digest_of(files[0].read_bytes())
    assert reported["profile"] == {"name": "gms", "revision": 1}


def test_the_twin_is_written_where_the_name_says_so(printed: Any, tmp_path: Path) -> None:
    """FILE.json, of the same content."""
    binary, twin = tmp_path / "t.slt", tmp_path / "t.json"
    for file in (binary, twin):
        assert printed("table", "gms", "--to", "999", "--output", str(file))[0] == 0
    assert decode(binary.read_bytes()) == decode_json(twin.read_bytes())


def test_options_win_over_a_request_and_its_other_fields_are_left_out(
    printed: Any, tmp_path: Path
) -> None:
    """A request body for optimize serves: its constraints count, its strategy does not."""
    body = {
        **json.loads(Path(MYRINET).read_text()),
        "message_bytes": 7,
        "strategy": "ramp",
        "relative_gap": 0.5,
        "constraints": {"alignment_bytes": 64, "max_fragments": 9},
    }
    request = tmp_path / "request.json"
    request.write_text(json.dumps(body))
    options = ("--from", "64", "--to", "6400", "--gap", "2%", "--max-fragments", "5")
    code, reported, _ = printed("table", str(request), *options, "--json")
    assert code == 0
    document = json.loads(reported)
    assert document["constraints"] == {
        "min_fragment_bytes": 1,
        "max_fragment_bytes": None,
        "alignment_bytes": 64,
        "max_fragments": 5,
    }
    assert (document["min_message_bytes"], document["max_message_bytes"]) == (64, 6400)
    assert document["relative_gap"] == 0.02
    assert len(document["pipeline"]["stages"]) == 4


def test_a_trace_is_fitted_first(printed: Any, compiled: list[TableQuestion]) -> None:
    """Its stages are the table's."""
    code, reported, _ = printed("table", TRACE, "--to", "4KiB", "--json")
    assert code == 0
    assert [stage["name"] for stage in json.loads(reported)["pipeline"]["stages"]]
    assert compiled[0].profile is None


def test_long_lists_are_shortened(printed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve rows, and how many more there are."""
    from analysis.table_facts import facts_of
    from app.schemas.base import read_output, same_named
    from app.verbs.table.show import parts as table_parts
    from contract.table import CountRunOut, TableOut
    from tests.support.plan_tables import a_plan_table

    blocks = [(100 * at + 1, 100 * at + 100, 1 + at % 2) for at in range(60)]
    facts = facts_of(a_plan_table(blocks))
    assert (len(facts.counts), facts.counts_total) == (50, 60)
    code, reported, _ = printed("table", MYRINET, "--to", "4KiB", "--json")
    counts = tuple(same_named(CountRunOut, run) for run in facts.counts)
    compiled = read_output(TableOut, reported.encode())
    table = replace(compiled, counts=counts, counts_total=facts.counts_total)
    grids = [part for part in table_parts(table) if hasattr(part, "rows")]
    assert len(grids[0].rows) == 13
    assert grids[0].rows[-1] == ("… 48 more", "")
    assert code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "stated"),
    [
        (("nothing",), 4, "nothing"),
        ((MYRINET, "--from", "2", "--to", "1"), 2, "max_message_bytes"),
        ((MYRINET, "--from", "0"), 2, "min_message_bytes"),
        ((MYRINET, "--gap", "nan%"), 2, "expected a share"),
        ((MYRINET, "--gap", "200%"), 2, "relative_gap"),
        ((MYRINET, "--gap", "x"), 2, "--gap"),
        ((MYRINET, "--to", "9XB"), 2, "--to"),
        ((MYRINET, "--output", ""), 2, "output"),
        ((MYRINET, "--output", "/nowhere/at/all.slt"), 2, "folder"),
        ((MYRINET, "--alignment-bytes", "0"), 2, "alignment_bytes"),
    ],
)
def test_misuse_is_one_line_that_names_it(
    printed: Any, compiled: list[TableQuestion], arguments: tuple[str, ...], code: int, stated: str
) -> None:
    """Before anything is compiled."""
    found, out, err = printed("table", *arguments)
    assert (found, out) == (code, "")
    assert stated in err
    assert err.count("\n") == 1
    assert compiled == []


def test_an_aggregate_has_a_table(
    printed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its premise; the tolerance is that of the repeated sizes alone."""
    monkeypatch.setattr(solvers, "compile_table", compile_table)
    stage = {"name": "all", "overhead_us": 9.0, "ns_per_byte": 2.0}
    file = tmp_path / "aggregate.json"
    file.write_text(json.dumps({"total": stage, "bottleneck": stage}))
    code, out, _ = printed("table", str(file), "--max-message", "64")
    assert code == 0
    assert "repeated_sizes_alone" in out


def test_the_tolerance_may_be_per_cent() -> None:
    """As a number, too."""
    for text, value in (("0.1%", 0.001), ("1e-3", 0.001), ("5%", 0.05)):
        assert parse(["table", "x", "--gap", text]).relative_gap == pytest.approx(value, rel=1e-15)


# --- active tables --------------------------------------------------------------------------------


def listed(printed: Any, reference: str = "gms") -> dict[str, bool]:
    """Digests, newest first, and which are active."""
    code, reported, _ = printed("profiles", "tables", reference, "--json")
    assert code == 0
    return {one["digest"]: one["active"] for one in json.loads(reported)["items"]}


def test_the_first_table_is_active_and_another_one_by_wish(printed: Any) -> None:
    """As over HTTP; compiled before or not."""
    for arguments, expected in (
        (("--to", "4KiB"), [True]),
        (("--to", "8KiB"), [False, True]),
        (("--to", "16KiB", "--activate"), [True, False, False]),
        (("--to", "8KiB"), [True, False, False]),
        (("--to", "8KiB", "--activate"), [False, True, False]),
    ):
        assert printed("table", "gms", *arguments)[0] == 0
        assert list(listed(printed).values()) == expected


def test_rolling_back_a_table(printed: Any) -> None:
    """By the whole digest, or by what it begins with."""
    for size in ("4KiB", "8KiB"):
        printed("table", "gms", "--to", size, "--activate")
    newer, older = listed(printed)
    code, reported, _ = printed("profiles", "activate", "gms", older[:8])
    assert (code, reported.strip()) == (0, f"gms@1 answers lookups from {older[:16]}")
    assert listed(printed) == {newer: False, older: True}
    code, reported, _ = printed("profiles", "activate", "gms@1", newer, "--json")
    assert (code, json.loads(reported)["digest"]) == (0, newer)
    _, reported, _ = printed("profiles", "tables", "gms@1")
    rows = reported.splitlines()[2:]
    assert [("active" in row, row.split()[-1]) for row in rows] == [
        (True, newer[:16]),
        (False, older[:16]),
    ]


def test_what_cannot_be_activated(printed: Any) -> None:
    """Exit codes as for every error of its kind."""
    printed("table", "gms", "--to", "4KiB")
    printed("table", "myrinet-gam", "--to", "4KiB")
    (other,) = listed(printed, "myrinet-gam")
    for reference, digest, code in (
        ("gms", "0" * 64, 5),
        ("gms", "00000000", 5),
        ("gms", other[:8], 5),
        ("gms", other, 5),
        ("gms", "1234567", 2),
        ("gms", "x" * 64, 2),
        ("absent", other, 4),
        ("gms@2", other, 4),
        ("g m s", other, 2),
    ):
        reported = printed("profiles", "activate", reference, digest)
        assert (reported[0], reported[1], reported[2].count("\n")) == (code, "", 1), (
            reference,
            digest,
        )
    code, _, reported = printed("table", MYRINET, "--to", "4KiB", "--activate")
    assert code == 2
    assert "activate" in reported


def test_more_tables_than_one_page_holds(printed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are listed, and found by their digests."""
    monkeypatch.setattr("app.verbs.profiles.command._PAGE", 2)
    for size in range(4096, 4101):
        printed("table", "gms", "--to", str(size))
    found = listed(printed)
    assert list(found.values()) == [False] * 4 + [True]
    assert printed("profiles", "activate", "gms", next(reversed(found))[:12])[0] == 0


def test_a_table_that_time_ends_is_marked_and_not_given_again(
    printed: Any, compiled: list[TableQuestion]
) -> None:
    """It is stored, but the same question is compiled anew, and then given again."""
    codes = []
    for limit in (("--time-limit", "0.5"), (), ()):
        code, text, _ = printed("table", "gms", "--to", "4KiB", "--json", *limit)
        assert code == 0
        codes.append([warning["code"] for warning in json.loads(text)["warnings"]])
    assert "time_limit" in codes[0]
    assert codes[1] == codes[2] == [code for code in codes[0] if code != "time_limit"]
    assert [question.scope.time_limit_s for question in compiled] == [0.5, 100.0]


class TestHidden:
    """Behind a calculation; the compiler is the real one."""

    OPTIONS = ("--hidden", "--calculation", "120", "--sender-stage", "0", "--both-ways")

    @pytest.fixture(autouse=True)
    def real(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(solvers, "compile_table", compile_table)

    def test_it_is_a_file_with_a_name_that_says_so(self, printed: Any, tmp_path: Path) -> None:
        out = tmp_path / "hidden.slt"
        more = ("--receiver-stage", "receiver copy", "--from", "4096", "--to", "4096")
        code, reported, _ = printed("table", MYRINET, *self.OPTIONS, *more, "--output", str(out))
        assert code == 0
        assert "behind a calculation of 120 µs" in " ".join(reported.split())
        stored = decode(out.read_bytes())
        assert (stored.profile, stored.revision) == ("hidden", 1)
        assert stored.table.cuts[0].fragments == 2  # of 6 for the least latency
        assert stored.table.cuts[0].latency_us == pytest.approx(213.289, abs=1e-3)

    def test_a_profile_keeps_its_own_tables(self, printed: Any, tmp_path: Path) -> None:
        out = tmp_path / "hidden.slt"
        assert printed("optimize", MYRINET, "--save-as", "box")[0] == 0
        code, reported, _ = printed(
            *("table", "box", *self.OPTIONS, "--to", "1KiB", "--output", str(out), "--json")
        )
        assert code == 0
        assert json.loads(reported)["warnings"][0]["code"] == "run_times"
        assert (decode(out.read_bytes()).profile, decode(out.read_bytes()).revision) == (
            "box.hidden",
            1,
        )
        assert json.loads(printed("profiles", "tables", "box", "--json")[1])["items"] == []

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--calculation", "5"), "a calculation is for --hidden messages"),
            (("--both-ways",), "a calculation is for --hidden messages"),
            (("--hidden",), "expected the calculation"),
            (("--hidden", "--calculation", "5", "--sender-stage", "9"), "host_stages.sender.0"),
            (("--hidden", "--calculation", "-5"), "calculation_us"),
            (
                ("--hidden", "--calculation", "5", "--calculation-per-byte", "-1"),
                "0 <= calculation_per_byte",
            ),
            (("--hidden", "--calculation", "5", "--activate"), "none of hidden messages"),
        ],
    )
    def test_refusals(self, printed: Any, options: tuple[str, ...], said: str) -> None:
        code, reported, refused = printed("table", MYRINET, *options)
        assert (code, reported) == (2, "")
        assert said in refused

    def test_stages_with_ranges_are_declined(self, printed: Any) -> None:
        code, _, refused = printed("table", TRACE, "--hidden", "--calculation", "5")
        assert code == 3
        assert "one line" in refused
