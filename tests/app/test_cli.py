"""The command line, by main(argv) and as a real process; judged by meaning, not by layout."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from app.cli import main
from app.console.arguments import parse
from app.errors import KINDS
from app.schemas.base import read_output
from domain.pipeline import pipeline_of_lines
from domain.schedule import latency_us

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
MYRINET = str(EXAMPLES / "myrinet-gam.json")
TRACE = str(EXAMPLES / "local-path-direct.csv")
HEAVY = (
    "numpy",
    "scipy",
    "ortools",
    "pulp",
    "sqlalchemy",
    "alembic",
    "fastapi",
    "pydantic",
    "rich",
)


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database of its own, and nothing of the caller's environment."""
    for name in [name for name in os.environ if name.startswith("SLUICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.setenv("COLUMNS", "80")


def run(
    *arguments: str, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    finished = subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
        timeout=120,
        check=False,
    )
    out, err = finished.stdout.decode(), finished.stderr.decode()
    return subprocess.CompletedProcess(finished.args, finished.returncode, out, err)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """main(argv) in this process: (exit code, standard output, standard error)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets standard input."""

    def give(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(text.encode()), encoding="utf-8"))

    return give


def loaded(names: tuple[str, ...], arguments: list[str]) -> str:
    """Which of these modules a process has imported that has run this command."""
    code = (
        "import sys\n"
        "from app.cli import main\n"
        f"try:\n    sys.exit(main({arguments!r}))\n"
        "except SystemExit as end:\n    assert not end.code\n"
        f"print('LOADED', [name for name in {names!r} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


class TestStart:
    @pytest.mark.parametrize("arguments", [["--help"], ["optimize", "--help"], ["serve", "--help"]])
    def test_help_imports_nothing_heavy(self, arguments: list[str]) -> None:
        assert loaded(HEAVY, arguments) == "LOADED []"

    @pytest.mark.usefixtures("native_kernels")
    def test_a_question_about_a_file_does_not_import_the_service(self) -> None:
        names = ("fastapi", "starlette", "uvicorn", "sqlalchemy", "scipy", "ortools")
        assert loaded(names, ["optimize", MYRINET]) == "LOADED []"

    def test_help_names_every_command(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as end:
            main(["--help"])
        assert end.value.code == 0
        text = capsys.readouterr().out
        for command in ("optimize", "fit", "compare", "profiles", "serve"):
            assert re.search(rf"^ +{command} ", text, re.MULTILINE)

    def test_help_names_every_exit_code_of_the_table(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit):
            main(["--help"])
        text = " ".join(capsys.readouterr().out.split())
        stated = text.partition("Exit codes:")[2]
        assert {kind.exit_code for kind in KINDS.values()} <= set(
            map(int, re.findall(r"\d+", stated))
        )


class TestOptimize:
    def test_the_table_of_the_paper_in_words(self, printed: Any) -> None:
        code, out, _ = printed("optimize", MYRINET, "--strategy", "exact")
        assert code == 0
        assert "4 KiB through 4 stages" in out
        assert re.search(r"latency +184\.3\d\d µs", out)
        assert re.search(r"below 184\.348 µs", out)
        assert "188.9" in out  # the best fixed size
        assert "▶" in out
        assert max(map(len, out.splitlines())) <= 80

    def test_json_is_the_document_of_the_service(self, printed: Any) -> None:
        code, out, _ = printed("optimize", MYRINET, "--json")
        document = json.loads(out)
        assert code == 0
        assert sum(document["fragment_bytes"]) == 4096
        stages = [tuple(stage.values()) for stage in document["pipeline"]["stages"]]
        pipeline = pipeline_of_lines([(name, g, cost) for name, g, cost in stages])
        assert document["latency_us"] == latency_us(pipeline, document["fragment_bytes"])
        from contract.optimize import OptimizeOut

        read_output(OptimizeOut, out.encode())

    def test_a_pipeline_from_standard_input_with_units(self, printed: Any, typed: Any) -> None:
        typed('\ufeff {"stages": [{"name": "wire", "overhead_us": 1, "ns_per_byte": 1}]}')
        code, out, _ = printed("optimize", "-", "--bytes", "1.5KiB", "--json")
        assert code == 0
        assert json.loads(out)["message_bytes"] == 1536

    def test_measurements_are_fitted_first(self, printed: Any) -> None:
        code, out, _ = printed("optimize", TRACE, "--bytes", "64KiB", "--strategy", "fixed")
        assert code == 0
        assert "± s.e." in out
        assert "write_fdatasync" in out.split("latency")[1]

    def test_the_fit_of_one_command_is_the_source_of_the_next(
        self, printed: Any, typed: Any
    ) -> None:
        _, fitted, _ = printed("fit", TRACE, "--json")
        typed(fitted)
        code, out, _ = printed("optimize", "-", "--bytes", "4096", "--strategy", "single", "--json")
        assert code == 0
        names = [stage["name"] for stage in json.loads(out)["pipeline"]["stages"]]
        assert names[0] == "copy_in"

    def test_options_win_over_the_file(self, printed: Any) -> None:
        arguments = ("--bytes", "8KiB", "--strategy", "fixed", "--alignment-bytes", "64")
        _, out, _ = printed("optimize", MYRINET, *arguments, "--max-fragments", "3", "--json")
        document = json.loads(out)
        assert document["strategy"] == "fixed"
        assert document["fragments"] <= 3
        assert all(size % 64 == 0 for size in document["fragment_bytes"][:-1])

    def test_static_repeats_the_size_that_was_given(self, printed: Any) -> None:
        _, out, _ = printed(
            "optimize", MYRINET, "--strategy", "static", "--static-bytes", "1000", "--json"
        )
        assert json.loads(out)["fragment_bytes"] == [1000, 1000, 1000, 1000, 96]

    def test_a_profile_is_answered_from_the_store_the_second_time(self, printed: Any) -> None:
        question = ("optimize", "myrinet-gam", "--bytes", "4096", "--json")
        _, first, _ = printed(*question)
        _, second, _ = printed(*question)
        assert first == second
        assert json.loads(first)["profile"] == {"name": "myrinet-gam", "revision": 1}

    def test_save_as_stores_the_stages(self, printed: Any) -> None:
        code, _, _ = printed("optimize", MYRINET, "--strategy", "single", "--save-as", "mine")
        assert code == 0
        code, out, _ = printed("profiles", "show", "mine", "--json")
        assert code == 0
        assert json.loads(out)["pipeline"]["stages"][0]["name"] == "sender copy"

    def test_a_question_about_a_file_touches_no_database(
        self, printed: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SLUICE_DATABASE_URL", "sqlite:////nowhere/at/all.db")
        assert printed("optimize", MYRINET, "--strategy", "single")[0] == 0

    def test_ascii_where_the_terminal_has_no_more(self) -> None:
        for extra in ([], ["--json"]):
            done = run("optimize", MYRINET, "--strategy", "fixed", *extra, PYTHONIOENCODING="ascii")
            assert done.returncode == 0
            assert done.stdout.isascii()
            assert done.stderr == ""

    def test_a_stage_name_cannot_steer_the_terminal(self, printed: Any, typed: Any) -> None:
        typed('{"stages": [{"name": "a\\u001b[2Jb", "overhead_us": 1, "ns_per_byte": 1}]}')
        code, out, _ = printed("optimize", "-", "--bytes", "64")
        assert code == 0
        assert "\x1b" not in out
        assert "a?[2Jb" in out


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (["optimize", MYRINET, "--bytes", "0"], 2, "message_bytes"),
            (["optimize", MYRINET, "--bytes", "4 parsec"], 2, "--bytes: expected a size such as"),
            (["optimize", MYRINET, "--gap", "2"], 2, "relative_gap"),
            (["optimize", MYRINET, "--gap", "nan"], 2, "finite number"),
            (["optimize", MYRINET, "--time-limit", "-1"], 2, "time_limit_s"),
            (["optimize", MYRINET, "--strategy", "best"], 2, "--strategy: expected one of auto"),
            (["optimize", MYRINET, "--strategy", "static"], 2, "static_bytes"),
            (["optimize", MYRINET, "--strategy", "ramp"], 3, "ramp"),
            (["optimize", MYRINET, "--max-fragments", "0"], 2, "max_fragments"),
            (["optimize", MYRINET, "--save-as", "No Spaces"], 2, "save_as"),
            (
                ["optimize", MYRINET, "--min-fragment-bytes", "99", "--max-fragment-bytes", "9"],
                3,
                "max_fragment_bytes",
            ),
            (["optimize", "no/such/file.json", "--bytes", "1"], 4, "no/such/file.json"),
            (["optimize", "no-such-profile", "--bytes", "1"], 4, "profile"),
            (["optimize", "myrinet-gam@99", "--bytes", "1"], 4, "profile"),
            (["optimize", "myrinet-gam"], 2, "--bytes"),
            (["optimize", str(ROOT), "--bytes", "1"], 2, "source"),
            (["compare", MYRINET, "--strategies", "best"], 2, "--strategies"),
            (["profiles", "show", "nobody"], 4, "profile"),
            (["profiles", "use", "myrinet-gam", "9"], 4, "revision"),
            (["profiles", "use", "myrinet-gam", "0"], 2, "revision"),
            (["profiles", "save", "UPPER", MYRINET], 2, "name"),
            (["serve", "--port", "70000"], 2, "port"),
            (["serve", "--workers", "-1"], 2, "workers"),
            (["serve", "--host", "no.such.host.invalid"], 2, "host"),
            (["frobnicate"], 2, "COMMAND"),
            ([], 2, "COMMAND"),
            (["fit", TRACE, "--kind", "guess"], 2, "kind"),
        ],
    )
    def test_one_line_that_names_field_and_rule(
        self, printed: Any, arguments: list[str], code: int, words: str
    ) -> None:
        got, out, err = printed(*arguments)
        assert (got, out) == (code, "")
        assert err.startswith("sluice: error: ")
        assert err.count("\n") == 1
        assert words in err

    @pytest.mark.parametrize(
        ("text", "code", "words"),
        [
            ('{"stages": []}', 2, "/pipeline/stages"),
            ('{"stages": [{"name": "a", "overhead_us": -1, "ns_per_byte": 1}]}', 2, "overhead_us"),
            ('{"stages": [{"name": "a", "overhead_us": 1e999, "ns_per_byte": 1}]}', 2, "JSON"),
            ('{"stages": [{"name": "a", "overhead_us": NaN, "ns_per_byte": 1}]}', 2, "not JSON"),
            ('{"stages": [{"name": "a"}]}', 2, "this field is required"),
            ('{"stages": 3, "colour": "red"}', 2, "expected a list"),
            ('{"understood": {}, "pipeline": 3}', 2, "/fit/kind: this field is required"),
            ("{}", 2, "exactly one of pipeline, aggregate, profile, measurements"),
            ("[]", 2, "JSON object"),
            ("{", 2, "not JSON"),
            ('{"stages": [], "delay_us": 0, "delay_us": 1}', 2, "/delay_us: the key is given more"),
            ("", 2, "the file is empty"),
            ("message_bytes,repetition,a_us\n64,0,nan\n", 2, "line 2, column 3"),
            ("message_bytes,repetition,a_us\n64,0,1\n64,1,1\n64,2,1\n", 3, "2 distinct"),
        ],
    )
    def test_files_that_break_a_rule(
        self, printed: Any, typed: Any, text: str, code: int, words: str
    ) -> None:
        typed(text)
        got, out, err = printed("optimize", "-", "--bytes", "64")
        assert (got, out) == (code, "")
        assert err.count("\n") == 1
        assert words in err

    def test_with_json_a_problem_document(self, printed: Any) -> None:
        code, out, err = printed("optimize", MYRINET, "--bytes", "0", "--json")
        problem = json.loads(err)
        assert (code, out) == (2, "")
        assert (problem["status"], problem["code"]) == (422, "invalid_input")
        assert [entry["pointer"] for entry in problem["errors"]] == ["/message_bytes"]

    def test_text_that_is_no_utf_8(self, tmp_path: Path, printed: Any) -> None:
        file = tmp_path / "latin.csv"
        file.write_bytes(b"message_bytes,repetition,\xe9_us\n")
        assert "UTF-8" in printed("fit", str(file))[2]

    def test_a_file_beyond_the_limit(
        self, tmp_path: Path, printed: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SLUICE_MAX_TRACE_BYTES", "100")
        code, _, err = printed("fit", TRACE)
        assert code == KINDS["body_too_large"].exit_code
        assert "100 bytes" in err

    def test_a_defect_is_not_blamed_on_the_input(
        self, printed: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(text: str) -> None:
            raise RuntimeError("broken")

        monkeypatch.setattr("fitting.direct.fit_direct", broken)
        code, _, err = printed("fit", TRACE)
        assert code == 70
        assert "defect" in err.splitlines()[-1]


class TestFit:
    def test_estimates_errors_and_what_was_clipped(self, printed: Any) -> None:
        code, out, _ = printed("fit", TRACE)
        assert code == 0
        assert "350" in out
        assert re.search(r"crc32 .* 0\.\d{3} ± 0\.\d{3} +\d\.\d{4} ± \d\.\d{4} +\d+\.\d+ %", out)
        assert "negative_overhead_clipped" in out

    def test_json_is_the_document_of_the_service(self, printed: Any) -> None:
        from contract.fit import FitOut

        _, out, _ = printed("fit", TRACE, "--json")
        document = read_output(FitOut, out.encode())
        assert document.kind == "direct"
        assert len(document.pipeline.stages) == 5

    def test_save_as_keeps_where_the_stages_came_from(self, printed: Any) -> None:
        code, out, _ = printed("fit", TRACE, "--save-as", "local-path")
        assert code == 0
        assert "local-path@1" in out
        _, out, _ = printed("profiles", "show", "local-path", "--json")
        assert json.loads(out)["provenance"]["origin"] == "fit"

    def test_from_standard_input(self, printed: Any, typed: Any) -> None:
        typed(Path(TRACE).read_text(encoding="utf-8"))
        assert printed("fit", "-")[0] == 0

    def test_a_plot_is_drawn_in_place_of_what_was_there(self, printed: Any, tmp_path: Path) -> None:
        file = tmp_path / "fit.svg"
        file.write_text("before", encoding="utf-8")
        code, out, _ = printed("fit", TRACE, "--plot", str(file))
        assert code == 0
        assert f"plot written to {file}" in " ".join(out.split())
        drawing = ElementTree.fromstring(file.read_bytes())
        headings = [one.text for one in drawing.iter() if one.get("class") == "heading"]
        assert len(headings) == 5
        assert [one.name for one in tmp_path.iterdir()] == ["fit.svg"]

    def test_a_plot_that_cannot_be_written_is_refused_first(
        self, printed: Any, tmp_path: Path
    ) -> None:
        for name in (str(tmp_path), str(tmp_path / "none" / "fit.svg"), "-", ""):
            code, out, err = printed("fit", "nowhere.csv", "--plot", name)
            assert (code, out) == (2, "")
            assert "plot" in err


class TestCompare:
    def test_every_strategy_is_answered_or_declined_with_its_reason(self, printed: Any) -> None:
        code, out, _ = printed("compare", MYRINET, "--json")
        rows = {row["strategy"]: row for row in json.loads(out)["rows"]}
        assert code == 0
        assert rows["single"]["latency_us"] == pytest.approx(286.9, abs=0.05)
        assert rows["ramp"]["latency_us"] is None
        assert rows["ramp"]["declined"]
        known = [row["latency_us"] for row in rows.values() if row["latency_us"] is not None]
        assert rows["auto"]["latency_us"] == min(known)

    def test_a_table_for_each_size(self, printed: Any) -> None:
        code, out, _ = printed(
            "compare", MYRINET, "--bytes", "4KiB", "64KiB", "--strategies", "single,fixed"
        )
        assert code == 0
        assert re.findall(r"^(\S+ KiB)$", out, re.MULTILINE) == ["4 KiB", "64 KiB"]
        assert out.count("best") == 2
        assert max(map(len, out.splitlines())) <= 80

    def test_measurements_and_profiles_are_sources_too(self, printed: Any) -> None:
        for source in (TRACE, "gms"):
            code, out, _ = printed(
                "compare", source, "--bytes", "8192", "--strategies", "single", "--json"
            )
            assert code == 0
            assert len(json.loads(out)["rows"]) == 1


class TestProfiles:
    def test_the_papers_profiles_are_there_from_the_start(self, printed: Any) -> None:
        code, out, _ = printed("profiles", "list")
        assert code == 0
        assert re.search(r"^myrinet-gam +1 of 1 +4 +paper", out, re.MULTILINE)

    def test_the_life_of_a_profile(self, printed: Any, tmp_path: Path) -> None:
        def numbers() -> list[tuple[int, bool]]:
            _, out, _ = printed("profiles", "revisions", "mine", "--json")
            return [(r["revision"], r["is_current"]) for r in json.loads(out)["revisions"]]

        assert printed("profiles", "save", "mine", MYRINET)[0] == 0
        assert printed("profiles", "save", "mine", TRACE)[0] == 0
        assert printed("profiles", "save", "mine", "gms@1")[0] == 0
        assert numbers() == [(1, False), (2, False), (3, True)]
        code, out, _ = printed("profiles", "use", "mine", "2")
        assert code == 0
        assert "mine@2" in out
        assert "copy_in" in out
        assert numbers() == [(1, False), (2, True), (3, False)]
        assert "sender copy" in printed("profiles", "show", "mine@1")[1]
        assert re.search(r"2 +current", printed("profiles", "revisions", "mine")[1])
        assert printed("profiles", "delete", "mine", "--yes")[0] == 0
        assert printed("profiles", "show", "mine")[0] == 4


class TestCtrlC:
    def test_the_best_so_far_is_printed(self) -> None:
        """A solve that goes on for a minute, ended by a real signal once it has an answer."""
        slow = (
            "import sys, time, solvers\n"
            "real = solvers.solve\n"
            "def slow(problem, strategy, *, on_incumbent, **options):\n"
            "    best = real(problem, 'fixed')\n"
            "    on_incumbent(best)\n"
            "    print('ANSWERED', file=sys.stderr, flush=True)\n"
            "    while True:\n"
            "        time.sleep(0.05)\n"
            "        on_incumbent(best)\n"
            "solvers.solve, solvers.is_quick = slow, lambda *_: False\n"
            "from app.console import running\n"
            "from tests.support.in_process_engine import InProcessEngine\n"
            "running.open_local_engine = InProcessEngine\n"
            "from app.cli import main\n"
            f"sys.exit(main(['optimize', {MYRINET!r}, '--json']))\n"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", slow],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stderr is not None
        assert child.stderr.readline().strip() == "ANSWERED"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
        assert child.returncode == 130
        assert json.loads(out)["status"] == "time_limit"
        assert "interrupted" in err


class TestReader:
    def test_a_reader_that_leaves_is_no_error(self) -> None:
        child = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "fit", TRACE],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.wait(60) == 141
        assert child.stderr.read() == b""
        child.stderr.close()


class TestGrammar:
    def test_every_source_of_the_summary_is_accepted(self) -> None:
        assert parse(["optimize", "-", "--bytes", "1MiB"]).message_bytes == 2**20
        assert parse(["compare", "x", "--bytes", "1", "2"]).message_bytes == [1, 2]
        assert parse(["compare", "x", "--strategies", "fixed, exact"]).strategies == [
            "fixed",
            "exact",
        ]
