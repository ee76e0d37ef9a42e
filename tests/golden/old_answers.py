"""Write tests/data/db: a database as release 0007 of the schema keeps it, and what it answered.

Made once with the service of that release, from the repository's root, by
`python -m tests.golden.old_answers`. Later releases read it; none writes it anew.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

from tests.app.serving import MYRINET, serving, settings_for, wait_for_end
from tests.golden.here import work_here
from tests.golden.models import AGGREGATE, LIMITS, RANGED, ROOT, TWO, example, logp_csv

OLD = ROOT / "tests" / "data" / "db"
DATABASE, ANSWERS = OLD / "0007.db", OLD / "0007"
INDEX = OLD / "0007.json"
_RESULTS = ("best", "comparison", "table", "audit", "export")
ASYNC = {"prefer": "respond-async"}


def main() -> int:
    """Write the database, its answers, and the list of them."""
    shutil.rmtree(ANSWERS, ignore_errors=True)
    ANSWERS.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "sluice.db"
        with work_here(), serving(settings_for(f"sqlite:///{made}")) as live:
            jobs = _fill(live.client)
            paths = _paths(live.client, jobs)
            index = [_kept(live.client, path, number) for number, path in enumerate(paths)]
        with closing(sqlite3.connect(made)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            database.execute("PRAGMA journal_mode=DELETE")
            database.execute("PRAGMA page_size=1024")
            database.execute("VACUUM")
        shutil.copyfile(made, DATABASE)
    INDEX.write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{DATABASE.stat().st_size} bytes, {len(index)} answers\n")
    return 0


def _fill(client: httpx.Client) -> list[str]:
    """The addresses of jobs that are done."""

    def post(path: str, body: dict[str, Any], **more: Any) -> httpx.Response:
        response = client.post(path, json=body, **more)
        assert response.status_code in (200, 201, 202), response.text
        return response

    post("/profiles", {"name": "line", "pipeline": MYRINET})
    post("/profiles", {"name": "ranged", "pipeline": RANGED, "detail": "by hand"})
    client.put("/profiles/ranged", json={"pipeline": TWO, "detail": "two"}).raise_for_status()
    post("/profiles/ranged/current", {"revision": 1})
    post("/profiles", {"name": "sums", "aggregate": AGGREGATE})
    questions: list[dict[str, Any]] = [
        {"message_bytes": 4096, "pipeline": MYRINET},
        {"message_bytes": 4096, "pipeline": MYRINET, "strategy": "single"},
        {"message_bytes": 4096, "pipeline": TWO, "strategy": "ramp"},
        {"message_bytes": 10_000, "pipeline": MYRINET, "constraints": LIMITS},
        {"message_bytes": 9000, "pipeline": RANGED},
        {"message_bytes": 6000, "pipeline": TWO, "strategy": "hierarchical"},
        {"message_bytes": 4096, "aggregate": AGGREGATE},
        {"message_bytes": 3000, "profile": "ranged@2"},
    ]
    for question in questions:
        if question.get("strategy") == "hierarchical":
            question["allow_refragmentation"] = True
        post("/optimize", {**question, "time_limit_s": 600})
    local = {"content": example("local-path-direct.csv")}
    post("/optimize", {"message_bytes": 32_768, "measurements": local, "save_as": "measured"})
    osu = [{"content": example(name)} for name in ("osu-latency.txt", "osu-bw.txt")]
    post("/fit?save_as=osu", {"measurements": osu})
    client.post("/fit?save_as=measured&shape=line", content=local["content"]).raise_for_status()
    client.post("/ui/fits", content=logp_csv())
    small = {"least_bytes": 100, "greatest_bytes": 4096, "relative_gap": 0.02}
    post("/profiles/ranged@2/tables", small)
    post("/profiles/line/tables", {**small, "greatest_bytes": 1000})
    around = {"least_bytes": 1024, "greatest_bytes": 2048}
    compared = {"pipeline": TWO, "message_bytes": [500], "strategies": ["auto", "single", "ramp"]}
    started = [
        post("/optimize", {"message_bytes": 5555, "pipeline": MYRINET}, headers=ASYNC),
        post("/compare", compared, headers=ASYNC),
        post(
            "/audit", {"profile": "ranged@2", "setting": {"whole": True}, **around}, headers=ASYNC
        ),
        post("/profiles/ranged@2/tables", {**small, "greatest_bytes": 900}, headers=ASYNC),
        client.get("/profiles/ranged@2/exports/ucx", params=around, headers=ASYNC),
    ]
    for response in started:
        assert wait_for_end(client, response.headers["location"])["state"] == "done"
    cancelled = post("/compare", {**compared, "message_bytes": [777]}, headers=ASYNC)
    client.delete(cancelled.headers["location"])
    wait_for_end(client, cancelled.headers["location"])
    return [one.headers["location"] for one in started]


def _paths(client: httpx.Client, jobs: list[str]) -> list[str]:
    answers = [one["id"] for one in client.get("/optimizations?limit=100").json()["items"]]
    profiles = [one["name"] for one in client.get("/profiles").json()["items"]]
    tables = [
        one["digest"]
        for name in ("line", "ranged")
        for one in client.get(f"/profiles/{name}/tables").json()["items"]
    ]
    fits = [
        client.get(f"/profiles/{name}").json()["provenance"]["fit_id"]
        for name in ("osu", "measured")
    ]
    return [
        *(f"/optimizations/{answer}" for answer in sorted(answers)),
        "/optimizations?limit=100",
        "/profiles?limit=100",
        *(f"/profiles/{name}{more}" for name in profiles for more in ("", "/revisions")),
        *(f"/profiles/{name}/tables" for name in ("line", "ranged@2")),
        "/profiles/ranged@2/table",
        *(f"/tables/{digest}{form}" for digest in tables for form in ("", "?format=slt")),
        *(f"/fits/{fit}" for fit in fits),
        *jobs,
    ]


def _kept(client: httpx.Client, path: str, number: int) -> dict[str, Any]:
    response = client.get(path)
    assert response.status_code == 200, response.text
    name = f"{number:02}.bin" if path.endswith("slt") else f"{number:02}.json"
    content = response.content
    if path.startswith("/jobs/"):
        content = _result(content)
    (ANSWERS / name).write_bytes(content)
    return {"path": path, "file": name}


def _result(body: bytes) -> bytes:
    """What a job came to, as it stands in the job's document."""
    document = json.loads(body)
    name = next(name for name in _RESULTS if document[name] is not None)
    text = body.decode().partition(f'"{name}":')[2]
    _, length = json.JSONDecoder().raw_decode(text)
    return text[:length].encode()


if __name__ == "__main__":
    sys.exit(main())
