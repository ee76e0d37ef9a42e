"""What is copied runs, and leads to the same schedule again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.schemas.base import dump_json
from app.verbs.optimize.page.snippets import curl_of, take_away
from contract.optimize import OptimizeOut
from tests.app.serving import MYRINET, Live
from tests.clients import c_support
from tests.support.compiler import compiler
from tests.support.system import require_system
from tests.web.conftest import Ask

CHECKOUT = Path(__file__).parents[2]
LINE = {"name": "slow'est $(x) `y` \\ µs", "overhead_us": 3.0, "ns_per_byte": 9.0}
RANGES = {
    "name": 'two "ranges"\n*/ END',
    "ranges": [
        {"up_to_bytes": 4096, "overhead_us": 3.5, "ns_per_byte": 9.25},
        {"up_to_bytes": None, "overhead_us": 9.0, "ns_per_byte": 7.1},
    ],
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "a pipeline": {},
    "hostile names and ranges": {"pipeline": {"stages": [LINE, RANGES], "delay_us": 1.5}},
    "a profile and limits": {
        "profile": "gms",
        "constraints": {"max_fragment_bytes": 1024, "alignment_bytes": 64, "max_fragments": 9},
    },
    "stages that cut differently": {
        "profile": "gms",
        "strategy": "hierarchical",
        "allow_refragmentation": True,
    },
    "a static size": {"strategy": "static", "static_bytes": 1000},
    "an aggregate": {
        "aggregate": {
            "total": {"name": "total", "overhead_us": 9.0, "ns_per_byte": 20.0},
            "bottleneck": LINE,
            "delay_us": 2.0,
        }
    },
}


def text_of(document: OptimizeOut, key: str, *, base_url: str = "http://h", **more: Any) -> str:
    """A snippet of this answer."""
    snippets = {one.key: one.text for one in take_away(document, base_url, **more).snippets}
    return snippets[key]


def output_of(command: list[str | Path], **more: Any) -> str:
    """What a program prints; it has to succeed."""
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, **more)
    return str(ended.stdout)


@pytest.fixture(params=QUESTIONS.values(), ids=[*QUESTIONS])
def document(request: pytest.FixtureRequest, ask: Ask) -> OptimizeOut:
    """An answer to each kind of question."""
    return ask(**request.param)


def test_curl_asks_again(document: OptimizeOut, live: Live) -> None:
    """As it stands, in a shell."""
    require_system(shutil.which("curl"), "curl", "apt-get install curl")
    text = text_of(document, "curl", base_url=f"http://127.0.0.1:{live.port}")
    again, stored = json.loads(output_of(["sh", "-c", text])), json.loads(dump_json(document))
    for name in ("fragment_bytes", "levels", "latency_us", "pipeline", "profile", "constraints"):
        assert again[name] == stored[name]


def test_python_asks_again(document: OptimizeOut, live: Live, tmp_path: Path) -> None:
    """With the client of the checkout, and with the standard library alone."""
    program = tmp_path / "again.py"
    base_url = f"http://127.0.0.1:{live.port}"
    client = {**os.environ, "PYTHONPATH": str(CHECKOUT / "clients" / "python" / "src")}
    alone = ["-I", "-S"]
    for key, options, environment in (("client", [], client), ("python", alone, {**os.environ})):
        program.write_text(text_of(document, key, base_url=base_url), encoding="utf-8")
        command = [sys.executable, *options, program]
        sizes, latency = output_of(command, env=environment).splitlines()
        assert tuple(json.loads(f"[{sizes[1:-1]}]")) == tuple(document.fragment_bytes)
        assert float(latency) == document.latency_us


def test_c_has_the_sizes(document: OptimizeOut, tmp_path: Path) -> None:
    """Every fragment's offset and size, of one stage after the other where they cut differently."""
    source, made = tmp_path / "schedule.c", tmp_path / "schedule"
    source.write_text(text_of(document, "c"), encoding="utf-8")
    warnings = ["-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic"]
    output_of([compiler(), "-std=c11", *warnings, source, "-o", made])
    levels = document.levels or [document.fragment_bytes]
    cuts = levels if len(set(map(tuple, levels))) > 1 else levels[:1]
    reported = [tuple(map(int, line.split())) for line in output_of([made]).splitlines()]
    assert reported == [(sum(cut[:i]), size) for cut in cuts for i, size in enumerate(cut)]


def test_c_looks_up_in_the_active_table(ask: Ask, live: Live, tmp_path: Path) -> None:
    """With libsluice, from the file that the command in its comment gets."""
    c_support.require("curl")
    scope = {"min_message_bytes": 1024, "max_message_bytes": 8192, "activate": True}
    digest = live.client.post("/profiles/myrinet-gam/tables", json=scope).json()["digest"]
    live.client.post("/profiles/myrinet-gam/table", json={"digest": digest})
    document = ask(profile="myrinet-gam")
    base_url = f"http://127.0.0.1:{live.port}"
    text = text_of(document, "c", base_url=base_url, has_table=True)
    fetch = next(line for line in text.splitlines() if "curl" in line).partition("curl")
    output_of(["sh", "-c", fetch[1] + fetch[2]], cwd=tmp_path)
    (tmp_path / "lookup.c").write_text(text, encoding="utf-8")
    library = c_support.archive("gcc", ("-O2",))
    include = CHECKOUT / "clients" / "c" / "include"
    made = tmp_path / "lookup"
    gcc, source = c_support.require("gcc"), tmp_path / "lookup.c"
    output_of([gcc, "-std=c11", "-I", include, source, library, "-o", made])
    sizes = [int(line.split()[1]) for line in output_of([made], cwd=tmp_path).splitlines()]
    looked_up = live.client.get("/profiles/myrinet-gam/schedule?bytes=4096").json()
    assert looked_up["table"] == digest
    assert sizes == looked_up["fragment_bytes"]


def test_long_cuts_stay_short(ask: Ask, tmp_path: Path) -> None:
    """Equal neighbours are one entry."""
    document = ask(message_bytes=1_000_001, strategy="static", static_bytes=100)
    text = text_of(document, "c")
    assert "{10000, 100}, {1, 1}" in text
    assert len(text) < 1500


def test_an_address_is_quoted_for_the_shell(ask: Ask) -> None:
    """A request's header may say anything."""
    text = curl_of(ask(), "http://h$(touch x)';y")
    assert text.splitlines()[0] == "curl -sS 'http://h$(touch x)'\"'\"';y/optimize' \\"


def test_files_by_what_is_known(ask: Ask) -> None:
    """A picture only where the stages are known."""
    whole = take_away(ask(), "http://h")
    assert [one.name for one in whole.files] == ["Report", "CSV", "JSON", "SVG"]
    assert whole.picture.endswith("/schedule.svg")
    seen = take_away(ask(**QUESTIONS["an aggregate"]), "http://h")
    assert [one.name for one in seen.files] == ["Report", "CSV", "JSON"]
    assert seen.picture == ""
    assert MYRINET["stages"][0]["name"] in text_of(ask(), "python")
