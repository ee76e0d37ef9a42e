"""The demo as a real process: everything it shows, and nothing left running."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
START_S = 180


def environment_of(folder: Path, **more: str) -> dict[str, str]:
    """A database of its own, and nothing else of the caller's settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    return {
        **clean,
        "SLUICE_DATABASE_URL": f"sqlite:///{folder / 'demo.db'}",
        "SLUICE_WORKERS": "1",
        "PYTHONIOENCODING": "utf-8",
        "COLUMNS": "80",
        **more,
    }


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """One run with --once, on a free port."""
    return subprocess.run(
        [sys.executable, "-m", "app.cli", "demo", "--once"],
        cwd=ROOT,
        env=environment_of(tmp_path_factory.mktemp("demo"), SLUICE_PORT="0"),
        capture_output=True,
        encoding="utf-8",
        timeout=START_S,
        check=False,
    )


class TestOnce:
    def test_it_ends_well_and_says_nothing_on_standard_error(
        self, once: subprocess.CompletedProcess[str]
    ) -> None:
        assert (once.returncode, once.stderr) == (0, "")

    def test_it_shows_the_address(self, once: subprocess.CompletedProcess[str]) -> None:
        assert re.search(r"http://127\.0\.0\.1:[1-9][0-9]+", once.stdout)

    def test_it_shows_the_published_pipeline_solved(
        self, once: subprocess.CompletedProcess[str]
    ) -> None:
        assert "examples/myrinet-gam.json" in once.stdout
        assert re.search(r"184\.3\d\d µs", once.stdout)  # the optimum of Table 1 at 4 KiB
        assert "64 KiB through 4 stages" in once.stdout

    def test_it_shows_the_fit_with_its_errors(self, once: subprocess.CompletedProcess[str]) -> None:
        assert re.search(r"loopback_tcp +16 KiB +7\.\d+ ± 0\.\d+ +0\.11\d+ ± 0\.0\d+", once.stdout)

    def test_it_shows_what_every_strategy_costs(
        self, once: subprocess.CompletedProcess[str]
    ) -> None:
        part = once.stdout.split("What each strategy would have cost for 4 KiB")[1]
        part = part.split("> POST")[0]
        for strategy in ("exact", "fixed", "repeat", "static", "single", "hierarchical"):
            assert re.search(rf"^{strategy} .*\d µs", part, re.MULTILINE)
        assert re.search(r"^ramp: ", part, re.MULTILINE)

    def test_it_draws_the_pipelines(self, once: subprocess.CompletedProcess[str]) -> None:
        assert once.stdout.count("▶") == 5  # one bottleneck in each Gantt
        assert "█" in once.stdout

    def test_it_fits_eighty_columns(self, once: subprocess.CompletedProcess[str]) -> None:
        assert max(map(len, once.stdout.splitlines())) <= 80


class TestServing:
    def test_it_keeps_serving_until_ctrl_c_and_leaves_nothing_running(self, tmp_path: Path) -> None:
        child = subprocess.Popen(
            [sys.executable, "-m", "app.demo"],
            cwd=ROOT,
            env=environment_of(tmp_path, SLUICE_PORT="0"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        try:
            assert child.stdout is not None
            address = ""
            for line in child.stdout:
                found = re.search(r"the page +(http://\S+)/ ", line)
                if found:
                    address = found[1]
                    break
            schedule = f"{address}/profiles/local-path/schedule?bytes=65536"
            with urllib.request.urlopen(schedule, timeout=60) as answer:
                assert answer.status == 200
            helpers = psutil.Process(child.pid).children(recursive=True)
            child.send_signal(signal.SIGINT)
            assert child.wait(60) == 0
            _, alive = psutil.wait_procs(helpers, timeout=60)
            assert alive == []
        finally:
            child.kill()
            child.communicate()

    def test_a_taken_default_port_means_the_next_free_one_and_it_is_said(
        self, tmp_path: Path
    ) -> None:
        with socket.socket() as other:
            try:
                other.bind(("127.0.0.1", 8080))
                other.listen()
            except OSError:
                pass  # taken by somebody else: just as good
            child = subprocess.Popen(
                [sys.executable, "-m", "app.demo"],
                cwd=ROOT,
                env=environment_of(tmp_path),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
            )
            try:
                assert child.stdout is not None
                assert child.stdout.readline().startswith("port 8080 is taken")
            finally:
                child.terminate()
                child.communicate(timeout=60)

    def test_a_taken_port_that_was_asked_for_is_an_error(self, tmp_path: Path) -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            done = subprocess.run(
                [sys.executable, "-m", "app.cli", "demo", "--once"],
                cwd=ROOT,
                env=environment_of(tmp_path, SLUICE_PORT=str(port)),
                capture_output=True,
                encoding="utf-8",
                timeout=START_S,
                check=False,
            )
        assert done.returncode == 5
        assert f"port {port} is taken" in done.stderr
