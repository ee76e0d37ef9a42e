"""Runs, conditions and tests of a file are chosen alike at every door, and kept with the fit."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import httpx
import pytest

from app.cli import main
from app.console.arguments import parse
from app.questions.fits import find_fit, plot_stored
from app.ui.options import body_of_options
from contract.audit import AuditIn
from contract.compare import CompareIn
from contract.declare import Asked, words_of
from contract.fit import FitQueryIn
from domain.conditions import RowChoice
from domain.errors import InvalidInput
from domain.fit import ComposedStage, FitOptions
from models.fit_documents import dump_request, load_request
from models.records import FitRequest
from tests.app.serving import Live

SIZES = (64, 4096, 65_536, 1_048_576)
TEXT = {"content-type": "text/plain"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


def osu(test: str, unit: str, values: tuple[float, ...]) -> str:
    rows = [f"{size}    {value:.3f}\n" for size, value in zip(SIZES, values, strict=True)]
    return f"# OSU MPI {test} Test v7.2\n# Size    {test} ({unit})\n" + "".join(rows)


def pair(slower: float) -> str:
    times = tuple((3.0 + size * 2e-4) * slower for size in SIZES)
    gaps = tuple((1.0 + size * 1e-4) * slower for size in SIZES)
    rates = tuple(size / gap for size, gap in zip(SIZES, gaps, strict=True))
    return osu("Latency", "us", times) + osu("Bandwidth", "MB/s", rates)


RUNS = pair(1.0) + pair(3.0)
REFUSED = "2 runs in this file differ by up to 200 % (of "
TABLE = "part,sockets,t_us\n" + "".join(
    f"{size},{sockets},{10.0 + size / (50.0 * sockets):.6f}\n"
    for sockets in (1, 8)
    for size in SIZES
)
COLUMNS = "size=part,time=t_us"


def fit(client: httpx.Client, content: str, **query: Any) -> dict[str, Any]:
    answer = client.post("/fit", content=content, headers=TEXT, params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    main(list(words))
    printed = capsys.readouterr()
    return " ".join((printed.out + printed.err).split())


class TestEveryDoor:
    """The same sentence, and the same choice."""

    def test_the_command_line(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file = tmp_path / "runs.out"
        file.write_text(RUNS)
        for words in (("fit", str(file)), ("optimize", str(file), "--bytes", "1MiB")):
            assert REFUSED in said(capsys, *words)
            assert "run 2 of 2" in said(capsys, "fit", str(file), "--run", "2")
        answers = [
            said(capsys, "optimize", str(file), "--bytes", "1MiB", "--json", "--run", run)
            for run in ("1", "2")
        ]
        assert '"latency_us"' in answers[0]
        assert answers[0] != answers[1]
        assert "there is no run 3" in said(capsys, "fit", str(file), "--run", "3")

    def test_a_test_by_option_and_by_the_name_of_the_file(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        source = Path(__file__).parents[1] / "data" / "traces" / "nccl-sendrecv.txt"
        lines = [one for one in source.read_text().splitlines() if "sendrecv_perf" not in one]
        for name, words in (
            ("a.log", ("--test", "sendrecv_perf")),
            ("sendrecv_perf-n2.log", ()),
        ):
            file = tmp_path / name
            file.write_text("\n".join(lines) + "\n")
            assert "sendrecv_perf, as you said" in said(capsys, "fit", str(file), *words)
        assert "does not say which test" in said(capsys, "fit", str(tmp_path / "a.log"))

    def test_bare_columns_whose_files_are_called_after_their_tests(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        latency, bandwidth = (str(tmp_path / name) for name in ("osu_latency.1", "osu_bw.1"))
        for path, test, other in ((latency, "Latency", "Bandwidth"), (bandwidth, "Bandwidth", "")):
            _, _, rows = RUNS.partition(f"{test} (")
            bare = rows.partition("# OSU" if other else "# OSU MPI Latency")[0]
            Path(path).write_text(bare.partition("\n")[2])
        assert "osu_bw, as you said" in said(capsys, "fit", latency, bandwidth)
        answer = ("optimize", latency, bandwidth, "--bytes", "1MiB")
        assert "bottleneck" in said(capsys, *answer)
        assert "not recognised" in said(capsys, *answer, "--test", "osu_latency,other")
        crossed = said(capsys, "crossover", latency, latency)
        assert "not recognised" not in crossed

    def test_conditions_of_a_table_at_the_command_line(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = tmp_path / "table.csv"
        file.write_text(TABLE)
        asked = ("fit", str(file), "--columns", COLUMNS)
        assert "take one of them, as by --where sockets=1 (where)" in said(capsys, *asked)
        assert "8, of the values 1, 8" in said(capsys, *asked, "--where", "sockets=8")

    def test_the_service(self, client: httpx.Client) -> None:
        refused = client.post("/fit", content=RUNS, headers=TEXT)
        assert refused.status_code == 422
        assert REFUSED in refused.text
        asked = {"measurements": {"content": RUNS}, "message_bytes": 1 << 20}
        refused = client.post("/optimize", json=asked)
        assert REFUSED in refused.text
        first, second = (
            client.post("/optimize", json={**asked, "fit_options": {"run": run}}).json()
            for run in (1, 2)
        )
        assert 2.0 * first["latency_us"] < second["latency_us"]
        assert fit(client, RUNS, run=2)["understood"]["runs"] == "run 2 of 2"
        table = fit(client, TABLE, columns=COLUMNS, where="sockets=8")
        assert table["understood"]["sockets"] == "8, of the values 1, 8"

    @pytest.mark.parametrize(
        ("options", "pointer"),
        [
            ({"run": 3}, "/fit_options/run"),
            ({"where": "host=a"}, "/fit_options/where"),
            ({"where": "host"}, "/fit_options/where"),
            ({"test": "a\u0007"}, "/fit_options/test"),
        ],
    )
    def test_what_the_file_does_not_have_names_its_field(
        self, client: httpx.Client, options: dict[str, Any], pointer: str
    ) -> None:
        asked = {"measurements": {"content": RUNS}, "message_bytes": 1, "fit_options": options}
        refused = client.post("/optimize", json=asked)
        assert refused.status_code == 422, refused.text
        assert pointer in refused.text

    def test_stages_of_files_of_their_own(self, client: httpx.Client) -> None:
        stage = {"name": "net", "measurements": {"content": TABLE}, "columns": COLUMNS}
        refused = client.post("/compose", json={"stages": [stage]})
        assert "--where sockets=1 (where)" in refused.text
        chosen = client.post("/compose", json={"stages": [{**stage, "where": "sockets=8"}]})
        assert chosen.status_code == 200, chosen.text
        (found,) = chosen.json()["pipeline"]["stages"]
        assert found["ns_per_byte"] == pytest.approx(2.5)
        wrong = client.post("/compose", json={"stages": [{**stage, "where": "sockets"}]})
        assert "/stages/0/where" in wrong.text

    def test_the_page(self, live: Live) -> None:
        pasted = [("source", "trace"), ("message", "1 MiB"), ("trace", RUNS)]
        refused = live.client.post("/ui/optimize", content=urlencode(pasted), headers=FORM)
        assert refused.status_code == 422
        assert REFUSED in unescape(refused.text)
        for more, status in (("2", 303), ("x", 422)):
            content = urlencode([*pasted, ("run", more)])
            sent = live.client.post("/ui/optimize", content=content, headers=FORM)
            assert sent.status_code == status, sent.text
        assert 'id="mistake-run"' in sent.text
        sent = live.client.post(
            "/ui/fits", content=TABLE, params={"columns": COLUMNS, "where": "sockets=8"}
        )
        page = unescape(live.client.get(sent.headers["location"]).text)
        assert "8, of the values 1, 8" in page


class TestKept:
    """With a stored fit and its request."""

    def test_a_plot_is_of_the_rows_that_were_taken(self, live: Live) -> None:
        name = "rows-chosen"
        found = fit(
            live.client, TABLE, columns=COLUMNS, where="sockets=8", as_stage="net", save_as=name
        )
        stored = find_fit(live.service.context.store, found["fit_id"])
        assert stored.options.choice == RowChoice(where="sockets=8")
        (stage,) = plot_stored(stored).stages
        assert stage.num_samples == len(SIZES)
        composed = {"stages": [{"name": "net", "measurements": {"content": TABLE}}]}
        assert live.client.post("/compose", json=composed).status_code == 422

    @pytest.mark.parametrize(
        "options",
        [
            FitOptions(choice=RowChoice(run=2)),
            FitOptions(choice=RowChoice(test="sendrecv_perf", where="a=1")),
            FitOptions(composed=(ComposedStage("a", choice=RowChoice(run=3)), ComposedStage("b"))),
        ],
    )
    def test_the_request_has_them(self, options: FitOptions) -> None:
        assert load_request(dump_request(FitRequest(options))) == FitRequest(options)

    def test_a_request_without_them_is_as_it_was(self) -> None:
        for options in (FitOptions(), FitOptions(composed=(ComposedStage("a"),))):
            assert "choice" not in dump_request(FitRequest(options))


@pytest.mark.parametrize(
    "words",
    [
        ("verify", "FILE", "--stage", "memcpy"),
        ("profiles", "save", "chosen", "FILE"),
    ],
)
def test_a_command_without_the_option_says_what_works(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fit with it, under a name."""
    file = tmp_path / "runs.out"
    file.write_text(RUNS)
    shown = said(capsys, *(str(file) if word == "FILE" else word for word in words))
    assert REFUSED in shown
    command = words[0] if words[0] == "verify" else "profiles save"
    assert (
        f"sluice {command} has no --run: make a fit first: sluice fit FILE --run 1 --save-as NAME"
    ) in shown


