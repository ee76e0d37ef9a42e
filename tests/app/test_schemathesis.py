"""The service against its own OpenAPI document: cases generated from it, all checks of the tool."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from app.main import create_app
from tests.app.serving import Live, serving, settings_for
from tests.support.counts import count

MAX_FRAGMENTS = 16  # generated pipelines are large; this keeps each solve short
TIME_LIMIT_S = 0.5
TOGETHER = (
    "inconsistent_input",
    "invalid_stage",  # the order of ranges
    "infeasible",
    "strategy_declined",
    "unreadable_trace",
    "poor_fit",
    "time_limit",
)

schema = schemathesis.openapi.from_dict(
    create_app(settings_for("sqlite:///never-opened.db")).openapi()
)


@schemathesis.serializer("application/gzip")
def packed(_: Any, value: Any) -> bytes:
    """How the tool sends a body of this type."""
    return gzip.compress(value if isinstance(value, bytes) else str(value).encode())


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server of its own, because the cases store and delete."""
    url = f"sqlite:///{tmp_path_factory.mktemp('generated') / 'sluice.db'}"
    with serving(settings_for(url, max_fragments=MAX_FRAGMENTS)) as running:
        yield running


@schema.parametrize()
@settings(max_examples=count(1000))
def test_every_case(case: Any, small: Live) -> None:
    """No 5xx, nothing undocumented, no invalid input accepted."""
    if isinstance(case.body, dict) and isinstance(case.body.get("time_limit_s"), int | float):
        case.body["time_limit_s"] = min(case.body["time_limit_s"], TIME_LIMIT_S)
    response = case.call(base_url=f"http://127.0.0.1:{small.port}")
    excluded = [positive_data_acceptance] if is_refused_as_a_whole(response) else []
    case.validate_response(response, excluded_checks=excluded)


def is_refused_as_a_whole(response: Any) -> bool:
    """Whether valid fields were refused together, for which a JSON Schema has no words."""
    return response.status_code == 422 and response.json()["code"] in TOGETHER
