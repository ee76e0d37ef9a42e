"""The SimGrid export, read by SimGrid: its costs are those of the fitted stages, byte for byte."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from domain.errors import InvalidInput
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.schedule import latency_us
from exports.targets.simgrid import TARGET
from tests.exports.given import given_for
from tests.support.system import require_system

SOURCE = Path(__file__).parent / "smpi_times.c"
HOSTS = "near\nfar\n"
# One link and nothing added to it: no factors, no window, no traffic of acknowledgements.
PLAIN_NETWORK = (
    "--cfg=network/model:CM02",
    "--cfg=network/latency-factor:1",
    "--cfg=network/bandwidth-factor:1",
    "--cfg=network/TCP-gamma:0",
    "--cfg=network/weight-S:0",
    "--cfg=network/crosstraffic:0",
    "--cfg=smpi/wtime:0",
    "--cfg=smpi/simulate-computation:no",
    "--log=root.thres:warning",
)
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
{config}
<zone id="all" routing="Full">
<host id="near" speed="1Gf"/><host id="far" speed="1Gf"/>
<link id="wire" bandwidth="{bytes_per_s!r}Bps" latency="{latency_s!r}s"/>
<route src="near" dst="far"><link_ctn id="wire"/></route>
</zone>
</platform>
"""
ENVELOPE_BYTES = 16  # what SMPI adds to a message on the network
NOISE_S = 1e-9  # SimGrid's own precision of time


@dataclass(frozen=True, slots=True)
class Times:
    """What SimGrid says of one message, in seconds."""

    send_s: float
    isend_s: float
    whole_s: float


