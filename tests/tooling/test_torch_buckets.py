"""Buckets of DistributedDataParallel: as recorded, and in a campaign trained here.

The campaign needs root (two network namespaces) and a Python with torch and numpy, which
SLUICE_TORCH_PYTHON names. Layers sleep, so that other work on the machine matters little; messages
are real, over a link of known rate and delay.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from analysis.buckets import BucketAdvice, advise_buckets, buckets_of, verified_buckets
from domain.bucket_setting import BucketSetting
from domain.items import ItemSequence
from fitting.queued import queued_line
from tests.architecture.documents import document
from tests.support.compiler import ROOT
from tests.support.counts import is_campaign
from tests.support.ddp_training import (
    Layers,
    Link,
    Training,
    convolutions,
    real_time_priority,
    torch_python,
    training,
    transformer,
)
from tools.package_build import stage

RECORDED = ROOT / "tests" / "data" / "buckets"
SHAPES = {"transformer": transformer(1 / 64, 0.2), "convolutions": convolutions(1 / 16, 0.2)}
CAPS_MB = (0.02, 0.05, 0.2, 0.5, 1.0, 3.0)
WORST, MIDDLE = 0.10, 0.05  # of predicted times, on every setting and in the median
NEAR_BEST = 0.05  # of the best cap over the best that was swept
NOISE = 0.02  # of a list over the best cap
TUTORIAL = document("docs/tutorial-ddp.md")
LINES_OF_THE_EXAMPLE = 40  # beside imports and what is written for people


def setting_of(text: str) -> BucketSetting:
    """The setting that is written so."""
    caps = text.partition("=")[2].strip("[]")
    return BucketSetting(tuple(float(cap) for cap in caps.split(", ") if cap))


def advice_on(found: dict[str, Any]) -> BucketAdvice:
    """What the product says of recorded times."""
    sequence = ItemSequence.of(found["bytes"], found["ready_us"])
    wires = [
        queued_line({int(size): time_us for size, time_us in found[times].items()})
        for times in ("alone_us", "beside_us")
    ]
    alone, beside = (wire.stage for wire in wires)
    return advise_buckets(
        sequence,
        alone,
        beside,
        slowed=found.get("slowed", 0.0),
        misfit=max(wire.misfit for wire in wires),
    )


def as_tried(found: dict[str, Any], advice: BucketAdvice) -> BucketAdvice:
    """The advice with the default, the cap and the list that were timed: times are recorded with
    fewer digits, so that a list as good may be another one.
    """
    tried = tuple(
        buckets_of(advice.sequence, advice.wire, setting_of(row["setting"]))
        for row in found["rows"][:3]
    )
    for then, now in zip(tried, advice.tried, strict=True):
        assert then.setting.name == now.setting.name
        assert then.predicted_us == pytest.approx(now.predicted_us, rel=1e-4)
    return replace(advice, tried=tried)


def check_sweep(found: dict[str, Any], advice: BucketAdvice) -> None:
    """Hold every figure against what was measured."""
    assert not advice.is_shared_engine
    off, caps = list[float](), list[float]()
    for row in found["rows"]:
        setting, measured_us = setting_of(row["setting"]), median(row["times_us"])
        buckets = buckets_of(advice.sequence, advice.wire, setting)
        assert list(buckets.bucket_bytes) == row["seen"], row["setting"]
        off.append(abs(buckets.predicted_us / measured_us - 1.0))
        if setting.name != "bucket_cap_mb_list":
            caps.append(measured_us)
    assert len(off) == 3 + len(CAPS_MB)
    assert max(off) <= WORST
    assert median(off) <= MIDDLE
    measured = {row["setting"]: median(row["times_us"]) for row in found["rows"]}
    _, cap, several = (str(one.setting) for one in as_tried(found, advice).tried)
    assert measured[cap] <= min(caps) * (1.0 + NEAR_BEST)
    assert measured[several] <= measured[cap] * (1.0 + NOISE)


@pytest.mark.parametrize("name", SHAPES)
def test_recorded_steps_are_as_predicted(name: str) -> None:
    found = json.loads((RECORDED / f"{name}.json").read_text())
    check_sweep(found, advice_on(found))
    advice = as_tried(found, advice_on(found))
    times = {setting_of(row["setting"]): row["times_us"] for row in found["rows"]}
    kept = verified_buckets(advice, {one.setting: times[one.setting] for one in advice.tried})
    assert str(kept.kept) == found["kept"]
    assert kept.kept.name == "bucket_cap_mb_list"


def test_the_tutorial_shows_recorded_steps() -> None:
    found = json.loads((RECORDED / "transformer.json").read_text())
    advice = as_tried(found, advice_on(found))
    times = {setting_of(row["setting"]): row["times_us"] for row in found["rows"]}
    said = str(verified_buckets(advice, {one.setting: times[one.setting] for one in advice.tried}))
    assert f"```text\n{said}\n```" in TUTORIAL.text


def test_a_recorded_calculation_on_the_same_processor_is_announced() -> None:
    """Messages and a real network share a processor: the default alone was predicted too low."""
    found = json.loads((RECORDED / "shared.json").read_text())
    advice = advice_on(found)
    assert advice.is_shared_engine
    assert "shared_engine" in str(advice)
    assert "predicted" not in str(advice)


def test_the_example_is_short() -> None:
    text = (ROOT / "examples" / "torch_buckets.py").read_text()
    body = text.split('"""', 2)[2].splitlines()
    code = [line.strip() for line in body if line.strip()]
    written = [line for line in code if not line.startswith(("#", '"""', "import ", "from "))]
    assert len(written) <= LINES_OF_THE_EXAMPLE


