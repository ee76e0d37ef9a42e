"""Every reader gives the same: the plan table, the C library, the Python client and the service."""

from __future__ import annotations

import ctypes
import http.client
import json
import random
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from app.questions.profiles import paper_profiles
from app.schemas.stages import constraints_out, pipeline_out
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits
from exports.table.slt import decode
from sluice_client import Table
from tests.app.serving import Live, serving, settings_for
from tests.support.compiler import compiler
from tests.support.counts import count, is_campaign
from tests.support.long_work import long_here_engine

CLIENT = Path(__file__).resolve().parents[2] / "clients" / "c"
MAX_MESSAGE_BYTES = 1 << 16
SIZES_A_TABLE = 10_000  # in a campaign
MAX_FRAGMENTS = 4096
NO_REPEAT = -10

LIMITS = {
    "free": FragmentLimits(),
    "aligned": FragmentLimits(alignment_bytes=48),
    "narrow": FragmentLimits(min_fragment_bytes=128, max_fragment_bytes=4096),
    "all": FragmentLimits(64, 16_384, 16, 24),
}


def pipelines() -> dict[str, Pipeline]:
    """The papers' pipelines, and one that is none of theirs."""
    papers = {paper.name: paper.pipeline for paper in paper_profiles() if not paper.hands_on}
    short = pipeline_of_lines([("copy", 1.3, 2.1), ("wire", 2.2, 5.7)], delay_us=0.5)
    return {**papers, "short-path": short}


@dataclass(frozen=True, slots=True)
class Case:
    """A profile, its limits and the file that the service compiled."""

    name: str
    file: bytes
    table: PlanTable

    def sizes(self, number: int) -> list[int]:
        """Message sizes: the ends, every entry and those beside it, and others at random."""
        ends = [cut.message_bytes for cut in self.table.cuts]
        near = {size + step for size in ends for step in (-1, 0, 1)}
        rng = random.Random(self.name)
        drawn = (rng.randint(1, MAX_MESSAGE_BYTES) for _ in range(number))
        asked = [
            1,
            MAX_MESSAGE_BYTES,
            *rng.sample(sorted(near), min(len(near), number // 4)),
            *drawn,
        ]
        return [size for size in asked if 1 <= size <= MAX_MESSAGE_BYTES][:number]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A service that compiles in its own process."""
    url = f"sqlite:///{tmp_path_factory.mktemp('same') / 'sluice.db'}"
    with serving(settings_for(url), open_engine=long_here_engine) as live:
        yield live


@pytest.fixture(scope="module")
def cases(service: Live) -> list[Case]:
    """Profiles, each with an active table of its own limits, read back from the service.

    In a campaign the twenty of every pipeline with all limits, each of which takes the service a
    second; else each pipeline with one kind of limits and the last one with all four.
    """
    *others, last = pipelines()
    asked = [(name, label) for name in (*others, last) for label in LIMITS]
    assert len(asked) == 20
    if not is_campaign():
        kept = {*zip(others, LIMITS, strict=True), *((last, label) for label in LIMITS)}
        asked = [pair for pair in asked if pair in kept]
    models = pipelines()
    return [_case(service, f"{name}.{label}", models[name], LIMITS[label]) for name, label in asked]


def _case(service: Live, name: str, pipeline: Pipeline, limits: FragmentLimits) -> Case:
    created = service.client.post(
        "/profiles", json={"name": name, "pipeline": asdict(pipeline_out(pipeline))}
    )
    assert created.status_code == 201, created.text
    asked = {
        "max_message_bytes": MAX_MESSAGE_BYTES,
        "relative_gap": 0.01,
        "constraints": asdict(constraints_out(limits)),
    }
    compiled = service.client.post(f"/profiles/{name}/tables", json=asked)
    assert compiled.status_code == 201, compiled.text
    file = service.client.get(f"/profiles/{name}/table", params={"format": "slt"})
    assert file.status_code == 200, file.text
    stored = decode(file.content)
    assert (stored.profile, stored.revision, stored.table.limits) == (name, 1, limits)
    return Case(name, file.content, stored.table)


class Library:
    """The C library's lookups in one table file."""

    def __init__(self, library: ctypes.CDLL, path: Path) -> None:
        self._library = library
        self._table = (ctypes.c_uint64 * 256)()
        self._sizes = (ctypes.c_uint64 * MAX_FRAGMENTS)()
        assert library.sluice_table_open(self._table, str(path).encode()) == 0

    def schedule(self, message_bytes: int) -> list[int]:
        found = ctypes.c_size_t()
        size, room = ctypes.c_uint64(message_bytes), ctypes.c_size_t(MAX_FRAGMENTS)
        code = self._library.sluice_schedule(
            self._table, size, self._sizes, room, ctypes.byref(found)
        )
        assert code == 0
        return self._sizes[: found.value]

    def repeat(self, message_bytes: int) -> int:
        size = ctypes.c_uint64()
        code = self._library.sluice_repeat(
            self._table, ctypes.c_uint64(message_bytes), ctypes.byref(size)
        )
        assert code in (0, NO_REPEAT)
        return size.value if code == 0 else 0

    def close(self) -> None:
        self._library.sluice_table_close(self._table)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The C library, compiled from its sources as they are."""
    made = tmp_path_factory.mktemp("library") / "libsluice.so"
    sources = sorted(map(str, (CLIENT / "src").glob("*.c")))
    line = [compiler(), "-std=c11", "-O2", "-fPIC", "-shared", "-I", str(CLIENT / "include")]
    subprocess.run([*line, "-o", str(made), *sources], check=True)
    return ctypes.CDLL(str(made))


def test_c_and_python_give_the_plan_tables_schedules(
    cases: list[Case], library: ctypes.CDLL, tmp_path: Path
) -> None:
    """For ten thousand sizes of each table in a campaign, to the byte."""
    for case in cases:
        path = tmp_path / f"{case.name}.slt"
        path.write_bytes(case.file)
        in_c, in_python = Library(library, path), Table.from_bytes(case.file)
        for size in case.sizes(count(SIZES_A_TABLE, share=40)):
            cut, repeated = case.table.cut_at(size), case.table.repeated_size_at(size)
            assert tuple(in_c.schedule(size)) == cut, (case.name, size)
            assert tuple(in_python.schedule(size)) == cut, (case.name, size)
            assert in_c.repeat(size) == repeated, (case.name, size)
            assert (in_python.repeat(size) or 0) == repeated, (case.name, size)
        in_c.close()


def test_the_service_gives_the_same(cases: list[Case], service: Live) -> None:
    """Through HTTP: schedules, repeated sizes and what they keep."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port)
    for case in cases:
        for size in case.sizes(count(SIZES_A_TABLE, share=40) // 2):
            answer = _looked_up(connection, case.name, size)
            cut, repeated = case.table.cut_at(size), case.table.repeated_size_at(size)
            assert answer["strategy"] == "table"
            assert tuple(answer["fragment_bytes"]) == cut, (case.name, size)
            assert answer["message_bytes"] == size == sum(cut)
            best = answer["best_fixed"]
            assert (best["size_bytes"] if best else 0) == min(repeated, size), (case.name, size)
            assert answer["profile"] == {"name": case.name, "revision": 1}
    connection.close()


def _looked_up(
    connection: http.client.HTTPConnection, name: str, message_bytes: int
) -> dict[str, Any]:
    connection.request("GET", f"/profiles/{name}/schedule?bytes={message_bytes}")
    response = connection.getresponse()
    body = response.read()
    assert response.status == 200, body
    answer: dict[str, Any] = json.loads(body)
    return answer
