"""The Python client's reader of table files: as the domain reads them, and never fooled."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import struct
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import InvalidTable as DomainInvalidTable
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits
from exports.table.slt import decode, digest_of, encode
from sluice_client import InvalidTable, OutOfRange, SluiceClientError, Table
from sluice_client.table_files import TableFile
from sluice_client.table_layout import numbers
from solvers import compile_table
from tests.support import file_changes
from tests.support.counts import count, is_campaign
from tests.support.malformed_tables import MALFORMED, good, sealed
from tests.support.plan_tables import (
    GOLDEN,
    a_line_pipeline,
    a_plan_table,
    a_ranged_pipeline,
    the_sparse_example,
)

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "tests" / "data" / "tables"
INTERESTING = (0, 1, 2, 7, 8, 39, 40, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**48, 2**63, 2**64 - 1)


def check(reader: Table, table: PlanTable, *, seed: int, times: int = 200) -> None:
    """Every entry, its neighbours and random sizes read as the domain reads them."""
    rng = random.Random(seed)
    messages = {rng.randint(table.min_message_bytes, table.max_message_bytes) for _ in range(times)}
    for entry in (*table.cuts, *table.repeats):
        messages |= {entry.message_bytes + step for step in (-1, 0, 1)}
    for message in messages:
        if table.min_message_bytes <= message <= table.max_message_bytes:
            assert tuple(reader.schedule(message)) == table.cut_at(message)
            assert reader.repeat(message) == table.repeated_size_at(message)
            assert reader.certificate(message) == (
                table.relative_gap_at(message),
                table.repeat_gap_at(message),
            )


# --- files that are good --------------------------------------------------------------------------


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_files_read_as_the_domain_reads_them(name: str) -> None:
    """Mapped from the disk, and everything that the header says."""
    path = TABLES / "v1" / f"{name}.slt"
    make, profile, revision = GOLDEN[name]
    table = make()
    with Table.open(path) as reader:
        check(reader, table, seed=1)
        reported = reader.description
        assert (reported.profile, reported.revision) == (profile, revision)
        assert (reported.min_message_bytes, reported.max_message_bytes) == (
            table.min_message_bytes,
            table.max_message_bytes,
        )
        assert reported.relative_gap == table.relative_gap
        assert reported.fragment_cap == table.fragment_cap
        assert (reported.cut_entries, reported.repeat_entries) == (
            len(table.cuts),
            len(table.repeats),
        )
        assert reported.max_schedule_fragments == max(cut.fragments for cut in table.cuts)
        assert reported.file_bytes == path.stat().st_size
        assert reader.digest == digest_of(path.read_bytes())


@pytest.mark.parametrize("name", GOLDEN)
def test_constraints_and_pipeline_are_those_of_the_table(name: str) -> None:
    """None where there is no limit; ranges, names and the delay as they were."""
    table = GOLDEN[name][0]()
    reported = Table.open(TABLES / "v1" / f"{name}.slt").description
    for limit in FragmentLimits.__slots__:
        assert getattr(reported.constraints, limit) == getattr(table.limits, limit)
    assert reported.pipeline.delay_us == table.pipeline.delay_us
    assert [
        (stage.name, [(r.up_to_bytes, r.overhead_us, r.ns_per_byte) for r in stage.ranges])
        for stage in reported.pipeline.stages
    ] == [
        (stage.name, [(r.up_to_bytes, r.overhead_us, r.ns_per_byte) for r in stage.ranges])
        for stage in table.pipeline.stages
    ]


@settings(max_examples=count(500, share=30), deadline=None)
@given(st.integers(1, 60), st.sampled_from((1, 2, 48, 512)), st.integers(0, 2**32), st.booleans())
def test_any_table_reads_as_the_domain_reads_it(
    fragments: int, unit: int, seed: int, is_ranged: bool
) -> None:
    """Random cuts, aligned or not."""
    minimum = unit * (fragments + 2)
    blocks = [
        (minimum, minimum + 10_000, fragments),
        (minimum + 10_001, minimum + 2**22, fragments + 1),
    ]
    pipeline = a_ranged_pipeline() if is_ranged else a_line_pipeline()
    limits = FragmentLimits(alignment_bytes=unit)
    table = a_plan_table(blocks, limits=limits, pipeline=pipeline, seed=seed)
    check(Table.from_bytes(encode(table, profile="any", revision=1)), table, seed=seed, times=20)


@pytest.mark.parametrize(
    ("limits", "max_message_bytes"),
    [
        (FragmentLimits(), 20_000),
        # Thousands of entries, which take a quarter of a minute to compile.
        (FragmentLimits(256, 65536, 256, 64), 20_000 if is_campaign() else 4_000),
        (FragmentLimits(100, 9000), 20_000),
    ],
)
def test_a_compiled_table_reads_as_the_domain_reads_it(
    limits: FragmentLimits, max_message_bytes: int
) -> None:
    """What the service compiles, to the byte; however slow the machine."""
    table = compile_table(
        a_line_pipeline(),
        limits,
        min_message_bytes=300,
        max_message_bytes=max_message_bytes,
        relative_gap=0.01,
        time_limit_s=600.0,
    )
    check(Table.from_bytes(encode(table, profile="a", revision=1)), table, seed=5, times=1000)


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    """Whose products would overflow where Python's do not."""
    table = GOLDEN["huge"][0]()
    reader = Table.from_bytes((TABLES / "v1" / "huge.slt").read_bytes())
    for message in (table.min_message_bytes + 12_345, table.max_message_bytes):
        assert reader.schedule(np.int64(message)) == list(table.cut_at(message))
        assert reader.repeat(np.uint64(message)) == table.repeated_size_at(message)


