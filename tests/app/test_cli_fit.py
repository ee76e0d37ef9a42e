"""`sluice fit` on files, folders and standard input, and traces as sources of other commands."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from app.schemas.base import read_output
from contract.fit import FitOut
from tests.app.test_fit_options import DIRECT, INTERARRIVAL, LATENCY, SWITCH

ROOT = Path(__file__).parents[2]
TRACE = str(ROOT / "examples" / "local-path-direct.csv")
OURS = {
    "kind": "direct",
    "message_bytes": [100, 200, 300, 400],
    "repetition": [0, 0, 0, 0],
    "stages": [{"name": "copy", "time_us": [3.0, 5.0, 7.0, 9.0]}],
}


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database of its own, and nothing of the caller's environment."""
    for name in [name for name in os.environ if name.startswith("SLUICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """main(argv) in this process: (exit code, standard output, standard error)."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(word) for word in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Latencies, inter-arrival times, and two files that are no traces."""
    place = tmp_path / "measured"
    place.mkdir()
    (place / "a.csv").write_text(LATENCY)
    (place / "b.csv.gz").write_bytes(gzip.compress(INTERARRIVAL.encode()))
    (place / "c.txt").write_text("notes to myself\n")
    (place / "d.bin").write_bytes(bytes(range(256)))
    (place / "inner").mkdir()
    return place


def feed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(content)))


