"""UCX's fragment size: what is written, read, and what ucx_info makes of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting
from exports.targets.ucx import SHM_TARGET, TARGET, VARIABLE, read
from tests.exports.given import given_for
from tests.support.system import require_system

KIB_512 = FragmentSetting.always(512 * 1024)


def rendered(size: int = 300_032, **options: str) -> str:
    """The export of one size."""
    return TARGET.render(given_for(TARGET, options, setting=FragmentSetting.always(size)))


def lines_of(text: str) -> list[str]:
    """Lines that are no comments."""
    return [line for line in text.splitlines() if not line.startswith("#")]


def ucx_info(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it with nothing of UCX in the environment but this."""
    found = installed()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("UCX_")}
    return subprocess.run(
        [found, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**kept, **environment},
        cwd="/",
    )


@cache
def installed() -> str:
    """The program of the version that exports say they are read by."""
    found = shutil.which("ucx_info")
    reported = subprocess.run([found, "-v"], capture_output=True, text=True).stdout if found else ""
    require_system("Version 1.13.1" in reported, "ucx_info 1.13.1", "apt-get install ucx-utils")
    return str(found)


def values(reported: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Every variable that it prints."""
    return dict(re.findall(r"^(UCX_\w+)=(.*)$", reported.stdout, re.MULTILINE))


# --- written --------------------------------------------------------------------------------------


def test_the_list_of_memory_types() -> None:
    """Exact bytes for every type that was asked for."""
    assert lines_of(rendered()) == ["UCX_RNDV_FRAG_SIZE=host:300032"]
    assert lines_of(rendered(memory_types="cuda,host")) == [
        "UCX_RNDV_FRAG_SIZE=cuda:300032,host:300032"
    ]
    assert lines_of(rendered(version="1.17", memory_types="ze-device")) == [
        "UCX_RNDV_FRAG_SIZE=ze-device:300032",
        "UCX_RNDV_FRAG_MEM_TYPE=ze-device",
    ]


def test_before_1_12_there_is_one_size() -> None:
    """And no ucx.conf."""
    old = rendered(version="1.9", form="shell")
    assert lines_of(old) == ["export UCX_RNDV_FRAG_SIZE=300032"]
    assert "UNVERIFIED" in old
    with pytest.raises(InvalidInput, match=r"since 1\.11"):
        rendered(version="1.9")
    with pytest.raises(InvalidInput, match="host memory alone"):
        rendered(version="1.9", form="shell", memory_types="cuda")
    with pytest.raises(InvalidInput, match=r"came in UCX 1\.12"):
        rendered(version="1.9", form="shell", scheme="put_ppln")


def test_scheme_and_threshold_are_set_where_asked() -> None:
    """As shell commands too."""
    text = rendered(scheme="put_ppln", threshold="0065536", form="shell")
    assert lines_of(text) == [
        "export UCX_RNDV_FRAG_SIZE=host:300032",
        "export UCX_RNDV_SCHEME=put_ppln",
        "export UCX_RNDV_THRESH=65536",
    ]


@pytest.mark.parametrize("types", ["gpu", "host,host", "ze-device", "rdma"])
def test_memory_types_are_those_of_the_version(types: str) -> None:
    """UCX ends the program over any other."""
    with pytest.raises(InvalidInput, match="memory_types"):
        rendered(memory_types=types)


@pytest.mark.parametrize("size", [1, 65535, 65537, 2**24 + 64, 2**40])
def test_sizes_outside_the_rule_are_not_written(size: int) -> None:
    """Below the chunks of four rails, no whole cache line, a pool of gigabytes."""
    with pytest.raises(InvalidInput):
        rendered(size)


def test_staging_through_a_device_is_written_in_full() -> None:
    """Size, place and count; ucx_info has all three as they were written."""
    lines = lines_of(rendered(memory_types="cuda", alloc_count="16"))
    assert lines == [
        "UCX_RNDV_FRAG_SIZE=cuda:300032",
        "UCX_RNDV_FRAG_MEM_TYPE=cuda",
        "UCX_RNDV_FRAG_ALLOC_COUNT=cuda:16",
    ]
    given = dict(line.split("=", 1) for line in lines)
    found = values(ucx_info("-c", **given))
    assert found["UCX_RNDV_FRAG_MEM_TYPE"] == "cuda"
    assert found["UCX_RNDV_FRAG_ALLOC_COUNT"] == "cuda:16"
    assert f"16 fragments at a time in each memory: {16 * 300_032} bytes" in rendered(
        memory_types="cuda", alloc_count="16"
    )
    with pytest.raises(InvalidInput, match="by memory type"):
        rendered(version="1.9", form="shell", alloc_count="16")


def test_the_head_says_what_the_pool_takes() -> None:
    """128 fragments at a time."""
    assert f"at a time in each memory: {128 * 300_032} bytes" in rendered()


# --- read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["conf", "shell"])
@pytest.mark.parametrize("size", [65536, 300_032, 2**24])
def test_the_reader_gives_the_setting_back(form: str, size: int) -> None:
    """In both forms, at both ends."""
    assert read(rendered(size, form=form)) == FragmentSetting.always(size)


@pytest.mark.parametrize(
    "text",
    [
        "UCX_RNDV_FRAG_SIZE=host:512K",
        "UCX_RNDV_FRAG_SIZE = host:524288\r\n",
        "export UCX_RNDV_FRAG_SIZE='host:512K'\n",
        'export UCX_RNDV_FRAG_SIZE="host:512kb" # of the lab\n',
        "UCX_RNDV_FRAG_SIZE: host:512K",
        "UCX_RNDV_FRAG_SIZE=host:512K ; half a MiB\n",
        "UCX_RNDV_FRAG_SIZE=512k\n",
        "\ufeff# note\n; note\n\n   \nUCX_TLS=rc,cuda\nUCX_RNDV_FRAG_SIZE=host:512K\n",
        "UCX_RNDV_FRAG_SIZE=host:1M\nUCX_RNDV_FRAG_SIZE=host:512K\n",
        "UCX_RNDV_FRAG_SIZE=host:512K,cuda:0x\nUCX_RNDV_FRAG_SIZE=host:512K,cuda:512K\n",
        "[AMD]\nCPU vendor=AMD\nUCX_RNDV_FRAG_SIZE=host:512K\n[Intel]\nUCX_RNDV_FRAG_SIZE=512K\n",
        "if a; then\n  export UCX_TLS=rc\n\texport UCX_RNDV_FRAG_SIZE=host:512K\nfi\n",
        "UCX_TLS=rc,\n  cuda\nUCX_RNDV_FRAG_SIZE=host:512K",
        "HOME=/x\nLS_COLORS=*.a=1:*.b=2\n}\nUCX_RNDV_FRAG_SIZE=host:512K",
    ],
)
def test_files_as_people_keep_them(text: str) -> None:
    """Comments, quotes, spaces, sections, and the last one wins, as in UCX."""
    assert read(text) == KIB_512


def test_infinite_fragments_are_whole_messages() -> None:
    """UCX's word for no limit."""
    assert read("UCX_RNDV_FRAG_SIZE=host:inf") == FragmentSetting.always(None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a line UCX_RNDV_FRAG_SIZE"),
        ("UCX_TLS=rc", "found none"),
        ("#UCX_RNDV_FRAG_SIZE=host:512K", "found none"),
        ("UCX_RNDV_FRAG_SIZE=host:512K,cuda:4M", "ambiguous: cuda, host differ"),
        (
            "[a]\nUCX_RNDV_FRAG_SIZE=512K\n[b]\nUCX_RNDV_FRAG_SIZE=1M",
            r"ambiguous: host \(line 2\), host \(line 4\) differ",
        ),
        ("\nUCX_RNDV_FRAG_SIZE=", "line 2: expected a size"),
        ("UCX_RNDV_FRAG_SIZE=host:0", "line 1: expected a fragment size of at least 1"),
        ("UCX_RNDV_FRAG_SIZE=host:-1", "line 1: expected a size"),
        ("UCX_RNDV_FRAG_SIZE=host:512KiB", "line 1: expected a size"),
        ("UCX_RNDV_FRAG_SIZE=host:auto", "auto is no fragment size"),
        ("UCX_RNDV_FRAG_SIZE=gpu:512K", "line 1: expected a memory type"),
        ("UCX_RNDV_FRAG_SIZE=512K,4M", "line 1: expected a memory type before every size"),
        ("UCX_RNDV_FRAG_SIZE=host:999999999T", "at most 281474976710656 bytes"),
        ("UCX_RNDV_FRAG_SIZE=host:" + "9" * 5000, "line 1: expected a size"),
        ("UCX_RNDV_FRAG_SIZE=host:٥", "line 1: expected a size"),
        ("UCX_RNDV_FRAG_SIZE=1\n  host:512K", "line 2: a line that begins with a space"),
        ("a:\n  UCX_RNDV_FRAG_SIZE: host:512K", "line 2: a line that begins with a space"),
        ("export A=1 UCX_RNDV_FRAG_SIZE=host:1K", "line 1: expected NAME=VALUE alone on its line"),
        ("mpirun -x UCX_RNDV_FRAG_SIZE=host:1K a", "line 1: expected NAME=VALUE alone"),
        ("unset UCX_RNDV_FRAG_SIZE", "line 1: expected NAME=VALUE alone"),
        ("UCX_RNDV_FRAG_SIZE", "line 1: expected NAME=VALUE alone"),
        ("UCX_A=1\x00", "line 1: expected printable characters"),
        ("\nUCX_A=\ud800", "line 2: expected printable characters"),
        ("x" * 8193, "line 1: expected at most 8192 characters"),
        ("x\n" * 2**20, "expected at most 1048576 characters"),
        ("\n" * 20_001, "expected at most 20000 lines"),
    ],
)
def test_what_is_unclear_or_hostile_is_refused(text: str, reason: str) -> None:
    """The line and the rule are named, the text is not repeated."""
    with pytest.raises(InvalidInput, match=reason) as refusal:
        read(text)
    assert refusal.value.field == "setting"
    assert len(refusal.value.detail) < 200