def test_columns_are_named_at_a_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names with blanks and brackets are one word."""
    file = tmp_path / "parts.csv"
    file.write_text("tasks,part size,p50 (ms)\n1,65536,3\n1,131072,6\n")
    shown = said(capsys, "optimize", str(file), "--bytes", "1MiB")
    assert (
        "sluice optimize has no --columns: make a fit first: sluice fit FILE --columns "
        "'size=part size,time=p50 (ms)' --save-as NAME" in shown
    )


def test_a_plan_is_made_of_files_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A profile would not do."""
    file = tmp_path / "runs.out"
    file.write_text(RUNS)
    shown = said(capsys, "plan", str(file))
    assert REFUSED in shown
    assert "sluice plan has no --run: give it a file of these rows alone" in shown


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("audit SOURCE --setting whole", AuditIn),
        ("compare SOURCE --bytes 4KiB", CompareIn),
        ("fit SOURCE", FitQueryIn),
    ],
)
def test_a_condition_more_is_an_option_more(line: str, kind: type[Any]) -> None:
    """At every command; a request has all of them in one text."""
    typed = [*line.split(), "--where", "sockets=8", "--where", "threads = 2"]
    words = cast(Callable[[Any], tuple[Asked, ...]], words_of)(kind)
    body = body_of_options(words, parse(typed))
    assert body.get("fit_options", body)["where"] == "sockets=8,threads=2"
    with pytest.raises(InvalidInput, match="expected NAME=VALUE, as connections=4, got 'sockets'"):
        parse([*line.split(), "--where", "sockets"])


def test_a_command_with_the_option_says_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the reader advises can be typed."""
    file = tmp_path / "runs.out"
    file.write_text(RUNS)
    for words in (("fit", str(file)), ("optimize", str(file), "--bytes", "1MiB")):
        assert "has no --run" not in said(capsys, *words)
