"""The Mooncake export and its reader."""

from __future__ import annotations

import json

import pytest

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting
from exports.targets.mooncake import SIZES, TARGET, read
from tests.exports.given import given_for

FORMS = ("rdma", "tcp", "tent")


def lines_of(text: str) -> list[str]:
    """Lines that are no comments."""
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_each_form_names_the_variable_of_its_transport() -> None:
    """The rest of a message is a ratio of the size, never Mooncake's fixed 16 KiB."""
    setting = FragmentSetting.always(2**20)
    given = {
        form: TARGET.render(given_for(TARGET, {"form": form}, setting=setting)) for form in FORMS
    }
    assert lines_of(given["rdma"]) == ["MC_SLICE_SIZE=1048576", "MC_FRAGMENT_RATIO=4"]
    assert lines_of(given["tcp"]) == ["MC_TCP_SLICE_SIZE=1048576"]
    document = json.loads(given["tent"])
    assert document["transports"] == {"rdma": {"workers": {"block_size": 1048576}}}
    own = TARGET.render(given_for(TARGET, {"rest": "own"}, setting=setting))
    assert lines_of(own)[1] == "MC_FRAGMENT_RATIO=1048575"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [SIZES.min_bytes, 65536, 2**24 + 64, SIZES.max_bytes])
def test_the_reader_gives_the_setting_back(form: str, size: int) -> None:
    """At both ends of the rule and in between."""
    setting = FragmentSetting.always(size)
    assert read(TARGET.render(given_for(TARGET, {"form": form}, setting=setting))) == setting


@pytest.mark.parametrize("size", [4032, 4097, 65536 + 32, 2**31])
def test_a_size_that_mooncake_would_lose_is_refused(size: int) -> None:
    """Below a page, across cache lines, or beyond an int."""
    with pytest.raises(InvalidInput, match=r"size|multiple"):
        TARGET.render(given_for(TARGET, setting=FragmentSetting.always(size)))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("MC_SLICE_SIZE=4096", 4096),
        ("  export MC_SLICE_SIZE='8192'  # as measured\n", 8192),
        ("MC_SLICE_SIZE=1\r\nOTHER=2\r\nMC_SLICE_SIZE=65536\r\n", 65536),
        ("MC_TCP_SLICE_SIZE=65536\nMC_SLICE_SIZE=65536\n", 65536),
        ("#MC_SLICE_SIZE=1\nMC_SLICE_SIZE=2", 2),
        ('{"transports/rdma/workers/block_size": 512}', 512),
        ('\ufeff{"transports": {"rdma": {"workers": {"block_size": 512}}}}', 512),
    ],
)
def test_settings_that_people_have(text: str, size: int) -> None:
    """Environment files, shell lines, both kinds of TENT paths."""
    assert read(text) == FragmentSetting.always(size)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("", "expected MC_SLICE_SIZE"),
        ("MC_SLICE=1", "expected MC_SLICE_SIZE"),
        ("MC_SLICE_SIZE=64k", "plain digits"),
        ("MC_SLICE_SIZE=0", "above 0"),
        ("MC_SLICE_SIZE=-1", "plain digits"),
        ("MC_SLICE_SIZE=" + "9" * 5000, "plain digits"),
        ("MC_SLICE_SIZE=999999999999999", "sizes of 1 to"),
        ("MC_SLICE_SIZE=1\nMC_TCP_SLICE_SIZE=2", "two different"),
        ("{", "JSON"),
        ("{}", "block_size"),
        ('{"transports": []}', "block_size"),
        ('{"transports": {"rdma": {"workers": {"block_size": true}}}}', "block_size"),
        ('{"transports": {"rdma": {"workers": {"block_size": 1.5}}}}', "block_size"),
        ('{"transports":' * 100_000, "JSON"),
        ('{"a": ' + "9" * 10_000 + "}", "JSON"),
    ],
)
def test_what_is_no_setting_is_refused(text: str, stated: str) -> None:
    """The error names the rule, and the text is not echoed."""
    with pytest.raises(InvalidInput, match=stated) as refusal:
        read(text)
    assert len(refusal.value.detail) < 200