def test_a_message_without_a_repeated_size_has_0() -> None:
    """The limits admit a schedule, and no repeated size."""
    data = encode(the_sparse_example(), profile="", revision=0)
    assert Table.from_bytes(data).repeat(36) == 0
    assert Table.from_bytes(data).schedule(36) == [16, 8, 12]


@pytest.mark.parametrize("message", [0, -1, 1001, 2**64, -(2**70)])
def test_messages_outside_the_range_are_refused(message: int) -> None:
    """With the range, and not with the message."""
    reader = Table.from_bytes(good())
    for lookup in (reader.repeat, reader.schedule, reader.certificate):
        with pytest.raises(OutOfRange, match="1 <= message_bytes <= 1000"):
            lookup(message)


@pytest.mark.parametrize("message", [1.5, "7", None, float("nan")])
def test_what_is_no_whole_number_is_refused(message: object) -> None:
    """As everywhere in Python."""
    reader = Table.from_bytes(good())
    with pytest.raises(TypeError):
        reader.repeat(message)  # type: ignore[arg-type]


# --- files that are not ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files_are_refused(name: str) -> None:
    """Mapped and from memory, for the reason that the service's reader gives."""
    path = TABLES / "malformed" / f"{name}.slt"
    for read in (Table.open, lambda path: Table.from_bytes(path.read_bytes())):
        with pytest.raises(InvalidTable) as refusal:
            read(path)
        assert isinstance(refusal.value, SluiceClientError)
        assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("is_sealed", [False, True])
def test_no_length_but_its_own_is_accepted(name: str, *, is_sealed: bool) -> None:
    """Cut anywhere, with and without length and checksum put right."""
    data = (TABLES / "v1" / f"{name}.slt").read_bytes()
    for length in range(len(data)):
        with pytest.raises(InvalidTable):
            Table.from_bytes(sealed(data[:length]) if is_sealed else data[:length])


def test_every_flipped_bit_is_noticed() -> None:
    """By the checksum or by what stands before it."""
    data = good()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(InvalidTable):
            Table.from_bytes(bytes(flipped))


