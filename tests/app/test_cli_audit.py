"""sluice audit, by main(argv): exit codes, ways to say a setting, and what is wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from app.console import running
from app.schemas.base import read_output
from app.verbs.audit.command import TOO_HIGH
from contract.audit import AuditOut
from tests.support.in_process_engine import InProcessEngine

MYRINET = str(Path(__file__).parents[2] / "examples" / "myrinet-gam.json")
KV = str(Path(__file__).parents[2] / "examples" / "kv-staging.json")
SMALL = ("--min-message", "4KiB", "--max-message", "32KiB")


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database of its own, and audits in this process."""
    for name in [name for name in os.environ if name.startswith("SLUICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(running, "open_local_engine", InProcessEngine)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """main(argv): (exit code, standard output, standard error)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(("audit", *arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_a_file_touches_no_database(printed: Any, tmp_path: Path) -> None:
    """The report has the mean, the worst message, each power of two, and what to change."""
    code, reported, _ = printed(MYRINET, "--setting", "16KiB", *SMALL)
    assert code == 0
    words = " ".join(reported.split())
    for word in ("16 KiB", "mean regret", "worst regret", "best size", "What to change", "98.1 %"):
        assert word in words
    assert "verdict" not in words
    assert not (tmp_path / "cli.db").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--max-regret", "200%"), 0),
        (("--max-regret", "100%"), 0),
        (("--max-regret", "5%"), TOO_HIGH),
        (("--max-regret", "90%", "--objective", "worst"), TOO_HIGH),
        (("--max-regret", "90%", "--objective", "mean"), 0),
    ],
)
def test_the_exit_code_is_the_verdict(
    printed: Any, options: tuple[str, ...], expected: int
) -> None:
    """16 KiB on messages of 4 to 32 KiB: below 90 % in the mean, above at worst."""
    code, reported, _ = printed(MYRINET, "--setting", "16KiB", *SMALL, *options)
    assert code == expected
    verdict = next(line for line in reported.splitlines() if line.startswith("verdict"))
    assert (" over " in verdict) == (expected == TOO_HIGH)
    assert (" within " in verdict) == (expected == 0)


def test_a_constant_that_wastes_a_fifth_of_the_time_fails_its_gate(
    printed: Any, tmp_path: Path
) -> None:
    """3.9 % in the mean of the messages, most of which are small: a workload's time decides, and
    the mean only where it is asked for.
    """
    workload = tmp_path / "workload.txt"
    workload.write_text("1MiB 700\n4MiB 250\n64MiB 50\n")
    asked = (KV, "--workload", str(workload), "--max-regret", "5%", "--setting")
    code, reported, _ = printed(*asked, "512KiB")
    assert code == TOO_HIGH
    lines = [" ".join(line.split()) for line in reported.splitlines()]
    assert "total time 22.9 % over the best, of the given workload of 3 sizes" in lines
    assert "mean regret 3.89 %" in lines
    assert "verdict over 5 %: the regret of the total time" in lines
    code, reported, _ = printed(*asked, "512KiB", "--objective", "mean")
    assert code == 0
    assert "within 5 %: the mean regret" in reported
    mended, _, _ = printed(*asked, "1:512KiB,64MiB:4MiB")
    assert mended == 0


def test_what_is_advised_for_a_workload_takes_less_of_its_time(
    printed: Any, tmp_path: Path
) -> None:
    """The size advised is asked about once more, and its regret is what was told of it."""
    workload = tmp_path / "workload.txt"
    workload.write_text("1MiB 700\n4MiB 250\n64MiB 50\n")
    asked = (KV, "--workload", str(workload), "--json", "--setting")
    found = json.loads(printed(*asked, "512KiB")[1])
    assert (found["objective"], list(found["setting"])[1]) == ("time", "time")
    size = found["best_size"]["steps"][0]["size_bytes"]
    again = json.loads(printed(*asked, str(size))[1])
    assert again["setting"]["time"] == found["best_size"]["time"]
    assert again["setting"]["time"]["at_least"] < 0.5 * found["setting"]["time"]["at_least"]


def test_a_limit_inside_the_interval_is_decided_by_the_yardstick(printed: Any) -> None:
    """The mean regret itself is the limit: kept over the best found, not over the bound."""
    document = json.loads(printed(MYRINET, "--setting", "16KiB", *SMALL, "--json")[1])
    mean = document["setting"]["mean"]
    assert mean["at_least"] < mean["at_most"]
    limit = ("--max-regret", repr((mean["at_least"] + mean["at_most"]) / 2))
    code, reported, _ = printed(MYRINET, "--setting", "16KiB", *SMALL, *limit)
    assert code == 0
    assert ", by the best schedule found, which decides: the mean" in " ".join(reported.split())
    code, reported, _ = printed(MYRINET, "--setting", "16KiB", *SMALL, *limit, "--over", "bound")
    assert code == TOO_HIGH
    rule = ", by the proven bound of this model, which decides: the mean"
    assert rule in " ".join(reported.split())


def test_the_document_is_that_of_the_service(printed: Any) -> None:
    """With the exit code of the verdict all the same."""
    code, reported, _ = printed(
        "gms@1", "--setting", "whole", *SMALL, "--max-regret", "1%", "--json"
    )
    assert code == TOO_HIGH
    read_output(AuditOut, reported.encode())
    document = json.loads(reported)
    assert document["profile"] == {"name": "gms", "revision": 1}
    assert document["setting"]["steps"] == [{"from_bytes": 1, "size_bytes": None}]


def test_steps_and_a_configuration(printed: Any, tmp_path: Path) -> None:
    """Each as its setting."""
    setting = "1:whole,8KiB:2KiB"
    document = json.loads(printed(MYRINET, "--setting", setting, *SMALL, "--json")[1])
    assert document["setting"]["steps"] == [
        {"from_bytes": 1, "size_bytes": None},
        {"from_bytes": 8192, "size_bytes": 2048},
    ]
    config = tmp_path / "ucx.conf"
    config.write_text("UCX_RNDV_FRAG_SIZE=host:8K\n")
    options = ("--config", str(config), "--target", "ucx")
    document = json.loads(printed(MYRINET, *options, *SMALL, "--json")[1])
    assert document["setting"]["steps"] == [{"from_bytes": 1, "size_bytes": 8192}]
    assert document["best_size_steps"] is None


def test_a_mix_out_of_a_file(printed: Any, tmp_path: Path) -> None:
    """Sizes with units, weights, comments and blank lines."""
    workload = tmp_path / "workload.txt"
    workload.write_text("# what we send\n\n4KiB 3\n16KiB, 1  # seldom\n5000\n")
    reported = printed(MYRINET, "--setting", "16KiB", "--workload", str(workload), "--json")[1]
    document = json.loads(reported)
    assert document["workload"]["sizes"] == 3
    assert (document["min_message_bytes"], document["max_message_bytes"]) == (4096, 16384)


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        ((), 2, "--setting"),
        (("--setting", "0"), 2, "at least 1 byte"),
        (("--setting", "-4"), 2, "setting"),
        (("--setting", "lots"), 2, "setting"),
        (("--setting", "999999TiB"), 2, "setting"),
        (("--setting", "4KiB", "--target", "ucx"), 2, "target"),
        (("--setting", "4KiB", "--config", "x", "--target", "ucx"), 2, "setting"),
        (("--setting", "2:4KiB"), 2, "begin at 1"),
        (("--setting", "1:4KiB,1:8KiB"), 2, "ascend"),
        (("--setting", "1:0"), 2, "at least 1 byte"),
        (("--config", "none-such.conf", "--target", "ucx"), 4, "no file"),
        (("--config", "."), 2, "target"),
        (("--config", ".", "--target", "ucx"), 2, "config"),
        (("--setting", "4KiB", "--max-regret", "nan"), 2, "max-regret"),
        (("--setting", "4KiB", "--max-regret", "5"), 2, "write 5 % or 0.05"),
        (("--setting", "4KiB", "--max-regret", "-1"), 2, "expected a share"),
        (("--setting", "4KiB", "--over", "median"), 2, "over"),
        (
            ("--setting", "4KiB", "--min-message", "2KiB", "--max-message", "1KiB"),
            2,
            "max_message_bytes",
        ),
        (("--setting", "4KiB", "--workload", "none-such.txt"), 4, "no file"),
        (("--setting", "4KiB", "--time-limit", "0"), 2, "time_limit_s"),
    ],
)
def test_what_is_wrong_is_named(
    printed: Any, options: tuple[str, ...], code: int, word: str
) -> None:
    """In one line, with the exit code of bad input, which is not that of a verdict."""
    ended, reported, stated = printed(MYRINET, *options)
    assert (ended, reported) == (code, "")
    assert word in stated
    assert len(stated.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"4KiB 3\nlots 1\n", "line 2"),
        (b"4KiB x\n", "line 1"),
        (b"4KiB 1 1\n", "line 1"),
        (b"4KiB nan\n", "weight"),
        (b"4KiB -1\n", "weight"),
        (b"0 1\n", "message_bytes"),
        (b"# nothing\n", "workload"),
        (b"4KiB 0\n", "finite sum above 0"),
        (b"\xff\xfe", "UTF-8"),
        (b"4KiB\n" * 300_000, "at most"),
    ],
)
def test_a_mix_that_is_none(printed: Any, tmp_path: Path, content: bytes, word: str) -> None:
    """The line or the rule is named."""
    workload = tmp_path / "workload.txt"
    workload.write_bytes(content)
    code, _, stated = printed(MYRINET, "--setting", "4KiB", "--workload", str(workload))
    assert code == 2
    assert word in stated


