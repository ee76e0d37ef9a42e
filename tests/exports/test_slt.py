"""Table files: the golden ones, round trips, and whatever else comes along."""

from __future__ import annotations

import struct
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.limits import MAX_RANGES, MAX_STAGES
from domain.errors import InvalidInput, InvalidTable
from domain.pipeline import FitRange, Pipeline, Stage
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits
from exports.table.slt import decode, digest_of, encode
from exports.table.stored import StoredTable
from exports.table.twin import decode_json, encode_json
from tests.support.counts import count
from tests.support.malformed_tables import MALFORMED, good, sealed
from tests.support.plan_tables import GOLDEN, a_line_pipeline, a_plan_table, a_ranged_pipeline

TABLES = Path(__file__).parents[1] / "data" / "tables"
INTERESTING = (0, 1, 2, 7, 8, 39, 40, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**48, 2**63, 2**64 - 1)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_files_are_written_and_read_as_ever(name: str) -> None:
    """Byte for byte, and the twin beside them: version 1 is a promise."""
    make, profile, revision = GOLDEN[name]
    expected = StoredTable(profile, revision, make())
    binary = (TABLES / "v1" / f"{name}.slt").read_bytes()
    twin = (TABLES / "v1" / f"{name}.json").read_bytes()
    assert encode(make(), profile=profile, revision=revision) == binary
    assert encode_json(make(), profile=profile, revision=revision) == twin
    assert decode(binary) == decode_json(twin) == expected


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files_are_refused_for_what_they_are(name: str) -> None:
    """Those checked in are those made here, and each is refused for its own reason."""
    change, reason = MALFORMED[name]
    data = (TABLES / "malformed" / f"{name}.slt").read_bytes()
    assert data == change(good())
    with pytest.raises(InvalidTable, match=reason):
        decode(data)


def test_every_malformed_file_that_is_checked_in_is_known() -> None:
    """None lies there unread."""
    assert {path.stem for path in (TABLES / "malformed").iterdir()} == set(MALFORMED)


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("is_sealed", [False, True])
def test_no_length_but_its_own_is_accepted(name: str, *, is_sealed: bool) -> None:
    """Cut anywhere, with and without length and checksum put right."""
    data = (TABLES / "v1" / f"{name}.slt").read_bytes()
    for length in range(len(data)):
        with pytest.raises(InvalidTable):
            decode(sealed(data[:length]) if is_sealed else data[:length])


def test_every_flipped_bit_is_noticed() -> None:
    """By the checksum or by what stands before it."""
    data = good()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(InvalidTable):
            decode(bytes(flipped))


@settings(max_examples=count(20_000, share=30), deadline=None)
@given(st.sampled_from(sorted(GOLDEN)), st.data())
def test_mutated_files_are_refused_or_mean_what_they_say(name: str, data: st.DataObject) -> None:
    """Never another error; what is accepted is exactly what the writer would write of it."""
    mutated = bytearray((TABLES / "v1" / f"{name}.slt").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        _mutate(mutated, data)
    mutated = bytearray(sealed(bytes(mutated)))
    try:
        stored = decode(bytes(mutated))
    except InvalidTable:
        return
    again = encode(stored.table, profile=stored.profile, revision=stored.revision)
    assert again == bytes(mutated)
    _check_lookups(stored.table)


@settings(max_examples=count(2000), deadline=None)
@given(st.binary(max_size=600))
def test_noise_is_refused(noise: bytes) -> None:
    """Alone, and behind a prefix that is right."""
    for data in (noise, sealed(good()[:32] + noise)):
        with pytest.raises(InvalidTable):
            decode(data)


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
            decode(hostile)
        assert tracemalloc.get_traced_memory()[1] < 2**18
    finally:
        tracemalloc.stop()


@settings(max_examples=count(500), deadline=None)
@given(st.integers(1, 40), st.sampled_from((1, 8, 64)), st.integers(0, 2**32), st.booleans())
def test_what_is_written_reads_back(fragments: int, unit: int, seed: int, is_ranged: bool) -> None:
    """Random plan tables, in both forms, the same bytes each time."""
    minimum = unit * (fragments + 2)
    blocks = [(minimum, minimum + 999, fragments), (minimum + 1000, minimum + 1000, 1)]
    pipeline = a_ranged_pipeline() if is_ranged else a_line_pipeline()
    limits = FragmentLimits(alignment_bytes=unit)
    table = a_plan_table(blocks, limits=limits, pipeline=pipeline, seed=seed)
    stored = StoredTable("a.b-c_d", 7, table)
    binary = encode(table, profile="a.b-c_d", revision=7)
    assert decode(binary) == stored
    assert binary == encode(table, profile="a.b-c_d", revision=7)
    assert len(binary) % 8 == 0
    assert decode_json(encode_json(table, profile="a.b-c_d", revision=7)) == stored


def test_the_largest_pipeline_reads_back() -> None:
    """64 stages of 64 ranges, names of 100 characters of four bytes."""
    ends = [*range(1, MAX_RANGES), None]
    ranges = tuple(FitRange(i / 3, i / 7, end) for i, end in enumerate(ends))
    pipeline = Pipeline(tuple(Stage("\N{GRINNING FACE}" * 100, ranges) for _ in range(MAX_STAGES)))
    table = replace(a_plan_table(), pipeline=pipeline)
    assert decode(encode(table, profile="", revision=0)).table == table


@pytest.mark.parametrize(
    ("profile", "revision"),
    [("", 1), ("a", 0), ("a", 2**31), ("A", 1), ("a" * 65, 1), ("a\n", 1), ("é", 1), ("a", -1)],
)
def test_only_a_revision_has_a_name(profile: str, revision: int) -> None:
    """Refused by both writers before anything is written."""
    for write in (encode, encode_json):
        with pytest.raises(InvalidInput):
            write(a_plan_table(), profile=profile, revision=revision)


def test_a_stage_name_that_is_no_text_is_refused() -> None:
    """A lone surrogate has no bytes."""
    stage = Stage.of_line("\ud800", overhead_us=1.0, ns_per_byte=1.0)
    table = replace(a_plan_table(), pipeline=Pipeline((stage,)))
    for write in (encode, encode_json):
        with pytest.raises(InvalidTable, match="surrogates"):
            write(table, profile="", revision=0)


def test_the_digest_is_the_one_of_the_bytes() -> None:
    """SHA-256, so that any tool computes it."""
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest_of(b"") == empty
    assert digest_of(good()) != digest_of(good()[:-1])


def test_a_minus_before_zero_is_not_written() -> None:
    """Both forms of a table that holds one read back equal."""
    table = a_plan_table()
    first, *others = table.cuts
    table = replace(table, cuts=(replace(first, relative_gap=-0.0), *others))
    assert decode(encode(table, profile="", revision=0)).table == table
    assert b"-0.0" not in encode_json(table, profile="", revision=0)


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


def _check_lookups(table: PlanTable) -> None:
    middle = (table.min_message_bytes + table.max_message_bytes) // 2
    for message in {table.min_message_bytes, middle, table.max_message_bytes}:
        assert sum(table.cut_at(message)) == message
        assert table.repeated_size_at(message) >= 0


def test_the_worked_example_is_as_the_document_says() -> None:
    """docs/format.md, in its own numbers."""
    table = decode(good()).table
    assert table.cut_at(333) == (146, 187)
    assert table.cut_at(50) == (50,)
    assert table.repeated_size_at(333) == 167
    assert (233 << 32) // 900 == 1_111_919_311
    assert good()[0x220:0x228] == struct.pack("<II", 40, 450)
    assert (len(good()), good()[24:28].hex()) == (648, "394a2079")
