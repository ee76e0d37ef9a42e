"""The JSON twin: what it refuses. What it holds is tested with the table files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import InvalidTable
from exports.table.twin import decode_json, encode_json
from tests.support.counts import count
from tests.support.plan_tables import GOLDEN, the_worked_example

ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1.5, 2**64, 10**4000, 1e308, "", "x" * 70, [], [1], {}, {"a": 1}, [[]]]
)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b"[" * 100_000,
        b"1" * 5000,
        b'{"format": NaN}',
        b'{"format": Infinity}',
        b'{"a": 1} trailing',
    ],
)
def test_what_is_no_plan_table_is_refused(text: bytes) -> None:
    """With one error, whatever the parser thinks of it."""
    with pytest.raises(InvalidTable):
        decode_json(text)


@settings(max_examples=count(5000, share=30), deadline=None)
@given(st.sampled_from(sorted(GOLDEN)), st.data())
def test_a_document_with_one_odd_value_is_refused_or_means_it(
    name: str, data: st.DataObject
) -> None:
    """Any value anywhere replaced, dropped or added: InvalidTable or a whole plan table."""
    make, profile, revision = GOLDEN[name]
    document = json.loads(encode_json(make(), profile=profile, revision=revision))
    places = list(_places(document))
    holder, key = data.draw(st.sampled_from(places))
    action = data.draw(st.sampled_from(("replace", "drop", "add")))
    if action == "replace":
        holder[key] = data.draw(ODD)
    elif action == "drop":
        del holder[key]
    elif isinstance(holder, dict):
        holder["more"] = data.draw(ODD)
    else:
        holder.append(data.draw(ODD))
    try:
        stored = decode_json(json.dumps(document).encode())
    except InvalidTable:
        return
    again = encode_json(stored.table, profile=stored.profile, revision=stored.revision)
    assert decode_json(again) == stored


def test_numbers_too_large_are_refused() -> None:
    """Those that JSON holds and no double does."""
    text = encode_json(the_worked_example(), profile="", revision=0)
    for number in (b"1e999", b"9" * 400, b"-1e999"):
        with pytest.raises(InvalidTable):
            decode_json(text.replace(b'"delay_us":0.0', b'"delay_us":' + number))


def test_true_is_no_number() -> None:
    """Python's own bool is an int."""
    text = encode_json(the_worked_example(), profile="", revision=0)
    for field in (b'"version":1', b'"min_message_bytes":1', b'"min_fragment_bytes":1'):
        with pytest.raises(InvalidTable):
            decode_json(text.replace(field, field[:-1] + b"true"))


def _places(value: Any) -> Any:
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def test_a_refusal_does_not_quote_at_length() -> None:
    """A number of thousands of digits, a name of thousands of letters."""
    text = encode_json(the_worked_example(), profile="", revision=0)
    for field, value in (
        (b'"fragment_cap":1000', b"7" * 4000),
        (b'"profile":""', b'"' + b"q" * 9999 + b'"'),
    ):
        name = field.split(b":")[0]
        with pytest.raises(InvalidTable) as refusal:
            decode_json(text.replace(field, name + b":" + value))
        assert len(refusal.value.detail) < 200