@settings(max_examples=count(20_000, share=30), deadline=None)
@given(st.sampled_from(sorted(GOLDEN)), st.data())
def test_mutated_files_are_refused_exactly_where_the_service_refuses_them(
    name: str, data: st.DataObject
) -> None:
    """Never another error; what both accept reads alike."""
    mutated = bytearray((TABLES / "v1" / f"{name}.slt").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        _mutate(mutated, data)
    file = sealed(bytes(mutated))
    try:
        table = decode(file).table
    except DomainInvalidTable:
        with pytest.raises(InvalidTable):
            Table.from_bytes(file)
        return
    check(Table.from_bytes(file), table, seed=1, times=20)


@settings(max_examples=count(2000), deadline=None)
@given(st.binary(max_size=600))
def test_noise_is_refused(noise: bytes) -> None:
    """Alone, and behind a prefix that is right."""
    for data in (noise, sealed(good()[:32] + noise)):
        with pytest.raises(InvalidTable):
            Table.from_bytes(data)


@pytest.mark.parametrize("offset", range(96, 168, 8))
@pytest.mark.parametrize("value", INTERESTING)
def test_hostile_counts_and_offsets_cost_no_memory(offset: int, value: int) -> None:
    """Each count, width, offset and length of the header, at values that overflow."""
    data = good()
    hostile = sealed(data[:offset] + struct.pack("<Q", value) + data[offset + 8 :])
    if hostile == data:
        return
    tracemalloc.start()
    try:
        with pytest.raises(InvalidTable):
            Table.from_bytes(hostile)
        assert tracemalloc.get_traced_memory()[1] < 2**18
    finally:
        tracemalloc.stop()


# --- the file itself ------------------------------------------------------------------------------


def test_what_is_no_file_is_the_systems_error(tmp_path: Path) -> None:
    """Not there, and a folder."""
    with pytest.raises(FileNotFoundError):
        Table.open(tmp_path / "none.slt")
    with pytest.raises(IsADirectoryError):
        Table.open(tmp_path)


def test_a_closed_table_answers_no_more(tmp_path: Path) -> None:
    """And gives its file back, once."""
    path = tmp_path / "a.slt"
    path.write_bytes(good())
    reader = Table.open(path)
    reader.close()
    reader.close()
    for lookup in (reader.repeat, reader.schedule, reader.certificate):
        with pytest.raises(ValueError, match="closed"):
            lookup(500)


def test_only_a_regular_file_is_opened(tmp_path: Path) -> None:
    """A pipe is not waited for, and a device not read, as the C library has it."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        for read in (Table.open, TableFile.at):
            with pytest.raises(InvalidTable, match="regular file"):
                read(path)
    with pytest.raises(IsADirectoryError):
        Table.open(tmp_path)


def test_nothing_that_happens_to_the_file_reaches_an_open_table(tmp_path: Path) -> None:
    """Overwritten, shortened, replaced, removed: the old table goes on answering."""
    path, beside = tmp_path / "a.slt", tmp_path / "a.part"
    other = (TABLES / "v1" / "aligned.slt").read_bytes()
    path.write_bytes(good())
    old = Table.open(path)
    path.write_bytes(other)
    assert (old.schedule(333), old.repeat(333)) == ([146, 187], 167)
    os.truncate(path, 0)
    assert (old.schedule(333), old.repeat(333)) == ([146, 187], 167)
    beside.write_bytes(other)
    os.replace(beside, path)
    assert (old.schedule(333), old.repeat(333)) == ([146, 187], 167)
    assert Table.open(path).description.min_message_bytes == 200
    path.unlink()
    assert (old.schedule(333), old.repeat(333)) == ([146, 187], 167)


def test_a_file_too_long_for_memory_is_not_read(tmp_path: Path) -> None:
    """A hole of 64 GiB behind the header of a table."""
    path = tmp_path / "a.slt"
    path.write_bytes(good())
    os.truncate(path, 1 << 36)
    with pytest.raises(InvalidTable, match="at most"):
        Table.open(path)


def test_bytes_that_the_caller_may_change_are_copied() -> None:
    """What is written into them later reaches no table."""
    data = bytearray(good())
    reader = Table.from_bytes(data)
    data[:] = bytes(len(data))
    assert reader.schedule(333) == [146, 187]


def test_no_interleaving_of_changes_hurts_a_reader(tmp_path: Path) -> None:
    """Opening beside a process that changes the file, and is killed: an answer, or an error."""
    path, rng = tmp_path / "a.slt", random.Random(5)
    files = [good(), (TABLES / "v1" / "aligned.slt").read_bytes()]
    others = [tmp_path / "0.other", tmp_path / "1.other"]
    for other, data in zip(others, files, strict=True):
        other.write_bytes(data)
    steps, opened, refused = count(100_000, share=100), 0, 0
    for begin in range(0, steps, 250):
        with disturbing(path, others):
            for _ in range(begin, min(begin + 250, steps)):
                file_changes.change(path, files, rng)
                try:
                    reader = Table.open(path)
                except (InvalidTable, FileNotFoundError):
                    refused += 1
                    continue
                opened += 1
                file_changes.change(path, files, rng)
                check_answers(reader, rng)
        if opened:
            read_in_a_child_that_is_killed(reader, rng)
    assert min(opened, refused) > steps // 50


def check_answers(reader: Table, rng: random.Random) -> None:
    """A schedule sums to its message and keeps the limits; so does a repeated size."""
    about = reader.description
    limits = about.constraints
    message = rng.randint(about.min_message_bytes, about.max_message_bytes)
    maximum, unit = limits.max_fragment_bytes or message, limits.alignment_bytes
    fragments, size = reader.schedule(message), reader.repeat(message)
    repeated = [size] * (message // size) + [message % size] if size else []
    for sizes in (fragments, [one for one in repeated if one] or fragments):
        assert sum(sizes) == message
        assert all(one % unit == 0 for one in sizes[:-1])
        assert 1 <= min(sizes) <= max(sizes) <= maximum
        assert len(sizes) == 1 or min(sizes) >= limits.min_fragment_bytes
        assert len(sizes) <= min(limits.max_fragments or about.fragment_cap, about.fragment_cap)


@contextlib.contextmanager
def disturbing(path: Path, others: list[Path]) -> Iterator[None]:
    """A process that changes the file all the time, killed at the end wherever it is."""
    command = [sys.executable, "-I", "-S", file_changes.__file__, str(path), *map(str, others)]
    with subprocess.Popen(command) as other:
        try:
            yield
        finally:
            other.kill()
    assert other.returncode == -signal.SIGKILL


def read_in_a_child_that_is_killed(reader: Table, rng: random.Random) -> None:
    """What a fork has of a table is its own, and what becomes of the child reaches nobody."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(5)
            check_answers(reader, rng)
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    check_answers(reader, rng)


def test_a_table_is_found_by_the_convention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of the C library: SLUICE_TABLE alone where it is set, then the user's folder."""
    folder = tmp_path / ".config" / "sluice"
    folder.mkdir(parents=True)
    (folder / "rack.2.slt").write_bytes(good())
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("SLUICE_TABLE", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert Table.find("rack.2").description.profile == "worked-example"
    with pytest.raises(FileNotFoundError, match=r"absent\.slt"):
        Table.find("absent")
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    assert Table.find("rack.2").description.profile == "worked-example"
    monkeypatch.setenv("SLUICE_TABLE", str(TABLES / "v1"))
    assert Table.find("aligned").description.min_message_bytes == 200
    with pytest.raises(FileNotFoundError):
        Table.find("rack.2")
    monkeypatch.setenv("SLUICE_TABLE", str(TABLES / "v1" / "sparse.slt"))
    assert Table.find("any").description.min_message_bytes == 35
    monkeypatch.setenv("SLUICE_TABLE", "/nowhere/a.slt")
    with pytest.raises(FileNotFoundError):
        Table.find("any")


@pytest.mark.parametrize("name", ["", "../a", "a/b", "A", ".a", "a b", "a\n", "a" * 65])
def test_what_is_no_name_is_not_looked_for(name: str) -> None:
    """Nor does it lead out of the folder."""
    with pytest.raises(ValueError, match="expected a name"):
        Table.find(name)


def test_threads_share_a_table() -> None:
    """Lookups change nothing."""
    table = a_plan_table([(100, 4000, 30), (4001, 2**20, 31)])
    reader = Table.from_bytes(encode(table, profile="", revision=0))
    messages = random.Random(3).sample(range(100, 2**20), 300)
    expected = [list(table.cut_at(message)) for message in messages]
    found: list[bool] = []

    def lookup() -> None:
        found.append([reader.schedule(message) for message in messages] == expected)

    threads = [threading.Thread(target=lookup) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


@pytest.mark.parametrize("code", ["I", "Q"])
def test_numbers_read_alike_on_machines_of_the_other_order(code: str) -> None:
    """They are turned round there; here the same bytes, already turned, stand in."""
    values = [0, 1, 2**31, 0x01020304]
    little = struct.pack(f"<{len(values)}{code}", *values)
    big = struct.pack(f">{len(values)}{code}", *values)
    assert numbers(memoryview(little), code, byteorder="little").tolist() == values  # type: ignore[arg-type]
    assert numbers(memoryview(big), code, byteorder="big").tolist() == values  # type: ignore[arg-type]


def test_the_reader_needs_nothing_but_python() -> None:
    """Without site-packages at all, and without importing the client."""
    program = (
        "import sys; from sluice_client import Table, InvalidTable; "
        f"print(Table.open({str(TABLES / 'v1' / 'worked-example.slt')!r}).schedule(333)); "
        "print('httpx' in sys.modules, 'asyncio' in sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _with_sources(program)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.splitlines() == ["[146, 187]", "False False"]


def _with_sources(program: str) -> str:
    sources = str(ROOT / "clients" / "python" / "src")
    return f"import sys; sys.path.insert(0, {sources!r}); {program}"


def _mutate(data: bytearray, choose: st.DataObject) -> None:
    kind = choose.draw(st.sampled_from(("byte", "u32", "u64", "near", "cut", "twice", "swap")))
    at = choose.draw(st.integers(0, max(0, len(data) - 1)))
    word = at // 8 * 8
    if kind == "byte":
        data[at : at + 1] = bytes([choose.draw(st.integers(0, 255))])
    elif kind == "u32":
        value = choose.draw(st.sampled_from(INTERESTING)) & (2**32 - 1)
        data[at // 4 * 4 : at // 4 * 4 + 4] = struct.pack("<I", value)
    elif kind == "u64":
        data[word : word + 8] = struct.pack("<Q", choose.draw(st.sampled_from(INTERESTING)))
    elif kind == "near":
        value = int.from_bytes(data[word : word + 8], "little") + choose.draw(st.integers(-3, 3))
        data[word : word + 8] = (value % 2**64).to_bytes(8, "little")
    elif kind == "cut":
        del data[at:]
    elif kind == "twice":
        data[word:word] = data[word : word + 40]
    else:
        data[word : word + 16] = data[word + 8 : word + 16] + data[word : word + 8]
