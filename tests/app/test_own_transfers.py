"""A user's own transfers through the command line and POST /optimize: one answer through both."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from app.cli import main

KIB, MIB = 1 << 10, 1 << 20
HEADER = "message_bytes,fragment_bytes,latency_us\n"
TIMES = {512 * KIB: (10_100, 10_200, 9_900), 4 * MIB: (7_250, 7_300, 7_200)}
FASTER = HEADER + "".join(
    f"64MiB,{size},{times[turn]}\n" for turn in range(3) for size, times in TIMES.items()
)
ALIKE = HEADER + "".join(
    f"64MiB,{size},{1000 + 3 * ((turn * 7 + size // MIB) % 5)}\n"
    for turn in range(8)
    for size in (4 * MIB, 8 * MIB, 16 * MIB)
)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """main(argv) in this process: (exit code, standard output, standard error)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, " ".join(captured.out.split()), captured.err

    return call


def written(folder: Path, text: str) -> str:
    path = folder / "own.csv"
    path.write_text(text)
    return str(path)


class TestCommand:
    def test_a_file_sets_a_size(self, printed: Any, tmp_path: Path) -> None:
        name = written(tmp_path, FASTER)
        code, out, _ = printed("optimize", name, "--bytes", "64MiB", "--current", "512KiB")
        assert code == 0
        assert out.startswith("Set 4 MiB: 25 to 31 % faster than your 512 KiB (6 runs")
        assert "512 KiB × 128 (yours)" in out
        assert "regret at most" in out

    def test_a_file_keeps_a_size(self, printed: Any, tmp_path: Path) -> None:
        code, out, _ = printed("optimize", written(tmp_path, ALIKE), "--current", "8MiB")
        assert code == 0
        assert out.startswith("Keep your 8 MiB: no round size from 4 MiB to 16 MiB is more than")

    @pytest.mark.parametrize("rows", ["64MiB,4MiB,7250\n64MiB,8MiB,9000\n", "64MiB,8MiB,9000\n"])
    def test_what_is_not_decided_ends_with_6(self, rows: str, printed: Any, tmp_path: Path) -> None:
        code, out, _ = printed("optimize", written(tmp_path, HEADER + rows), "--current", "8MiB")
        assert code == 6
        assert out.startswith(("Try 4 MiB", "Not decided"))

    def test_standard_input_is_a_file_too(
        self, printed: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Input:
            buffer = io.BytesIO(FASTER.encode())

        monkeypatch.setattr("sys.stdin", Input)
        code, out, _ = printed("optimize", "-", "--current", "512KiB")
        assert (code, out[:9]) == (0, "Set 4 MiB")

    def test_another_message_is_refused(self, printed: Any, tmp_path: Path) -> None:
        code, _, err = printed("optimize", written(tmp_path, FASTER), "--bytes", "1MiB")
        assert code == 2
        assert "these transfers say nothing of a message of 1 MiB" in err

    @pytest.mark.parametrize(
        "options", [("--strategy", "exact"), ("--robust",), ("--save-as", "x"), ("--gap", "0.1")]
    )
    def test_options_of_models_are_refused(
        self, options: tuple[str, ...], printed: Any, tmp_path: Path
    ) -> None:
        code, _, err = printed("optimize", written(tmp_path, FASTER), *options)
        assert code == 2
        assert "own transfers decide among the sizes that were transferred" in err

    def test_a_condition_is_chosen(self, printed: Any, tmp_path: Path) -> None:
        lines = FASTER.splitlines()
        rows = [f"{line},{4 + at % 2}" for at, line in enumerate(lines[1:] * 2)]
        name = written(tmp_path, "\n".join([lines[0] + ",connections", *rows]))
        code, _, err = printed("optimize", name, "--current", "512KiB")
        assert code == 2
        assert "connections has 2 values, 4 and 5" in err
        code, out, _ = printed("optimize", name, "--where", "connections=5")
        assert code in (0, 6)
        assert "connections 5" in out
        code, _, err = printed("optimize", name, "--where", "connections")
        assert code == 2

    def test_no_fit_takes_them_for_stages(self, printed: Any, tmp_path: Path) -> None:
        code, _, err = printed("fit", written(tmp_path, FASTER))
        assert code == 2
        assert "sluice optimize FILE" in err

    def test_conditions_are_of_files_alone(self, printed: Any) -> None:
        code, _, err = printed("optimize", "myrinet-gam", "--bytes", "1K", "--where", "a=b")
        assert code == 2
        assert "said of a file of measurements or of own transfers, and there is none" in err


def asked(text: str, message_bytes: int = 64 * MIB, **more: Any) -> dict[str, Any]:
    return {"message_bytes": message_bytes, "transfers": {"content": text}, **more}


class TestService:
    def test_both_doors_give_the_same_answer(
        self, client: httpx.Client, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        current = {"uncertainty": {"current": {"repeat": 512 * KIB}}}
        answer = client.post("/optimize", json=asked(FASTER, **current))
        assert answer.status_code == 200, answer.text
        name = written(tmp_path, FASTER)
        assert main(("optimize", name, "--current", "512KiB", "--json")) == 0
        assert orjson.loads(capsysbinary.readouterr().out) == answer.json()
        rows = [
            {"fragment_bytes": size, "latency_us": times[turn]}
            for turn in range(3)
            for size, times in TIMES.items()
        ]
        listed = {"message_bytes": 64 * MIB, "transfers": {"rows": rows}, **current}
        assert client.post("/optimize", json=listed).json() == answer.json()

    def test_the_decision_stands_where_set_this_does(self, client: httpx.Client) -> None:
        current = {"uncertainty": {"current": {"repeat": 512 * KIB}}}
        set_this = client.post("/optimize", json=asked(FASTER, **current)).json()["set_this"]
        assert set_this["verdict"] == "set"
        assert set_this["size_bytes"] == 4 * MIB
        assert set_this["fragments"] == 16
        assert 0.24 < set_this["gain"]["low"] < set_this["gain"]["high"] < 0.31
        low, high = set_this["latency_us_interval"]
        assert low < set_this["latency_us"] < high
        assert not set_this["keeps_current"]
        kept = asked(ALIKE, uncertainty={"current": {"repeat": 8 * MIB}})
        set_this = client.post("/optimize", json=kept).json()["set_this"]
        assert (set_this["verdict"], set_this["size_bytes"]) == ("keep", 8 * MIB)
        assert set_this["keeps_current"]

    def test_the_whole_message_may_be_in_use(self, client: httpx.Client) -> None:
        body = asked(FASTER + "64MiB,64MiB,20000\n" * 3, uncertainty={"current": "whole"})
        answer = client.post("/optimize", json=body).json()
        assert answer["current_bytes"] == 64 * MIB
        assert answer["is_current_known"]

    @pytest.mark.parametrize(
        ("body", "pointer", "words"),
        [
            (asked("x"), "/transfers", "line 1 lacks message_bytes and fragment_bytes"),
            (asked(FASTER, MIB), "/transfers", "say nothing of a message of 1 MiB"),
            (asked(FASTER, strategy="exact"), "/strategy", "own transfers decide alone"),
            ({"message_bytes": 1, "transfers": {}}, "/transfers", "exactly one of content and"),
            (
                {"message_bytes": 1, "transfers": {"rows": [{"fragment_bytes": 1}]}},
                "/transfers/rows/0/latency_us",
                "expected a time of every transfer that is ok",
            ),
            (
                {"message_bytes": 1, "transfers": {"rows": []}},
                "/transfers/rows",
                "at least 1",
            ),
            (
                asked(HEADER.strip() + ",status\n64MiB,1MiB,,refused\n"),
                "/transfers",
                "at least one transfer with a time",
            ),
        ],
    )
    def test_what_is_refused_names_its_field(
        self, body: dict[str, Any], pointer: str, words: str, client: httpx.Client
    ) -> None:
        answer = client.post("/optimize", json=body)
        assert answer.status_code == 422
        problems = answer.json()["errors"]
        assert any(one["pointer"] == pointer and words in one["detail"] for one in problems), (
            answer.text
        )

    def test_as_measurements_they_are_refused_with_the_way(self, client: httpx.Client) -> None:
        body = {"message_bytes": 64 * MIB, "measurements": {"content": FASTER}}
        answer = client.post("/optimize", json=body)
        assert answer.status_code == 422
        assert "as transfers of POST /optimize" in answer.text

    def test_too_many_rows_are_refused(self, client: httpx.Client) -> None:
        answer = client.post("/optimize", json=asked(HEADER + "64MiB,1MiB,5\n" * 10_001))
        assert answer.status_code == 422
        assert "at most 10000 transfers" in answer.text
