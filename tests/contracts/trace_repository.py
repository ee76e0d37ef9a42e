"""What every repository of traces and of fits does. Run on each database."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.errors import NotFound
from models.session import Store
from tests.support.counts import count
from tests.support.records import a_fit


class TraceContract:
    """Files under the digest of their content."""

    # One store serves all examples: they add to it and look only at what they added.
    @settings(max_examples=count(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(content=st.binary(max_size=5000))
    def test_any_bytes_come_back(self, store: Store, content: bytes) -> None:
        """Under their SHA-256."""
        with store.unit_of_work() as work:
            digest = work.traces.add(content, kind="direct")
        assert digest == hashlib.sha256(content).hexdigest()
        with store.reading() as work:
            assert work.traces.get(digest) == content

    def test_a_long_trace_is_stored_once(self, store: Store) -> None:
        """Adding it again gives the same digest and is no conflict."""
        content = b"64,0,0.58,0.31\n" * 400_000
        digests = set()
        for kind in ("direct", "direct", "indirect"):
            with store.unit_of_work() as work:
                digests.add(work.traces.add(content, kind=kind))
        assert len(digests) == 1
        with store.reading() as work:
            assert work.traces.get(digests.pop()) == content

    @pytest.mark.parametrize("digest", ["0" * 64, "", "\x00", "\ud800"])
    def test_an_unknown_digest_is_not_found(self, store: Store, digest: str) -> None:
        """Also one that no column could hold."""
        with store.reading() as work, pytest.raises(NotFound):
            work.traces.get(digest)


class FitContract:
    """Fits of stored traces."""

    def test_a_fit_reads_back_equal(self, store: Store) -> None:
        """With the digest of its trace; one trace may have several."""
        with store.unit_of_work() as work:
            digest = work.traces.add(b"trace", kind="direct")
            first, second = work.fits.add([digest], a_fit()), work.fits.add([digest], a_fit())
        assert first < second
        with store.reading() as work:
            assert (work.fits.get(first).trace_digests, work.fits.get(first).fit) == (
                (digest,),
                a_fit(),
            )
            assert work.fits.get(second).fit == a_fit()

    def test_the_trace_must_be_stored(self, store: Store) -> None:
        """A fit of nothing is refused."""
        with store.unit_of_work() as work, pytest.raises(NotFound, match="trace"):
            work.fits.add("0" * 64, a_fit())

    @pytest.mark.parametrize("fit_id", ["absent", "\x00"])
    def test_an_unknown_fit_is_not_found(self, store: Store, fit_id: str) -> None:
        """Also one that no column could hold."""
        with store.reading() as work, pytest.raises(NotFound, match="fit"):
            work.fits.get(fit_id)
