"""The files that pages load: whose they are, how they are served."""

from __future__ import annotations

import gzip
import hashlib
import re

import httpx
import pytest

from app.ui.pages import FOLDER, JOINED, Asset, read_assets
from tests.architecture.documents import ROOT

TABLE_ROW = re.compile(r"\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|")
OWN = {"README.md", "icon.svg"}
OTHERS = dict(TABLE_ROW.findall((FOLDER / "README.md").read_text(encoding="utf-8")))
ASSETS = read_assets()
IN_PAGES = re.compile(r'(?:src|href)="([^"]+)"')
SOURCES = re.compile(r'<a [^>]*href="https://[^"]+"[^>]*>')  # of figures, loaded by nobody


def test_the_files_of_others_are_those_of_the_table() -> None:
    """Byte for byte; what is minified is not ours, so it has its row."""
    assert OTHERS
    for name, digest in OTHERS.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest, name


def test_every_other_file_is_our_own() -> None:
    """A script or a sheet to read, or one of the few others; and everything has its place."""
    for path in FOLDER.iterdir():
        if path.name in OTHERS | dict.fromkeys(OWN):
            continue
        assert path.suffix in (".css", ".js"), path.name
        lines = path.read_text(encoding="utf-8").splitlines()
        assert max(map(len, lines)) <= 1000, f"{path.name} is minified"
        assert len(lines) <= 500, f"{path.name} is more than one thing"


def test_a_file_is_served_by_itself_or_as_a_part_of_one_other() -> None:
    """A page that others are swapped into has no script twice, and each part is strict."""
    parts = [part for found in JOINED.values() for part in found]
    assert len(set(parts)) == len(parts)
    assert not set(parts) & set(ASSETS)
    files = {path.name for path in FOLDER.iterdir() if path.suffix in (".css", ".js")}
    assert set(parts) | set(ASSETS) >= files
    for name in parts:
        if name.endswith(".js"):
            lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
            assert next(one for one in lines if not one.startswith("//")) == '"use strict";', name


@pytest.mark.parametrize("name", ["htmx", "echarts", "swagger-ui"])
def test_what_is_not_ours_comes_with_its_licence(name: str) -> None:
    """The text is beside the file, and in the table."""
    assert f"{name}-LICENSE.txt" in OTHERS


@pytest.mark.parametrize("asset", ASSETS.values(), ids=ASSETS.keys())
def test_an_asset_is_served_compressed_and_for_ever(client: httpx.Client, asset: Asset) -> None:
    """Its address names its content; both forms are the same bytes."""
    packed = client.get(asset.address, headers={"Accept-Encoding": "gzip"})
    plain = client.get(asset.address, headers={"Accept-Encoding": "identity"})
    parts = JOINED.get(asset.name, [asset.name])
    body = b"\n".join((FOLDER / part).read_bytes() for part in parts)
    assert packed.content == plain.content == body
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) == len(asset.compressed)
    assert gzip.decompress(asset.compressed) == body
    assert "content-encoding" not in plain.headers
    for answer in (packed, plain):
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-type"] == asset.media_type
    assert hashlib.sha256(body).hexdigest().startswith(asset.address.split("/")[3])


@pytest.mark.parametrize(
    "path",
    [
        "/ui/assets/0000000000000000/sluice.css",
        "/ui/assets/{digest}/README.md",
        "/ui/assets/{digest}/htmx-LICENSE.txt",
        "/ui/assets/{digest}/%2e%2e/pages.py",
        "/ui/assets/{digest}/..%2f..%2fpages.py",
        "/ui/assets/{digest}/",
    ],
)
def test_nothing_else_is_served(client: httpx.Client, path: str) -> None:
    """Neither other contents under an old address nor other files."""
    digest = ASSETS["sluice.css"].digest[:16]
    assert client.get(path.format(digest=digest)).status_code == 404


@pytest.mark.parametrize("path", ["/", "/docs", "/ui/no-such-view"])
def test_a_page_loads_nothing_from_elsewhere(client: httpx.Client, path: str) -> None:
    """Every address on it is on this server, but for links to sources of figures; the policy
    forbids any other.
    """
    page = client.get(path, headers={"Accept": "text/html"})
    addresses = IN_PAGES.findall(SOURCES.sub("", page.text))
    assert addresses
    assert all(address.startswith(("/", "#")) for address in addresses)
    loaded = [address for address in addresses if "/assets/" in address]
    assert {client.get(address).status_code for address in loaded} == {200}
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy


def test_what_the_tests_load_is_what_its_table_says() -> None:
    """axe, which judges the pages, is vendored as well."""
    folder = ROOT / "tests" / "browser" / "vendor"
    table = dict(TABLE_ROW.findall((folder / "README.md").read_text(encoding="utf-8")))
    assert {path.name for path in folder.iterdir()} == {"README.md", *table}
    for name, digest in table.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
