"""Two limited links and a synced file, and two checksums on one processor: as recorded, and in a
campaign on this machine, where nothing is asserted but what docs/verifying.md promises.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.verification import TOLERANCE, ModelVerdict, Verification
from measuring.transfers import read_transfers
from measuring.verdict import verdict_on
from tests.support.compiler import ROOT, compiler
from tests.support.counts import is_campaign

RECORDED = ROOT / "tests" / "data" / "transfers"
NEAR_BEST = 0.03
MESSAGE = 8 << 20
SPACES = tuple(f"sluice-{os.getpid()}-{place}" for place in "abc")
LINKS = ((SPACES[0], SPACES[1], "10.91.1"), (SPACES[1], SPACES[2], "10.91.2"))
SHAPE = ("tbf", "rate", "160mbit", "burst", "2kb", "limit", "32mb")

# As they were fitted to measurements of each stage by itself.
TWO_LINKS = pipeline_of_lines(
    [("link 1", 0.0, 53.39655), ("link 2", 0.0, 52.37342), ("file", 3860.933, 0.0060001)]
)
TWO_CHECKSUMS = pipeline_of_lines([("a", 0.0, 0.44635), ("b", 0.0, 0.44635)])


def recorded(name: str, pipeline: Pipeline) -> Verification:
    """The verdict on recorded transfers."""
    found = read_transfers((RECORDED / name).read_text())
    return verdict_on(
        pipeline,
        found.message_bytes,
        found.runs,
        stages=found.stages,
        processors=int(found.facts["processors"]),
    )


def test_recorded_links_are_as_predicted() -> None:
    found = recorded("two-links.csv", TWO_LINKS)
    assert found.verdict is ModelVerdict.HOLDS
    assert [size.fragments for size in found.sizes] == [116, 64, 32, 16, 8, 4, 2, 1]
    assert all(abs(size.ratio - 1.0) <= TOLERANCE for size in found.sizes)
    predicted = min(found.sizes, key=lambda size: size.predicted_us)
    assert predicted.measured_us <= found.best_measured.measured_us * (1 + NEAR_BEST)


def test_a_wrong_rate_of_a_recorded_link_is_found() -> None:
    """The same transfers, against a model whose links are a third faster or slower."""
    for share, code in ((0.75, "slower_in_company"), (1.33, "faster_in_flow")):
        wrong = pipeline_of_lines(
            [("link 1", 0.0, 53.4 * share), ("link 2", 0.0, 52.4 * share), ("file", 3860.0, 0.0)]
        )
        found = recorded("two-links.csv", wrong)
        assert found.verdict is ModelVerdict.DOES_NOT_HOLD
        of_links = {one.code for one in found.reasons if one.stage in found.stages[:2]}
        assert of_links == {code}


def test_recorded_checksums_of_one_processor_share_it() -> None:
    found = recorded("one-processor.csv", TWO_CHECKSUMS)
    assert found.verdict is ModelVerdict.DOES_NOT_HOLD
    assert found.reasons[0].code == "stages_share_processor"
    assert found.reasons[0].value("processors_needed") == pytest.approx(2.0, rel=0.1)


# --- in a campaign, on this machine ---------------------------------------------------------------


def _ip(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True, timeout=20)


@pytest.fixture
def spaces() -> Iterator[tuple[str, ...]]:
    """Three network namespaces and two limited links between them; names of the two links."""
    try:
        for space in SPACES:
            _ip("ip", "netns", "add", space)
        for number, (near, far, network) in enumerate(LINKS, start=1):
            link = f"link{number}"
            _ip(
                "ip", "link", "add", link, "netns", near, "type", "veth", "peer", link, "netns", far
            )
            for space, host in ((near, 1), (far, 2)):
                _ip("ip", "-n", space, "addr", "add", f"{network}.{host}/24", "dev", link)
                _ip("ip", "-n", space, "link", "set", link, "up")
            _ip("tc", "-n", near, "qdisc", "add", "dev", link, "root", *SHAPE)
    except (OSError, subprocess.SubprocessError) as refusal:
        _remove()
        why = getattr(refusal, "stderr", None) or str(refusal)
        pytest.fail(f"network namespaces cannot be made here, so nothing was verified: {why}")
    yield tuple(f"tcp:{near}/{far}/{network}.2" for near, far, network in LINKS)
    _remove()


def _remove() -> None:
    for space in SPACES:
        subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)


@pytest.fixture
def verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Measure stages, compose and verify them: the verification, as JSON."""
    compiler()
    subprocess.run([sys.executable, ROOT / "tools" / "build_kernels.py"], check=True)
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'links.db'}")

    def call(stages: tuple[str, ...], folder: str, *cpus: str) -> dict[str, Any]:
        words = []
        for number, stage in enumerate(stages):
            file = str(tmp_path / f"{number}.csv")
            measured = ["measure", stage, "--bytes", "128KiB..8MiB", "--time-limit", "14", *cpus]
            assert main([*measured, "--path", folder, "--output", file]) == 0
            words += ["--stage", f"s{number}={file}"]
        assert main(["compose", *words, "--save-as", "links"]) == 0
        capsys.readouterr()
        verify = ["verify", "links", "--bytes", "8MiB", "--time-limit", "60", *cpus, "--json"]
        main([*verify, "--path", folder, "--output", str(tmp_path / "transfers.csv")])
        shown: dict[str, Any] = json.loads(capsys.readouterr().out)
        with capsys.disabled():
            print(json.dumps(shown, indent=1))
        return shown

    return call


class TestMeasured:
    """Real links and processors: in campaigns, since what they measure is this machine."""

    __test__ = is_campaign()

    def test_links_are_as_predicted(self, spaces: tuple[str, ...], verified: Any) -> None:
        shown = verified((*spaces, "write-sync"), str(ROOT))
        sizes = shown["sizes"]
        assert {size["fragments"] for size in sizes} >= {1, 2, 4, 8, 16, 32, 64}
        assert {size["fragment_bytes"]: size["ratio"] for size in sizes} == {
            size["fragment_bytes"]: pytest.approx(1.0, abs=TOLERANCE) for size in sizes
        }
        predicted = min(sizes, key=lambda size: size["predicted_us"])
        best_us = min(size["measured_us"] for size in sizes)
        assert predicted["measured_us"] <= best_us * (1 + NEAR_BEST)
        assert shown["verdict"] in ("holds", "not_decided")

    def test_checksums_of_one_processor_fail(self, verified: Any) -> None:
        shown = verified(("crc32", "crc32"), str(ROOT), "--cpus", "0")
        assert shown["verdict"] == "does_not_hold"
        assert shown["reasons"][0]["code"] == "stages_share_processor"