@pytest.mark.parametrize("line", ["x" + " " * 8190 + "y", "=" * 8191, "export " * 1170, ":" * 8191])
def test_long_lines_cost_no_more_than_their_length(line: str) -> None:
    """A text of the greatest length, read at once: patterns that back up would take minutes."""
    with pytest.raises(InvalidInput, match="found none"):
        read((line + "\n") * 127)


@hypothesis_given(st.text(alphabet="UCX_RNDFAGSIZE=:,host512KM#;[]\n\r \"'\t-.infauto"))
def test_any_text_is_a_setting_or_refused(text: str) -> None:
    """Never another error."""
    for whole in (text, f"UCX_RNDV_FRAG_SIZE={text}"):
        try:
            setting = read(whole)
        except InvalidInput:
            continue
        assert len(setting.steps) == 1


# --- read by UCX ----------------------------------------------------------------------------------


@pytest.mark.parametrize("types", ["host", "host,cuda", "cuda-managed,rocm,rocm-managed"])
def test_ucx_reads_the_file(tmp_path: Path, types: str) -> None:
    """ucx_info prints the value, and a context, which checks it, can be made with it."""
    (tmp_path / "ucx.conf").write_text(
        rendered(memory_types=types, scheme="put_ppln", threshold="65536")
    )
    reported = values(ucx_info("-c", UCX_CONFIG_DIR=str(tmp_path)))
    assert reported[VARIABLE] == ",".join(f"{name}:300032" for name in types.split(","))
    assert reported["UCX_RNDV_SCHEME"] == "put_ppln"
    assert reported["UCX_RNDV_THRESH"] == "64K"
    context = ucx_info("-p", "-u", "t", UCX_CONFIG_DIR=str(tmp_path))
    assert "# UCP context" in context.stdout
    assert "ERROR" not in context.stdout + context.stderr


