"""The service against its own OpenAPI document: cases generated from it, all checks of the tool.

Every day where everybody needs a key, on SQLite; in a campaign on both databases, with and without.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import requests
import schemathesis
from hypothesis import settings
from hypothesis.internal.conjecture import engine
from schemathesis.checks import load_all_checks
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.python._constants.orchestrator import make_constants_value_source
from schemathesis.specs.openapi.checks import positive_data_acceptance

from app.main import create_app
from app.operations import export_work, table_work
from domain.errors import MemoryLimitReached
from models.records import OWNER
from tests.app.access_support import key_of
from tests.app.schemathesis_hooks import keep_short
from tests.app.serving import GUARD_S, Live, serving, settings_for
from tests.support.counts import count, is_campaign
from tests.support.long_work import long_here_engine
from tests.support.postgres import PostgresServer

CHECKOUT = Path(__file__).parents[2]
MAX_FRAGMENTS = 16  # generated pipelines are large; this keeps each solve short
# The tool looks for a value of each kind that a schema allows, and of some kinds it can make none.
# It gives up after some 450 attempts, which takes seconds; what can be made is made long before.
MAX_ATTEMPTS = 20
MAX_QUERY = 60_000  # uvicorn refuses a longer line itself, before the service sees it
TOGETHER = (
    "inconsistent_input",
    "missing_class_cost",
    "not_published",
    "invalid_stage",  # the order of ranges
    "infeasible",
    "items_declined",  # what does not go with items
    "needs_plain_stages",
    "measurement_missing",  # a fit by which no message can be cut
    "strategy_declined",
    "unreadable_trace",
    "poor_fit",
    "time_limit",
    "memory_limit",  # as `_refused` says
)

KINDS = [("sqlite", "keys")]
if is_campaign():
    KINDS += [("sqlite", "off"), ("postgresql", "keys"), ("postgresql", "off")]


@cache
def schema_of(auth: str) -> Any:
    """The document of a service that asks who asks, or asks nobody."""
    settings = settings_for("sqlite:///never-opened.db", auth=auth)
    return schemathesis.openapi.from_dict(create_app(settings).openapi())


LABELS = [one.ok().label for one in schema_of("keys").get_all_operations()]


@schemathesis.serializer("application/gzip")
def packed(_: Any, value: Any) -> bytes:
    """How the tool sends a body of this type."""
    return gzip.compress(value if isinstance(value, bytes) else str(value).encode())


@dataclass(frozen=True)
class Small:
    """A server, and what a request has that it answers."""

    live: Live
    auth: str
    headers: dict[str, str]

    @property
    def schema(self) -> Any:
        return schema_of(self.auth)


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def small(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    postgres: PostgresServer,
) -> Iterator[Small]:
    """A server of its own, because the cases store and delete. It ends without a 5xx but 503."""
    database, auth = request.param
    with ExitStack() as stack:
        if database == "sqlite":
            url = f"sqlite:///{tmp_path_factory.mktemp('generated') / 'sluice.db'}"
        else:
            url = stack.enter_context(postgres.database())
        patched = stack.enter_context(pytest.MonkeyPatch.context())
        for kind in (
            table_work.TableWork,
            export_work.ExportWork,
        ):  # they would slow the cases down
            patched.setattr(kind, "run", _refused)
        settings = settings_for(url, auth=auth, owner_requests_per_s=0, max_fragments=MAX_FRAGMENTS)
        live = stack.enter_context(serving(settings, open_engine=long_here_engine))
        # So written, because the tool looks for this very word where it leaves the key out.
        secret = key_of(live, OWNER, "admin") if auth == "keys" else ""
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        yield Small(live, auth, headers)
        counted = Counter[str]()
        # By a key of somebody else, whose keys no case has ended.
        if secret:
            headers = {"Authorization": f"Bearer {key_of(live, 'watcher', 'admin')}"}
        for line in live.client.get("/metrics", headers=headers).text.splitlines():
            found = re.match(r'sluice_http_requests_total\{.*status="(\d+)".*\} (\S+)', line)
            if found is not None and float(found[2]):
                counted[found[1]] += int(float(found[2]))
        print(database, auth, sum(counted.values()), "requests by status:", dict(counted))
        assert counted
        assert {status for status in counted if status >= "500"} <= {"503"}


def _refused(*_: Any) -> None:
    raise MemoryLimitReached("too much of it")


# Cases that cover a schema are made with its test: here by whoever runs that. As parameters made by
# the tool, every process would make those of all operations while it looks for tests.
@pytest.mark.parametrize("label", LABELS)
def test_every_case(label: str, small: Small) -> None:
    """No 5xx, nothing undocumented, no invalid input accepted.

    Valid fields may be refused together, for which a JSON Schema has no words.
    """

    @settings(max_examples=count(250, share=25))  # besides some hundred that cover the schema
    def check(case: Any) -> None:
        keep_short(case)
        if len(urlencode(case.query or {}, doseq=True, errors="replace")) > MAX_QUERY:
            return
        if any(value in ([], {}) for value in (case.query or {}).values()):
            return  # meant as invalid, and not sent at all
        response = case.call(
            base_url=f"http://127.0.0.1:{small.live.port}",
            session=here,
            headers=small.headers,
            timeout=GUARD_S,  # not the tool's own, in which a busy machine may not answer
        )
        together = response.status_code == 422 and response.json()["code"] in TOGETHER
        excluded = [positive_data_acceptance] if together else []
        case.validate_response(response, excluded_checks=excluded)

    here = requests.Session()
    here.trust_env = False  # proxies and passwords of this machine are looked up at each call
    schema = small.schema
    operation = next(one.ok() for one in schema.get_all_operations() if one.ok().label == label)
    load_all_checks()
    with pytest.MonkeyPatch.context() as patched:
        if not is_campaign():
            patched.setattr(engine, "INVALID_THRESHOLD_BASE", MAX_ATTEMPTS)
        test = build_operation_test(
            config=schema.config,
            operation=operation,
            test_func=check,
            given_kwargs={},
            feedback=FeedbackSources(constants_value_source=make_constants_value_source(schema)),
        )
    test()


def test_sequences(small: Small, tmp_path: Path) -> None:
    """Sequences that use what earlier answers name: jobs, profiles, stored answers.

    By the tool's command line, since what a sequence meets depends on all that went before it.
    """
    report = tmp_path / "report.json"
    run = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run"),
            f"http://127.0.0.1:{small.live.port}/openapi.json",
            *(word for one in small.headers.items() for word in ("--header", ": ".join(one))),
            *("--phases", "stateful", "--mode", "positive", "--seed", "1", "--no-shrink"),
            *("--max-examples", str(count(500)), "--exclude-checks", "positive_data_acceptance"),
            *(("--exclude-path-regex", "^/keys") if small.headers else ()),  # its own would end
            *("--request-timeout", "60"),
            *("--report", "json", "--report-json-path", str(report)),
        ],
        cwd=CHECKOUT,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.app.schemathesis_hooks"},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-1000:]
    reported = json.loads(report.read_text())
    assert reported["operations"]["tested"] >= 10
    assert reported["test_cases"]["generated"] >= count(500)
