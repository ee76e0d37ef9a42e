"""A service below a path of a proxy: addresses have it; who a client is only proxies may say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.main import create_app
from app.settings import Settings
from domain.errors import InvalidInput
from tests.app.serving import MYRINET, Live, serving, settings_for
from tests.support.long_work import long_here_engine

ROOT = "/tools/sluice"
ADDRESS = re.compile(r'\s([\w-]+)="(/[^"]*)"')
PAGES = ("/", "/docs", "/ui/answers", "/ui/profiles", "/ui/profiles/myrinet-gam", "/ui/audit")
# What a form hands back the service itself leads to, with the path before it.
OTHERS = {"value", "data-root"}


@pytest.fixture(scope="module")
def below(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    url = f"sqlite:///{tmp_path_factory.mktemp('below') / 'sluice.db'}"
    settings = settings_for(url, root_path=ROOT, trusted_proxies="127.0.0.1/32")
    with serving(settings, open_engine=long_here_engine) as running:
        yield running


@pytest.fixture(scope="module")
def answer(below: Live) -> str:
    asked = {"message_bytes": 4096, "pipeline": MYRINET}
    return str(below.client.post("/optimize", json=asked).json()["id"])


@pytest.mark.parametrize("path", ["/healthz", "/profiles/gms", "/profiles/gms/schedule?bytes=4096"])
def test_a_proxy_may_hand_the_path_on_or_leave_it_out(below: Live, path: str) -> None:
    found = [below.client.get(place + path) for place in (ROOT, "")]
    assert [one.status_code for one in found] == [200, 200]
    assert found[0].content == found[1].content


@pytest.mark.parametrize("path", ["/docs", "/profiles", "/ui/x", "/openapi.json", "/jobs/1"])
def test_a_path_of_its_own_is_refused(path: str) -> None:
    """Requests for what is there would lose it."""
    with pytest.raises(InvalidInput, match="SLUICE_ROOT_PATH not to begin with") as refusal:
        create_app(Settings(root_path=path))
    assert refusal.value.field == "SLUICE_ROOT_PATH"


@pytest.mark.parametrize("path", [ROOT + "x/healthz", "/tools/healthz", ROOT + ROOT + "/healthz"])
def test_no_other_path_counts_as_it(below: Live, path: str) -> None:
    assert below.client.get(path).status_code == 404


def test_every_address_in_pages_has_it(below: Live, answer: str) -> None:
    """And leads somewhere, for those that are links or files."""
    looked_at = set()
    for page in (*PAGES, f"/ui/answers/{answer}"):
        text = below.client.get(ROOT + page).text
        assert f'<html lang="en" data-root="{ROOT}">' in text
        found = {(name, address) for name, address in ADDRESS.findall(text) if name not in OTHERS}
        assert [one for one in found if not one[1].startswith(ROOT + "/")] == []
        looked_at |= {address for name, address in found if name in ("href", "src")}
    assert len(looked_at) > 20
    for address in sorted(looked_at):
        assert below.client.get(address.replace("&amp;", "&")).status_code == 200, address


def test_headers_lead_below_it(below: Live, answer: str) -> None:
    asked = {"message_bytes": 5000, "profile": "gms"}
    job = below.client.post(
        f"{ROOT}/optimize", json=asked, headers={"Prefer": "respond-async"}
    ).headers["location"]
    assert job.startswith(f"{ROOT}/jobs/")
    assert below.client.get(job).status_code == 200
    form = {"profile": "gms", "source": "profile", "message": "4096"}
    sent = below.client.post(f"{ROOT}/ui/optimize", data=form)
    assert sent.status_code == 303, sent.text
    assert sent.headers["location"].startswith(f"{ROOT}/ui/")
    swapped = below.client.post(f"{ROOT}/ui/optimize", data=form, headers={"HX-Request": "true"})
    assert json.loads(swapped.headers["hx-location"])["path"].startswith(f"{ROOT}/ui/")


def test_the_document_says_where_the_operations_are(below: Live, client: httpx.Client) -> None:
    assert below.client.get(f"{ROOT}/openapi.json").json()["servers"] == [{"url": ROOT}]
    assert "servers" not in client.get("/openapi.json").json()


def test_scripts_know_it() -> None:
    """No script has an address of the service that does not begin with it."""
    folder = Path(__file__).parents[2] / "app" / "ui" / "assets"
    for script in folder.glob("*.js"):
        if not script.name.endswith(("min.js", "bundle.js")):
            text = script.read_text(encoding="utf-8")
            assert not re.search(r"""["'`]/(ui|jobs|openapi|docs|[a-z]+/\$)""", text), script.name


def test_trusted_proxies_say_who_asks_and_how(
    below: Live, client: httpx.Client, answer: str
) -> None:
    """Snippets have the address that the client used; a service without proxies believes no one."""
    said = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7"}
    sent = {**said, "Host": "tools.example"}
    text = below.client.get(f"{ROOT}/ui/answers/{answer}", headers=sent).text
    assert f"https://tools.example{ROOT}/optimize" in text
    asked = {"message_bytes": 4096, "pipeline": MYRINET}
    other = client.post("/optimize", json=asked).json()["id"]
    assert "https://127.0.0.1" not in client.get(f"/ui/answers/{other}", headers=said).text