def test_a_hostile_name_sets_nothing(tmp_path: Path) -> None:
    """What UCX prints is the same with it and without it."""
    name = "x\nUCX_RNDV_FRAG_SIZE=host:1\n[a]\nUCX_TLS=nothing " * 20
    options = TARGET.options_from({})
    given = given_for(TARGET, options, setting=FragmentSetting.always(300_032), profile=name)
    (tmp_path / "ucx.conf").write_text(TARGET.render(given))
    named = ucx_info("-c", UCX_CONFIG_DIR=str(tmp_path))
    plain = ucx_info("-c", UCX_RNDV_FRAG_SIZE="host:300032")
    assert values(named) == values(plain)
    assert named.stderr == plain.stderr == ""


def test_the_shell_form_reaches_ucx() -> None:
    """Sourced by a shell, as it would be."""
    script = rendered(form="shell") + 'printf "%s" "$UCX_RNDV_FRAG_SIZE"\n'
    reported = subprocess.run(["/bin/sh"], input=script, capture_output=True, text=True, check=True)
    assert values(ucx_info("-c", UCX_RNDV_FRAG_SIZE=reported.stdout))[VARIABLE] == "host:300032"


@pytest.mark.parametrize("wrong", ["300032", "gpu:300032", "host:512KiB"])
def test_ucx_would_tell(wrong: str) -> None:
    """The negative control: what this UCX cannot read makes the same check fail."""
    context = ucx_info("-p", "-u", "t", UCX_RNDV_FRAG_SIZE=wrong)
    assert "# UCP context" not in context.stdout
    assert "Failed to create UCP context" in context.stdout


