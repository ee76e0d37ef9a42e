"""A corpus of bodies that no operation may choke on. Every entry: a name and the bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator

MARK = "MARKER7f3a"  # part of many inputs; it may not come back in any answer
DEEP = (100, 1_000, 10_000, 100_000, 1_000_000)


def bodies(valid: bytes, number: bytes) -> Iterator[tuple[str, bytes]]:
    """The corpus for an operation with this valid body, in which `number` is a number to spoil."""
    yield from _texts()
    yield from _documents()
    yield from _spoiled_numbers(valid, number)
    yield from _damaged(valid)
    yield from _large()


def _texts() -> Iterator[tuple[str, bytes]]:
    yield "empty", b""
    yield "spaces", b" \t\r\n "
    yield "binary", bytes(range(256))
    yield "not utf-8", b'{"name": "\xff\xfe"}'
    yield "utf-16", '{"a": 1}'.encode("utf-16")
    yield "byte order mark", b"\xef\xbb\xbf{}"
    yield "nul", b"\x00"
    yield "form", b"message_bytes=4096&profile=gms"
    yield "xml", b"<?xml version='1.0'?><!DOCTYPE x [<!ENTITY e 'eeee'>]><x>&e;</x>"
    yield "single quotes", b"{'message_bytes': 1}"
    yield "comment", b"{} // " + MARK.encode()
    yield "trailing comma", b'{"message_bytes": 1,}'
    yield "two documents", b"{}{}"
    yield "gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"
    for size in (1, 64, 4096):
        yield f"{size} quotes", b'"' * size
        yield f"{size} backslashes", b'"' + b"\\" * size


def _documents() -> Iterator[tuple[str, bytes]]:
    for text in ("null", "true", "0", "-0", "1e999", "NaN", "Infinity", '""', "[]", "{}", "[{}]"):
        yield f"only {text}", text.encode()
    yield "marked string", json.dumps(MARK).encode()
    yield "unknown field", json.dumps({"x": MARK}).encode()
    yield "lone surrogate", b'{"message_bytes": 1, "profile": "\\ud800"}'
    yield "lone low surrogate", b'{"message_bytes": 1, "profile": "\\udc00\\ud800"}'
    yield "escaped nul", b'{"message_bytes": 1, "profile": "gms\\u0000"}'
    yield "duplicate keys", b'{"message_bytes": 1, "message_bytes": "' + MARK.encode() + b'"}'
    yield "duplicate keys in a list", b'{"pipeline": {"stages": [{"name": "a", "name": "b"}]}}'
    yield "duplicate keys, one escaped", b'{"profile": "gms", "pr\\u006ffile": "gms"}'
    yield "keys that mean something elsewhere", b'{"__proto__": {}, "$ref": "#", "constructor": 1}'


def _spoiled_numbers(valid: bytes, number: bytes) -> Iterator[tuple[str, bytes]]:
    spoils = {
        "NaN": b"NaN",
        "-NaN": b"-NaN",
        "Infinity": b"Infinity",
        "-Infinity": b"-Infinity",
        "1e999": b"1e999",
        "-1e999": b"-1e999",
        "1e308": b"1e308",
        "negative": b"-1",
        "quoted NaN": b'"NaN"',
        "quoted number": b'"1"',
        "hexadecimal": b"0x10",
        "octal": b"010",
        "plus": b"+1",
        "bare point": b".5",
        "underscore": b"1_0",
        "true": b"true",
        "null": b"null",
        "list": b"[1]",
        "object": b'{"$numberLong": "1"}',
        "huge": b"9" * 30,
        "4000 digits": b"9" * 4_000,
        "5000 digits": b"9" * 5_000,
        "a million digits": b"9" * 1_000_000,
        "a million decimals": b"0." + b"1" * 1_000_000 + b"e999999999",
        "a long exponent": b"1e" + b"9" * 5_000,
    }
    for name, spoil in spoils.items():
        yield f"number {name}", valid.replace(number, spoil, 1)


def _damaged(valid: bytes) -> Iterator[tuple[str, bytes]]:
    for cut in range(1, len(valid), max(1, len(valid) // 12)):
        yield f"cut at {cut}", valid[:cut]
    yield "doubled", valid + valid
    for number in (b"1", b"1e999", b"NaN", b"9" * 5_000):
        first = b'"' + valid.split(b'"')[1] + b'": '
        yield f"a field twice, first {number[:9]!r}", b"{" + first + number + b", " + valid[1:]
    yield "unknown field added", valid[:-1] + b', "' + MARK.encode() + b'": 1}'
    yield "a control character", valid[:1] + b"\x01" + valid[1:]


def _large() -> Iterator[tuple[str, bytes]]:
    for depth in DEEP:
        yield f"{depth} lists deep", b"[" * depth + b"]" * depth
        yield f"{depth} lists deep, open", b"[" * depth
        yield f"{depth} objects deep", b'{"pipeline":' * (depth // 8) + b"1" + b"}" * (depth // 8)
    yield "no stages", b'{"message_bytes": 1, "pipeline": {"stages": []}}'
    stage = b'{"name": "s", "overhead_us": 1, "ns_per_byte": 1}'
    for count in (65, 1_000, 50_000):
        stages = b",".join([stage] * count)
        yield f"{count} stages", b'{"message_bytes": 1, "pipeline": {"stages": [' + stages + b"]}}"
    for item, count in ((b"{}", 1_000_000), (b"1", 1_000_000), (b'""', 1_000_000), (b"[]", 10**6)):
        listed = b",".join([item] * count)
        yield (
            f"{count} x {item!r}",
            b'{"message_bytes": 1, "pipeline": {"stages": [' + listed + b"]}}",
        )
    keys = b",".join(b'"%x":1' % number for number in range(300_000))
    yield "300000 unknown fields", b"{" + keys + b"}"
    few = b",".join(b'"%x":1' % number for number in range(5_000))
    yield "5000 unknown fields", b"{" + few + b"}"
    escaped = b",".join([rb'"\\"'] * 500_000)
    yield "500000 escaped strings", b'{"x": [' + escaped + b"]}"
    quotes = rb"\"" * 1_000_000
    yield "a string of a million quotes", b'{"message_bytes": 1, "profile": "' + quotes + b'"}'
    long_key = b"k" * 1_000_000
    yield "a field name of a megabyte", b'{"' + long_key + b'": 1}'
    yield "a field name of a megabyte, twice", b'{"' + long_key + b'": 1, "' + long_key + b'": 1}'
    yield "a lone surrogate twice", rb'{"\ud800": 1, "\ud800": 1}'
    yield "a string of a megabyte", b'{"message_bytes": 1, "profile": "' + long_key + b'"}'
