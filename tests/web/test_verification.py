"""Verifications on the page of a profile, without a browser: the command, the file, the verdict."""

from __future__ import annotations

import re
import shlex
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from app.cli import main
from app.console.arguments import parse
from domain.pipeline import pipeline_of_lines
from tests.app.serving import MYRINET, Live
from tests.app.test_own_transfers import ALIKE
from tests.support.transfers import transfers_of
from tests.web.test_compose_page import COPY, WIRE
from tests.web.test_fits import FORM

COSTS = {"copy": (5.0, 1.0), "wire": (9.0, 2.5)}
MACHINE = pipeline_of_lines([(name, *costs) for name, costs in COSTS.items()])
SLOWER = pipeline_of_lines([("copy", 5.0, 1.0), ("wire", 9.0, 3.5)])


@pytest.fixture(scope="session")
def measured(live: Live) -> str:
    """A profile of files that say what they time."""
    stages = [
        {"name": name, "measurements": {"content": f"# stage: {probed}\n{text}"}}
        for name, probed, text in (("copy", "memcpy", COPY), ("wire", "tcp", WIRE))
    ]
    assert live.client.post(
        "/compose", json={"stages": stages, "save_as": "stages-apart"}
    ).is_success
    return "stages-apart"


def shown(live: Live, name: str) -> str:
    """The page of a profile."""
    page = live.client.get(f"/ui/profiles/{name}", headers={"accept": "text/html"})
    assert page.status_code == 200
    return page.text


def commands(page: str) -> list[list[str]]:
    """The words of the commands that are shown."""
    (text,) = re.findall(r'<pre id="verify-command"[^>]*>(.*?)</pre>', page, re.DOTALL)
    return [shlex.split(line) for line in unescape(text).splitlines()]


def sent(live: Live, name: str, transfers: str):  # type: ignore[no-untyped-def]
    """The answer to the form."""
    body = urlencode({"transfers": transfers.replace("\n", "\r\n")})
    return live.client.post(f"/ui/profiles/{name}/verification", content=body, headers=FORM)


def test_the_command_verifies_what_the_page_shows(
    live: Live, measured: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What curl fetches is read, and the stages are those that were measured."""
    fetch, verify = commands(shown(live, measured))
    assert fetch[:2] == ["curl", "-fsS"]
    assert fetch[-2:] == ["-o", "stages-apart.json"]
    asked = parse(verify[1:])
    assert (asked.source, asked.stages) == ("stages-apart.json", ["memcpy", "tcp"])
    assert (asked.message_bytes, asked.output) == (1 << 20, "transfers.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'other.db'}")
    place = re.sub("^http://[^/]+", "", fetch[2])
    Path("stages-apart.json").write_bytes(live.client.get(place).content)
    Path("transfers.csv").write_text(transfers_of(MACHINE))
    assert main([*verify[1:3], "--recorded", "transfers.csv"]) == 0


def test_the_verdict_is_shown_with_every_size(live: Live, measured: str) -> None:
    """A failure, then one that holds in its place; the document says the same numbers."""
    for machine, verdict, words in (
        (SLOWER, "does_not_hold", "The model does not hold here."),
        (MACHINE, "holds", "The model holds: every size took what it says"),
    ):
        answer = sent(live, measured, transfers_of(machine))
        assert answer.status_code == 303, answer.text
        assert answer.headers["location"] == "/ui/profiles/stages-apart@1#verification"
        page = shown(live, measured)
        found = live.client.get("/profiles/stages-apart").json()["verification"]
        assert found["verdict"] == verdict
        assert words in page
        rows = re.findall(r'<td class="number( more)?">([0-9.]+)(?:<span|</td>)', page)
        ratios = [(bool(off), ratio) for off, ratio in rows if re.fullmatch(r"\d\.\d{3}", ratio)]
        assert ratios == [
            (abs(size["ratio"] - 1.0) > 0.05, f"{size['ratio']:.3f}") for size in found["sizes"]
        ]
        assert "others ran" not in page


def test_transfers_that_ran_elsewhere_are_said_to_be(live: Live, measured: str) -> None:
    """The verdict stays what it is, and names what ran; stages of another kind are refused."""
    elsewhere = transfers_of(MACHINE, ("memcpy", "tcp:<b>"))
    assert sent(live, measured, elsewhere).status_code == 303
    page = shown(live, measured)
    assert "was measured by memcpy, tcp; others ran" in page
    assert "through memcpy, tcp:&lt;b&gt;" in page
    refused = sent(live, measured, transfers_of(MACHINE, ("crc32", "<b>")))
    assert refused.status_code == 422
    words = "measured by memcpy, tcp, and the transfers are of crc32, &lt;b&gt;"
    assert words in refused.text
    assert shown(live, measured) == page


def test_transfers_that_name_no_stages_are_said_to_be_through_none(
    live: Live, measured: str
) -> None:
    """Own transfers tell sizes and times alone: no empty list stands in the sentence."""
    assert sent(live, measured, ALIKE).status_code == 303
    page = shown(live, measured)
    assert "Transfers of 64 MiB; measured are medians" in page
    assert 'aria-label="Transfers of 64 MiB"' in page
    assert "others ran" not in page


def test_what_is_wrong_is_said_and_what_was_sent_stays(live: Live, measured: str) -> None:
    """Nothing is kept of it."""
    before = live.client.get("/profiles/stages-apart").json()
    for text, words in (
        ("", "expected the transfers that sluice verify writes"),
        ("</textarea><script>alert(1)</script>", "expected the transfers"),
        (transfers_of(MACHINE, processors="none"), "how many processors"),
    ):
        answer = sent(live, measured, text)
        assert answer.status_code == 422
        (stated,) = re.findall('id="transfers-mistake">([^<]*)', answer.text)
        assert words.lower() in stated.lower()
        assert "<script>alert" not in answer.text
        assert (
            unescape(answer.text.partition("autofocus>")[2])
            .replace("\r", "")
            .startswith("\n" + text)
        )
    assert live.client.get("/profiles/stages-apart").json() == before
    assert sent(live, "no-such-profile", transfers_of(MACHINE)).status_code == 404


def test_stages_that_are_not_known_are_to_be_named(live: Live) -> None:
    """A place for each; of a revision that is not current no address has the document alone."""
    body = {"pipeline": MYRINET}
    assert live.client.post("/profiles", json={"name": "by-hand", **body}).is_success
    assert live.client.put("/profiles/by-hand", json=body).is_success
    page = shown(live, "by-hand")
    assert "in place of STAGE_1, STAGE_2, STAGE_3, STAGE_4 what runs each stage" in page
    verify = commands(page)[1]
    assert parse(verify[1:]).stages == ["STAGE_1", "STAGE_2", "STAGE_3", "STAGE_4"]
    (verify,) = commands(shown(live, "by-hand@1"))
    assert parse(verify[1:]).source == "by-hand@1"
    part = {"overhead_us": 1, "ns_per_byte": 1}
    outside = {"name": "known-outside", "aggregate": {"total": part, "bottleneck": part}}
    assert live.client.post("/profiles", json=outside).is_success
    assert "verify-command" not in shown(live, "known-outside")
