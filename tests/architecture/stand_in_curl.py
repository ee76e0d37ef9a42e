"""The part of curl that the documents use, for machines that have none.

Run as `python stand_in_curl.py [-s] [-i] [-N] [-X METHOD] [-H HEADER] [-d DATA] URL`. An option
that it does not know ends it with exit code 2, as curl does.
"""

from __future__ import annotations

import http.client
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

_FLAGS = "siN"


@dataclass(slots=True)
class Call:
    """What the arguments ask for."""

    url: str = ""
    method: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    shows_headers: bool = False


def parse(arguments: Sequence[str]) -> Call:
    """The call. Raises ValueError for an option that is not known."""
    call, words = Call(), iter(arguments)
    for word in words:
        if word == "-X":
            call.method = next(words)
        elif word == "-H":
            name, _, value = next(words).partition(":")
            call.headers[name.strip().lower()] = value.strip()
        elif word in ("-d", "--data", "--data-binary"):
            call.body = _data(next(words), keeps_lines=word == "--data-binary")
        elif word.startswith("-"):
            if not set(word[1:]) <= set(_FLAGS):
                raise ValueError(f"option {word} is not known")
            call.shows_headers |= "i" in word
        else:
            call.url = word
    return call


def _data(given: str, *, keeps_lines: bool) -> bytes:
    if not given.startswith("@"):
        return given.encode()
    raw = sys.stdin.buffer.read() if given == "@-" else Path(given[1:]).read_bytes()
    return raw if keeps_lines else raw.replace(b"\r", b"").replace(b"\n", b"")


def main(arguments: Sequence[str]) -> int:
    """Make the call and print its answer."""
    try:
        call = parse(arguments)
    except ValueError as refusal:
        print(f"curl: {refusal}", file=sys.stderr)
        return 2
    address = urlsplit(call.url if "//" in call.url else f"http://{call.url}")
    connection = http.client.HTTPConnection(address.netloc, timeout=60)
    target = address.path + (f"?{address.query}" if address.query else "")
    headers = {"accept": "*/*", **call.headers}
    if call.body is not None:
        headers.setdefault("content-type", "application/x-www-form-urlencoded")
    method = call.method or ("GET" if call.body is None else "POST")
    connection.request(method, target, body=call.body, headers=headers)
    response = connection.getresponse()
    out = sys.stdout.buffer
    if call.shows_headers:
        out.write(f"HTTP/1.1 {response.status} {response.reason}\r\n".encode())
        out.writelines(f"{name}: {value}\r\n".encode() for name, value in response.getheaders())
        out.write(b"\r\n")
    out.write(response.read())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
