"""app/questions/fits.py: the plot of a stored fit is that of the fit when it was made."""

from __future__ import annotations

import pytest

from app.questions.fits import StoredFit, find_fit, plot_stored
from domain.errors import NotFound
from domain.fit import Combine, FitOptions, StepGroup
from domain.measurement import TraceKind
from fitting import fit, plot, read
from models.packing import pack
from models.records import FitRequest
from models.session import Store

SIZES = (64, 1024, 16384, 262144)


def direct_csv(shift_us: float) -> bytes:
    rows = "".join(
        f"{size},{repetition},{5 + size / 100 + shift_us + repetition / 10},{3 + size / 50}\n"
        for size in SIZES
        for repetition in range(4)
    )
    return f"message_bytes,repetition,copy_us,wire_us\n{rows}".encode()


def times_csv(column: str) -> bytes:
    rows = "".join(
        f"{size},{repetition},{5 + size / 100 + repetition / 10}\n"
        for size in SIZES
        for repetition in range(4)
    )
    return f"message_bytes,repetition,{column}\n{rows}".encode()


def kept(store: Store, contents: list[bytes], request: FitRequest) -> tuple[StoredFit, object]:
    """Fit, store and find again; and the plot that it came with."""
    readings = [read(content) for content in contents]
    found = fit(readings, request.options)
    with store.unit_of_work() as unit:
        digests = [unit.traces.add(content, kind=found.kind) for content in contents]
        fit_id = unit.fits.add(digests, found, request)
    return find_fit(store, fit_id), plot(found, readings, request.options)


def test_groups_of_steps_and_several_files(store: Store) -> None:
    group = StepGroup("both", ("copy", "wire"), Combine.SEQUENCE)
    request = FitRequest(FitOptions(groups=(group,)), kinds=(None, TraceKind.DIRECT))
    stored, before = kept(store, [direct_csv(0.0), direct_csv(0.3)], request)
    (stage,) = plot_stored(stored).stages
    assert (stage.name, stage.num_samples, stage.shows_medians) == ("both", 32, False)
    assert plot_stored(stored) == before


def test_latencies_and_arrivals_from_two_files(store: Store) -> None:
    contents = [times_csv("latency_us"), times_csv("interarrival_us")]
    stored, before = kept(store, contents, FitRequest())
    assert [stage.num_samples for stage in plot_stored(stored).stages] == [16, 16]
    assert plot_stored(stored) == before


def test_a_file_that_is_read_no_longer_leaves_medians(store: Store) -> None:
    stored, _ = kept(store, [direct_csv(0.0)], FitRequest())
    unreadable = StoredFit(stored.fit, (pack((b"\x00",)),))
    assert {stage.shows_medians for stage in plot_stored(unreadable).stages} == {True}


def test_a_fit_that_is_not_stored(store: Store) -> None:
    with pytest.raises(NotFound):
        find_fit(store, "0" * 32)
