"""sluice export, by main(argv); judged by meaning, not by layout."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from app.console import running
from app.console.running import run_operation
from app.operations import export_work
from app.questions.settings import ExportQuestion
from app.questions.tables import TableScope, compile_table, table_question
from domain.problem import FragmentLimits
from exports.table.slt import decode
from exports.targets.registry import TARGETS
from tests.support.in_process_engine import InProcessEngine
from tests.support.long_work import note_questions
from tests.support.plan_tables import a_line_pipeline

EXAMPLES = Path(__file__).parents[2] / "examples"
MYRINET = str(EXAMPLES / "myrinet-gam.json")
TRACE = str(EXAMPLES / "local-path-direct.csv")
ONE_MESSAGE = ("--min-message", "64KiB", "--max-message", "64KiB")


@pytest.fixture(autouse=True)
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[ExportQuestion]:
    """A database of its own, and exports in this process."""
    for name in [name for name in os.environ if name.startswith("SLUICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(running, "open_local_engine", InProcessEngine)
    return note_questions(monkeypatch, export_work, "export")


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """main(argv): (exit code, standard output, standard error)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_a_pipeline_in_a_file_touches_no_database(printed: Any, tmp_path: Path) -> None:
    """The text goes to standard output, as it is, also with --json."""
    asked = ("export", MYRINET, "--target", "simgrid", "--option", "form=cfg")
    code, reported, _ = printed(*asked)
    assert code == 0
    assert "--cfg=smpi/os:0:0.0000072:7.03125E-9\n" in reported
    assert "from a pipeline without a name" in reported
    assert printed(*asked, "--json") == (0, reported, "")
    assert not (tmp_path / "cli.db").exists()


def test_a_trace_is_fitted_first(printed: Any) -> None:
    """Its stages are the exported ones."""
    code, reported, _ = printed("export", TRACE, "--target", "loggopsim")
    assert code == 0
    assert re.fullmatch(
        r"-L \d+ -o \d+ -g \d+ -G \d+ -O 0 -S 2147483647", reported.splitlines()[-1]
    )


def test_a_request_file_gives_its_pipeline(printed: Any, tmp_path: Path) -> None:
    """What only its optimisation has is left out."""
    body = json.loads(Path(MYRINET).read_text())
    body |= {"message_bytes": 4096, "strategy": "repeat", "constraints": {"max_fragments": 3}}
    request = tmp_path / "request.json"
    request.write_text(json.dumps(body))
    asked = ("--target", "simgrid")
    assert printed("export", str(request), *asked) == printed("export", MYRINET, *asked)


def test_the_options_reach_the_choice(
    printed: Any, tmp_path: Path, asked: list[ExportQuestion]
) -> None:
    """Range, objective and limits; the file is written whole, and its name told."""
    out = tmp_path / "mooncake.env"
    options = ("--min-message", "8KiB", "--max-message", "64KiB", "--objective", "worst")
    limits = ("--min-fragment-bytes", "5000", "--max-fragment-bytes", "16KiB")
    limits += ("--alignment-bytes", "1KiB", "--max-fragments", "9")
    code, reported, _ = printed(
        *("export", MYRINET, "--target", "mooncake", "--output", str(out)), *options, *limits
    )
    assert code == 0
    assert str(out) in " ".join(reported.split())
    scope = asked[0].scope
    assert (scope.min_message_bytes, scope.max_message_bytes) == (8192, 65536)
    assert (scope.objective, scope.limits) == ("worst", FragmentLimits(5000, 16384, 1024, 9))
    found = re.search(r"^MC_SLICE_SIZE=(\d+)$", out.read_text(), flags=re.MULTILINE)
    assert found
    assert 8192 <= int(found[1]) <= 16384
    assert int(found[1]) % 1024 == 0