def test_a_configuration_without_a_size(printed: Any, tmp_path: Path) -> None:
    """It does not say what the library does, and so it is refused."""
    config = tmp_path / "empty.conf"
    config.write_text("UCX_LOG_LEVEL=info\n")
    code, _, stated = printed(MYRINET, "--config", str(config), "--target", "ucx")
    assert code == 2
    assert "setting.configuration.content" in stated


TRACE = str(Path(__file__).parents[2] / "examples" / "local-path-direct.csv")


def test_what_to_do_comes_first_where_costs_were_fitted(printed: Any) -> None:
    asked = (TRACE, "--setting", "4KiB", "--time-limit", "1")
    code, reported, _ = printed(*asked, "--stages-overlap", "yes")
    assert code == 0
    words = " ".join(reported.split())
    assert words.startswith("4 KiB Set ")
    assert "% faster than 4 KiB, in the mean." in words
    assert "in 400 draws" in words
    _, reported, _ = printed(*asked)
    words = " ".join(reported.split())
    assert words.startswith("4 KiB Measure first: ")
    assert "if these stages overlap." in words
    _, reported, _ = printed(*asked, "--stages-overlap", "no")
    words = " ".join(reported.split())
    assert "faster than 4 KiB, in the mean" in words
    assert "overlap" not in words


