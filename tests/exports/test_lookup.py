"""Both readers of table files: the same integers, the same certificates, the same refusals."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from domain.errors import InvalidInput, InvalidTable
from domain.schedule import latency_us
from exports.table.lookup import BUFFERED_FRAGMENTS, PythonReader, TableReader, answer_by
from exports.table.lookup_native import NativeReader, native_reader, open_reader
from exports.table.slt import decode, encode
from solvers import evaluator_of
from tests.support.compiler import require_native_kernels
from tests.support.counts import count
from tests.support.plan_tables import GOLDEN, a_plan_table

DATA = Path(__file__).parents[1] / "data" / "tables"
FILES = sorted((DATA / "v1").glob("*.slt"))
MALFORMED = sorted((DATA / "malformed").glob("*.slt"))
Open = Callable[[bytes], TableReader]


def opened_natively(file: bytes) -> TableReader:
    """As the service opens it where the library was built."""
    require_native_kernels()
    found = native_reader(file)
    assert found is not None
    return found


READERS: dict[str, Open] = {"python": PythonReader.of, "c": opened_natively}


def messages(reader: TableReader, number: int) -> list[int]:
    """Ends and random messages of the range."""
    rng, head = random.Random(7), reader.head
    some = [rng.randint(head.min_message_bytes, head.max_message_bytes) for _ in range(number)]
    return [head.min_message_bytes, head.max_message_bytes, *some]


@pytest.fixture(params=READERS)
def open_with(request: pytest.FixtureRequest) -> Open:
    """Each reader in turn."""
    return READERS[request.param]


def test_the_golden_files_are_there() -> None:
    """And the readers are not tried on nothing."""
    assert {path.stem for path in FILES} == set(GOLDEN)
    assert len(MALFORMED) > 50


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_reader_reads_what_the_plan_table_says(path: Path, open_with: Open) -> None:
    """Schedules, repeated sizes, certificates, the head, and all of it in one call."""
    file = path.read_bytes()
    stored, reader = decode(file), open_with(file)
    table, evaluator = stored.table, evaluator_of(stored.table.pipeline)
    head = reader.head
    assert (head.profile, head.revision) == (stored.profile, stored.revision)
    assert (head.pipeline, head.limits) == (table.pipeline, table.limits)
    assert (head.min_message_bytes, head.max_message_bytes) == (
        table.min_message_bytes,
        table.max_message_bytes,
    )
    assert head.relative_gap == table.relative_gap
    assert reader.max_schedule_fragments == max(cut.fragments for cut in table.cuts)
    for one in (reader, reader.sibling()):
        answered = one.answerer(evaluator)
        for message in messages(reader, count(2000)):
            cut, size = table.cut_at(message), table.repeated_size_at(message)
            assert one.schedule(message) == list(cut)
            assert one.count(message) == len(cut)
            assert one.repeat(message) == size
            gap = table.relative_gap_at(message)
            assert one.gaps(message) == (gap, table.repeat_gap_at(message))
            repeats = -(-message // size) if size else 0
            whole = [size] * (repeats - 1) + [message - (repeats - 1) * size] if size else []
            repeat_us = latency_us(table.pipeline, whole) if size else 0.0
            text = ",".join(map(str, cut)).encode()
            cut_us = latency_us(table.pipeline, cut)
            expected = (len(cut), text, cut_us, gap, size, repeats, repeat_us)
            assert answered(message) == answer_by(one, evaluator, message) == expected


def test_a_message_outside_the_range_is_refused(open_with: Open) -> None:
    """By every question, in the same words."""
    reader = open_with((DATA / "v1" / "aligned.slt").read_bytes())
    asked: Sequence[Callable[[int], object]] = (
        reader.repeat,
        reader.schedule,
        reader.count,
        reader.gaps,
        reader.answerer(evaluator_of(reader.head.pipeline)),
    )
    for ask in asked:
        for message in (
            0,
            reader.head.min_message_bytes - 1,
            reader.head.max_message_bytes + 1,
            2**48,
        ):
            with pytest.raises(InvalidInput, match="expected 200 <= message_bytes <= 3650"):
                ask(message)


@pytest.mark.parametrize("path", MALFORMED, ids=lambda path: path.stem)
def test_a_malformed_file_is_refused(path: Path, open_with: Open) -> None:
    """Those that are checked in."""
    with pytest.raises(InvalidTable):
        open_with(path.read_bytes())


def test_many_fragments_are_left_to_whoever_has_the_time(open_with: Open) -> None:
    """More than a reader keeps a buffer for: asked for one by one they are there.

    Each block's ends repeat a size equally often: two entries instead of thousands to evaluate.
    """
    fragments = BUFFERED_FRAGMENTS + 1
    few, many = BUFFERED_FRAGMENTS * 20, fragments * 40
    table = a_plan_table([(few // 2, few, BUFFERED_FRAGMENTS), (few + 1, many, fragments)])
    reader = open_with(encode(table, profile="", revision=0))
    evaluator = evaluator_of(table.pipeline)
    assert reader.max_schedule_fragments == fragments
    for message in (few // 2, 60_000, few):
        assert reader.schedule(message) == list(table.cut_at(message))
    for message in (few + 1, 120_000, many):
        assert reader.answerer(evaluator)(message) is None
        assert reader.count(message) == fragments
        assert reader.schedule(message) == list(table.cut_at(message))
        answer = answer_by(reader, evaluator, message)
        assert answer is not None
        assert answer[2] == latency_us(table.pipeline, table.cut_at(message))


def test_many_repeated_sizes_are_left_too(open_with: Open) -> None:
    """A short schedule beside a long row of one size."""
    table = a_plan_table([(10_000, 10_001, 1)])
    one = table.repeats[0]
    small = [(message, 2, one.latency_us) for message in (10_000, 10_001)]
    repeats = tuple(type(one)(message, size, us, 0.0) for message, size, us in small)
    changed = type(table)(
        table.pipeline, table.limits, 100_000, 10_000, 10_001, 1e-3, table.cuts, repeats
    )
    reader = open_with(encode(changed, profile="", revision=0))
    assert reader.answerer(evaluator_of(table.pipeline))(10_001) is None
    answer = answer_by(reader, evaluator_of(table.pipeline), 10_001)
    assert answer is not None
    assert answer[4:6] == (2, 5001)


def test_a_native_reader_is_what_opens_a_file() -> None:
    """Where the library was built."""
    require_native_kernels()
    assert isinstance(open_reader(FILES[0].read_bytes()), NativeReader)


def test_without_an_evaluator_in_c_python_evaluates() -> None:
    """The same numbers."""
    file = (DATA / "v1" / "worked-example.slt").read_bytes()
    reader = opened_natively(file)
    pipeline = reader.head.pipeline
    plain = reader.answerer(lambda sizes: latency_us(pipeline, sizes))
    fast = reader.answerer(evaluator_of(pipeline))
    assert [plain(message) for message in range(1, 1001)] == [
        fast(message) for message in range(1, 1001)
    ]