def test_the_active_table_of_a_profile_is_used(
    printed: Any, tmp_path: Path, asked: list[ExportQuestion]
) -> None:
    """Or another one by its digest; as a file too, of the same pipeline."""
    file = tmp_path / "table.slt"
    code, _, _ = printed(
        *("table", "myrinet-gam", "--from", "60000", "--to", "64KiB", "--output", str(file))
    )
    assert code == 0
    code, reported, _ = printed("export", "myrinet-gam", "--target", "mooncake")
    assert code == 0
    digest = asked[0].table
    assert digest is not None
    assert f"plan table {digest.digest}" in reported
    assert "log-uniform from 60000 to 65536 bytes" in reported
    named = ("export", "myrinet-gam", "--target", "mooncake", "--table")
    assert printed(*named, digest.digest) == (0, reported, "")
    assert printed(*named, str(file)) == (0, reported, "")


def test_latency_and_bandwidth_files_give_a_setting(printed: Any) -> None:
    """A repeated size, by the total and the bottleneck; whether these are uncut is a premise."""
    osu = str(Path(__file__).parents[1] / "data" / "traces" / "osu-latency-and-bw.txt")
    sizes = ("--min-message", "256KiB", "--max-message", "256KiB")
    asked = ("export", osu, *sizes, "--target")
    code, reported, note = printed(*asked, "ucx")
    assert code == 0
    assert "premise: the latency is taken for that of messages which nothing cut" in note
    assert "total of all stages together: " in reported
    assert "bottleneck of all stages together: " in reported
    assert re.search(r"^UCX_RNDV_FRAG_SIZE=host:\d+$", reported, flags=re.MULTILINE)
    assert printed(*asked, "mooncake", "--require-gain")[0] == 7
    code, _, refusal = printed(*asked, "simgrid")
    assert code == 3
    assert "enough for targets of repeated sizes" in refusal


def test_a_gain_that_is_not_known_is_said_and_can_be_required(printed: Any) -> None:
    """UCX's floor leaves messages of 64 KiB whole, as UCX does; Mooncake's slices are better."""
    asked = ("export", MYRINET, *ONE_MESSAGE, "--target", "ucx")
    code, reported, note = printed(*asked)
    assert code == 0
    assert reported.startswith("# NOT KNOWN TO BE BETTER than the library's default: ")
    assert "NOT KNOWN TO BE BETTER" in note
    assert "the target's limits cost" in note
    assert printed(*asked, "--require-gain") == (7, reported, note)
    better = ("export", MYRINET, *ONE_MESSAGE, "--target", "mooncake", "--require-gain")
    code, reported, note = printed(*better)
    assert code == 0
    assert "NOT KNOWN" not in reported + note
    assert "library's default: 65536 bytes: total time" in reported


def test_a_table_of_another_pipeline_is_refused(printed: Any, tmp_path: Path) -> None:
    """By what is in it, whatever it is called."""
    scope = TableScope(min_message_bytes=1000, max_message_bytes=1100)
    question = table_question(a_line_pipeline(), None, scope, fragment_cap=100_000)
    made = compile_table(question)
    assert decode(made.file).table.pipeline == a_line_pipeline()
    file = tmp_path / "other.slt"
    file.write_bytes(made.file)
    code, _, reported = printed("export", MYRINET, "--target", "mooncake", "--table", str(file))
    assert code == 5
    assert "another pipeline" in reported


