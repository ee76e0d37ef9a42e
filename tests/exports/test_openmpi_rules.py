"""Open MPI's rules files: what is written, read, and what mpirun makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting, SettingStep
from exports.targets.openmpi_rules import TARGET, read
from tests.exports.given import given_for
from tests.exports.mpi_programs import is_right_with_openmpi, messages

SIZE_STEPS = FragmentSetting(
    (SettingStep(1, None), SettingStep(65536, 16384), SettingStep(1_048_576, 131_072))
)
PIPELINE = {"collective": "bcast", "algorithm": "pipeline", "programs": "uniform"}
USE = ("--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_dynamic_rules_filename")


def rendered(setting: FragmentSetting = SIZE_STEPS, /, **options: str) -> str:
    """The export of a list of size steps, of reductions unless asked for others."""
    named = {"collective": "reduce", "algorithm": "in-order_binary", **options}
    return TARGET.render(given_for(TARGET, named, setting=setting))


def numbers(text: str) -> list[str]:
    """Lines without comments, and the header of the second form."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


# --- written --------------------------------------------------------------------------------------


def test_the_first_form() -> None:
    """Ascending sizes, the first for 0 bytes."""
    expected = ["1", "11", "1", "0", "3", "0 0 0 0", "65536 6 0 16384", "1048576 6 0 131072"]
    assert numbers(rendered()) == expected


def test_the_second_form_begins_with_its_header() -> None:
    """Anything before it would make it the first form, and the fifth column a rule."""
    text = rendered(version="5.0.7")
    assert text.startswith("rule-file-version-2\n# ")
    assert numbers(text)[-3:] == ["0 0 0 0 0", "65536 6 0 16384 0", "1048576 6 0 131072 0"]
    assert "UNVERIFIED" in text


def test_one_communicator_size_stands_between_two_without_rules() -> None:
    """Open MPI takes the nearest below, and the first for all that are smaller."""
    text = numbers(rendered(comm_size="16", **PIPELINE))
    assert text[:7] == ["1", "7", "3", "0", "0", "16", "3"]
    assert text[-2:] == ["17", "0"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"collective": "bcast", "algorithm": "pipeline"}, "expected programs=uniform"),
        ({"algorithm": "pipeline"}, "expected programs=uniform"),
        ({"algorithm": "none"}, "expected algorithm to be named"),
        ({"algorithm": "binary_tree"}, "expected an algorithm of reduce: pipeline, binary, "),
        ({"collective": "bcast"}, "expected an algorithm of bcast"),
        ({"collective": "bcast", "algorithm": "none"}, "is not priced here"),
        ({"comm_size": "0"}, "expected comm_size to match"),
    ],
)
def test_what_is_not_known_to_be_right_is_refused(options: dict[str, str], reason: str) -> None:
    """Broadcasts of programs nobody spoke for, reductions out of order."""
    with pytest.raises(InvalidInput, match=reason):
        rendered(**options)


def test_every_step_keeps_the_rule() -> None:
    """Not the first alone."""
    with pytest.raises(InvalidInput, match="multiple of 64"):
        rendered(FragmentSetting((SettingStep(1, 4096), SettingStep(10, 4100))))


# --- read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["4.1", "5.0.7"])
@pytest.mark.parametrize("comm_size", ["all", "2"])
@pytest.mark.parametrize("setting", [SIZE_STEPS, FragmentSetting.always(4096)])
def test_the_reader_gives_the_setting_back(
    version: str, comm_size: str, setting: FragmentSetting
) -> None:
    """Both forms, with and without a communicator size."""
    text = rendered(setting, version=version, comm_size=comm_size)
    found = read(text)
    assert read(text.replace("\n", "\r\n")) == found
    for size in (1, 4095, 4096, 4097, 65535, 65536, 65537, 2**20 - 1, 2**20, 2**24):
        assert found.size_at(size) == setting.size_at(size)


def test_what_no_step_cuts_is_left_to_open_mpi() -> None:
    """Algorithm 0 up to the first message that is cut, though a step begins before it."""
    text = numbers(rendered(FragmentSetting.always(4096)))
    assert text[-2:] == ["0 0 0 0", "4097 6 0 4096"]
    first = FragmentSetting((SettingStep(1, 8192), SettingStep(5000, 65536)))
    assert numbers(rendered(first))[-2:] == ["0 0 0 0", "65537 6 0 65536"]
    none = FragmentSetting.always(None)
    assert numbers(rendered(none))[-2:] == ["1", "0 0 0 0"]


