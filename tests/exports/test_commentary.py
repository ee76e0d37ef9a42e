"""The head of every export: what it says, and what names from outside cannot do to it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from contract.limits import MAX_RANGES
from domain.aggregate import PREMISE
from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting
from domain.pipeline import FitRange, Pipeline, Stage
from domain.regret import Objective, PricedSetting, SizeRule
from domain.uncertain_answer import DecisionCode, Quantiles, SettingsInDraws, Thresholds
from domain.uncertainty import Source
from exports.targets.commentary import LINE_BYTES, check_size, commentary, one_size, plain
from exports.targets.gain import doubts, warnings
from exports.targets.registry import TARGETS
from exports.targets.target import ExportInput, LibraryDefault, Takes, Target, Unpriced
from tests.exports.given import given_for
from tests.support.records import an_aggregate

GRAMMAR = "parse.c of version 7"
ONE = Target("one", "One size", Takes.ONE_SIZE, lambda _: "", "conf", GRAMMAR)
SIZE_STEPS = Target(
    "size_steps", "A list of size steps", Takes.SIZE_STEPS, lambda _: "", "conf", GRAMMAR
)
COSTS = Target("costs", "Costs", Takes.COSTS, lambda _: "", "conf", GRAMMAR)
SIZED = (Takes.ONE_SIZE, Takes.SIZE_STEPS)
ENDS = ("*/", "/*", "--", "\\", "??", "]]>")


def test_it_says_what_it_is_and_what_it_costs() -> None:
    """Profile, stages, size, objective, mix, regret, and that nobody reads it back."""
    text = commentary(given_for(ONE, setting=FragmentSetting.always(65536)), ONE)
    assert all(line.startswith("# ") for line in text.splitlines())
    for words in (
        "One size (one)",
        "profile 'lab-7', revision 3",
        "size for every message: 65536 bytes (64 KiB)",
        "least mean regret over the workload: log-uniform from 1 to 16777216 bytes",
        "mean 1.23 %, worst 50.00 %",
        "65536          65536  10.00 %",
        f"UNVERIFIED: not read by the real program; grammar after {GRAMMAR}",
    ):
        assert words in text


def test_what_is_read_back_is_said() -> None:
    """By the target, or for these options alone."""
    text = commentary(given_for(ONE), ONE, verified_by="reader 1.2")
    assert f"Read back in tests by reader 1.2; grammar after {GRAMMAR}" in text
    assert "UNVERIFIED" not in text


def test_size_steps_and_costs_have_heads_of_their_own() -> None:
    """Every step of a list of size steps; no size at all where costs alone are exported."""
    size_steps = commentary(given_for(SIZE_STEPS), SIZE_STEPS)
    assert "size for from 1: " not in size_steps
    assert "size from 1: 4096 bytes (4 KiB)" in size_steps
    assert "size from 100000: 65536 bytes (64 KiB)" in size_steps
    costs = commentary(given_for(COSTS, profile=""), COSTS)
    assert "made by Sluice from a pipeline without a name" in costs
    assert "regret" not in costs


def test_every_range_of_a_stage_counts() -> None:
    """Few are listed, many are counted."""
    few = (FitRange(1.0, 0.5, 4096), FitRange(2.0, 0.25))
    many = (*(FitRange(1.0, 0.5, 2 * i) for i in range(1, MAX_RANGES)), FitRange(2.0, 0.25))
    pipeline = Pipeline((Stage("a", few), Stage("b", many)), 2.5)
    text = commentary(given_for(COSTS, pipeline=pipeline), COSTS).replace("\n#  ", "")
    assert "1 us + 0.5 ns a byte up to 4096 bytes; 2 us + 0.25 ns a byte" in text
    assert f"{MAX_RANGES - 2} more ranges" in text
    assert "delay 2.5 us a message" in text


@pytest.mark.parametrize(
    "name",
    [
        "a\nUCX_RNDV_FRAG_SIZE=host:1",
        "a\r\n[section]",
        "a\x00b\x1b[31m",
        "a\u2028b\u2029c\x85d",
        "*/ int x; /*",
        "--> <prop/> <!--",
        "line\\",
        "trigraph??/",
        "\u202egnp.exe",
        "-" * 99,
        "*/" * 49,
        "é" * 100,
        "集" * 100,
        "\ud800",
    ],
)
def test_a_name_starts_no_line_and_ends_no_comment(name: str) -> None:
    """Whatever the profile and the stages are called."""
    pipeline = Pipeline((Stage.of_line(name[:100], overhead_us=1.0, ns_per_byte=0.5),))
    for prefix in ("# ", " * ", "  "):
        text = commentary(given_for(ONE, pipeline=pipeline, profile=name * 20), ONE, prefix=prefix)
        check(text, prefix)


@hypothesis_given(st.text(min_size=1, max_size=100))
def test_no_text_does(name: str) -> None:
    """Any characters at all."""
    pipeline = Pipeline((Stage.of_line(name, overhead_us=1.0, ns_per_byte=0.5),))
    check(commentary(given_for(ONE, pipeline=pipeline, profile=name), ONE), "# ")


def check(text: str, prefix: str) -> None:
    """Every line a comment, printable, short, without any end of a comment: of two hyphens in
    blocks alone.
    """
    ends = [end for end in ENDS if end != "--" or not prefix.strip()]
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        assert line.startswith(prefix.rstrip())
        stated = line[len(prefix) :]
        assert stated.isprintable()
        assert len(line.encode()) <= LINE_BYTES
        assert not any(end in stated for end in ends)


def test_plain_text_stays_as_it_is() -> None:
    """Only what could do harm is replaced."""
    assert plain("host to device, 集群: 3 µs (1/2)") == "host to device, 集群: 3 µs (1/2)"


def priced(regret: float) -> PricedSetting:
    """A setting with this mean regret, half of it for the total time and twice that at worst."""
    return PricedSetting(FragmentSetting.always(8192), 0.5 * regret, regret, 2.0 * regret)


def compared(
    default: PricedSetting | None,
    wanted: PricedSetting | None = None,
    unpriced: tuple[Unpriced, ...] = (),
) -> tuple[ExportInput, Target]:
    """An export of mean regret 1.23 % beside these two."""
    own = LibraryDefault("8192 bytes", "default.c", default.setting if default else None)
    target = replace(ONE, default=lambda _: own, unpriced=lambda _: unpriced)
    given = given_for(target)
    assert given.chosen is not None
    return replace(given, chosen=replace(given.chosen, default=default, wanted=wanted)), target


def test_a_known_gain_is_told_beside_the_default() -> None:
    """With its source; the head begins with the title, as before."""
    given, target = compared(priced(0.4), priced(0.01))
    text = re.sub(r"\n#\s{2,}", " ", commentary(given, target))
    assert text.startswith("# One size (one)")
    figures = "total time 20.00 % over the best, mean regret 40.00 %, worst 80.00 %"
    assert f"library's default: 8192 bytes: {figures} (default.c)" in text
    assert "wanted before the target's limits: 8192 bytes: total time 0.50 % over the" in text
    assert "not priced: nothing that is known of" in text
    assert not doubts(given, target)


@pytest.mark.parametrize(
    ("default", "unpriced", "reason"),
    [
        (priced(0.0123), (), "the default is as good or better"),
        (priced(0.001), (), "the default is as good or better"),
        (None, (), "the default has no price: 8192 bytes"),
        (priced(0.9), (Unpriced("a forced tree", may_lose=True),), "not priced: a forced tree"),
    ],
)
def test_what_is_not_known_to_be_better_says_so_first(
    default: PricedSetting | None, unpriced: tuple[Unpriced, ...], reason: str
) -> None:
    """In the first line of the head, with the reason."""
    given, target = compared(default, unpriced=unpriced)
    text = re.sub(r"\n#\s+", " ", commentary(given, target))
    assert text.startswith("# NOT KNOWN TO BE BETTER than the library's default: ")
    assert reason in text


def test_what_cannot_lose_leaves_a_gain_known() -> None:
    """It is named all the same."""
    given, target = compared(priced(0.9), unpriced=(Unpriced("its rest", may_lose=False),))
    assert not doubts(given, target)
    assert "# not priced: its rest\n" in commentary(given, target)


def test_limits_that_cost_much_are_said_before_the_title() -> None:
    """More than one per cent of the mean; below that only in the comparison."""
    given, target = compared(priced(0.9), priced(0.001))
    first = commentary(given, target).splitlines()[0]
    assert first.startswith("# the target's limits cost 1.23 % in the mean where 8192 bytes would")
    given, target = compared(priced(0.9), priced(0.01))
    assert commentary(given, target).startswith("# One size")


@pytest.mark.parametrize(
    ("objective", "cost", "chosen_for"),
    [
        (Objective.TIME, "2.00 % of the total time where {} would cost 0.05 %", "total time"),
        (Objective.MEAN, "1.23 % in the mean where {} would cost 0.10 %", "mean regret"),
        (Objective.WORST, "50.00 % at worst where {} would cost 0.20 %", "worst regret"),
    ],
)
def test_what_the_sizes_were_chosen_for_is_what_counts(
    objective: Objective, cost: str, chosen_for: str
) -> None:
    """Of what the limits cost, and of the default, which is worse in the mean alone."""
    given, target = compared(priced(0.03), priced(0.001))
    assert given.chosen is not None
    given = replace(given, chosen=replace(given.chosen, objective=objective))
    text = re.sub(r"\n#\s+", " ", commentary(given, target))
    assert f"the target's limits cost {cost.format('8192 bytes')}" in text
    assert f"chosen for least {chosen_for} over the workload" in text
    is_better = objective is Objective.MEAN
    assert ("the default is as good or better" not in text) is is_better


@pytest.mark.parametrize("target", [one for one in TARGETS if one.takes in SIZED])
def test_every_target_of_sizes_states_a_default(target: Target) -> None:
    """With words and a source, for its options by default."""
    default = target.default(target.options_from({}))
    assert default.words
    assert default.source != "this target"


def test_the_same_input_gives_the_same_head() -> None:
    """No date, no machine."""
    assert commentary(given_for(ONE), ONE) == commentary(given_for(ONE), ONE)


@pytest.mark.parametrize(
    ("size", "rule", "broken"),
    [
        (4096, SizeRule(min_bytes=8192), "expected a size of 8192 to"),
        (2**20, SizeRule(max_bytes=65536), "expected a size of 1 to 65536"),
        (4100, SizeRule(multiple_of=64), "expected a multiple of 64 bytes"),
        (12288, SizeRule(is_power_of_two=True), "expected a power of two"),
    ],
)
def test_a_size_outside_the_rule_is_not_written(size: int, rule: SizeRule, broken: str) -> None:
    """Each part of the rule is named."""
    with pytest.raises(InvalidInput, match=broken):
        one_size(given_for(ONE, setting=FragmentSetting.always(size)), rule)


def test_one_size_is_one_size() -> None:
    """Neither a list of size steps nor a setting that sends every message whole."""
    assert one_size(given_for(ONE, setting=FragmentSetting.always(4096)), SizeRule()) == 4096
    with pytest.raises(InvalidInput, match="one size for every message"):
        one_size(given_for(SIZE_STEPS), SizeRule())
    with pytest.raises(InvalidInput, match="sent whole"):
        one_size(given_for(ONE, setting=FragmentSetting.always(None)), SizeRule())
    check_size(4096, SizeRule(4096, 4096, 4096, is_power_of_two=True))


@pytest.mark.parametrize(
    ("code", "probability", "is_known"), [(DecisionCode.SET_IT, 0.95, True), (None, 0.7, False)]
)
def test_a_gain_that_draws_of_the_costs_do_not_show_is_none(
    code: DecisionCode | None, probability: float, is_known: bool
) -> None:
    """However much less its regret is by the estimates."""
    given, target = compared(priced(0.9))
    in_draws = SettingsInDraws(
        source=Source.FIT,
        draws=400,
        seed=1,
        messages=3,
        settings=(),
        code=code,
        advised="default",
        gain=Quantiles(-0.02, 0.1, 0.3),
        probability=probability,
        thresholds=Thresholds(margin=0.34),
    )
    found = doubts(replace(given, over_default=in_draws), target)
    assert (not found) is is_known
    if found:
        assert found == (
            "it gains -2.00 % to 30.00 % in nine of ten draws of the costs, and the measurements "
            "cannot distinguish less than 34.00 % from nothing",
        )


@pytest.mark.parametrize("target", [one for one in TARGETS if one.takes is Takes.TABLE])
def test_a_table_without_stages_says_its_premise(target: Target) -> None:
    """First of all, and to who asks for the warnings; with stages there is none."""
    given = given_for(target)
    of_aggregate = replace(given, model=an_aggregate())
    assert not list(warnings(given, target))
    assert list(warnings(of_aggregate, target)) == [f"by a premise: {PREMISE}"]
    first = f"# by a premise: {PREMISE}"[:60]
    assert commentary(of_aggregate, target).startswith(first)


def test_a_total_that_is_said_to_be_uncut_leaves_no_premise() -> None:
    """Neither before a table nor among the doubts of a size."""
    table = next(one for one in TARGETS if one.takes is Takes.TABLE)
    uncut = replace(an_aggregate(), total_is_uncut=True)
    assert not list(warnings(replace(given_for(table), model=uncut), table))
    given, target = compared(priced(0.9))
    open_premise = doubts(replace(given, model=an_aggregate()), target)
    assert open_premise == (f"premise: {PREMISE}",)
    assert not doubts(replace(given, model=uncut), target)
