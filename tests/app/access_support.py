"""A server that asks who asks, with one of everything that is another owner's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from app.questions.keys import create_key
from domain.pipeline import pipeline_of_lines
from models.records import KeyScope
from models.session import Store
from tests.app.serving import MYRINET, Live, serving, settings_for, wait_until
from tests.app.test_fit import HEADER, ROWS, TEXT
from tests.support.long_work import long_here_engine
from tests.support.transfers import transfers_of

MINE, THEIRS = "mine", "theirs"
GRANTED = {  # what a key of each scope may ask
    "read": {"read"},
    "write": {"read", "write"},
    "admin": {"read", "write", "admin", "metrics"},
    "metrics": {"metrics"},
}
PROFILE = "their-own"
TRANSFERS = transfers_of(
    pipeline_of_lines(
        [(one["name"], one["overhead_us"], one["ns_per_byte"]) for one in MYRINET["stages"]]
    ),
    ("memcpy", "tcp", "pipe", "write-sync"),
)
REQUEST_ID = {"x-request-id": "asked"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True)
class Asked:
    """What to ask of an operation so that, but for who asks, it is answered well.

    `names`: what is asked about belongs to an owner, and to others is as if it were not there.
    `changes`: what is noted of it when its owner asks.
    """

    scope: str | None
    names: bool = False
    query: str = ""
    body: Any = None
    content: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    changes: tuple[str, ...] = ()


MESSAGE = {"message_bytes": 4096, "profile": PROFILE}
TRACE = Asked("write", content=HEADER + ROWS, headers=TEXT)
# Each operation of the document. A new one without an entry fails.
OPERATIONS: dict[str, Asked] = {
    "POST /optimize": Asked("write", True, body=MESSAGE),
    "GET /optimizations": Asked("read"),
    "GET /optimizations/{id}": Asked("read", True),
    "PATCH /optimizations/{id}": Asked(
        "write", True, body={"name": "NIC x2"}, changes=("answer.describe",)
    ),
    "GET /optimizations/{id}/explanation": Asked("read", True),
    "GET /optimizations/{id}/exports/{target}": Asked("read", True),
    "POST /compare": Asked(
        "write", True, body={"profile": PROFILE, "message_bytes": [4096], "strategies": ["single"]}
    ),
    "POST /simulate": Asked(
        "write", True, body={"profile": PROFILE, "fragment_bytes": [2048, 2048]}
    ),
    "POST /thresholds": Asked(
        "write",
        True,
        body={"profile": PROFILE, "message_bytes": [65536], "sizes": [4096]},
    ),
    "POST /crossover": Asked(
        "write", True, body={"a": {"profile": PROFILE}, "b": {"profile": PROFILE}}
    ),
    "POST /audit": Asked("write", True, body={"profile": PROFILE, "setting": {"whole": True}}),
    "POST /hide": Asked("write", True, body={**MESSAGE, "calculation_us": 120.0}),
    "GET /hide/{id}": Asked("read", True),
    "POST /fit": TRACE,
    "POST /compose": Asked(
        "write",
        body={"stages": [{"name": "copy", "measurements": {"content": HEADER + ROWS}}]},
    ),
    "GET /fits/{id}": Asked("read", True),
    "GET /traces/{digest}": Asked("read", True),
    "GET /fits/{id}/plot": Asked("read", True),
    "POST /measurement-plans": Asked(
        "write", body={"min_message_bytes": 64, "max_message_bytes": 65536}
    ),
    "GET /profiles": Asked("read"),
    "POST /profiles": Asked(
        "write", body={"name": "a-name", "pipeline": MYRINET}, changes=("profile.create",)
    ),
    "GET /profiles/{name}": Asked("read", True),
    "PUT /profiles/{name}": Asked(
        "write", True, body={"pipeline": MYRINET}, changes=("profile.revise",)
    ),
    "GET /profiles/{name}/revisions": Asked("read", True),
    "POST /profiles/{name}/current": Asked(
        "write", True, body={"revision": 1}, changes=("profile.use",)
    ),
    "POST /profiles/{name}/verification": Asked(
        "write", True, body={"transfers": TRANSFERS}, changes=("profile.verify",)
    ),
    "GET /profiles/{name}/schedule": Asked("read", True, query="?bytes=1024"),
    "POST /profiles/{name}/tables": Asked(
        "write", True, body={"min_message_bytes": 1024, "max_message_bytes": 1032}
    ),
    "GET /profiles/{name}/tables": Asked("read", True),
    "GET /profiles/{name}/table": Asked("read", True, query="?format=slt"),
    "POST /profiles/{name}/table": Asked(
        "write", True, body={"digest": "{digest}"}, changes=("table.activate",)
    ),
    "GET /tables/{digest}": Asked("read", True, query="?format=slt"),
    "GET /exports": Asked("read"),
    "GET /profiles/{name}/exports/{target}": Asked("read", True, query="?option=form:cfg"),
    "GET /layers": Asked("read"),
    "GET /layers/{name}": Asked("read"),
    "POST /layer-costs": Asked("write", body={"layer": "cmam-finite", "message_bytes": [64]}),
    "GET /jobs/{id}": Asked("read", True),
    "GET /jobs/{id}/events": Asked("read", True),
    "GET /keys": Asked("admin"),
    "POST /keys": Asked(
        "admin", body={"name": "a program", "scope": "read"}, changes=("key.create",)
    ),
    "POST /keys/{id}/rotation": Asked("admin", True, body={}, changes=("key.create", "key.expire")),
    "GET /changes": Asked("admin"),
    "GET /limits": Asked("read"),
    "GET /healthz": Asked(None),
    "GET /readyz": Asked(None),
    "GET /metrics": Asked("metrics"),
    # What ends something comes last.
    "DELETE /jobs/{id}": Asked("write", True),
    "DELETE /keys/{id}": Asked("admin", True, changes=("key.revoke",)),
    "DELETE /profiles/{name}": Asked("write", True, changes=("profile.delete",)),
}
PUBLIC_PAGES = {"/ui/sign-in", "/ui/sign-out", "/ui/assets/{digest}/{name}"}


@dataclass(frozen=True)
class Guarded:
    """A server that asks who asks: a key of each scope for me, one for all of theirs."""

    live: Live
    mine: dict[str, str]
    theirs: str
    paths: dict[str, str]
    values: dict[str, str]

    def ask(self, operation: str, secret: str | None, **changes: str) -> httpx.Response:
        """Ask an operation about what is theirs."""
        asked, (method, path) = OPERATIONS[operation], operation.split(" ")
        text = None if asked.body is None else json.dumps(asked.body)
        for name, value in {**self.values, **changes}.items():
            text = None if text is None else text.replace(f"{{{name}}}", value)
        kind = {} if text is None else {"content-type": "application/json"}
        return self.live.client.request(
            method,
            self.paths[path] + asked.query,
            content=text if text is not None else asked.content,
            headers={**kind, **asked.headers, **bearer(secret), **REQUEST_ID},
        )

    @property
    def store(self) -> Store:
        return self.live.service.context.store


def bearer(secret: str | None) -> dict[str, str]:
    """The header that says who asks."""
    return {} if secret is None else {"authorization": f"Bearer {secret}"}


def key_of(live: Live, owner: str, scope: str, **more: Any) -> str:
    """The secret of a new key, once the server knows it."""
    made = create_key(live.service.context.store.of(owner), scope, KeyScope(scope), **more)
    known = bearer(made.secret)
    wait_until(lambda: live.client.get("/exports", headers=known).status_code != 401)
    return made.secret


@contextmanager
def guarded_server(url: str) -> Iterator[Guarded]:
    """Serve until the block ends. What is theirs is one of everything."""
    settings = settings_for(url, auth="keys", owner_requests_per_s=0)
    with serving(settings, open_engine=long_here_engine) as live:
        theirs = key_of(live, THEIRS, "admin")
        yield Guarded(
            live,
            {scope: key_of(live, MINE, scope) for scope in GRANTED},
            theirs,
            *_stored(live.client, bearer(theirs)),
        )


def _stored(client: httpx.Client, key: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Store one of everything; return the path of each operation, and what bodies name."""

    def post(path: str, body: Any, **headers: str) -> httpx.Response:
        answer = client.post(path, json=body, headers={**key, **headers})
        answer.raise_for_status()
        return answer

    post("/profiles", {"name": PROFILE, "pipeline": MYRINET})
    table = post(
        f"/profiles/{PROFILE}/tables", {"min_message_bytes": 1024, "max_message_bytes": 1032}
    ).json()
    fit = client.post("/fit?save_as=fitted", content=HEADER + ROWS, headers={**key, **TEXT}).json()
    fit_id = client.get("/profiles/fitted", headers=key).json()["provenance"]["fit_id"]
    hidden = post("/hide", {**MESSAGE, "calculation_us": 120.0}).headers["location"]
    job = post("/optimize", {**MESSAGE, "message_bytes": 5000}, prefer="respond-async")
    answer = post("/optimize", MESSAGE).json()["id"]
    made = post("/keys", {"name": "another", "scope": "read"}).json()["id"]
    layer = client.get("/layers", headers=key).json()["items"][0]["name"]
    ids = {
        "/optimizations": answer,
        "/hide": hidden.rpartition("/")[2],
        "/fits": fit_id,
        "/jobs": job.headers["location"].rpartition("/")[2],
        "/keys": made,
    }
    values = {"digest": table["digest"], "layer": layer}
    paths = {}
    for operation in OPERATIONS:
        path = operation.split(" ")[1]
        digest = fit["trace_digests"][0] if path.startswith("/traces") else table["digest"]
        name = layer if path.startswith("/layers") else PROFILE
        found = path.replace("{name}", name).replace("{digest}", digest)
        target = "lmcache" if "/optimizations/" in found else "simgrid"
        found = found.replace("{target}", target)
        paths[path] = found.replace("{id}", ids.get("/" + path.split("/")[1], ""))
    return paths, values
