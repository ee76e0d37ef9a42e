"""What the product writes is what it wrote, but for names that renames.json lists."""

from __future__ import annotations

import base64
import fcntl
import json
import re
from pathlib import Path

import pytest

from tests.golden.asked import Command, Http
from tests.golden.comparing import FOLDER, are_equal, difference, path_of, renamed, renames
from tests.golden.help import HELP
from tests.golden.mistakes import MISTAKES
from tests.golden.models import ROOT
from tests.golden.questions import QUESTIONS
from tests.golden.texts import all_texts, normalised, page_text
from tests.support.compiler import require_native_kernels


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory, worker_id_or_master: str) -> dict[str, str]:
    """Every question's text today; test processes of one run share them."""
    require_native_kernels()
    if worker_id_or_master == "master":
        return all_texts()
    shared = tmp_path_factory.getbasetemp().parent / "golden.json"
    with shared.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shared.exists():
            shared.write_text(json.dumps(all_texts()), encoding="utf-8")
        texts: dict[str, str] = json.loads(shared.read_text(encoding="utf-8"))
        return texts


@pytest.fixture(scope="session")
def worker_id_or_master(request: pytest.FixtureRequest) -> str:
    """The name of this test process, where several run."""
    given = getattr(request.config, "workerinput", None)
    return str(given["workerid"]) if given else "master"


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_nothing_but_names_has_changed(question: Http | Command, written: dict[str, str]) -> None:
    """The golden file, with the words renamed, says what is written today."""
    assert path_of(question).exists(), "it has no file yet: python -m tests.golden.write"
    golden = path_of(question).read_text(encoding="utf-8")
    reported = difference(golden, written[question.name], question)
    assert not reported, f"\n{reported}"


def test_every_file_has_its_question() -> None:
    """None is left of a question that is no longer asked."""
    files = {path for path in FOLDER.rglob("*") if path.is_file()}
    assert files == {path_of(question) for question in QUESTIONS}


def test_every_command_has_a_mistake() -> None:
    """So that exit code, stream and sentence of each are kept."""
    known = {question.words[0] for question in HELP if len(question.words) > 1} - {"--help"}
    assert known <= {word for mistake in MISTAKES for word in mistake.words[:1]}


def test_every_rename_is_in_the_changelog() -> None:
    """With the old word and the new one."""
    changelog = " ".join((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split())
    listed = [pair for words in renames().values() for pair in words.items()]
    missing = [
        f"{old} -> {new}"
        for old, new in listed
        if not all(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", changelog) for word in (old, new))
    ]
    assert not missing


class TestComparing:
    """The comparison itself: what it lets through, and what it does not."""

    def test_whole_words_are_renamed_at_once(self) -> None:
        """In the files of their pattern alone; a word that was put in is left as it is."""
        table = {"cli/*": {"least": "min", "min": "lowest", "most of": "max"}}
        text = "least leasts least_bytes min, most\n of"
        assert renamed(text, "cli/fit", table) == "min leasts least_bytes lowest, max"
        assert renamed(text, "fit/direct", table) == text

    def test_numbers_may_differ_in_their_last_digits(self) -> None:
        """But nothing else may, and the order of members is no difference."""
        assert are_equal({"a": 1.0, "b": [1]}, {"b": [1], "a": 1.0 + 1e-12})
        assert not are_equal({"a": 1.0}, {"a": 1.0 + 1e-6})
        assert not are_equal({"a": 1}, {"a": True})
        assert not are_equal({"a": [1, 2]}, {"a": [1]})
        assert not are_equal({"a": None}, {})

    def test_numbers_in_texts_may_differ_in_their_last_digits(self) -> None:
        """Those that are written in full alone."""
        page = next(one for one in QUESTIONS if one.form == "page.txt")
        text = "takes 0.2630818852216830 of [2.5, 1e-17]"
        assert not difference(text, "takes 0.26308188522168247 of [2.5, 1.0000000000001e-17]", page)
        assert difference(text, text.replace("0.26308", "0.26309"), page)
        assert difference(text, text.replace("2.5", "2.6"), page)
        assert difference(text, text.replace("[", "("), page)

    def test_a_difference_is_seen_in_every_form(self) -> None:
        """A figure that moved is told with its line."""
        for question in (QUESTIONS[0], next(one for one in QUESTIONS if one.form == "txt")):
            golden = Path(path_of(question)).read_text(encoding="utf-8")
            changed = re.sub(r"\d", "7", golden, count=1)
            assert not difference(golden, golden, question)
            assert difference(golden, changed, question)

    def test_markup_may_move_but_no_word(self) -> None:
        """Inline elements break no word; what people read of attributes counts."""
        assert page_text("<p>8<b>2</b> B</p>").split() == page_text("<div>82\n <i>B</i>").split()
        assert "hint" in page_text('<input placeholder="hint">')
        assert "1" not in page_text("<script>1</script><style>1</style>")
        assert "1" in page_text('<script type="application/json">1</script>')

    def test_choices_and_pictures_are_a_part_of_a_page(self) -> None:
        """What is chosen in a form, and the words of a picture that is inside the page."""
        marked, plain = (page_text(f'<option value="a"{mark}>a') for mark in (" selected", ""))
        assert marked != plain
        drawn = base64.b64encode(b"<svg><title>Gain</title><path d='M0 0'/></svg>").decode()
        assert "Gain" in page_text(f'<img src="data:image/svg+xml;base64,{drawn}">')


def test_dates_and_this_machine_are_left_out() -> None:
    """With a word of as many letters for a date, so that lines are broken where they were."""
    said = "verified on\n#   2026-01-02: it holds"
    assert normalised(said) == "verified on\n#   [the date]: it holds\n"
    facts = (
        "machine           x86, a processor of\n                  some name\nwindow            256"
    )
    assert normalised(facts) == "machine           [here]\nwindow            256\n"
    assert normalised('{"kernel": "6.1", "size": "1"}') == '{"kernel": "[here]", "size": "1"}\n'
