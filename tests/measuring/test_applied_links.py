"""A setting that a model chose, against Open MPI's own decision: four ranks in a chain of limited
links, in a campaign on this machine. docs/applying.md has what was found.
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

from tests.support.compiler import ROOT, compiler
from tests.support.counts import is_campaign

RANKS = 4
NAME = f"sluice-{os.getpid()}"
SHAPE = ("tbf", "rate", "160mbit", "burst", "16kb", "limit", "32mb")
SLUICE = (sys.executable, "-m", "app.cli")
# What Open MPI starts on another node by: HOST and the words of a shell.
AGENT = f"""#!/bin/sh
host=${{1##*.}}; shift
exec ip netns exec {NAME}-$host unshare -u sh -c "hostname {NAME}-$host; $*"
"""
MODEL = (
    *("--option", "collective=bcast", "--option", "algorithm=pipeline"),
    *("--option", "programs=uniform", "--min-message", "1KiB", "--max-message", "1MiB"),
)
SENT = (
    "--programs",
    "bcast",
    "--bytes",
    "64KiB,256KiB,1MiB",
    "--pairs",
    "16",
    "--time-limit",
    "600",
    "--json",
)


def _run(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=3000, **more)


def _ip(*words: str) -> None:
    done = _run(*words)
    if done.returncode:
        pytest.fail(f"network namespaces cannot be made here, so nothing was tried: {done.stderr}")


@pytest.fixture
def nodes() -> Iterator[None]:
    """Nodes NAME-1 to NAME-4, each limited in what it sends, on a bridge."""
    hub = f"{NAME}-hub"
    try:
        _ip("ip", "netns", "add", hub)
        _ip("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
        _ip("ip", "-n", hub, "link", "set", "bridge", "up")
        for number in range(1, RANKS + 1):
            node, port = f"{NAME}-{number}", f"port{number}"
            _ip("ip", "netns", "add", node)
            peer = ("type", "veth", "peer", port, "netns", hub)
            _ip("ip", "link", "add", "wire", "netns", node, *peer)
            _ip("ip", "-n", hub, "link", "set", port, "master", "bridge", "up")
            _ip("ip", "-n", node, "addr", "add", f"10.92.3.{number}/24", "dev", "wire")
            for device in ("wire", "lo"):
                _ip("ip", "-n", node, "link", "set", device, "up")
            _ip("tc", "-n", node, "qdisc", "add", "dev", "wire", "root", *SHAPE)
        yield
    finally:
        for place in ("hub", *range(1, RANKS + 1)):
            _run("ip", "netns", "del", f"{NAME}-{place}")


@pytest.fixture
def sluice(tmp_path: Path) -> Any:
    """Run a command of Sluice on the first node, with Open MPI set up for all of them."""
    compiler()
    subprocess.run([sys.executable, ROOT / "tools" / "build_kernels.py"], check=True)
    agent, hosts = tmp_path / "agent", tmp_path / "hosts"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    hosts.write_text("".join(f"10.92.3.{one} slots=1\n" for one in range(1, RANKS + 1)))
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SLUICE_DATABASE_URL": f"sqlite:///{tmp_path / 'links.db'}",
        "OMPI_MCA_plm_rsh_agent": str(agent),
        "OMPI_MCA_orte_default_hostfile": str(hosts),
        "OMPI_MCA_btl": "tcp,self",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        inside = ("ip", "netns", "exec", f"{NAME}-1", "unshare", "-u", "sh", "-c")
        named = f'hostname {NAME}-1 && exec "$@"'
        return _run(*inside, named, "sh", *SLUICE, *words, env=environment, cwd=tmp_path)

    return call


class TestMeasured:
    """What the model chooses is faster here, twice: in a campaign, since it is of this machine."""

    __test__ = is_campaign()

    def test_a_pipeline_of_fitted_hops_beats_the_librarys_own_decision(
        self, nodes: None, sluice: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        stages = []
        for number in range(1, RANKS):
            link = f"tcp:{NAME}-{number}/{NAME}-{number + 1}/10.92.3.{number + 1}"
            file = str(tmp_path / f"hop{number}.csv")
            asked = ("--bytes", "16KiB..1MiB", "--time-limit", "10", "--output", file)
            subprocess.run([*SLUICE, "measure", link, *asked], check=True, cwd=ROOT)
            stages += ["--stage", f"hop{number}={file}"]
        assert sluice("compose", *stages, "--save-as", "chain").returncode == 0
        over = ("--mpicc", "mpicc.openmpi", "--allow-run-as-root", "--ranks", str(RANKS))
        for seed in ("0", "1000"):  # the second one is a confirmation by itself
            more = ("--seed", seed, "--output", f"kept-{seed}.conf")
            done = sluice("apply", "openmpi-rules", "chain", "--check", *over, *MODEL, *SENT, *more)
            with capsys.disabled():
                print(done.stdout or done.stderr)
            shown = json.loads(done.stdout)
            assert shown["is_kept"], shown["reason"]
            last = {
                (one["program"], one["message_bytes"]): one
                for one in shown["trials"][-1]["compared"]
            }
            assert last["bcast", 1 << 20]["high"] < 0.6
