"""sluice verify and sluice tune: recorded transfers, what is kept of them, and the real probe.

No time is asserted: recorded transfers say what is to be expected, of real ones only that they are.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from app.cli import main
from app.console import probe_race, transfers
from app.console.arguments import parse
from app.console.verdicts import DOES_NOT_HOLD
from app.settings import Settings
from app.ui.terminal import Output
from app.verbs.tune import operation
from app.verbs.tune.command import write_configuration
from app.verbs.verify.operation import model_of
from domain.pipeline import Pipeline, pipeline_of_lines
from exports.targets.commentary import plain
from measuring.running import Probe
from measuring.transfers import read_transfers
from tests.support.compiler import ROOT, build_gpu_driver, compiler
from tests.support.transfers import MESSAGE, transfers_of
from tests.support.undisturbed import as_if_undisturbed

MODEL = [("copy", 20.0, 1.0), ("wire", 30.0, 4.0)]
SLOWER = [("copy", 20.0, 1.0), ("wire", 30.0, 6.0)]


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a database of its own, with a profile in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    stages = [{"name": n, "overhead_us": g, "ns_per_byte": c} for n, g, c in MODEL]
    Path("model.json").write_text(json.dumps({"pipeline": {"stages": stages}}))


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """main(argv) in this process: (exit code, standard output, standard error)."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(word) for word in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def recorded(machine: Pipeline, name: str = "runs.csv", **facts: str) -> str:
    """A file of transfers as this machine would make them."""
    Path(name).write_text(transfers_of(machine, **facts))
    return name


@pytest.fixture
def saved(printed: Any) -> None:
    """The profile `path`."""
    assert printed("profiles", "save", "path", "model.json")[0] == 0


