"""The service's own process reads no file that a client sent: a worker does, on every door."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest

from fitting import detect
from fitting import own_transfers as own_transfers_reader
from measuring import transfers as recorded_reader
from tests.app.serving import serving, settings_for, wait_until
from tests.support.measured import trace

TRACE = trace(
    (1024, 4096, 16384, 65536), 5, [lambda x: 20.0 + 0.002 * x, lambda x: 30.0 + 0.003 * x]
)
MESSAGES = "message_bytes,latency_us\n" + "".join(
    f"{size},{10.0 + size / 1000}\n" for size in (1024, 4096, 16384, 65536) for _ in range(3)
)
OWN = "message_bytes,fragment_bytes,latency_us\n" + "".join(
    f"1048576,{size},{us + i}\n" for size, us in ((65536, 900), (262144, 700)) for i in range(6)
)
MEASURED = {"measurements": {"content": TRACE}, "fit_options": {"stages_overlap": True}}
CURRENT = {"uncertainty": {"current": {"repeat": 65536}}}

JSON_DOORS: dict[str, tuple[str, dict[str, Any]]] = {
    "optimize": ("/optimize", {"message_bytes": 2**20, **MEASURED}),
    "narrowed": (
        "/optimize",
        {
            "message_bytes": 2**20,
            "measurements": {"content": TRACE},
            "fit_options": {"stages_overlap": True, "shape": "narrowed"},
        },
    ),
    "transfers": (
        "/optimize",
        {"message_bytes": 2**20, "transfers": {"content": OWN}, **CURRENT},
    ),
    "both": (
        "/optimize",
        {"message_bytes": 2**20, **MEASURED, "transfers": {"content": OWN}, **CURRENT},
    ),
    "compare": (
        "/compare",
        {"message_bytes": [2**20], "strategies": ["repeat"], **MEASURED},
    ),
    "simulate": ("/simulate", {"fragment_bytes": [4096, 4096], **MEASURED}),
    "audit": (
        "/audit",
        {
            "min_message_bytes": 65536,
            "max_message_bytes": 65536,
            "setting": {"static_bytes": 4096},
            **MEASURED,
        },
    ),
    "hide": ("/hide", {"message_bytes": 2**20, "calculation_us": 1000.0, **MEASURED}),
    "compose": (
        "/compose",
        {"stages": [{"name": "a", "measurements": {"content": TRACE}, "step": "s0"}]},
    ),
    "plans": (
        "/measurement-plans",
        {
            "min_message_bytes": 1024,
            "max_message_bytes": 2**20,
            "measurements": {"content": MESSAGES},
        },
    ),
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a service whose workers are processes."""
    url = f"sqlite:///{tmp_path_factory.mktemp('service') / 'sluice.db'}"
    with serving(settings_for(url)) as running:
        yield running.client


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every reader of this process refuses; those of workers, which were forked, do not."""

    def refused(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a file was read in the service's process")

    for module, name in (
        (detect, "read_recognised"),
        (detect, "reader_of"),
        (own_transfers_reader, "read_own_file"),
        (recorded_reader, "read_transfers"),
    ):
        monkeypatch.setattr(module, name, refused)


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize("door", JSON_DOORS)
def test_json(door: str, client: httpx.Client) -> None:
    """A request with measurements in it is answered."""
    path, body = JSON_DOORS[door]
    found = client.post(path, json=body)
    assert found.status_code in (200, 201), found.text


@pytest.mark.usefixtures("unread")
def test_files_and_plots(client: httpx.Client) -> None:
    """A file that is the body, its stored fit's plot, and the page that shows it."""
    fitted = client.post("/fit?save_as=measured&plot=true", content=TRACE)
    assert fitted.status_code == 200, fitted.text
    fit_id = fitted.json()["fit_id"]
    assert client.get(f"/fits/{fit_id}/plot").status_code == 200
    assert client.get(f"/ui/fits/{fit_id}").status_code == 200
    recorded = client.post("/profiles/measured/verification", json={"transfers": OWN})
    assert recorded.status_code == 200, recorded.text


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize("content", [TRACE, OWN], ids=["trace", "transfers"])
def test_pages(content: str, client: httpx.Client) -> None:
    """The workbench, with measurements or own transfers that were pasted."""
    form = {"source": "trace", "trace": content, "message": "1MiB", "current": "64KiB"}
    found = client.post("/ui/optimize", data=form, follow_redirects=True)
    assert found.status_code == 200, found.text


@pytest.mark.usefixtures("unread")
def test_a_job(client: httpx.Client) -> None:
    """The runner has a worker read before it prepares the job."""
    path, body = JSON_DOORS["optimize"]
    accepted = client.post(path, json=body, headers={"Prefer": "respond-async"})
    assert accepted.status_code == 202, accepted.text
    at = f"/jobs/{accepted.json()['id']}"
    wait_until(lambda: client.get(at).json()["state"] not in ("queued", "running"))
    assert client.get(at).json()["state"] == "done"


def test_a_file_that_is_none(client: httpx.Client, tmp_path: Path) -> None:
    """The refusal is that of the reader, whoever reads."""
    body = {"message_bytes": 2**20, "measurements": {"content": "no such thing\n"}}
    found = client.post("/optimize", json=body)
    assert (found.status_code, found.json()["code"]) == (422, "unreadable_trace")
    body = {"message_bytes": 2**20, "measurements": {"content": TRACE, "kind": "none such"}}
    found = client.post("/optimize", json=body)
    assert (found.status_code, found.json()["code"]) == (422, "unreadable_trace")
    assert "expected kind to be one of" in found.json()["detail"]