def test_ucx_reads_units_as_the_reader_does() -> None:
    """512K of a memory size is 2^19 in both."""
    reported = values(ucx_info("-c", UCX_RNDV_THRESH="524288"))
    assert reported["UCX_RNDV_THRESH"] == "512K"
    assert values(ucx_info("-c", UCX_RNDV_THRESH="524289"))["UCX_RNDV_THRESH"] == "524289"
    assert read("UCX_RNDV_FRAG_SIZE=host:512K").steps[0].size_bytes == 524288


# --- shared memory --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [4096, 8256, 32_768, 65_472])
def test_fragments_of_shared_memory_are_read_back(size: int, tmp_path: Path) -> None:
    """By the reader here and by ucx_info."""
    setting = FragmentSetting.always(size)
    text = SHM_TARGET.render(given_for(SHM_TARGET, {}, setting=setting))
    assert SHM_TARGET.read is not None
    assert SHM_TARGET.read(text) == setting
    (tmp_path / "ucx.conf").write_text(text)
    reported = values(ucx_info("-cf", UCX_CONFIG_DIR=str(tmp_path)))["UCX_POSIX_SEG_SIZE"]
    assert SHM_TARGET.read(f"UCX_POSIX_SEG_SIZE={reported}") == setting


@pytest.mark.parametrize("size", [65_536, 131_072, 4032])
def test_fragments_that_give_wrong_data_are_not_written(size: int) -> None:
    """Lengths have 16 bits there."""
    given = given_for(SHM_TARGET, {}, setting=FragmentSetting.always(size))
    with pytest.raises(InvalidInput, match="4096 to 65472"):
        SHM_TARGET.render(given)


def test_a_text_takes_effect_as_variables() -> None:
    """All that are of UCX, without comments; a text without any is refused."""
    assert TARGET.effect is not None
    text = rendered(memory_types="cuda", alloc_count="16")
    assert TARGET.effect.environment(text, "unused") == {
        "UCX_RNDV_FRAG_SIZE": "cuda:300032",
        "UCX_RNDV_FRAG_MEM_TYPE": "cuda",
        "UCX_RNDV_FRAG_ALLOC_COUNT": "cuda:16",
    }
    assert TARGET.effect.since(text) == (1, 12)
    assert TARGET.effect.since(rendered(version="1.9", form="shell")) == (1, 9)
    with pytest.raises(InvalidInput, match="NAME=VALUE"):
        TARGET.effect.environment("# nothing\n", "unused")
