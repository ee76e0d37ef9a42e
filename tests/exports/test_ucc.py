"""UCC's pipelined collectives: what is written and read."""

from __future__ import annotations

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting, SettingStep
from exports.targets.ucc import TARGET, read
from tests.exports.given import given_for

NAME = "UCC_CL_HIER_ALLREDUCE_RAB_PIPELINE"
NAMES = next(option for option in TARGET.options if option.name == "parameter").choices


def rendered(size: int = 65600, **options: str) -> str:
    """The export of one size."""
    return TARGET.render(given_for(TARGET, options, setting=FragmentSetting.always(size)))


def above(max_whole: int, size: int) -> FragmentSetting:
    """Messages of more than this are cut."""
    return FragmentSetting((SettingStep(1, None), SettingStep(max_whole + 1, size)))


def test_the_order_is_a_bare_word() -> None:
    """With a key before it UCC would pass it over."""
    text = rendered(depth="4", order="ordered", form="shell")
    assert text.endswith(f"export {NAME}=thresh=65600:fragsize=65600:nfrags=2:pdepth=4:ordered\n")
    assert "UNVERIFIED" in text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["conf", "shell"])
def test_the_reader_gives_the_setting_back(name: str, form: str) -> None:
    """A message of one fragment is sent whole, which is the same."""
    text = rendered(parameter=name, form=form)
    assert read(text) == above(65600, 65600)
    assert read(text).size_at(65600) == 65600
    assert read(text).size_at(65601) == 65600


@pytest.mark.parametrize(
    ("value", "setting"),
    [
        ("thresh=64K:fragsize=32K:nfrags=2:pdepth=2:sequential", above(65536, 32768)),
        ("thresh=64K:fragsize=32K:order=parallel", above(65536, 32768)),
        ("thresh=0:fragsize=32K:nfrags=1", FragmentSetting.always(32768)),
        ("fragsize=32K", FragmentSetting.always(None)),
        ("thresh=64K", FragmentSetting.always(None)),
        ("thresh=inf:fragsize=1M", FragmentSetting.always(None)),
        ("n", FragmentSetting.always(None)),
        ("AUTO", FragmentSetting.always(None)),
    ],
)
def test_values_as_people_keep_them(value: str, setting: FragmentSetting) -> None:
    """Without a threshold or a size nothing is cut."""
    assert read(f"# lab\nUCC_TLS=ucp\n{NAME}={value}\n") == setting


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a variable such as"),
        (f"{NAME}=thresh=x:fragsize=1K", "line 1: expected a size"),
        (f"\n{NAME}=thresh=1K:fragsize=0", "line 2: expected a fragsize of at least 1"),
        (f"{NAME}=thresh=1K:fragsize=1K:nfrags=x", "expected a whole number of nfrags"),
        (f"{NAME}=thresh=1K:fragsize=1M", "expected a higher thresh"),
        (f"{NAME}=n\n{NAMES[1]}=thresh=1K:fragsize=1K", "ambiguous: .* differ"),
    ],
)
def test_what_is_unclear_is_refused(text: str, reason: str) -> None:
    """The line and the rule are named."""
    with pytest.raises(InvalidInput, match=reason):
        read(text)


@hypothesis_given(st.text(alphabet="threshfagsiznpd=:0123456789KMinf"))
def test_any_value_is_a_setting_or_refused(text: str) -> None:
    """Never another error."""
    try:
        setting = read(f"{NAME}={text}")
    except InvalidInput:
        return
    assert len(setting.steps) <= 2
