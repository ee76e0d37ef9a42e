"""The exports to cuFile and to S3 clients, and their readers."""

from __future__ import annotations

import configparser
import hashlib
import json
import os
import shutil
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting
from exports.targets.path_thresholds import S3_THRESHOLD
from exports.targets.storage import CUFILE_TARGET, S3_TARGET
from exports.targets.target import Target
from tests.exports.given import given_for
from tests.support.counts import is_campaign

MIB = 2**20


def rendered(target: Target, size: int, **options: str) -> str:
    """The export of one size."""
    return target.render(given_for(target, options, setting=FragmentSetting.always(size)))


def read(target: Target, text: str) -> int | None:
    """The one size of a text."""
    assert target.read is not None
    return target.read(text).steps[0].size_bytes


@pytest.mark.parametrize("parameter", ["per_buffer_cache_size_kb", "max_direct_io_size_kb"])
@pytest.mark.parametrize("size", [65_536, MIB, 16 * MIB])
def test_cufile_takes_kib_below_properties(parameter: str, size: int) -> None:
    """In JSON with comments, and the reader gives the bytes back."""
    text = rendered(CUFILE_TARGET, size, parameter=parameter)
    lines = [line for line in text.splitlines() if not line.startswith("//")]
    assert json.loads("\n".join(lines)) == {"properties": {parameter: size // 1024}}
    assert read(CUFILE_TARGET, text) == size


def test_no_gain_is_known_of_storage() -> None:
    """Several requests at once may turn it round, and cuFile's batches leave the buffers."""
    for target in (CUFILE_TARGET, S3_TARGET):
        assert any(one.may_lose for one in target.unpriced(target.options_from({})))


def test_a_cufile_json_that_people_have() -> None:
    """Comments name both properties, one of them is set."""
    text = (
        '// "max_direct_io_size_kb" : 16384,\n{ "properties": {\n'
        '  "per_buffer_cache_size_kb" : 2048, // 4K aligned\n  "io_batchsize": 128\n} }\n'
    )
    assert read(CUFILE_TARGET, text) == 2 * MIB
    with pytest.raises(InvalidInput, match="ambiguous"):
        read(CUFILE_TARGET, text.replace("// ", ""))
    with pytest.raises(InvalidInput, match="per_buffer_cache_size_kb"):
        read(CUFILE_TARGET, "{}")


@pytest.mark.parametrize("size", [5 * MIB, 8 * MIB + 1024, 5 * 1024 * MIB])
def test_each_client_has_its_own_words(size: int) -> None:
    """Bytes for all of them; rclone would take a plain number for KiB."""
    boto3 = rendered(S3_TARGET, size, form="boto3")
    names: dict[str, object] = {}
    line = next(one for one in boto3.splitlines() if one.startswith("transfer_config"))
    exec(line, {"TransferConfig": dict}, names)
    assert names["transfer_config"] == {"multipart_chunksize": size}
    aws = configparser.ConfigParser()
    aws.read_string(rendered(S3_TARGET, size, form="aws"))
    assert aws["default"]["s3"].split("\n") == ["", f"multipart_chunksize = {size}"]
    assert rendered(S3_TARGET, size, form="rclone").endswith(f"\nRCLONE_S3_CHUNK_SIZE={size}B\n")
    for form in ("boto3", "aws", "rclone"):
        assert read(S3_TARGET, rendered(S3_TARGET, size, form=form)) == size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("[profile x]\ns3 =\n  multipart_chunksize = 64MB\n", 64 * MIB),
        ("aws configure set default.s3.multipart_chunksize 16777216", 16 * MIB),
        ("config = TransferConfig(multipart_threshold=1, multipart_chunksize=8388608)", 8 * MIB),
        ("rclone copy a b --s3-chunk-size 64M --transfers 8", 64 * MIB),
        ("export RCLONE_S3_CHUNK_SIZE=5Mi", 5 * MIB),
        ("[remote]\nchunk_size = 8192\n", 8 * MIB),
    ],
)
def test_settings_that_people_have(text: str, size: int) -> None:
    """In the units of each client."""
    assert read(S3_TARGET, text) == size


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("", "expected a line such as"),
        ("multipart_chunksize = 0\n", "at least 1 byte"),
        ("multipart_chunksize = 8MB\n--s3-chunk-size 5M\n", "ambiguous"),
        ("multipart_chunksize = 999999999999G\n", "at most"),
    ],
)
def test_what_is_no_setting_is_refused(text: str, stated: str) -> None:
    """Naming the rule."""
    with pytest.raises(InvalidInput, match=stated):
        read(S3_TARGET, text)


@pytest.mark.parametrize(
    ("target", "size"),
    [(CUFILE_TARGET, 65_000), (CUFILE_TARGET, 32 * MIB), (S3_TARGET, 4 * MIB), (S3_TARGET, 2**33)],
)
def test_sizes_that_the_library_does_not_take_are_refused(target: Target, size: int) -> None:
    """Below, above and between."""
    with pytest.raises(InvalidInput):
        rendered(target, size)


# --- in a campaign: the clients themselves, against a server of parts -----------------------------