@dataclass(frozen=True, slots=True)
class Simulation:
    """A compiled MPI program and the folder that it runs in."""

    program: Path

    def run(
        self,
        sizes: Sequence[int],
        *,
        config: str = "",
        arguments: Sequence[str] = (),
        latency_s: float = 1e-6,
        bytes_per_s: float = 1e9,
    ) -> dict[int, Times]:
        """Each size's times on a link, with a platform's `<config>` or arguments."""
        folder = self.program.parent
        reported = PLATFORM.format(config=config, latency_s=latency_s, bytes_per_s=bytes_per_s)
        (folder / "platform.xml").write_text(reported)
        (folder / "hosts").write_text(HOSTS)
        files = ("-np", "2", "-platform", "platform.xml", "-hostfile", "hosts")
        ran = subprocess.run(
            ["smpirun", *files, *PLAIN_NETWORK, *arguments, str(self.program), *map(str, sizes)],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        rows = [line.split() for line in ran.stdout.splitlines()]
        sent = {
            int(row[1]): [float(value) for value in row[2:]] for row in rows if row[0] == "send"
        }
        ends = {int(row[1]): float(row[2]) for row in rows if row[0] == "recv"}
        return {
            size: Times(send_s, isend_s, ends[size] - start_s)
            for size, (send_s, isend_s, start_s) in sent.items()
        }


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Simulation:
    """The program, compiled by SimGrid's own compiler."""
    found = shutil.which("smpicc") and shutil.which("smpirun")
    require_system(found, "SimGrid (smpicc, smpirun)", "apt-get install libsimgrid-dev gcc")
    program = tmp_path_factory.mktemp("smpi") / "times"
    subprocess.run(
        ["smpicc", str(SOURCE), "-o", str(program)], check=True, capture_output=True, timeout=60
    )
    return Simulation(program)


def a_stage(name: str, rng: random.Random, *, ranges: int) -> Stage:
    """Costs that no rounded decimal gives, and ends anywhere."""
    ends = [*sorted(rng.sample(range(1, 60_000), ranges - 1)), None]
    return Stage(
        name, tuple(FitRange(rng.uniform(1, 50), rng.uniform(0.01, 3), end) for end in ends)
    )


def edges(stage: Stage) -> set[int]:
    """Sizes at the ends of the stage's ranges and one byte beyond."""
    ends = [part.up_to_bytes for part in stage.ranges if part.up_to_bytes is not None]
    return {size for end in ends for size in (end, end + 1)}


@pytest.mark.parametrize("form", ["xml", "cfg"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_simgrid_charges_what_was_fitted(simulation: Simulation, seed: int, form: str) -> None:
    """MPI_Send, MPI_Isend and MPI_Recv, at the ends of every range and one byte beyond."""
    rng = random.Random(seed)
    first, middle, last = (
        a_stage(f'<stage> & "{at}" -- ü\n-->', rng, ranges=rng.randint(1, 6)) for at in range(3)
    )
    options = {"form": form, "ois": "2", "detached_below": "1000000"}
    text = TARGET.render(given_for(TARGET, options, pipeline=Pipeline((first, middle, last))))
    sizes = sorted({1, 1024, 65535, 65536, 500_000} | edges(first) | edges(middle) | edges(last))
    if form == "xml":
        times = simulation.run(sizes, config=text)
    else:
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        times = simulation.run(sizes, arguments=lines)
    for size in sizes:
        network_s = 1e-6 + (size + ENVELOPE_BYTES) / 1e9
        whole_s = (first.time_us(size) + last.time_us(size)) * 1e-6 + network_s
        assert times[size].send_s == pytest.approx(first.time_us(size) * 1e-6, abs=NOISE_S)
        assert times[size].isend_s == pytest.approx(middle.time_us(size) * 1e-6, abs=NOISE_S)
        assert times[size].whole_s == pytest.approx(whole_s, abs=NOISE_S)


def test_a_simulated_message_takes_the_pipelines_latency(simulation: Simulation) -> None:
    """Sender, wire and receiver: the wire and the delay as a link, the others as exported."""
    model = pipeline_of_lines(
        [("copy out", 12.5, 0.31), ("wire", 3.0, 0.8), ("copy in", 9.75, 0.27)], delay_us=4.0
    )
    text = TARGET.render(given_for(TARGET, pipeline=model))
    times = simulation.run([1, 4096, 65535], config=text, latency_s=7e-6, bytes_per_s=1e9 / 0.8)
    for size, found in times.items():
        envelope_s = ENVELOPE_BYTES * 0.8e-9
        assert found.whole_s - envelope_s == pytest.approx(
            latency_us(model, (size,)) * 1e-6, abs=NOISE_S
        )


def test_without_the_threshold_long_messages_are_charged_nothing(simulation: Simulation) -> None:
    """What the head warns of is so: SimGrid's own threshold is 65536 bytes."""
    model = pipeline_of_lines([("out", 100.0, 1.0), ("in", 50.0, 1.0)])
    text = TARGET.render(given_for(TARGET, pipeline=model))
    assert "65536 bytes unless it is set" in text
    times = simulation.run([65535, 65536], config=text)
    assert times[65535].send_s == pytest.approx(165.535e-6, abs=NOISE_S)
    network_s = 1e-6 + (65536 + ENVELOPE_BYTES) / 1e9
    assert times[65536].whole_s == pytest.approx(network_s, abs=NOISE_S)


def test_costs_at_the_limits_are_read(simulation: Simulation) -> None:
    """The greatest costs, none, and what a double cannot hold; far ranges are left out."""
    extremes = (
        FitRange(0.0, 0.0, 100),
        FitRange(1e12, 0.0, 200),
        FitRange(5e-324, 5e-324, 300),
        FitRange(1.0, 1e9, 2**31 - 1),
        FitRange(2.0, 1.0, 2**31),
        FitRange(3.0, 1.0),
    )
    model = Pipeline((Stage("all", extremes),))
    text = TARGET.render(given_for(TARGET, pipeline=model))
    assert "left out: fit ranges that begin above 2147483647 bytes" in text
    times = simulation.run([100, 200, 300, 301], config=text)
    assert times[100].send_s == pytest.approx(0.0, abs=NOISE_S)
    assert times[200].send_s == pytest.approx(1e6, rel=1e-9)
    assert times[300].send_s == pytest.approx(0.0, abs=1e-6)  # far into the simulation: coarse
    assert times[301].send_s == pytest.approx(301.000001, abs=1e-6)


def properties(text: str) -> dict[str, str]:
    """The exported properties."""
    found = ElementTree.fromstring(text).findall("prop")
    return {prop.get("id", ""): prop.get("value", "") for prop in found}


def test_a_stage_is_named_by_its_place_its_number_or_its_name() -> None:
    """A single stage is not charged at both ends; `none` leaves a property out."""
    model = pipeline_of_lines([("a", 1.0, 1.0), ("first", 2.0, 2.0), ("c", 3.0, 3.0)])
    chosen = {"os": "c", "ois": "2", "or": "none"}
    found = properties(TARGET.render(given_for(TARGET, chosen, pipeline=model)))
    assert found == {"smpi/os": "0:0.000003:3E-9", "smpi/ois": "0:0.000002:2E-9"}
    alone = pipeline_of_lines([("a", 1.0, 1.0)])
    found = properties(TARGET.render(given_for(TARGET, pipeline=alone)))
    assert set(found) == {"smpi/os", "smpi/ois"}


@pytest.mark.parametrize("name", ["--> <x/>", "*/ & \"'", "]]>", "a:b;c", "drát 线"])
def test_a_stage_may_be_named_by_any_name(name: str) -> None:
    """It stands in the head as the option's value, where it ends nothing."""
    model = pipeline_of_lines([("a", 1.0, 1.0), (name, 2.0, 2.0)])
    found = properties(TARGET.render(given_for(TARGET, {"os": name}, pipeline=model)))
    assert found["smpi/os"] == "0:0.000002:2E-9"


@pytest.mark.parametrize(
    ("chosen", "stated"),
    [
        ({"os": "d"}, "os names no stage"),
        ({"or": "4"}, "or names no stage"),
        ({"ois": "twin"}, "ois names more than one stage"),
        ({"detached_below": "2147483648"}, "detached_below <= 2147483647"),
    ],
)
def test_what_cannot_be_meant_is_refused(chosen: dict[str, str], stated: str) -> None:
    """The error names the option and the rule."""
    model = pipeline_of_lines([("a", 1.0, 1.0), ("twin", 2.0, 2.0), ("twin", 3.0, 3.0)])
    with pytest.raises(InvalidInput, match=stated):
        TARGET.render(given_for(TARGET, chosen, pipeline=model))