class TestTogether:
    def test_files_are_one_pipelines_measurements(self, printed: Any, folder: Path) -> None:
        code, out, err = printed("fit", folder / "a.csv", folder / "b.csv.gz", "--json")
        assert (code, err) == (0, "")
        document = read_output(FitOut, out.encode())
        assert (document.kind, len(document.trace_digests)) == ("indirect", 2)
        assert document.aggregate is not None

    def test_latencies_that_are_one_stage(self, printed: Any, folder: Path) -> None:
        """The user says so, and it is fitted as one; stages have names already."""
        code, out, _ = printed("fit", folder / "a.csv", "--as-stage", "memcpy", "--json")
        fitted = json.loads(out)
        assert code == 0
        assert fitted["kind"] == "direct"
        assert [stage["name"] for stage in fitted["pipeline"]["stages"]] == ["memcpy"]
        code, _, err = printed("fit", TRACE, "--as-stage", "memcpy")
        assert code != 0
        assert "which say themselves what they are of" in " ".join(err.split())

    def test_tables_whose_columns_are_named(self, printed: Any, tmp_path: Path) -> None:
        """The same of one file, and of a stage in a pipeline."""
        table = tmp_path / "copy.tsv"
        sizes = [64, 512, 4096, 32768] * 3
        table.write_text("n\tms\n" + "".join(f"{n}\t{2 + n / 1e3}\n" for n in sizes))
        word = "size=n,time=ms"
        code, out, _ = printed("fit", table, "--columns", word, "--stage", "copy", "--json")
        alone = json.loads(out)["pipeline"]
        assert (code, [stage["name"] for stage in alone["stages"]]) == (0, ["copy"])
        assert alone["stages"][0]["overhead_us"] == pytest.approx(2000.0)
        named = ("--stage", f"copy={table}", "--columns", f"copy={word}")
        code, out, _ = printed("compose", *named, "--json")
        assert (code, json.loads(out)["pipeline"]) == (0, alone)
        code, _, err = printed("compose", *named, "--columns", f"other={word}")
        assert code != 0
        assert "there is no stage other" in " ".join(err.split())

    def test_clients_of_ucx_perftest(self, printed: Any, tmp_path: Path) -> None:
        """Their output says neither test nor size: the user does, for a file or a table each."""
        columns = "|    Stage     | # iterations | 50.0%ile | message rate (msg/s) |\n"
        rows = [f"Final:  2000  {2 + place}.5  9 9 1 1 1 1\n" for place in range(3)]
        files = [tmp_path / f"{place}.log" for place in range(3)]
        for file, row in zip(files, rows, strict=True):
            file.write_text(columns + row)
        together = tmp_path / "together.log"
        together.write_text("".join(columns + row for row in rows))
        asked = ("--test", "tag_lat", "--message-bytes", "64,4KiB,8KiB")
        code, out, _ = printed("fit", *files, *asked)
        assert code == 0
        code, of_one, _ = printed("fit", together, *asked)
        assert code == 0
        assert "3: 64 B to 8 KiB" in of_one
        assert out[out.index("stage  ") :] == of_one[of_one.index("stage  ") :]
        code, _, err = printed("fit", *files[:2], *asked)
        assert code == 2
        assert "expected the message size of each file" in err

    def test_a_folder(self, printed: Any, folder: Path) -> None:
        """What is not recognised is left out, and said."""
        code, out, err = printed("fit", folder, "--json")
        assert code == 0
        assert json.loads(out)["kind"] == "indirect"
        lines = err.splitlines()
        assert [line.split(":")[1].split("/")[-1] for line in lines] == ["c.txt'", "d.bin'"]
        assert all("left out" in line for line in lines)

    def test_a_folder_with_nothing_in_it(self, printed: Any, folder: Path) -> None:
        code, _, err = printed("fit", folder / "inner")
        assert (code, "no file in this folder" in err) == (2, True)
        for name in ("a.csv", "b.csv.gz"):
            (folder / name).unlink()
        code, _, err = printed("fit", folder)
        assert (code, "no file in the folder is recognised" in err) == (2, True)

    def test_a_file_that_is_named_is_not_left_out(self, printed: Any, folder: Path) -> None:
        code, out, err = printed("fit", folder / "a.csv", folder / "c.txt")
        assert (code, out) == (2, "")
        assert "c.txt" in err

    def test_standard_input(self, printed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        for content in (DIRECT.encode(), gzip.compress(DIRECT.encode())):
            feed(monkeypatch, content)
            code, out, _ = printed("fit", "-", "--json")
            assert (code, len(json.loads(out)["pipeline"]["stages"])) == (0, 3)
        code, _, err = printed("fit", "-", "-")
        assert (code, "only once" in err) == (2, True)

    def test_save_as(self, printed: Any, folder: Path) -> None:
        assert printed("fit", folder, "--save-as", "seen")[0] == 0
        code, out, _ = printed("optimize", "seen", "--bytes", "64KiB", "--json")
        assert (code, json.loads(out)["profile"]["name"]) == (0, "seen")

    def test_what_does_not_go_together(self, printed: Any, folder: Path) -> None:
        code, _, err = printed("fit", folder, TRACE)
        assert (code, "do not go together" in err) == (2, True)


class TestSeparately:
    def test_one_line_a_file(self, printed: Any, folder: Path) -> None:
        code, out, err = printed("fit", folder, TRACE, "--separately", "--json")
        documents = [json.loads(line) for line in out.splitlines()]
        assert [Path(one["source"]).name for one in documents] == [
            "a.csv",
            "b.csv.gz",
            "local-path-direct.csv",
        ]
        assert [one["fit"]["kind"] for one in documents] == ["end_to_end", "indirect", "direct"]
        assert (code, len(err.splitlines())) == (0, 2)

    def test_for_a_person(self, printed: Any, folder: Path) -> None:
        _, out, _ = printed("fit", folder / "a.csv", TRACE, "--separately")
        assert out.index("a.csv") < out.index("end to end") < out.index("crc32")

    def test_a_refusal_keeps_nothing_back(self, printed: Any, folder: Path) -> None:
        """The exit code is that of the first one."""
        (folder / "e.csv").write_text("message_bytes,repetition,a_us\n" + "64,0,1\n" * 5)
        names = (folder / "e.csv", folder / "c.txt", folder / "a.csv")
        code, out, err = printed("fit", *names, "--separately", "--json")
        assert (code, len(out.splitlines())) == (3, 1)
        assert [json.loads(line)["code"] for line in err.splitlines()] == [
            "poor_fit",
            "unreadable_trace",
        ]

    @pytest.mark.parametrize("more", [("--save-as", "x"), ("--plot", "x.svg")])
    def test_is_for_no_single_fit(self, printed: Any, more: tuple[str, str]) -> None:
        code, _, err = printed("fit", TRACE, "--separately", *more)
        assert (code, "--separately" in err) == (2, True)


class TestOptions:
    def test_they_are_the_services(self, printed: Any, tmp_path: Path) -> None:
        path = tmp_path / "switch.csv"
        path.write_text(SWITCH)

        def ranges(*options: str) -> int:
            code, out, _ = printed("fit", path, "--json", *options)
            assert code == 0
            return len(json.loads(out)["pipeline"]["stages"][0]["ranges"])

        assert ranges() == 2
        assert ranges("--shape", "line") == ranges("--max-ranges", "1") == 1
        assert ranges("--shape", "narrowed", "--message-bytes", "1KiB") == 1
        _, out, _ = printed("fit", TRACE, "--json", "--method", "weighted")
        assert json.loads(out)["method"] == "weighted"
        groups = (
            "--group",
            "in:sequence:copy_in,crc32",
            "--group",
            "out:overlap:copy_out,write_fdatasync",
        )
        _, out, _ = printed("fit", TRACE, "--json", *groups)
        stages = json.loads(out)["pipeline"]["stages"]
        assert [stage["name"] for stage in stages] == ["in", "loopback_tcp", "out"]
        _, out, _ = printed("fit", path, "--json", "--exclude", "64:6.28:wire")
        assert json.loads(out)["excluded"][0] == {
            "stage": "wire",
            "message_bytes": 64,
            "time_us": 6.28,
        }
        assert json.loads(out)["pipeline"]["stages"][0]["num_samples"] == 55

    def test_equal_warnings_are_one_line(self, printed: Any) -> None:
        """With the stages named, and what to do."""
        _, out, _ = printed("fit", TRACE)
        stated = " ".join(out.split())
        assert (
            "crc32, loopback_tcp, copy_out and write_fdatasync: outliers (outliers). The" in stated
        )
        assert stated.count("(outliers)") == 1

    @pytest.mark.parametrize(
        ("options", "rule"),
        [
            (("--kind", "logp"), "kind"),
            (("--kind", "other"), "kind"),
            (("--method", "best"), "method"),
            (("--shape", "narrowed"), "message_bytes"),
            (("--message-bytes", "4KiB"), "message_bytes"),
            (("--max-ranges", "0"), "max_ranges"),
            (("--group", "nothing"), "group"),
            (("--group", "a:overlap:copy_in,unknown"), "group"),
            (("--exclude", "64:soon:copy_in"), "exclude"),
            (("--save-as", "No"), "save_as"),
        ],
    )
    def test_refusals(self, printed: Any, options: tuple[str, str], rule: str) -> None:
        code, out, err = printed("fit", TRACE, *options)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert rule.replace("_", "") in err.replace("_", "").replace("-", "")


class TestOtherCommands:
    def test_a_profile_beside_a_folder_of_its_name(
        self, printed: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As tune leaves one where it is given that folder and that name."""
        monkeypatch.chdir(folder.parent)
        assert printed("fit", TRACE, "--save-as", folder.name)[0] == 0
        code, out, _ = printed("optimize", folder.name, "--bytes", "64KiB")
        assert code == 0
        assert f"profile {folder.name}@1" in out

    @pytest.mark.parametrize("is_packed", [False, True])
    def test_any_trace_is_a_source(self, printed: Any, tmp_path: Path, is_packed: bool) -> None:
        """JSON of our own too, which is told from a request by what it holds."""
        for name, content in (("t.json", json.dumps(OURS)), ("t.csv", DIRECT)):
            path = tmp_path / name
            raw = content.encode()
            path.write_bytes(gzip.compress(raw) if is_packed else raw)
            code, out, err = printed("optimize", path, "--bytes", "4KiB", "--json")
            assert (code, err) == (0, "")
            assert json.loads(out)["fit"]["kind"] == "direct"
            assert printed("compare", path, "--bytes", "4KiB", "--json")[0] == 0
            assert printed("profiles", "save", "from-trace", path)[0] == 0

    def test_json_that_is_neither(self, printed: Any, tmp_path: Path) -> None:
        path = tmp_path / "broken.json"
        for content, code in (('{"kind": ', 2), ('{"kind": "direct"}', 2), ("[1]", 2), ("{}", 2)):
            path.write_text(content)
            assert printed("optimize", path, "--bytes", "4KiB")[0] == code

    @pytest.mark.parametrize("packed", [gzip.compress(DIRECT.encode())[:-9], b"\x1f\x8bno"])
    def test_broken_gzip(self, printed: Any, tmp_path: Path, packed: bytes) -> None:
        path = tmp_path / "broken.gz"
        path.write_bytes(packed)
        for command in (("fit", path), ("optimize", path, "--bytes", "4KiB")):
            code, out, err = printed(*command)
            assert (code, out, len(err.splitlines())) == (2, "", 1)

    def test_a_bomb(self, printed: Any, tmp_path: Path) -> None:
        path = tmp_path / "bomb.gz"
        path.write_bytes(gzip.compress(bytes(2**26)))
        code, _, err = printed("fit", path)
        assert (code, "200 times" in err) == (2, True)


def test_a_reader_that_leaves() -> None:
    """A closed pipe ends the command with the usual code and without a word."""
    files = [TRACE] * 20
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "fit", "--separately", "--json", *files],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(120), errors) == (141, b"")


class TestCompose:
    """sluice compose: stages of files of their own."""

    def test_what_is_composed_is_printed_and_stored(self, printed: Any, tmp_path: Path) -> None:
        direct, net = tmp_path / "steps.csv", tmp_path / "net.csv"
        direct.write_text(DIRECT)
        net.write_text(LATENCY)
        asked = ["--stage", f"d2h={direct}", "--step", "d2h=copy", "--stage", f"net={net},{net}"]
        plot = tmp_path / "plot.svg"
        code, out, err = printed("compose", *asked, "--save-as", "joined", "--plot", plot)
        assert (code, err) == (0, "")
        assert "saved as joined@1" in out
        assert "stages_measured_apart" in out
        assert "<svg" in plot.read_text()
        code, out, _ = printed("compose", *asked, "--processor", "cpu=net,d2h", "--json")
        (stage,) = read_output(FitOut, out.encode()).pipeline.stages
        assert (code, stage.name) == (0, "d2h + net")
        code, out, _ = printed("optimize", "joined", "--bytes", "64KiB", "--json")
        names = [one["name"] for one in json.loads(out)["pipeline"]["stages"]]
        assert (code, names) == (0, ["d2h", "net"])

    @pytest.mark.parametrize(
        ("asked", "words"),
        [
            (("--stage", "a"), "stage: expected name=one or name=one,other"),
            (("--stage", "a=,b"), "stage: expected"),
            (("--stage", "a=FILE", "--step", "b=copy"), "step: there is no stage b"),
            (("--stage", "a=FILE", "--processor", "cpu=a,c"), "processor: there is no stage c"),
            (("--stage", "a=FILE"), "stages: stage a: the file has several steps"),
            (("--stage", "a=FILE", "--stage", "a=FILE"), "expected different names"),
            (("--stage", "a=-,-"), "source: expected - only once"),
            (("--stage", "a=nowhere.csv"), "nowhere.csv"),
        ],
    )
    def test_what_cannot_be_composed(
        self, printed: Any, tmp_path: Path, asked: tuple[str, ...], words: str
    ) -> None:
        """One line that names the option and the rule; nothing is stored."""
        direct = tmp_path / "steps.csv"
        direct.write_text(DIRECT)
        named = [word.replace("FILE", str(direct)) for word in asked]
        code, out, err = printed("compose", *named, "--save-as", "half")
        missing = "nowhere" in words
        assert (code, out, len(err.splitlines())) == (4 if missing else 2, "", 1)
        assert words in err
        assert printed("profiles", "show", "half")[0] != 0


def test_a_signature_shows_its_parameters(printed: Any) -> None:
    """With intervals, for each size; what the measurements do not give is said."""
    traces = ROOT / "tests" / "data" / "traces"
    code, out, _ = printed("fit", traces / "signature.csv")
    assert code == 0
    rows = {line.split(",")[0].split()[-1]: line for line in out.splitlines() if ", " in line}
    assert "2.9  2.163 to 3.637" in rows["o_s"]  # one burst of one message: two per cent is typical
    assert "16 B" in rows["o_s"]
    assert "not measured" in rows["g"]
    assert "stage  overhead" not in out


def test_a_profile_shows_which_stages_hand_bytes_on(printed: Any, tmp_path: Path) -> None:
    stages = [
        {"name": "read", "overhead_us": 1, "ns_per_byte": 1, "handoff_bytes": 64},
        {"name": "write", "overhead_us": 1, "ns_per_byte": 1},
    ]
    file = tmp_path / "pipeline.json"
    file.write_text(json.dumps({"stages": stages}))
    assert printed("profiles", "save", "handing", str(file))[0] == 0
    code, out, _ = printed("profiles", "show", "handing")
    assert code == 0
    assert "read hands bytes on as they move, 64 B at a time" in out
    assert "write hands" not in out
