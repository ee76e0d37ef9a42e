"""The NCCL exports: what a shell and NCCL's own configuration file make of them, and readers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting
from exports.targets.commentary import check_size
from exports.targets.nccl import TARGET as PLUGIN
from exports.targets.nccl_env import BUFFER_TARGET, P2P, read_buffer, read_p2p
from exports.targets.nccl_env import TARGET as P2P_TARGET
from exports.targets.target import Target
from tests.exports.given import given_for
from tests.support.system import require_system

SIZES = tuple(2**power for power in range(14, 20))
ALL = (PLUGIN, P2P_TARGET, BUFFER_TARGET)


def of_nccl_conf(text: str) -> dict[str, str]:
    """As setEnvFile of NCCL v2.30.7-1, src/misc/param.cc, reads it.

    `#` begins a line, the first `=` counts; long lines and values are cut. A variable that is
    set already stays.
    """
    found: dict[str, str] = {}
    for line in text.split("\n"):
        assert len(line.encode()) < 1023
        if not line.startswith("#") and "=" in line:
            name, _, value = line.partition("=")
            found.setdefault(name, value)
    return found


def of_a_shell(text: str, path: Path) -> dict[str, str]:
    """What a program has in its environment where a shell has read the text."""
    require_system(shutil.which("sh"), "a shell", "apt-get install dash")
    path.write_text(text)
    reported = subprocess.run(
        ["sh", "-euc", f". {path}; env"], env={}, capture_output=True, text=True, check=True
    )
    assert reported.stderr == ""
    found = dict(line.partition("=")[::2] for line in reported.stdout.splitlines())
    return {name: value for name, value in found.items() if name.startswith(("NCCL_", "SLUICE_"))}


@pytest.mark.parametrize("target", ALL, ids=lambda target: target.name)
def test_both_forms_set_the_same_variables(target: Target, tmp_path: Path) -> None:
    conf = of_nccl_conf(target.render(given_for(target)))
    shell = of_a_shell(target.render(given_for(target, {"form": "shell"})), tmp_path / "nccl.sh")
    assert conf == shell
    assert conf


@pytest.mark.parametrize("target", ALL, ids=lambda target: target.name)
def test_what_corrupts_data_is_never_written(target: Target) -> None:
    assert "NCCL_CHUNK_SIZE" not in target.render(given_for(target))


def test_the_plugin_gets_its_table_and_the_checksum() -> None:
    given = given_for(PLUGIN)
    assert of_nccl_conf(PLUGIN.render(given)) == {
        "NCCL_TUNER_PLUGIN": "sluice",
        "SLUICE_NCCL_TABLE": "/etc/sluice/lab-7.slt",
        "SLUICE_NCCL_CHECKSUM": given.table_bytes[27:23:-1].hex(),
        "SLUICE_NCCL_COLLECTIVES": "broadcast,reduce,allreduce",
    }
    options = {"table": "/a/b-1.slt", "plugin": "/lib/p.so", "collectives": "reduce"}
    chosen = of_nccl_conf(PLUGIN.render(given_for(PLUGIN, options)))
    assert chosen["SLUICE_NCCL_TABLE"] == "/a/b-1.slt"
    assert chosen["NCCL_TUNER_PLUGIN"] == "/lib/p.so"
    assert chosen["SLUICE_NCCL_COLLECTIVES"] == "reduce"


def test_a_pipeline_without_a_name_has_a_path_too() -> None:
    chosen = of_nccl_conf(PLUGIN.render(given_for(PLUGIN, profile="")))
    assert chosen["SLUICE_NCCL_TABLE"] == "/etc/sluice/plan.slt"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("table", "plan.slt"),
        ("table", "/a b"),
        ("table", "/a;reboot"),
        ("table", "/$(reboot)"),
        ("table", "/a\nNCCL_CHUNK_SIZE=1"),
        ("plugin", "a b"),
        ("plugin", "`x`"),
        ("plugin", ""),
        ("collectives", "allgather"),
        ("collectives", "reduce,"),
    ],
)
def test_options_that_a_shell_would_take_for_something_else_are_refused(
    name: str, value: str
) -> None:
    with pytest.raises(InvalidInput, match=f"expected {name} to match"):
        given_for(PLUGIN, {name: value})


@pytest.mark.parametrize("path", P2P)
@pytest.mark.parametrize("size", SIZES)
def test_a_chunk_of_sends_is_read_back(path: str, size: int) -> None:
    setting = FragmentSetting.always(size)
    given = given_for(P2P_TARGET, {"path": path}, setting=setting)
    text = P2P_TARGET.render(given)
    assert of_nccl_conf(text) == {P2P[path]: str(size)}
    assert read_p2p(text) == setting


@pytest.mark.parametrize("size", [2**17, 2**18, 2**19, 2**20])
def test_a_buffer_is_eight_chunks(size: int) -> None:
    setting = FragmentSetting.always(size)
    text = BUFFER_TARGET.render(given_for(BUFFER_TARGET, setting=setting))
    assert of_nccl_conf(text) == {"NCCL_BUFFSIZE": str(8 * size)}
    assert read_buffer(text) == setting


@pytest.mark.parametrize(
    ("target", "sizes"),
    [(P2P_TARGET, (2**13, 2**20, 49152)), (BUFFER_TARGET, (2**16, 2**21, 3 * 2**17))],
    ids=["nccl-env", "nccl-buffsize"],
)
def test_sizes_outside_the_rule_are_not_written(target: Target, sizes: tuple[int, ...]) -> None:
    """Too small for NVLS trees, lowered in silence, or no power of two."""
    for size in sizes:
        with pytest.raises(InvalidInput, match="expected a"):
            check_size(size, target.sizes)
        given = given_for(target, setting=FragmentSetting.always(size))
        with pytest.raises(InvalidInput, match="expected a"):
            target.render(given)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("NCCL_P2P_NET_CHUNKSIZE=131072", 131072),
        ("export NCCL_P2P_NET_CHUNKSIZE='131072' # as NCCL has it", 131072),
        ("NCCL_P2P_PCI_CHUNKSIZE=0x10000", 65536),
        ("NCCL_P2P_NVL_CHUNKSIZE=0400000", 131072),  # octal, as strtoll of base 0 has it
        ("NCCL_P2P_NET_CHUNKSIZE=1048576", 524288),  # lowered to an eighth of the buffer
        ("NCCL_P2P_NET_CHUNKSIZE=1048576\nNCCL_BUFFSIZE=8388608", 1048576),
        ("NCCL_P2P_NET_CHUNKSIZE=131072\nNCCL_BUFFSIZE=65536", 8192),
        ("NCCL_P2P_NET_CHUNKSIZE=100000", 98304),  # four binary digits: 12 * 2^13
        ("NCCL_P2P_NET_CHUNKSIZE=262143", 245760),
        ("NCCL_P2P_NET_CHUNKSIZE=13", 13),
        ("NCCL_P2P_NET_CHUNKSIZE=65536\nNCCL_P2P_PCI_CHUNKSIZE=65536\nNCCL_DEBUG=WARN", 65536),
        ("#NCCL_CHUNK_SIZE=1\nNCCL_P2P_NET_CHUNKSIZE=65536", 65536),
    ],
)
def test_the_chunk_of_sends_that_nccl_has(text: str, size: int) -> None:
    assert read_p2p(text) == FragmentSetting.always(size)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("NCCL_BUFFSIZE=4194304", 524288),
        ("NCCL_BUFFSIZE=0x800000\n", 1048576),
        ("NCCL_BUFFSIZE=12288\nNCCL_P2P_NET_CHUNKSIZE=1", 1536),
    ],
)
def test_the_chunk_of_collectives_that_nccl_has(text: str, size: int) -> None:
    assert read_buffer(text) == FragmentSetting.always(size)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("NCCL_P2P_NET_CHUNKSIZE=512K", "line 1: expected plain digits"),
        ("\nNCCL_P2P_NET_CHUNKSIZE=-2", "line 2: expected plain digits"),
        ("NCCL_P2P_NET_CHUNKSIZE=", "expected plain digits"),
        ("NCCL_P2P_NET_CHUNKSIZE=089", "expected plain digits"),
        ("NCCL_P2P_NET_CHUNKSIZE=0", "expected 1 to"),
        ("NCCL_P2P_NET_CHUNKSIZE=2147483648", "expected 1 to"),
        ("NCCL_P2P_NET_CHUNKSIZE=1024\nNCCL_BUFFSIZE=7", "NCCL_BUFFSIZE of at least 8"),
        ("NCCL_P2P_NET_CHUNKSIZE=1024\nNCCL_P2P_PCI_CHUNKSIZE=2048", "ambiguous"),
        ("NCCL_P2P_NET_CHUNKSIZE=1024\nNCCL_P2P_NET_CHUNKSIZE=2048", "ambiguous"),
        ("NCCL_P2P_NET_CHUNKSIZE=1024\nNCCL_CHUNK_SIZE=1024", "line 2: NCCL_CHUNK_SIZE corrupts"),
        ("NCCL_BUFFSIZE=4194304", "expected a line NCCL_P2P_NET_CHUNKSIZE"),
        ("", "expected a line NCCL_P2P_NET_CHUNKSIZE"),
    ],
)
def test_what_nccl_would_read_otherwise_is_refused(text: str, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        read_p2p(text)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("NCCL_BUFFSIZE=1000000", "line 1: expected a multiple of 4096"),
        ("NCCL_BUFFSIZE=4M", "expected plain digits"),
        ("NCCL_BUFFSIZE=4096\nNCCL_BUFFSIZE=8192", "ambiguous"),
        ("NCCL_CHUNK_SIZE=0x1000", "NCCL_CHUNK_SIZE corrupts"),
        ("NCCL_P2P_NET_CHUNKSIZE=131072", "expected a line NCCL_BUFFSIZE"),
    ],
)
def test_buffers_that_give_wrong_results_are_refused(text: str, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        read_buffer(text)
