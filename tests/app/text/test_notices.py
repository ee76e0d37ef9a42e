"""What is said of a fit, in the order of what it means for the answer."""

from __future__ import annotations

import re

from app.text.notices import MAX_NAMED, MEANINGS, notice_items, notice_lines
from domain.solution import Notice
from tests.architecture.documents import document, python_files


def about(code: str, stage: str, words: str = "words") -> Notice:
    """A notice of a stage."""
    return Notice.of_stage(stage, code, words)


def test_every_code_of_a_fit_has_its_meaning() -> None:
    """Those that fits and verifications write, and no other."""
    files = [*python_files("fitting"), *python_files("analysis"), *python_files("domain")]
    texts = [path.read_text("utf-8") for path in files]
    written = {
        code
        for text in texts
        for code in re.findall(r'Notice(?:\.of_stage\(\s*[a-z.]+,|\()\s*"([a-z_]+)"', text)
    }
    assert set(MEANINGS) <= written
    of_fits = {
        row[0].strip("`") for row in document("docs/fitting.md").rows("What is said about the data")
    }
    assert of_fits <= set(MEANINGS)


def test_equal_ones_of_several_stages_are_one() -> None:
    """With the stages named, what changes the answer first, and the words of each kept."""
    given = [
        about("switch_found", "copy"),
        about("outliers", "wire", "one"),
        about("outliers", "copy: again", "two: three"),
        about("noise_decides_nothing", "copy"),
        Notice("no_bottleneck", "none is known"),
    ]
    items = notice_items(given)
    assert [item.code for item in items] == [
        "noise_decides_nothing",
        "no_bottleneck",
        "outliers",
        "switch_found",
    ]
    assert items[2].is_grouped
    assert items[2].notices == (given[1], given[2])
    assert items[2].stages == ("wire", "copy: again")
    assert items[1].stages == ()
    assert not items[1].is_grouped


def test_a_line_each_for_a_terminal() -> None:
    """Shared ones say what they mean and what to do; a single one says its own words."""
    shared, single = notice_lines(
        [about("too_few_sizes", "copy"), about("too_few_sizes", "wire"), about("warm_up", "wire")]
    )
    advice = MEANINGS["too_few_sizes"].advice
    assert shared == f"copy and wire: too few sizes (too_few_sizes). {advice}"
    assert single == "stage wire: words (warm_up)"


def test_many_stages_are_counted() -> None:
    """And a code of newer software is told by its name."""
    names = [f"s{number}" for number in range(MAX_NAMED + 2)]
    (line,) = notice_lines([about("new_thing", name) for name in names])
    assert line == "s0, s1, s2, s3, s4 and 3 more: new thing (new_thing)"


def test_the_title_tells_a_single_outlier_by_the_figures() -> None:
    """Not by the words; a notice that was stored without figures has the general title."""
    one = Notice.of_stage("wire", "outliers", "1 of 40 times", outliers=1)
    (item,) = notice_items([one, Notice.of_stage("copy", "outliers", "1 of 9", outliers=1)])
    assert item.title == MEANINGS["outliers"].single
    (item,) = notice_items([one, Notice("outliers", "stage copy: 1 of 9 times")])
    assert item.title == MEANINGS["outliers"].title
    assert item.stages == ("wire",)