_UPLOADED = 17 * MIB + 5
_ANSWERS = {  # of a multipart upload: its begin and its end
    "POST uploads": "<InitiateMultipartUploadResult><UploadId>1</UploadId>"
    "</InitiateMultipartUploadResult>",
    "POST uploadId": "<CompleteMultipartUploadResult><ETag>1</ETag>"
    "</CompleteMultipartUploadResult>",
}
_BOTO3 = (
    "\nimport boto3, sys\n"
    "boto3.client('s3').upload_file(sys.argv[1], 'bucket', 'key', Config=transfer_config)\n"
)


class _Parts(BaseHTTPRequestHandler):
    """Takes an upload, and notes how long its parts are, or the whole of it."""

    protocol_version = "HTTP/1.1"
    found: ClassVar[dict[int, int]] = {}
    whole: ClassVar[int] = 0

    def do_PUT(self) -> None:
        body = self._body()
        part = parse_qs(urlsplit(self.path).query).get("partNumber")
        if part is not None:
            self.found[int(part[0])] = len(body)
        else:
            _Parts.whole = len(body)
        self._answer("", ETag=f'"{hashlib.md5(body).hexdigest()}"')

    def do_POST(self) -> None:
        self._body()
        query = urlsplit(self.path).query
        kind = "uploads" if query.startswith("uploads") else "uploadId"
        self._answer(_ANSWERS[f"POST {kind}"])

    def do_HEAD(self) -> None:
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self._answer("<ListBucketResult></ListBucketResult>")

    def log_message(self, *_: object) -> None:
        """Nothing: what came is counted."""

    def _body(self) -> bytes:
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        if self.headers.get("Transfer-Encoding") != "chunked":
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            return _unwrapped(body) if "x-amz-decoded-content-length" in self.headers else body
        pieces = bytearray()
        while length := int(self.rfile.readline(), 16):
            pieces += self.rfile.read(length)
            self.rfile.readline()
        self.rfile.readline()
        return _unwrapped(pieces)

    def _answer(self, text: str, **headers: str) -> None:
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())


def _unwrapped(body: bytes | bytearray) -> bytes:
    """What aws-chunked wraps: lengths and checksums around the bytes."""
    found, rest = bytearray(), bytes(body)
    while rest:
        head, _, rest = rest.partition(b"\r\n")
        length = int(head.partition(b";")[0], 16)
        if not length:
            break
        found += rest[:length]
        rest = rest[length + 2 :]
    return bytes(found)


class TestByTheClients:
    """The parts that real clients send under the export: where they are, in a campaign."""

    __test__ = is_campaign()

    @pytest.mark.parametrize("size", [5 * MIB, 6 * MIB + 1024])
    @pytest.mark.parametrize("form", ["aws", "boto3", "rclone"])
    def test_a_file_goes_in_parts_of_this_size(self, form: str, size: int, tmp_path: Path) -> None:
        found = self._parts(form, rendered(S3_TARGET, size, form=form), _UPLOADED, tmp_path)
        whole, rest = divmod(_UPLOADED, size)
        assert found == [size] * whole + [rest]

    @pytest.mark.parametrize("form", ["aws", "boto3"])
    def test_a_file_goes_in_parts_from_the_threshold_on(self, form: str, tmp_path: Path) -> None:
        size = 9 * MIB + 1
        text = S3_THRESHOLD.render(size, S3_THRESHOLD.options_from({"form": form}), ())
        assert self._parts(form, text, size - 1, tmp_path) == []
        assert self._parts(form, text, size, tmp_path) == [8 * MIB, MIB + 1]

    def _parts(self, form: str, text: str, file_bytes: int, folder: Path) -> list[int]:
        """How long the parts are in which a client sends a file, none where it is sent whole."""
        file = folder / "file"
        file.write_bytes(bytes(file_bytes))
        server = ThreadingHTTPServer(("127.0.0.1", 0), _Parts)
        _Parts.found, _Parts.whole = {}, 0
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}"
            said = self._upload(form, text, file, address, folder)
        finally:
            server.shutdown()
            server.server_close()
        assert sum(_Parts.found.values()) + _Parts.whole == file_bytes, said
        return [_Parts.found[part] for part in sorted(_Parts.found)]

    def _upload(self, form: str, text: str, file: Path, address: str, folder: Path) -> str:
        """Send it, and return what the client says."""
        config = folder / "config"
        config.write_text(text)
        own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        environment = {
            **own,
            "AWS_CONFIG_FILE": str(config) if form == "aws" else str(folder / "none"),
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": address,
            "RCLONE_CONFIG": str(folder / "rclone.conf"),
        }
        if form == "rclone":
            lines = (one for one in text.splitlines() if one and one[0] != "#")
            environment |= dict(one.split("=", 1) for one in lines)
            remote = f":s3,provider=Minio,env_auth,endpoint='{address}':bucket/"
            words = ["rclone", "copy", "--s3-upload-cutoff=5M", "--s3-no-check-bucket"]
            words += ["--retries=1", "--ignore-times", str(file), remote]
        elif form == "boto3":
            words = ["python3", "-c", text + _BOTO3, str(file)]
        else:
            words = ["aws", "s3", "cp", str(file), "s3://bucket/key"]
        asked = ["python3", "-c", "import boto3"] if form == "boto3" else [words[0], "version"]
        if form == "aws":
            asked[-1] = "--version"
        if shutil.which(words[0]) is None or subprocess.run(asked, capture_output=True).returncode:
            pytest.skip(f"not here: {form}")
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
        return done.stderr[-2000:]
