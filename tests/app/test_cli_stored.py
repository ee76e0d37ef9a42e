"""sluice answers, jobs and open, of a database; sluice simulate and plan, of files."""

from __future__ import annotations

import http.server
import json
import re
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import main
from app.jobs.ledger import accept_job
from app.operations.tasks import prepare_request
from app.questions.source import Stored
from app.settings import Settings
from models.session import create_store
from tests.app.serving import MYRINET

EXAMPLES = Path(__file__).parents[2] / "examples"
NOBODY = "0123456789abcdef" * 2


@pytest.fixture(autouse=True)
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database of its own, and no browser."""
    url = f"sqlite:///{tmp_path / 'cli.db'}"
    monkeypatch.setenv("SLUICE_DATABASE_URL", url)
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    return url


def printed(capsys: pytest.CaptureFixture[str], line: str, *, code: int = 0) -> str:
    """What a command prints, or what it says on standard error where it is refused."""
    assert main(line.split()) == code, capsys.readouterr().err
    streams = capsys.readouterr()
    return streams.err if code else streams.out


class TestAnswers:
    def test_they_are_listed_and_shown_as_they_were_given(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        given = printed(capsys, "optimize gms --bytes 4KiB --json")
        printed(capsys, "optimize gms --bytes 8KiB")
        listed = json.loads(printed(capsys, "answers --json"))
        assert [one["message_bytes"] for one in listed["items"]] == [8192, 4096]
        found = listed["items"][1]["id"]
        assert printed(capsys, f"answers show {found} --json") == given
        shown = printed(capsys, f"answers show {found}")
        assert "4 KiB through 4 stages, profile gms@1" in shown
        assert re.search(r"464\.\d+ µs", shown)

    def test_the_list_is_of_a_profile_of_a_message_and_short(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for line in ("gms --bytes 4KiB", "gms --bytes 8KiB", "trapeze --bytes 8KiB"):
            printed(capsys, f"optimize {line} --strategy single")
        rows = printed(capsys, "answers list").splitlines()[2:]
        assert len(rows) == 3
        assert all(re.match(r"[0-9a-f]{32}  \d{4}-\d\d-\d\d \d\d:\d\d ", row) for row in rows)
        assert max(map(len, rows)) <= 80
        assert len(printed(capsys, "answers list --profile gms").splitlines()) == 4
        assert len(printed(capsys, "answers list --profile gms@2").splitlines()) == 2
        assert len(printed(capsys, "answers list --bytes 8KiB").splitlines()) == 4
        assert len(printed(capsys, "answers list --limit 1").splitlines()) == 3

    def test_they_are_named(self, capsys: pytest.CaptureFixture[str]) -> None:
        printed(capsys, "optimize gms --bytes 4KiB --strategy single")
        found = json.loads(printed(capsys, "answers --json"))["items"][0]["id"]
        said = printed(capsys, f"answers name {found} card --note next-year").splitlines()
        assert said == ["name  card", "note  next-year"]
        assert printed(capsys, "answers list").splitlines()[-1].endswith("card")
        assert printed(capsys, f"answers show {found}").splitlines()[:2] == said
        changed = json.loads(printed(capsys, f"answers name {found} --note= --json"))
        assert [changed["name"], changed["note"]] == ["card", None]
        assert "no stored answer" in printed(capsys, f"answers name {NOBODY} a", code=4)

    def test_others_have_none(self, capsys: pytest.CaptureFixture[str]) -> None:
        printed(capsys, "optimize gms --bytes 4KiB --strategy single")
        assert len(printed(capsys, "answers list --owner team-a").splitlines()) == 2
        assert "no stored answer" in printed(capsys, f"answers show {NOBODY}", code=4)


class TestJobs:
    def accepted(self, url: str) -> str:
        """The identifier of a job that waits."""
        store = create_store(url)
        try:
            store.upgrade()
            request = json.dumps({"message_bytes": 4096, "pipeline": MYRINET}).encode()
            with store.reading() as unit:
                operation = prepare_request("optimize", request, Stored.of_unit(unit), Settings())
            return accept_job(store, operation).id
        finally:
            store.dispose()

    def test_they_are_listed_and_shown(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert printed(capsys, "jobs").split()[:5] == ["id", "created", "kind", "state", "done"]
        found = self.accepted(url)
        listed = printed(capsys, "jobs list")
        assert re.search(rf"^{found} +\S+ \S+ +optimize +queued", listed, re.MULTILINE)
        assert json.loads(printed(capsys, "jobs list --json"))["items"][0]["id"] == found
        assert found not in printed(capsys, "jobs list --state done")
        shown = printed(capsys, f"jobs show {found}")
        assert re.search(r"^state +queued$", shown, re.MULTILINE)
        assert json.loads(printed(capsys, f"jobs show {found} --json"))["state"] == "queued"

    def test_one_that_is_done_names_its_answer(
        self, url: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        document = json.dumps({"message_bytes": 4096, "pipeline": MYRINET})
        Path(url.removeprefix("sqlite:///")).with_name("q.json").write_text(document)
        file = Path(url.removeprefix("sqlite:///")).with_name("q.json")
        printed(capsys, f"optimize {file} --save-as mine")  # the same question, stored
        printed(capsys, "optimize mine --bytes 4KiB")
        store = create_store(url)
        try:
            request = json.dumps({"message_bytes": 4096, "profile": "mine"}).encode()
            with store.reading() as unit:
                operation = prepare_request("optimize", request, Stored.of_unit(unit), Settings())
            job = accept_job(store, operation)
        finally:
            store.dispose()
        assert job.answer_id is not None
        assert f"sluice answers show {job.answer_id}" in printed(capsys, f"jobs show {job.id}")

    def test_none_of_this_name(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "there is no job" in printed(capsys, f"jobs show {NOBODY}", code=4)
        assert "there is no job" in printed(capsys, "jobs show x", code=4)


class Answering(http.server.BaseHTTPRequestHandler):
    """A service that asks who asks."""

    def do_GET(self) -> None:
        self.send_error(401)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    """Where something answers."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


