"""Open MPI's JSON rules: what is written and read, key by key as its reader wants them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting, SettingStep
from exports.targets.openmpi_json import TARGET, read
from tests.exports.given import given_for

SIZE_STEPS = FragmentSetting(
    (SettingStep(1, None), SettingStep(65536, 16384), SettingStep(1_048_576, 131_072))
)
PIPELINE = {"collective": "bcast", "algorithm": "pipeline", "programs": "uniform"}


def rendered(setting: FragmentSetting = SIZE_STEPS, /, **options: str) -> str:
    """The export of a list of size steps."""
    return TARGET.render(given_for(TARGET, options, setting=setting))


def document(*rules: object, **groups: object) -> str:
    """A file with these rules for broadcasts."""
    return json.dumps({"collectives": {"bcast": [{"rules": list(rules)}], **groups}})


NAMED = {"collective": "reduce", "algorithm": "in-order_binary"}


def rule(size: object, **fields: object) -> dict[str, object]:
    """A rule of this fragment size."""
    return {"alg": "pipeline", "seg_size": size, **fields}


def test_the_document() -> None:
    """The keys that the reader asks for; the head beside them."""
    made = json.loads(rendered(comm_size="2", **PIPELINE))
    assert any("UNVERIFIED" in line for line in made.pop("comment"))
    assert made == {
        "rule_file_version": 3,
        "module": "tuned",
        "collectives": {
            "bcast": [
                {
                    "comm_size_min": 2,
                    "comm_size_max": 2,
                    "rules": [
                        {
                            "msg_size_min": 65536,
                            "msg_size_max": 1048575,
                            "alg": "pipeline",
                            "seg_size": 16384,
                        },
                        {
                            "msg_size_min": 1048576,
                            "msg_size_max": "inf",
                            "alg": "pipeline",
                            "seg_size": 131072,
                        },
                    ],
                }
            ]
        },
    }


def test_broadcasts_are_for_uniform_programs() -> None:
    """As in the other forms."""
    with pytest.raises(InvalidInput, match="expected programs=uniform"):
        rendered(collective="bcast", algorithm="pipeline")


@pytest.mark.parametrize("setting", [SIZE_STEPS, FragmentSetting.always(4096)])
@pytest.mark.parametrize("comm_size", ["all", "64"])
def test_the_reader_gives_the_setting_back(setting: FragmentSetting, comm_size: str) -> None:
    """In any case; with names from anywhere in the head."""
    given = given_for(TARGET, NAMED, setting=setting, profile='"},\n{"\u2028*/')
    found = read(rendered(setting, comm_size=comm_size, **NAMED))
    assert read(TARGET.render(given)) == found
    for size in (1, 4096, 4097, 65535, 65536, 2**20 - 1, 2**20, 2**24):
        assert found.size_at(size) == setting.size_at(size)


def test_the_first_rule_that_fits_counts() -> None:
    """Overlaps and holes; without a rule a message is sent whole."""
    text = document(
        rule(8192, msg_size_min=100, msg_size_max=199),
        rule(4096, msg_size_min=50, msg_size_max=300),
        rule(1024, msg_size_min=400),
        rule(0, msg_size_min=500),
    )
    steps = [(step.from_bytes, step.size_bytes) for step in read(text).steps]
    assert steps == [(1, None), (50, 4096), (100, 8192), (200, 4096), (301, None), (400, 1024)]


def test_words_of_the_format() -> None:
    """Infinity in three spellings, algorithm 0, equal groups."""
    for word in ("inf", "Inf", "INF"):
        assert read(document(rule(4096, msg_size_max=word))) == FragmentSetting.always(4096)
    assert read(document({"alg": 0, "seg_size": 4096})) == FragmentSetting.always(None)
    same = document(rule(4096), reduce=[{"comm_size_min": 4, "rules": [rule(4096)]}])
    assert read("\ufeff" + same) == FragmentSetting.always(4096)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "line 1: expected JSON"),
        ("{\n]", "line 2: expected JSON"),
        ("[]", "the document: expected an object"),
        ("{}", "collectives: expected an object"),
        ('{"collectives": {}}', "expected at least one rule"),
        ('{"collectives": {"bcast": {}}}', r"collectives\.bcast: expected an array"),
        ('{"collectives": {"bcast": [1]}}', r"collectives\.bcast\.0: expected an object"),
        ('{"a": 1, "a": 2}', "expected each key once"),
        (document({"alg": "pipeline", "segsize": 4096}), "reads seg_size and passes over segsize"),
        (document({"seg_size": 4096}), "expected alg"),
        (document(rule(-1)), r"bcast\.0\.rules\.0\.seg_size: expected a whole number"),
        (document(rule(True)), "expected a whole number"),
        (document(rule(1.5)), "expected a whole number"),
        (document(rule(2**60)), "expected a size of at most"),
        (document(rule(1, msg_size_min="x")), "msg_size_min: expected a whole number"),
        (document(*[rule(1)] * 2048), "expected at most 2047 rules"),
        (document(rule(1), reduce=[{"rules": [rule(2)]}]), r"ambiguous: collectives\.bcast\.0"),
        ("[" * 100_000, "expected JSON of numbers and depth"),
        ("9" * 5000, "expected JSON of numbers"),
        (" " * 2**21, "expected at most 1048576 characters"),
        (
            document(rule(1)).replace("bcast", "\\u0007\\ud800" + "x" * 99).replace("1}", "-1}"),
            "a ",
        ),
    ],
)
def test_what_is_unclear_or_hostile_is_refused(text: str, reason: str) -> None:
    """The place and the rule are named."""
    with pytest.raises(InvalidInput, match=reason) as refusal:
        read(text)
    assert refusal.value.field == "setting"
    assert len(refusal.value.detail) < 200


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["inf", "pipeline"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["collectives", "bcast", "rules", "alg", "seg_size", "msg_size_min", "msg_size_max"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@hypothesis_given(_VALUES)
def test_any_document_is_a_setting_or_refused(value: object) -> None:
    """Never another error."""
    for text in (json.dumps(value), document(value), document(rule(4096, msg_size_max=value))):
        try:
            setting = read(text)
        except InvalidInput:
            continue
        assert setting.steps[0].from_bytes == 1


@hypothesis_given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 9)), min_size=1)
)
def test_the_steps_are_what_first_match_gives(rules: list[tuple[int, int, int]]) -> None:
    """Against the plain search that Open MPI does, at every message size."""
    made = [rule(size, msg_size_min=low, msg_size_max=high) for low, high, size in rules]
    setting = read(document(*made))
    for message in range(1, 33):
        fits = (size for low, high, size in rules if low <= message <= high)
        assert setting.size_at(message) == min(next(fits, 0) or message, message)
