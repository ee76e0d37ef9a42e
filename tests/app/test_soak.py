"""The service at half of what it can do, jobs cancelled at random: nothing adds up.

In a campaign for half an hour; every day for some rounds, after which memory says nothing.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bench.client import Connection, get, post
from bench.mixed import hard_question
from bench.service import RunningService, serving
from tests.app.serving import MYRINET, wait_until
from tests.support.counts import is_campaign

GROWTH = 1.05
TRACE = (Path(__file__).parents[2] / "examples" / "local-path-direct.csv").read_bytes()
ENDS = ("done", "failed", "cancelled")


class Client:
    """Asks one thing after the other, and rests for as long as each took."""

    def __init__(self, service: RunningService) -> None:
        self._port = service.port
        self.met: Counter[int] = Counter()

    def ask(self, request: bytes) -> tuple[int, bytes]:
        begun_s = time.monotonic()
        connection = Connection(self._port)
        status, body = connection.ask(request)
        connection.close()
        self.met[status] += 1
        time.sleep(time.monotonic() - begun_s)
        return status, body

    def take_a_round(self, number: int, rng: random.Random) -> None:
        """Look up, solve, compare, fit; and have a job run, which is cancelled or not."""
        size = 10_000 + number
        self.ask(get(f"/profiles/gms/schedule?bytes={size}"))
        asked = {"message_bytes": size, "pipeline": MYRINET}
        self.ask(post("/optimize", json.dumps(asked).encode()))
        asked = {"message_bytes": [size, 40 * size], "strategies": ["exact"], "pipeline": MYRINET}
        self.ask(post("/compare", json.dumps(asked).encode()))
        if number % 5 == 0:
            self.ask(post("/fit", TRACE).replace(b"application/json", b"text/csv", 1))
        if number % 5 == 1:
            request = post("/optimize", hard_question(number, time_limit_s=0.5))
            request = request.replace(b"\r\n", b"\r\nPrefer: respond-async\r\n", 1)
            _, job = self.ask(request)
            path = f"/jobs/{json.loads(job)['id']}"
            if rng.random() < 0.5:
                time.sleep(rng.random() / 2)
                self.ask(get(path).replace(b"GET", b"DELETE", 1))
            wait_until(lambda: json.loads(self.ask(get(path))[1])["state"] in ENDS)


def rounds(minutes: int) -> Iterator[int]:
    """Numbers of rounds for so long; one for each minute where this is no campaign."""
    if not is_campaign():
        yield from range(minutes)
        return
    end_s = time.monotonic() + 60 * minutes
    yield from itertools.takewhile(lambda _: time.monotonic() < end_s, itertools.count())


def held(service: RunningService) -> tuple[int, int]:
    """Open files but the database's, and processes below the service."""
    return service.open_files(), len(service.process.children(recursive=True))


@pytest.mark.long
def test_nothing_adds_up(tmp_path: Path) -> None:
    """No open file, process or temporary file more than after the warm-up, and 5 % of memory."""
    rng, scratch = random.Random(23), tmp_path / "scratch"  # for temporary files
    scratch.mkdir()
    url = f"sqlite:///{tmp_path / 'sluice.db'}"
    with serving(url, {"TMPDIR": str(scratch), "SLUICE_WORKERS": "1"}) as service:
        client = Client(service)
        for number in rounds(5):
            client.take_a_round(number, rng)
        before, resident = held(service), service.process.memory_info().rss
        for number in rounds(25):
            client.take_a_round(10**6 + number, rng)
        wait_until(lambda: held(service) <= before)
        growth = service.process.memory_info().rss / resident
        below = service.process.children(recursive=True)
    print(f"{growth - 1:.2%} more memory, {before} files and processes, {dict(client.met)}")
    assert not any(status >= 500 for status in client.met)
    assert not any(map(psutil.Process.is_running, below))
    assert os.listdir(scratch) == []
    assert growth <= GROWTH or not is_campaign()