@pytest.mark.parametrize(
    ("arguments", "code", "stated"),
    [
        ((), 2, "--target NAME"),
        ((MYRINET,), 2, "--target NAME"),
        (("--target", "simgrid"), 2, "expected a SOURCE"),
        ((MYRINET, "--target", "no"), 2, "expected a target out of: "),
        ((MYRINET, "--target", "simgrid", "--option", "form"), 2, "NAME=VALUE"),
        ((MYRINET, "--target", "simgrid", "--option", "form=sun"), 2, "form to be one of"),
        ((MYRINET, "--target", "simgrid", "--option", "Os=1"), 2, "option"),
        ((MYRINET, "--target", "mooncake", "--objective", "median"), 2, "did you mean mean?"),
        (
            (MYRINET, "--target", "mooncake", "--min-message", "2", "--max-message", "1"),
            2,
            "min_message_bytes",
        ),
        ((MYRINET, "--target", "mooncake", "--table", "0" * 64), 2, "where the SOURCE is a"),
        ((MYRINET, "--target", "mooncake", "--table", "/no/such/table"), 2, "No such file"),
        ((MYRINET, "--target", "mooncake", "--table", MYRINET), 2, "table"),
        ((MYRINET, "--target", "c-header"), 5, "takes a compiled table"),
        (("myrinet-gam", "--target", "mooncake", "--table", "0" * 64), 4, "no compiled table"),
        (("no-such-profile", "--target", "simgrid"), 4, "no hardware profile"),
        ((MYRINET, "--target", "simgrid", "--output", "/no/such/folder/x"), 2, "folder"),
        ((MYRINET, "--target", "mooncake", "--max-fragment-bytes", "1"), 3, "no size"),
    ],
)
def test_misuse_is_one_line_and_a_code(
    printed: Any, arguments: tuple[str, ...], code: int, stated: str
) -> None:
    """That name what is wrong."""
    found, reported, problem = printed("export", *arguments)
    assert (found, reported) == (code, "")
    assert stated in problem
    assert len(problem.splitlines()) == 1


def test_the_list_names_every_target(printed: Any) -> None:
    """For a person, and as the service's document."""
    code, reported, _ = printed("export", "--list")
    assert code == 0
    for target in TARGETS:
        assert target.name in reported
    code, reported, _ = printed("export", "--list", "--json")
    assert code == 0
    named = [item["name"] for item in json.loads(reported)["items"]]
    assert named == sorted(target.name for target in TARGETS)


def test_a_worker_gives_the_same(printed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in this one, to the byte."""
    asked = ("export", MYRINET, "--target", "mooncake", *ONE_MESSAGE)
    here = printed(*asked)
    monkeypatch.undo()
    assert here[0] == 0
    assert printed(*asked) == here


def test_a_terminal_without_unicode_gets_ascii(
    printed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names alone have other characters, and they are in comments."""
    model = {"stages": [{"name": "drát é/", "overhead_us": 1.5, "ns_per_byte": 2.0}]}
    file = tmp_path / "pipeline.json"
    file.write_text(json.dumps(model))
    monkeypatch.setattr("app.ui.terminal.Screen.is_unicode", False)
    code, reported, _ = printed("export", str(file), "--target", "simgrid")
    assert code == 0
    assert reported.isascii()
    assert "stage 1 'dr_t _/'" in reported


def test_an_export_that_time_ends_is_marked(
    printed: Any, asked: list[ExportQuestion], tmp_path: Path
) -> None:
    """In its text, beside limits that hold what more time finds, and on standard error."""
    code, text, said = printed("export", MYRINET, "--target", "mpich", "--time-limit", "0.001")
    assert code == 0
    assert "time ended" in text
    assert "--time-limit" in said
    assert asked[0].scope.time_limit_s == 0.001
    code, _, said = printed("export", MYRINET, "--target", "mpich", "--time-limit", "0")
    assert (code, "time_limit_s" in said) == (2, True)


def test_an_interrupted_export_is_by_what_was_solved(
    printed: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is written, with its mark and the code of an interrupt."""

    def interrupted(*arguments: Any, **named: Any) -> Any:
        ran = run_operation(*arguments, **named)
        return replace(ran, is_interrupted=True)

    monkeypatch.setattr("app.console.running.run_operation", interrupted)
    out = tmp_path / "mpich.conf"
    code, _, said = printed(
        "export", MYRINET, "--target", "mpich", "--output", str(out), *ONE_MESSAGE
    )
    assert code == 130
    assert "interrupted" in said
    assert out.exists()
