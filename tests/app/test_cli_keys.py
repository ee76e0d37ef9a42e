"""`sluice keys`: in the database itself, for one owner at a time."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import main
from models.records import KeyScope
from models.session import Store, create_store


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The database of the command."""
    url = f"sqlite:///{tmp_path / 'cli.db'}"
    monkeypatch.setenv("SLUICE_DATABASE_URL", url)
    opened = create_store(url)
    yield opened
    opened.dispose()


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command that succeeds prints."""
    assert main(["keys", *words]) == 0
    return capsys.readouterr().out


def test_who_changed_what_is_shown(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """Of an owner, the newest first; the profiles of papers are stored by the start itself."""
    printed(capsys, "create", "host 7", "--scope", "write")
    assert main(["profiles", "use", "gms", "1"]) == 0
    capsys.readouterr()
    assert main(["changes", "--json", "--limit", "2"]) == 0
    found = json.loads(capsys.readouterr().out)["items"]
    assert [(one["action"], one["made_by"]) for one in found] == [
        ("profile.use", "command line"),
        ("key.create", "command line"),
    ]
    assert main(["changes", "gms"]) == 0
    lines = capsys.readouterr().out
    assert re.search(r"command line +profile.use +gms +1 +1", lines)
    assert re.search(r"start +profile.create +gms +1", lines)
    assert main(["changes", "--limit", "0"]) == 2


def test_a_key_is_made_shown_exchanged_and_revoked(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its secret is printed once, and its SHA-256 is what is stored."""
    of = ("--owner", "team-a")
    out = printed(capsys, "create", "host 7", "--scope", "write", "--days", "2", *of)
    found = re.search(r"^slk_[\w-]{43}$", out, re.MULTILINE)
    assert found is not None
    with store.of("team-a").reading() as unit:
        (key,) = unit.api_keys.list()
        assert unit.profiles.get("myrinet-gam").latest == 1
    assert key.digest == hashlib.sha256(found[0].encode()).hexdigest()
    assert (key.name, key.scope, key.requests_per_s) == ("host 7", KeyScope.WRITE, None)
    assert key.expires_at is not None
    assert (key.expires_at - key.created_at).total_seconds() == 2 * 86_400
    listed = printed(capsys, "list", *of)
    assert "valid" in listed
    assert key.id in listed
    assert found[0] not in listed
    made = json.loads(printed(capsys, "rotate", key.id, "--keep", "0", "--json", *of))
    assert made["secret"].startswith("slk_")
    assert "expired" in printed(capsys, "list", *of)
    assert "revoked" in printed(capsys, "revoke", made["id"], *of)
    states = json.loads(printed(capsys, "list", "--json", *of))["items"]
    assert [one["revoked_at"] is not None for one in states] == [True, False]
    assert json.loads(printed(capsys, "list", "--json"))["items"] == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["create", "a", "--scope", "read", "--owner", "../a"], 2, "expected an owner of"),
        (["create", "", "--scope", "read"], 2, "expected a name of 1 to"),
        (["create", "a", "--scope", "all"], 2, "--scope"),
        (["create", "a"], 2, "--scope"),
        (["create", "a", "--scope", "read", "--days", "0"], 2, "0 < days"),
        (["create", "a", "--scope", "read", "--requests-per-s", "0"], 2, "1 <= requests-per-s"),
        (["rotate", "none-such"], 4, "there is no key"),
        (["rotate", "none-such", "--keep", "-1"], 2, "0 <= keep"),
        (["revoke", "none-such"], 4, "there is no key"),
    ],
)
def test_what_is_wrong_is_said(
    store: Store, capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    """And nothing is stored."""
    assert main(["keys", *words]) == code
    assert said in capsys.readouterr().err
    store.upgrade()
    with store.reading() as unit:
        assert unit.api_keys.count() == 0