@pytest.mark.usefixtures("saved")
class TestRecorded:
    """What follows from a file of transfers."""

    def test_a_model_that_holds(self, printed: Any) -> None:
        file = recorded(pipeline_of_lines(MODEL))
        code, out, err = printed("verify", "path", "--recorded", file)
        assert (code, err) == (0, "sluice: kept with path@1\n")
        assert out.startswith("The model was verified")
        assert "best measured" in out
        assert printed("profiles", "show", "path")[1].startswith("The model was verified")
        answer = json.loads(printed("optimize", "path", "--bytes", MESSAGE, "--json")[1])
        assert [one["code"] for one in answer["warnings"]][:1] == ["model_holds"]

    def test_no_size_below_those_that_were_measured_is_recommended(self, printed: Any) -> None:
        """The first line of a fit goes on below them, where nobody has looked."""
        for name, stage, each in (("a.csv", "copy", 0.001), ("b.csv", "wire", 0.004)):
            sizes = (4096, 8192, 16384, 65536, 262144)
            rows = "".join(f"{size},{at},{each * size:.6g}\n" for size in sizes for at in range(5))
            Path(name).write_text(f"# stage: {stage}\nmessage_bytes,repetition,{stage}_us\n{rows}")
        words = ("--stage", "copy=a.csv", "--stage", "wire=b.csv", "--save-as", "free")
        assert printed("compose", *words)[0] == 0
        store = Settings.from_environment()
        model = model_of("free", store, Output.standard(wants_json=False))
        assert model.min_bytes == 4096
        assert 4096 <= transfers.recommended_of(model, MESSAGE, model.stages) < 8192
        typed = model_of("model.json", store, Output.standard(wants_json=False))
        assert typed.min_bytes == 1

    def test_a_failure_is_said_before_the_answer(self, printed: Any) -> None:
        before = printed("optimize", "path", "--bytes", MESSAGE, "--strategy", "repeat")[1]
        assert "verification" not in before
        file = recorded(pipeline_of_lines(SLOWER))
        code, out, _ = printed("verify", "path", "--recorded", file, "--json")
        shown = json.loads(out)
        assert (code, shown["verdict"]) == (DOES_NOT_HOLD, "does_not_hold")
        assert [one["code"] for one in shown["reasons"]] == ["slower_in_company"]
        after = printed("optimize", "path", "--bytes", MESSAGE, "--strategy", "repeat")[1]
        assert after.startswith("This model does not hold here and failed its verification on 20")
        assert after.count("does not hold here") == 1
        body = json.loads(printed("optimize", "path", "--bytes", MESSAGE, "--json")[1])
        assert body["warnings"][0]["code"] == "model_does_not_hold"
        assert body["warnings"][0]["values"]["ratio"] == pytest.approx(1.5, abs=0.1)

    def test_a_gain_within_what_transfers_contradict_is_not_advised(self, printed: Any) -> None:
        """Copies of an H100 slow each other down: without transfers a slower cut is advised."""
        files = ROOT / "examples" / "h100-copies"
        stages = ("--stage", f"d2h={files / 'd2h.csv'}", "--stage", f"h2d={files / 'h2d.csv'}")
        assert printed("compose", *stages, "--save-as", "h100")[0] == 0

        def decided(size: str, current: str) -> tuple[str, int]:
            words = ("optimize", "h100", "--bytes", size, "--strategy", "repeat")
            answer = json.loads(printed(*words, "--current", current, "--json")[1])
            return answer["uncertainty"]["decision"], answer["uncertainty"]["advised_bytes"]

        code, advised_bytes = decided("1MiB", "whole")
        assert code == "set_it"
        small = read_transfers((files / "transfers-1MiB.csv").read_text())
        measured = {
            size: median(run.latency_us for run in runs) for size, runs in small.runs.items()
        }
        assert measured[advised_bytes] > 1.03 * measured[2**20]

        file = files / "transfers-16MiB.csv"
        assert printed("verify", "h100", "--recorded", file)[0] == DOES_NOT_HOLD
        assert decided("1MiB", "whole") == ("measure_first", 2**20)
        assert decided("16MiB", "4MiB") == ("keep_yours", 2**22)
        assert decided("64MiB", "whole") == ("measure_first", 2**26)

    def test_a_failure_is_said_by_audits_and_exports(self, printed: Any) -> None:
        """In the words of answers: first among an audit's warnings, and in an export's head."""
        export = ("export", "path", "--target", "mooncake", "--max-message", "1MiB")
        before = printed(*export)[1]
        printed("verify", "path", "--recorded", recorded(pipeline_of_lines(SLOWER)))
        audit = ("audit", "path", "--setting", "64KiB", "--max-message", "64KiB")
        said = json.loads(printed(*audit, "--json")[1])["warnings"][0]
        assert said["code"] == "model_does_not_hold"
        after = printed(*export)[1]
        words = " ".join(" ".join(line.removeprefix("#") for line in after.splitlines()).split())
        assert plain(said["detail"]) in words
        assert "verification" not in before

    def test_a_failure_is_said_by_tables_and_comparisons(self, printed: Any) -> None:
        """Before all else, with the words of answers; the stored table stays as it was."""
        table = ("table", "path", "--max-message", "64KiB", "--relative-gap", "0.1")
        compare = ("compare", "path", "--bytes", "64KiB", "--strategies", "single")
        before = [printed(*words, "--json")[1] for words in (table, compare)]
        printed("verify", "path", "--recorded", recorded(pipeline_of_lines(SLOWER)))
        said = json.loads(printed("profiles", "show", "path", "--json")[1])["verification"]
        for words, earlier in zip((table, compare), map(json.loads, before), strict=True):
            shown = printed(*words)[1]
            assert shown.startswith("This model does not hold here and failed its verification on")
            assert shown.count("does not hold here") == 1
            found = json.loads(printed(*words, "--json")[1])
            first, *others = found["warnings"]
            assert (first["code"], first["detail"]) == ("model_does_not_hold", said["detail"])
            assert {**found, "warnings": others} == {"warnings": [], **earlier}

    def test_a_model_that_holds_is_a_note(self, printed: Any) -> None:
        printed("verify", "path", "--recorded", recorded(pipeline_of_lines(MODEL)))
        shown = printed("compare", "path", "--bytes", "64KiB", "--strategies", "single")[1]
        assert "note: the model was verified on 20" in shown
        assert not shown.startswith("The model was")

    def test_a_later_verification_replaces_it(self, printed: Any) -> None:
        assert printed("verify", "path", "--recorded", recorded(pipeline_of_lines(SLOWER)))[0] == 7
        assert printed("verify", "path", "--recorded", recorded(pipeline_of_lines(MODEL)))[0] == 0
        shown = json.loads(printed("profiles", "show", "path@1", "--json")[1])
        assert shown["verification"]["verdict"] == "holds"

    def test_it_is_of_one_revision(self, printed: Any) -> None:
        printed("verify", "path", "--recorded", recorded(pipeline_of_lines(SLOWER)))
        printed("profiles", "save", "path", "model.json")
        assert "verification" not in json.loads(printed("profiles", "show", "path", "--json")[1])
        first = json.loads(printed("profiles", "show", "path@1", "--json")[1])
        assert first["verification"]["verdict"] == "does_not_hold"

    def test_a_file_keeps_nothing(self, printed: Any) -> None:
        file = recorded(pipeline_of_lines(MODEL))
        code, out, err = printed("verify", "model.json", "--recorded", file)
        assert (code, err) == (0, "")
        assert "model was verified" in out

    def test_transfers_of_fewer_stages_than_the_model_has(self, printed: Any) -> None:
        file = recorded(pipeline_of_lines(MODEL))
        code, out, err = printed("verify", "myrinet-gam", "--recorded", file)
        assert (code, out) == (2, "")
        assert err == "sluice: error: recorded: the model has 4 stages, and 2 were run\n"

    def test_transfers_of_other_stages_or_of_another_message(self, printed: Any) -> None:
        """Where it is known what the model is of; a stage may have run elsewhere, after a colon."""
        file = recorded(pipeline_of_lines(MODEL))
        asked = ("verify", "path", "--recorded", file, "--stage")
        code, _, err = printed(*asked, "memcpy", "--stage", "pipe")
        assert (code, err) == (
            2,
            "sluice: error: recorded: the model was measured by memcpy, pipe, and the "
            "transfers are of memcpy, tcp\n",
        )
        assert printed(*asked, "memcpy", "--stage", "tcp:near/far/10.0.0.2")[0] == 0
        code, _, err = printed("verify", "path", "--recorded", file, "--bytes", "3KiB")
        assert code == 2
        said = "bytes: expected the message of the transfers, 1 MiB, and not 3 KiB"
        assert err == f"sluice: error: {said}\n"

    def test_transfers_are_no_stages(self, printed: Any) -> None:
        """Who fits them is told what they are for."""
        code, _, err = printed("fit", recorded(pipeline_of_lines(MODEL)))
        assert code != 0
        assert "sluice verify SOURCE --recorded FILE" in err

    def test_the_size_in_use_of_recorded_transfers(self, printed: Any) -> None:
        file = recorded(pipeline_of_lines(MODEL))
        out = printed("verify", "path", "--recorded", file, "--current", "whole")[1]
        assert "\ncurrent " in out

    @pytest.mark.parametrize(
        ("words", "field"),
        [
            (("path",), "stage"),
            (("path", "--stage", "memcpy"), "stage"),
            (("path", "--stage", "memcpy,tcp"), "stage"),
            (("path", "--recorded", "nowhere.csv"), "recorded"),
            (("path", "--recorded", "model.json"), "source"),
            (("path", "--stage", "a", "--stage", "b", "--time-limit", "0"), "time_limit"),
            (("path", "--stage", "a", "--stage", "b", "--bytes", "0"), "bytes"),
            (("nothing",), "profile"),
        ],
    )
    def test_refusals(self, printed: Any, words: tuple[str, ...], field: str) -> None:
        code, out, err = printed("verify", *words)
        assert code in (2, 4)
        assert out == ""
        assert err.count("\n") == 1
        assert err.startswith("sluice: error: ")
        assert field in err or field == "source"

    @pytest.mark.parametrize("processors", ["", "0", "-1", "nan", "9999999", "²"])
    def test_processors_that_are_none(self, printed: Any, processors: str) -> None:
        file = recorded(pipeline_of_lines(MODEL), processors=processors)
        assert printed("verify", "path", "--recorded", file)[0] == 2


