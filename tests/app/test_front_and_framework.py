"""Lookups from memory say byte for byte what the framework says, and what the table file says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from domain.schedule import latency_us
from exports.table.slt import decode
from tests.app.lookup_support import fast_path_of, warm
from tests.app.serving import Live, serving, settings_for

MIN, MAX = 1000, 9000


@dataclass(frozen=True)
class Both:
    """Two services on one database: one with a fast path, one that holds no table."""

    fast: Live
    plain: Live
    digest: str


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """With a table of the paper's pipeline, compiled for real."""
    url = f"sqlite:///{tmp_path_factory.mktemp('both') / 'sluice.db'}"
    with (
        serving(settings_for(url)) as fast,
        serving(settings_for(url, lookup_memory_bytes=0)) as plain,
    ):
        body = {"min_message_bytes": MIN, "max_message_bytes": MAX}
        reported = fast.client.post("/profiles/myrinet-gam/tables", json=body).json()
        warm(fast, "myrinet-gam")
        yield Both(fast, plain, reported["digest"])


Answer = tuple[int, list[tuple[str, str]], bytes]
Header = tuple[str, str]


OWN = ("date", "x-request-id")  # of each answer


def ask(live: Live, method: str, target: str, headers: list[Header]) -> Answer:
    """The status, all headers but date and request's name in their order, and the bytes."""
    connection = HTTPConnection("127.0.0.1", live.port)
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    body = response.read()
    connection.close()
    reported = [(name.lower(), value) for name, value in response.getheaders()]
    return response.status, [one for one in reported if one[0] not in OWN], body


def of_the_fast_path(live: Live, method: str, target: str, headers: list[Header]) -> bool:
    """Whether the fast path has an answer to this request, asked by itself."""
    path, _, query = target.partition("?")
    scope = {
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
    }
    return fast_path_of(live).answer(scope) is not None


REFERENCES = (
    "myrinet-gam",
    "myrinet-gam@1",
    "myrinet-gam@01",
    "myrinet-gam@2",
    "myrinet%2Dgam",
    "myrinet-gam%401",
    "Myrinet-gam",
    "myrinet-gam ".replace(" ", "%20"),
    "gms",
    "absent",
    "a@b",
    "%00",
    "%C3%A9",
    "x" * 65,
    "",
)
SIZES = ("1", "999", "1000", "4096", "9000", "9001", "281474976710656", "281474976710657")
QUERIES = (
    *(f"bytes={size}" for size in SIZES),
    "",
    "bytes",
    "bytes=",
    "bytes=0",
    "bytes=004096",
    "bytes=" + "4096".zfill(19),
    "bytes=" + "4096".zfill(20),
    "bytes=" + "9" * 400,
    "bytes=-4096",
    "bytes=+4096",
    "bytes=4096.0",
    "bytes=1e3",
    "bytes=4%30%39%36",
    "b%79tes=4096",
    "bytes=%D9%A4",
    "bytes=4096&",
    "&bytes=4096",
    "bytes=4096&bytes=5000",
    "bytes=4096&x=1",
    "bytes=4096;x=1",
    "Bytes=4096",
    "bytes=4096#x",
    "bytes==4096",
    "format=slt",
    "format=json",
    "format=summary",
    "format=SLT",
    "format=xml",
    "format=%73lt",
    "format=slt&format=json",
    "format=slt&x=1",
    "format=slt&",
)
ACCEPTS = (
    "*/*",
    "application/json",
    "application/octet-stream",
    "application/vnd.sluice.table",
    "application/vnd.sluice.table+json",
    "text/html, application/vnd.sluice.table;q=0.1",
    "APPLICATION/VND.SLUICE.TABLE",
    "",
)
TAGS = ('"other"', "*", '"*"', "", "W/", "\xff", ",,,", "nonsense")


def tags_of(etag: str) -> tuple[str, ...]:
    """What a client may say of a tag."""
    return (
        *TAGS,
        etag,
        f"W/{etag}",
        f'"a", {etag}',
        f" {etag} ,",
        etag.strip('"'),
        etag[:-2] + '"',
    )


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, list[Header], bool]:
    """A method, a target, headers, and whether the client says what it holds."""
    method = draw(st.sampled_from(("GET",) * 12 + ("HEAD", "DELETE", "OPTIONS", "get")))
    path = draw(
        st.one_of(
            st.builds("/profiles/{}/schedule".format, st.sampled_from(REFERENCES)),
            st.builds("/profiles/{}/table".format, st.sampled_from(REFERENCES[:5])),
            st.just("/tables/DIGEST"),
            st.sampled_from(
                (
                    "/profiles/myrinet-gam/schedule/",
                    "/profiles//myrinet-gam/schedule",
                    "/profiles/myrinet-gam/tables",
                    "/tables/" + "0" * 64,
                    "/tables/DIGEST/",
                    "/tables/",
                    "/tables",
                )
            ),
        )
    )
    query = draw(st.sampled_from(QUERIES))
    headers = draw(
        st.lists(
            st.one_of(
                st.tuples(st.just("Accept"), st.sampled_from(ACCEPTS)),
                st.tuples(st.just("If-None-Match"), st.sampled_from(range(len(tags_of('"x"'))))),
                st.just(("X-Forwarded-For", "10.0.0.1")),
                st.just(("Cache-Control", "no-cache")),
            ),
            max_size=3,
        )
    )
    return method, path + ("?" + query if query else ""), headers, draw(st.booleans())