def test_the_tutorial_without_torch(tmp_path: Path) -> None:
    """Its examples, of the package as it is installed, give what it shows."""
    stage(ROOT, tmp_path / "sluice")
    blocks = [pair for pair in TUTORIAL.blocks() if pair[0].language == "py"][1:]
    assert len(blocks) == 3
    for example, shown in blocks:
        assert shown is not None
        unloaded = "print([name for name in ('torch', 'app') if name in sys.modules])"
        done = subprocess.run(
            [sys.executable, "-c", f"import sys\n{example.text}\n{unloaded}"],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == f"{shown.text}\n[]\n"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    """The processes, with the package as a wheel has it."""
    python = torch_python()
    folder = tmp_path_factory.mktemp("training")
    stage(ROOT, folder / "package" / "sluice")
    with training(python, folder / "package", folder, Link()) as processes:
        yield processes


class TestTraining:
    """Two processes, a link of 200 Mbit/s and 1.5 ms one way."""

    __test__ = is_campaign()

    def test_the_tutorial(self, trained: Training, tmp_path: Path) -> None:
        """Its script, as it stands, by torchrun."""
        script = next(block for block, _ in TUTORIAL.blocks() if block.language == "py").text
        (tmp_path / "train.py").write_text(f"{script}\nstep(model)\ndist.destroy_process_group()\n")
        printed = trained.torchrun(tmp_path / "train.py")
        assert " gradients, 12607488 bytes, " in printed.splitlines()[0]
        assert printed.splitlines()[-1].startswith(("Set bucket_cap_mb", "Keep the default"))

    @pytest.mark.parametrize("name", SHAPES)
    def test_nine_settings(
        self, trained: Training, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        found, decided = trained.run({}, **asked(SHAPES[name], "sweep"))[0]
        with capsys.disabled():
            print(shown(found))
        check_sweep(found, advice_on(found))
        assert str(setting_of(found["kept"])) == found["kept"] != "the default"
        assert decided["keywords"] == setting_of(found["kept"]).keywords

    def test_only_rank_0_decides(self, trained: Training) -> None:
        """The other one's layers are faster, so that it has the gradients earlier."""
        layers = SHAPES["transformer"]
        early = [(sizes, seconds / 2.0) for sizes, seconds in layers]
        first, second = trained.run({1: {"layers": early}}, **asked(layers, "find"))
        assert first[-1]["keywords"] == second[-1]["keywords"] != {}

    def test_a_network_on_the_same_processor(
        self, trained: Training, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Where predictions are off it is announced, before steps are timed or by them; what is
        kept was no slower than the default.
        """
        found = trained.run({}, **asked([], "sweep", model="transformer", priority=0))[0][0]
        with capsys.disabled():
            print(shown(found))
        measured = {row["setting"]: median(row["times_us"]) for row in found["rows"]}
        off = [
            abs(measured[row["setting"]] / row["predicted_us"] - 1.0) for row in found["rows"][:3]
        ]
        said = " ".join(found["warnings"])
        assert max(off) <= WORST or "shared_engine" in said or "not_as_predicted" in said
        assert measured[found["kept"]] <= measured["the default"]


def asked(layers: Layers, task: str, **more: Any) -> dict[str, Any]:
    """What both processes are asked."""
    return {
        "model": "layers",
        "layers": layers,
        "task": task,
        "caps_mb": CAPS_MB,
        "rounds": 6,
        "steps": 3,
        "priority": real_time_priority(),
        **more,
    }


def shown(found: dict[str, Any]) -> str:
    """A row for each setting."""
    head = (
        f"all-reduces beside: {found['shared']:+.1%}, calculation: {found['slowed']:+.1%}, misfit "
        f"{found['misfit']:.1%}, kept {found['kept']}; {found['warnings']}"
    )
    rows = [
        f"{row['setting'][:60]:60s} {len(row['buckets']):3d} buckets, predicted "
        f"{row['predicted_us'] / 1e3:7.1f} ms, measured {row['measured_us'] / 1e3:7.1f} ms "
        f"({row['predicted_us'] / row['measured_us'] - 1.0:+.1%})"
        for row in found["rows"]
    ]
    return "\n".join(("", head, *rows))