@pytest.mark.parametrize(
    "text",
    [
        "1 7 1 2 3 0 6 0 0 65536 3 0 16384 1048576 3 0 131072",
        "1 # collectives\n7\n1\n2\n4\n0 0 0 0\n1 1 0 0\n0x10000 3 0 040000\n1048576 3 0 131072",
        "rule-file-version-2\n1\n7\n1\n2\n3\n0 6 0 0 0\n65536 3 0 16384\n1048576 3 0 131072 4\n",
        "2 7 1 2 3 0 6 0 0 65536 3 0 16384 1048576 3 0 131072 6 1 2 0",
        "2 7 1 2 3 0 6 0 0 65536 3 0 16384 1048576 3 0 131072"
        " 11 1 4 3 0 6 0 0 65536 3 0 16384 1048576 3 0 131072",
    ],
)
def test_files_as_people_keep_them(text: str) -> None:
    """Free layout, other bases, both forms, collectives without rules or with the same."""
    steps = read(text).steps
    assert [step.from_bytes for step in steps if step.size_bytes] == [65536, 1_048_576]
    assert read(text).size_at(65536) == 16384
    assert read(text).size_at(65535) == 65535


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected the number of collectives where the file ends"),
        ("0", "expected at least one rule"),
        ("1 7 1 2 2 0 6 0 0", "expected a message size where the file ends"),
        ("1 7 1 2 1\n1024 6 0 0", "line 2: the first rule has to be for a message size of 0"),
        ("1 7 1 2 3\n0 6 0 0\n4 3 0 8\n4 3 0 9", "line 4: expected message sizes that ascend"),
        ("1 7 1 2 1 0 6 0 0 5", "line 1: expected nothing after the last rule"),
        ("\n1 bcast", "line 2: expected numbers"),
        ("rule-file-version-3\n1", "line 1: expected numbers"),
        ("# head\nrule-file-version-2\n1", "line 2: expected numbers"),
        ("-1", "expected numbers"),
        ("23", "of at most 22"),
        ("1 22", "of at most 21"),
        ("1 7 1 2 99999999", "the number of rules of at most 4096"),
        ("1 7 1 2 1 0 3 0 99999999999999999999", "expected numbers"),
        ("1 7 1 2 1 0 3 0 9999999999999999999", "a fragment size of at most"),
        ("09", "octal"),
        (
            "1 7 2 2 1 0 3 0 4096 8 1 0 3 0 8192",
            "ambiguous: bcast of 2 ranks, bcast of 8 ranks differ",
        ),
        (
            "2 7 1 2 1 0 3 0 4096 3 1 2 1 0 3 0 8192",
            "ambiguous: bcast of 2 ranks, collective 3 of 2 ranks differ",
        ),
    ],
)
def test_what_is_unclear_or_hostile_is_refused(text: str, reason: str) -> None:
    """The line and the rule are named."""
    with pytest.raises(InvalidInput, match=reason) as refusal:
        read(text)
    assert refusal.value.field == "setting"


@hypothesis_given(st.lists(st.integers(0, 12), max_size=40))
def test_any_numbers_are_a_setting_or_refused(values: list[int]) -> None:
    """Never another error."""
    for header in ("", "rule-file-version-2\n"):
        try:
            setting = read(header + " ".join(map(str, values)))
        except InvalidInput:
            continue
        assert setting.steps[0].from_bytes == 1


# --- read by Open MPI -----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, PIPELINE, {"comm_size": "2"}])
def test_messages_are_cut_as_the_file_says(tmp_path: Path, options: dict[str, str]) -> None:
    """On both sides of every step; the data are right as well."""
    file = tmp_path / "rules.conf"
    file.write_text(rendered(**options))
    collective = options.get("collective", "reduce")
    for size in (65536, 1_048_575, 1_048_576, 1_048_577):
        expected = -(-size // SIZE_STEPS.size_at(size))
        assert messages(tmp_path, collective, size, *USE, str(file))["0>1"] == expected
    left = messages(tmp_path, collective, 65535, *USE, str(file))
    assert left == messages(tmp_path, collective, 65535)


def test_another_communicator_size_has_no_rule(tmp_path: Path) -> None:
    """Neither a smaller one nor a greater one than was asked for."""
    untuned = messages(tmp_path, "reduce", 65536)
    for comm_size in ("3", "1"):
        file = tmp_path / "rules.conf"
        file.write_text(rendered(comm_size=comm_size))
        assert messages(tmp_path, "reduce", 65536, *USE, str(file)) == untuned


def test_open_mpi_would_tell(tmp_path: Path) -> None:
    """The negative control: with another size, and with a file it refuses, the count differs."""
    file = tmp_path / "rules.conf"
    file.write_text(rendered().replace("65536 6 0 16384", "65536 6 0 32768"))
    assert messages(tmp_path, "reduce", 65536, *USE, str(file))["0>1"] == 2
    file.write_text(rendered(version="5.0.7"))
    refused = messages(tmp_path, "reduce", 65536, *USE, str(file))
    assert refused == messages(tmp_path, "reduce", 65536)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_what_is_written_by_default_keeps_the_order(tmp_path: Path, ranks: int) -> None:
    """A reduction that does not commute, cut into fragments: right, as without the file."""
    file = tmp_path / "rules.conf"
    file.write_text(rendered())
    assert is_right_with_openmpi("ordered", 200_000, *USE, str(file), ranks=ranks)


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("types", PIPELINE),
        ("ordered", {"algorithm": "pipeline", "programs": "uniform"}),
        ("ordered", {"algorithm": "binary", "programs": "uniform"}),
        ("ordered", {"algorithm": "binomial", "programs": "uniform"}),
    ],
)
def test_what_is_refused_by_default_does_give_wrong_data(
    tmp_path: Path, mode: str, options: dict[str, str]
) -> None:
    """The program is right without the file; with it Open MPI's data are wrong."""
    file = tmp_path / "rules.conf"
    file.write_text(rendered(FragmentSetting.always(65536), **options))
    assert is_right_with_openmpi(mode, 800_000)
    assert not is_right_with_openmpi(mode, 800_000, *USE, str(file))