@given(requests(), st.sampled_from((4096, 5000)))
@example(("GET", "/profiles/myrinet-gam/schedule?bytes=4096", [], False), 4096)
@example(("GET", "/profiles/myrinet-gam/table?format=slt", [("If-None-Match", 8)], False), 4096)
@example(("GET", "/tables/DIGEST?format=slt", [("If-None-Match", 8), ("Accept", "")], True), 1)
def test_both_give_the_same(
    both: Both, request_: tuple[str, str, list[tuple[str, Any]], bool], size: int
) -> None:
    """Status, headers in their order, and bytes; whatever is odd about a request."""
    method, target, given_headers, prefers = request_
    target = target.replace("DIGEST", both.digest)
    etags = [
        value
        for name, value in ask(both.plain, "GET", target, [])[1]
        if name == "etag" and method == "GET"
    ]
    known = tags_of(etags[0] if etags else f'"{size}"')
    headers = [
        (name, known[value] if isinstance(value, int) else value) for name, value in given_headers
    ]
    if prefers and "schedule?bytes=4096" in target:
        headers.append(("Prefer", "respond-async"))
    once = ask(both.fast, method, target, headers)
    assert once == ask(both.plain, method, target, headers)
    assert once == ask(both.fast, method, target, headers)  # as it was kept


@pytest.mark.parametrize(
    ("target", "headers", "is_answered"),
    [
        ("/profiles/myrinet-gam/schedule?bytes=4096", [], True),
        ("/profiles/myrinet-gam@1/schedule?bytes=9000", [("If-None-Match", "*")], True),
        ("/profiles/myrinet-gam/schedule?bytes=4096", [("Prefer", "respond-async")], True),
        ("/profiles/myrinet-gam/schedule?bytes=999", [], False),
        ("/profiles/gms/schedule?bytes=4096", [], False),
        ("/profiles/myrinet-gam/table?format=slt", [], True),
        ("/profiles/myrinet-gam/table", [("Accept", "application/octet-stream")], True),
        ("/profiles/myrinet-gam/table", [], False),
        ("/tables/DIGEST?format=slt", [], True),
        ("/tables/DIGEST?format=json", [], False),
        ("/profiles", [], False),
    ],
)
def test_what_the_front_answers(
    both: Both, target: str, headers: list[Header], is_answered: bool
) -> None:
    """So that the comparison above compares two things."""
    target = target.replace("DIGEST", both.digest)
    assert of_the_fast_path(both.fast, "GET", target, headers) is is_answered
    assert not of_the_fast_path(both.plain, "GET", target, headers)
    assert not of_the_fast_path(both.fast, "HEAD", target, headers)


def test_equal_tags_are_equal_bytes(both: Both) -> None:
    """A tag names a table file, a message and the form of the answer, and nothing changes it."""
    seen: dict[str, bytes] = {}
    for message in (1000, 1001, 4096, 8999, 9000):
        for reference in ("myrinet-gam", "myrinet-gam@1"):
            answer = both.fast.client.get(f"/profiles/{reference}/schedule?bytes={message}")
            assert seen.setdefault(answer.headers["etag"], answer.content) == answer.content
            assert answer.headers["etag"].startswith('"')
    assert len(seen) == 5


def test_the_answer_is_what_the_file_says(both: Both) -> None:
    """Field by field; and as good as it claims, against solving anew."""
    client = both.fast.client
    file = client.get(f"/tables/{both.digest}?format=slt").content
    table = decode(file).table
    for message in (1000, 2345, 4096, 9000):
        reported = client.get(f"/profiles/myrinet-gam/schedule?bytes={message}").json()
        question = {"message_bytes": message, "profile": "myrinet-gam"}
        solved = client.post("/optimize", json=question).json()
        cut, size = table.cut_at(message), table.repeated_size_at(message)
        assert reported["fragment_bytes"] == list(cut)
        assert reported["fragments"] == len(cut)
        assert reported["latency_us"] == latency_us(table.pipeline, cut)
        assert reported["relative_gap"] == table.relative_gap_at(message)
        assert reported["lower_bound_us"] * (1 + reported["relative_gap"]) <= reported["latency_us"]
        assert reported["lower_bound_us"] <= solved["latency_us"]
        assert reported["latency_us"] >= solved["lower_bound_us"] * (1 - 1e-12)
        assert reported["best_fixed"]["size_bytes"] == size
        assert reported["best_fixed"]["fragments"] == -(-message // size)
        assert (reported["strategy"], reported["status"], reported["warnings"]) == (
            "table",
            "proven_gap",
            [],
        )
        assert reported["profile"] == {"name": "myrinet-gam", "revision": 1}
        assert reported["table"] == both.digest
        assert set(reported) - {"table"} <= set(solved)