def test_typed_costs_have_a_deviation_of_their_own(printed: Any) -> None:
    """And a limit that is to be kept in so many draws, which decides the exit code."""
    asked = (MYRINET, "--setting", "1KiB", *SMALL, "--relative", "10%", "--max-regret")
    code, reported, _ = printed(*asked, "100%", "--in-draws", "95%")
    assert code == 0
    assert "kept in all draws, asked for 95 % of them" in " ".join(reported.split())
    _, document, _ = printed(*asked, "100%", "--json")
    audit = read_output(AuditOut, document.encode())
    assert audit.uncertainty is not None
    assert audit.uncertainty.sentence.endswith("For costs that are known to ±10 %.")
    assert audit.uncertainty.settings[0].name == "setting"
    middle = audit.setting.mean.at_most
    assert middle is not None
    limit = f"{100.0 * middle + 0.01}%"
    assert printed(*asked, limit)[0] == 0
    hardly_known = (MYRINET, "--setting", "1KiB", *SMALL, "--relative", "90%")
    assert printed(*hardly_known, "--max-regret", limit)[0] == 0
    assert printed(*hardly_known, "--max-regret", limit, "--in-draws", "99%")[0] == TOO_HIGH


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--in-draws", "95%"), "in_draws"),
        (("--in-draws", "95%", "--max-regret", "5%"), "uncertainty.relative"),
        (("--relative", "200%"), "uncertainty.relative"),
    ],
)
def test_draws_need_errors_and_a_limit(printed: Any, options: tuple[str, ...], named: str) -> None:
    code, _, said = printed(MYRINET, "--setting", "1KiB", *SMALL, *options)
    assert code == 2
    assert named.replace(".", "/") in said or named in said


def test_an_audit_that_time_ends_says_so(printed: Any) -> None:
    """The figures lie between their limits."""
    asked = (MYRINET, "--setting", "64KiB", "--time-limit", "0.001")
    code, text, _ = printed(*asked)
    assert (code, "(time_limit)" in text) == (0, True)
    document = json.loads(printed(*asked, "--json")[1])
    assert document["warnings"][0]["code"] == "time_limit"
    assert document["best_repeats_at_most"] is None
