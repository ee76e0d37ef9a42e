"""The exports to cuFile and to S3 clients, and their readers."""

from __future__ import annotations

import configparser
import json

import pytest

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting
from exports.targets.storage import CUFILE_TARGET, S3_TARGET
from exports.targets.target import Target
from tests.exports.given import given_for

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
