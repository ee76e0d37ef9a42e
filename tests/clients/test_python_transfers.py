"""Own transfers through the Python client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sluice_client import (
    Client,
    RepeatIn,
    TransferIn,
    TransfersIn,
    UncertaintyIn,
    pipeline_of_lines,
)
from tests.app.serving import Live, serving, settings_for
from tests.app.test_own_transfers import FASTER

MIB = 1 << 20


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server on SQLite."""
    folder = tmp_path_factory.mktemp("transfers")
    with serving(settings_for(f"sqlite:///{folder / 'sluice.db'}")) as running:
        yield running


def test_own_transfers_decide_alone(live: Live) -> None:
    with Client(str(live.client.base_url)) as client:
        found = client.optimize_transfers(
            message_bytes=64 * MIB,
            transfers=TransfersIn(content=FASTER),
            uncertainty=UncertaintyIn(current=RepeatIn(repeat=512 << 10)),
        )
        assert found.set_this.verdict == "set"
        assert found.set_this.size_bytes == 4 * MIB
        assert found.set_this.gain is not None
        assert found.set_this.gain.low > 0.2
        assert [size.runs for size in found.sizes] == [3, 3]
        rows = (TransferIn(fragment_bytes=MIB, latency_us=5.0),)
        tried = client.optimize_transfers(
            message_bytes=64 * MIB,
            transfers=TransfersIn(rows=rows),
            uncertainty=UncertaintyIn(current="whole"),
        )
        assert tried.set_this.verdict in ("try", "not_decided")


def test_beside_a_pipeline_they_decide_in_its_place(live: Live) -> None:
    pipeline = pipeline_of_lines([("copy", 7.2, 7.0), ("wire", 7.5, 24.3)])
    with Client(str(live.client.base_url)) as client:
        found = client.optimize(
            message_bytes=64 * MIB, pipeline=pipeline, transfers=TransfersIn(content=FASTER)
        )
    assert found.set_this is not None
    assert found.set_this.size_bytes == 4 * MIB