class TestReal:
    """The probe itself: that what is said rests on its transfers."""

    @pytest.fixture(autouse=True)
    def built(self) -> None:
        """The probe from the sources as they are."""
        compiler()
        subprocess.run([sys.executable, ROOT / "tools" / "build_kernels.py"], check=True)

    @pytest.fixture(autouse=True)
    def undisturbed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """On a busy machine too."""
        as_if_undisturbed(monkeypatch)

    def test_stages_are_those_that_were_measured(self, printed: Any) -> None:
        small = ("--bytes", "1KiB..64KiB", "--time-limit", "60", "--tolerance", "100%")
        for name in ("memcpy", "pipe"):
            assert printed("measure", name, *small, "--output", f"{name}.csv")[0] == 0
        composed = printed(
            "compose", "--stage", "a=memcpy.csv", "--stage", "b=pipe.csv", "--save-as", "ab"
        )
        assert composed[0] == 0
        quick = ("--bytes", "64KiB", "--time-limit", "60", "--tolerance", "100%", "--depth", "2")
        code, out, _ = printed("verify", "ab", *quick, "--current", "3000", "--json")
        shown = json.loads(out)
        codes = {"holds": 0, "holds_offset": 0, "does_not_hold": 7, "not_decided": 6}
        assert code == codes[shown["verdict"]]
        assert shown["stages"] == ["memcpy", "pipe"]
        assert 3000 in [size["fragment_bytes"] for size in shown["sizes"]]
        with Path("transfers.csv").open() as lines:
            rows = [row for row in csv.reader(lines) if row[0].isdigit()]
        assert len(rows) == sum(size["runs"] for size in shown["sizes"])

    def test_tune_writes_the_size_that_was_measured(
        self, printed: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """And says so where the library takes no such size."""
        assert printed("profiles", "save", "tuned", "model.json")[0] == 0
        output = Output.standard(wants_json=False)
        for target, line, note in (
            ("mooncake", "MC_SLICE_SIZE=81920", ""),
            ("s3", "multipart_chunksize", "s3 takes no 80 KiB: this is what the model chooses"),
        ):
            asked = parse(["tune", "--target", target])
            write_configuration(asked, 2**22, 81920, 65536, output)
            captured = capsys.readouterr()
            assert line in captured.out
            assert note in captured.err

    def test_tune_keeps_what_it_measured(self, printed: Any, tmp_path: Path) -> None:
        folder = tmp_path / "kept"
        folder.mkdir()
        quick = ("--bytes", "64KiB", "--time-limit", "120", "--tolerance", "100%")
        words = ("--stage", "crc32", "--stage", "pipe", "--folder", folder, "--save-as", "here")
        code, out, err = printed("tune", *words, *quick, "--json")
        assert code in (0, 6, 7), err
        tuned = json.loads(out)
        assert tuned["transfers"]["current_bytes"] == 65536
        assert tuned["transfers"]["set_this"]["size_bytes"] == tuned["set_bytes"]
        kept = sorted(path.name for path in folder.iterdir())
        assert kept == ["1-crc32.csv", "2-pipe.csv", "transfers.csv"]
        shown = json.loads(printed("profiles", "show", "here", "--json")[1])
        assert shown["verification"] == tuned["verification"]

    def test_files_past_the_page_cache_are_raced_in_whole_pages(self) -> None:
        """Round sizes of two pages and more are, and the model's size is among the first."""
        for stages, step in ((("tcp", "write-direct"), 4096), (("tcp", "pipe"), 1)):
            asked = parse(["tune", "--current", "64KiB"])
            plan = probe_race._plan(1 << 20, stages, 40960, asked)
            assert all(size % step == 0 for size in plan.candidates)
            assert {40960, 65536, 1 << 20} <= set(plan.candidates)
            assert plan.suggested_bytes == (40960,)
        assert min(plan.candidates) == 256

    def test_copies_beside_a_gpu_are_measured_cold(
        self, printed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As what a GPU wrote is in no cache; the files say so, and which GPU it was."""
        build_gpu_driver(tmp_path)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
        quick = ("--bytes", "64KiB", "--time-limit", "120", "--tolerance", "100%")
        stages = ("--stage", "d2h", "--stage", "memcpy", "--stage", "h2d")
        code, _, err = printed("tune", *stages, *quick, "--save-as", "staging")
        assert code in (0, 6, 7), err
        copy, to_gpu = (Path(name).read_text() for name in ("2-memcpy.csv", "3-h2d.csv"))
        assert "# memory: cold: beyond the caches" in copy
        assert "# gpu: Like a GPU" in to_gpu
        transfers = Path("transfers.csv").read_text()
        assert "# gpu: Like a GPU" in transfers
        assert re.search("# waits: (polling|sleeping)", transfers)

    def test_an_interrupt_keeps_what_was_measured(
        self, printed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While the second stage is measured."""
        measured, ask = list[str](), operation.measure_stage

        def interrupted(probe: Path, arguments: Any, *rest: Any) -> tuple[bool, str]:
            measured.append(arguments.name)
            is_complete, text = ask(probe, arguments, *rest)
            return is_complete and len(measured) < 2, text

        monkeypatch.setattr(operation, "measure_stage", interrupted)
        quick = ("--bytes", "16KiB", "--time-limit", "2", "--tolerance", "90%")
        code, _, err = printed("tune", "--stage", "memcpy", "--stage", "crc32", *quick)
        assert code == 130
        assert "what was measured is in" in err
        assert (tmp_path / "1-memcpy.csv").exists()
        assert (tmp_path / "2-crc32.csv").exists()

    @pytest.mark.parametrize("after", [0, 1, 20])
    def test_an_interrupt_of_the_transfers_is_no_error(
        self, printed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
    ) -> None:
        """Before and after there is enough for a verdict; what was transferred is kept."""
        asked, ask = list[str](), Probe.ask

        def interrupted(self: Probe, line: str) -> str:
            asked.append(line)
            if sum(" " in one for one in asked) > after + 1:  # the first one warms up
                raise KeyboardInterrupt
            return ask(self, line)

        monkeypatch.setattr(Probe, "ask", interrupted)
        quick = ("--bytes", "16KiB", "--time-limit", "60", "--tolerance", "100%")
        code, _, err = printed("tune", "--stage", "crc32", *quick)
        assert code == 130
        assert "error" not in err
        assert "interrupted" in err
        rows = (tmp_path / "transfers.csv").read_text().count("\n16384,")
        assert rows == after

    def test_a_folder_that_is_not_there(self, printed: Any) -> None:
        code, _, err = printed("tune", "--folder", "nowhere")
        assert code == 2
        assert "folder" in err