class TestOpen:
    def test_it_prints_the_address_of_a_page(
        self, url: str, address: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert printed(capsys, f"open --address {address}") == f"{address}/\n"
        page = printed(capsys, f"open gms@1 --address {address}/below/")
        assert page == f"{address}/below/ui/profiles/gms@1\n"
        answer = json.loads(printed(capsys, "optimize gms --bytes 4KiB --json"))["id"]
        page = printed(capsys, f"open {answer} --address {address}")
        assert page == f"{address}/ui/answers/{answer}\n"
        job = TestJobs().accepted(url)
        assert printed(capsys, f"open {job} --address {address}").endswith(f"/ui/jobs/{job}\n")
        fit = printed(capsys, f"fit {EXAMPLES / 'accelerator-legs.csv'} --save-as legs --json")
        fit_id = json.loads(fit)["fit_id"]
        assert printed(capsys, f"open {fit_id} --address {address}").endswith(
            f"/ui/fits/{fit_id}\n"
        )

    def test_a_browser_opens_it_where_there_is_one(
        self, address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened: list[str] = []
        monkeypatch.setattr(webbrowser, "open", opened.append)
        printed(capsys, f"open gms --address {address}")
        assert opened == []
        monkeypatch.setenv("DISPLAY", ":0")
        printed(capsys, f"open gms --address {address}")
        assert opened == [f"{address}/ui/profiles/gms"]

    def test_where_nothing_answers(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DISPLAY", ":0")
        monkeypatch.setattr(webbrowser, "open", lambda _: pytest.fail("opened"))
        assert main(["open", "--address", "http://127.0.0.1:1"]) == 69
        streams = capsys.readouterr()
        assert streams.out == "http://127.0.0.1:1/\n"
        assert "sluice serve" in streams.err

    def test_what_is_not_there(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "did you mean gms?" in printed(capsys, "open gmss", code=4)
        assert NOBODY in printed(capsys, f"open {NOBODY}", code=4)
        assert "address" in printed(capsys, "open --address ftp://x", code=2)


class TestSimulate:
    def test_a_size_that_is_repeated(self, capsys: pytest.CaptureFixture[str]) -> None:
        """What an answer says of the same setting."""
        told = printed(capsys, f"simulate {EXAMPLES / 'kv-staging.json'} --repeat 512KiB")
        assert "16 MiB through 3 stages" in told
        assert re.search(r"^fragments +32: 32 × 524288 bytes$", told, re.MULTILINE)
        assert re.search(r"^latency +735\.5 µs$", told, re.MULTILINE)

    def test_sizes_one_by_one_and_whole(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        document = json.loads(printed(capsys, "simulate gms --fragments 1KiB,3KiB --json"))
        assert document["message_bytes"] == 4096
        assert [one["fragment_bytes"] for one in document["intervals"][::4]] == [1024, 3072]
        whole = printed(capsys, "simulate gms --bytes 4KiB --repeat whole")
        assert re.search(r"^fragments +1: 4096 bytes$", whole, re.MULTILINE)
        picture = tmp_path / "cut.svg"
        printed(capsys, f"simulate gms --bytes 4KiB --repeat 1000 --timeline {picture}")
        assert picture.read_text().startswith("<?xml")

    def test_a_request_body_has_its_own_cut(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        body = {"pipeline": MYRINET, "levels": [[4096], [1024] * 4, [4096], [2048, 2048]]}
        file = tmp_path / "levels.json"
        file.write_text(json.dumps(body))
        told = printed(capsys, f"simulate {file}")
        assert told.count("bytes\n") == 4
        assert "4: 4 × 1024 bytes" in told

    @pytest.mark.parametrize(
        ("line", "rule"),
        [
            ("gms", "expected --repeat"),
            ("gms --repeat 4", "expected --bytes"),
            ("gms --repeat 0 --bytes 4", "1 byte and more"),
            ("gms --repeat 1 --bytes 1TiB", "at most 200000"),
            ("gms --repeat 4 --fragments 4", "--fragments"),
        ],
    )
    def test_what_is_no_cut(self, line: str, rule: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert rule in printed(capsys, f"simulate {line}", code=2)


class TestPlan:
    def test_nothing_is_measured_yet(self, capsys: pytest.CaptureFixture[str]) -> None:
        told = printed(capsys, "plan --min-message 64 --max-message 1MiB")
        assert "not known yet" in told
        assert re.search(r"^ +1 MiB +latency of a message on its own +10$", told, re.MULTILINE)

    def test_enough_is_measured(self, capsys: pytest.CaptureFixture[str]) -> None:
        files = f"{EXAMPLES / 'osu-bw.txt'} {EXAMPLES / 'osu-latency.txt'}"
        assert "One line holds" in printed(capsys, f"plan {files}")
        assert json.loads(printed(capsys, f"plan {files} --json"))["decided"] is True

    def test_stages_are_known_already(self, capsys: pytest.CaptureFixture[str]) -> None:
        said = printed(capsys, f"plan {EXAMPLES / 'local-path-direct.csv'}", code=2)
        assert "tells the stages already" in said
