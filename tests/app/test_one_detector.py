"""Every door recognises a file by the same text, and refuses it in the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli import main

OSU = (Path(__file__).parents[1] / "data" / "outputs" / "m01-plain.txt").read_text()
OWN = "message_bytes,fragment_bytes,latency_us\n" + "".join(
    f"1048576,{size},{us + run}\n" for size, us in ((65536, 900), (262144, 700)) for run in range(6)
)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What the command prints, errors after the rest."""
    main(list(words))
    printed = capsys.readouterr()
    return printed.out + printed.err


@pytest.mark.parametrize("text", ["[0] hello\n[0] world\n", f"[n1:7] a warning: none\n{OSU}"])
def test_fit_and_optimize_say_the_same_of_a_line_in_brackets(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such a file does not begin as JSON does."""
    file = tmp_path / "run.log"
    file.write_text(text)
    fitted = said(capsys, "fit", str(file))
    asked = said(capsys, "optimize", str(file), "--bytes", "1MiB")
    assert "JSON, line" not in asked
    if "not recognised" in fitted:
        assert asked == fitted
    else:
        assert "latencies alone" in asked


def test_own_transfers_behind_a_prefix_decide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As they do without it."""
    plain, prefixed = tmp_path / "plain.csv", tmp_path / "prefixed.csv"
    plain.write_text(OWN)
    prefixed.write_text("".join(f"0: {line}\n" for line in OWN.splitlines()))
    answers = [said(capsys, "optimize", str(file), "--bytes", "1MiB") for file in (plain, prefixed)]
    assert answers[0] == answers[1].replace("prefixed.csv", "plain.csv")
    assert "256 KiB" in answers[0]
