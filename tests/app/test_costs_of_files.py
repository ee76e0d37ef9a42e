"""Several files of one path, and tables of stages' costs: taken, or refused, by every door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main

SIZES = [2**power for power in range(23)]
TABLE = "stage,overhead,bandwidth (GB/s)\ncopy,3 us,24\nwire,1500 ns,12.5\n"
STAGES = [
    {"name": "copy", "overhead": "3 us", "bandwidth": "24 GB/s"},
    {"name": "wire", "overhead_us": 1.5, "bw (GB/s)": 12.5},
]


def osu(title: str, column: str, rows: list[float]) -> str:
    """An OSU file."""
    head = f"# OSU MPI {title} Test v5.8\n# Size          {column}\n"
    return head + "".join(f"{x} {y:.4f}\n" for x, y in zip(SIZES, rows, strict=True))


def latency(overhead_us: float, ns_per_byte: float) -> str:
    return osu("Latency", "Latency (us)", [overhead_us + ns_per_byte * x / 1000 for x in SIZES])


def bandwidth(overhead_us: float, ns_per_byte: float) -> str:
    rates = [x / (overhead_us + ns_per_byte * x / 1000) for x in SIZES]
    return osu("Bandwidth", "Bandwidth (MB/s)", rates)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main([*words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of one path, of another one, and tables of costs."""
    files = {
        "lat.out": latency(5.0, 0.16),
        "bw.out": bandwidth(1.0, 0.08),
        "slow.out": bandwidth(9.0, 0.5),
        "stages.csv": TABLE,
        "stages.json": json.dumps({"stages": STAGES}),
        "list.json": json.dumps(STAGES),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


# --- several files of one path --------------------------------------------------------------------


def test_latencies_and_bandwidths_make_an_aggregate(
    folder: Path, capsys: pytest.CaptureFixture[str], client: httpx.Client
) -> None:
    """Latencies give the total, bandwidths what the slowest stage takes, in whichever order."""
    files = [str(folder / name) for name in ("lat.out", "bw.out")]
    found = printed(capsys, "optimize", *files, "--bytes", "1MiB")
    assert found["aggregate"]["total"]["overhead_us"] == pytest.approx(5.0, rel=0.02)
    assert found["aggregate"]["bottleneck"]["ns_per_byte"] == pytest.approx(0.08, rel=0.02)
    turned = printed(capsys, "optimize", *reversed(files), "--bytes", "1MiB")
    assert turned["fragment_bytes"] == found["fragment_bytes"]
    body = {"measurements": [{"content": Path(file).read_text()} for file in files]}
    response = client.post("/optimize", json={"message_bytes": 2**20, **body})
    assert response.json()["fragment_bytes"] == found["fragment_bytes"]


def test_files_that_contradict_each_other_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], client: httpx.Client
) -> None:
    """By name of the size, in the same words by both doors."""
    files = [str(folder / name) for name in ("lat.out", "slow.out")]
    assert main(["optimize", *files, "--bytes", "1MiB"]) == 2
    said = capsys.readouterr().err
    assert "contradict each other" in said
    body = {"measurements": [{"content": Path(file).read_text()} for file in files]}
    response = client.post("/optimize", json={"message_bytes": 2**20, **body})
    assert response.status_code == 422
    assert response.json()["detail"] in said


@pytest.mark.parametrize("other", ["trapeze", "stages.json", "stages.csv"])
def test_several_sources_are_measurements(
    folder: Path, capsys: pytest.CaptureFixture[str], other: str
) -> None:
    """A profile, a pipeline or a table of costs beside a file is refused, named."""
    named = str(folder / other) if "." in other else other
    code = main(["optimize", str(folder / "lat.out"), named, "--bytes", "1MiB"])
    assert code == (2 if "." in other else 4)  # there is no such file
    said = capsys.readouterr().err
    assert other in said
    assert "measurements of one path" in said


def test_standard_input_is_read_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", "-", "-", "--bytes", "1MiB"]) == 2
    assert "expected - only once" in capsys.readouterr().err


# --- tables of stages' costs ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stages.csv", "stages.json", "list.json"])
def test_a_table_of_costs_is_a_pipeline(
    folder: Path, capsys: pytest.CaptureFixture[str], client: httpx.Client, name: str
) -> None:
    """By file as by the fields of a request."""
    found = printed(capsys, "optimize", str(folder / name), "--bytes", "1MiB")
    copy, wire = found["pipeline"]["stages"]
    assert (copy["name"], wire["name"]) == ("copy", "wire")
    assert (copy["overhead_us"], wire["overhead_us"]) == (3.0, 1.5)
    assert copy["ns_per_byte"] == pytest.approx(1.0 / 24.0)
    assert wire["ns_per_byte"] == pytest.approx(0.08)
    asked = {"message_bytes": 2**20, "pipeline": {"stages": [copy, wire]}}
    response = client.post("/optimize", json=asked)
    assert response.json()["fragment_bytes"] == found["fragment_bytes"]


def test_a_request_takes_the_table_as_text(client: httpx.Client) -> None:
    """In the place of measurements; what is wrong in it is refused with its line."""
    body = {"message_bytes": 2**20, "measurements": {"content": TABLE}}
    response = client.post("/optimize", json=body)
    assert response.is_success, response.text
    assert [one["name"] for one in response.json()["pipeline"]["stages"]] == ["copy", "wire"]
    wrong = TABLE.replace(" (GB/s)", "")
    response = client.post("/optimize", json={**body, "measurements": {"content": wrong}})
    assert response.status_code == 422
    assert "line 2: expected a unit for 24" in response.json()["detail"]


def test_other_commands_take_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wherever a SOURCE is."""
    found = printed(
        capsys, "simulate", str(folder / "stages.csv"), "--bytes", "1MiB", "--repeat", "64KiB"
    )
    assert len(found["pipeline"]["stages"]) == 2


def test_a_fit_of_costs_is_refused_with_what_takes_them(
    folder: Path, capsys: pytest.CaptureFixture[str], client: httpx.Client
) -> None:
    """In the same words by both doors."""
    assert main(["fit", str(folder / "stages.csv")]) == 2
    said = capsys.readouterr().err
    assert "a table of what stages cost, and no measurements" in said
    assert "name their columns, as in size=bytes,time=latency:us" in said
    response = client.post("/fit", json={"measurements": {"content": TABLE}})
    assert response.status_code == 422
    assert response.json()["detail"] in said


def test_columns_of_measurements_that_are_named_as_those_of_costs_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the user says of a file counts."""
    file = tmp_path / "loads.csv"
    file.write_text(
        "part,latency (us),rate (MB/s)\n" + "".join(f"{2**n},{n},9\n" for n in range(9))
    )
    assert main(["fit", str(file)]) == 2
    assert "if its rows are measurements" in capsys.readouterr().err.replace("\n", " ")
    assert main(["fit", str(file), "--columns", "size=part,time=latency (us)"]) == 0


def test_a_member_without_a_unit_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "stages.json"
    file.write_text(json.dumps({"stages": [{"overhead": "3 us", "bandwidth": 24}]}))
    assert main(["optimize", str(file), "--bytes", "1MiB"]) == 2
    assert "bandwidth: expected a unit for 24" in capsys.readouterr().err
