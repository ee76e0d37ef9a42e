"""The audit's form: what was typed becomes a request and an address."""

from __future__ import annotations

import shlex
from urllib.parse import parse_qsl

import pytest

from app.console.arguments import parse
from app.schemas.base import dump_json, parse_json, read_request
from app.schemas.source import as_job
from app.schemas.stages import asked_pipeline
from app.verbs.audit.page.form import AuditForm
from app.verbs.audit.request import audit_question_of, audit_scope
from contract.audit import AuditIn
from domain.errors import NotFound
from domain.fragment_setting import FragmentSetting
from domain.regret import Objective

ROWS = [
    *(("name", "bus"), ("overhead", "5"), ("cost", "2"), ("up_to", "")),
    *(("name", ""), ("overhead", "500"), ("cost", "1"), ("up_to", "")),
    *(("overhead_unit", "ns"), ("cost_unit", "gb_per_s"), ("delay", "3")),
]


def form(*pairs: tuple[str, str], **texts: str) -> AuditForm:
    """A form with these fields."""
    return AuditForm.from_pairs([*pairs, *texts.items()])


def test_an_empty_form_asks_nothing() -> None:
    """So it is shown without a mistake."""
    assert not form().is_asked
    assert not form(profile="gms").is_asked


def test_texts_become_a_request() -> None:
    """Sizes with units, shares in per cent, a workload in lines."""
    asked, marked = form(
        profile="gms@1",
        setting="1:whole,64KiB:16 KiB",
        workload="4KiB 3\n# a remark\n64KiB",
        objective="worst",
        max_regret="5 %",
        time_limit="2.5",
    ).asked()
    assert asked is not None
    assert marked.mistakes == {}
    scope = audit_scope(asked)
    assert [(step.from_bytes, step.size_bytes) for step in scope.setting.steps] == [
        (1, None),
        (65536, 16384),
    ]
    assert (scope.objective, scope.max_regret, scope.time_limit_s) == (Objective.WORST, 0.05, 2.5)
    assert scope.workload is not None
    assert [(one.message_bytes, one.share) for one in scope.workload.sizes] == [
        (4096, 0.75),
        (65536, 0.25),
    ]


def test_stages_come_in_their_units() -> None:
    """Nanoseconds and gigabytes a second."""
    asked, _ = form(*ROWS, setting="4KiB").asked()
    assert asked is not None
    pipeline = asked.pipeline
    assert pipeline is not None
    stages = asked_pipeline(pipeline).stages
    assert [stage.name for stage in stages] == ["bus", "stage 2"]
    assert stages[0].ranges[0].overhead_us == pytest.approx(0.005)
    assert stages[0].ranges[0].ns_per_byte == pytest.approx(0.5)
    assert pipeline.delay_us == 3.0


def test_a_configuration_is_read_by_its_library() -> None:
    """The browser's line ends do not matter."""
    text = "# ours\r\nUCX_RNDV_FRAG_SIZE=host:8192"
    asked, _ = form(profile="gms", target="ucx", configuration=text).asked()
    assert asked is not None
    assert audit_scope(asked).setting == FragmentSetting.always(8192)


@pytest.mark.parametrize(
    "pairs",
    [
        (("profile", "gms"), ("setting", "4 KiB"), ("min_message", "1 KiB"), ("max_regret", "5 %")),
        (*ROWS, ("setting", "whole"), ("objective", "worst"), ("over", "bound")),
        (("profile", "gms"), ("target", "ucx"), ("configuration", "A=1\nB=2 & more é")),
    ],
)
def test_the_address_has_all_of_it(pairs: tuple[tuple[str, str], ...]) -> None:
    """What is read back from it makes the same address and the same request."""
    first = AuditForm.from_pairs(pairs)
    again = AuditForm.from_pairs(parse_qsl(first.query(), keep_blank_values=True))
    assert again.query() == first.query()
    assert again.asked()[0] == first.asked()[0]
    assert again.asked()[1].mistakes == first.asked()[1].mistakes


def test_what_is_usual_is_not_in_the_address() -> None:
    """So that links stay short."""
    given = form(
        profile="gms", setting="4KiB", objective="", over="best", time_limit="30", workload=""
    )
    assert given.query() == "profile=gms&setting=4KiB"


@pytest.mark.parametrize(
    ("texts", "field"),
    [
        ({"setting": "1"}, "profile"),
        ({"profile": "gms"}, "setting"),
        ({"profile": "Not a name", "setting": "1"}, "profile"),
        ({"profile": "gms", "setting": "0"}, "setting"),
        ({"profile": "gms", "setting": "64KiB:1,1:2"}, "setting"),
        ({"profile": "gms", "setting": "1", "configuration": "A=1"}, "setting"),
        ({"profile": "gms", "configuration": "A=1", "target": "simgrid"}, "target"),
        ({"profile": "gms", "setting": "1", "objective": "best"}, "objective"),
        ({"profile": "gms", "setting": "1", "over": "all"}, "over"),
        ({"profile": "gms", "setting": "1", "max_regret": "nan"}, "max_regret"),
        ({"profile": "gms", "setting": "1", "max_regret": "inf %"}, "max_regret"),
        ({"profile": "gms", "setting": "1", "max_regret": "-1"}, "max_regret"),
        ({"profile": "gms", "setting": "1", "max_regret": "5"}, "max_regret"),
        ({"profile": "gms", "setting": "1", "time_limit": "nan"}, "time_limit"),
        ({"profile": "gms", "setting": "1", "time_limit": "1e99"}, "time_limit"),
        ({"profile": "gms", "setting": "1", "workload": "4KiB nan"}, "workload"),
        ({"profile": "gms", "setting": "1", "workload": "0 1"}, "workload"),
        ({"profile": "gms", "setting": "1", "min_message": "9" * 300}, "min_message"),
    ],
)
def test_mistakes_are_where_they_were_typed(texts: dict[str, str], field: str) -> None:
    """No text makes an error of another kind."""
    asked, marked = form(**texts).asked()
    assert asked is None
    assert list(marked.mistakes) == [field]


def test_a_stage_that_cannot_be_read() -> None:
    """It is said at the stages."""
    wrong = [(name, "x" if name == "overhead" else value) for name, value in ROWS]
    asked, marked = form(*wrong, setting="1").asked()
    assert asked is None
    assert "stages" in marked.mistakes


def test_a_refusal_of_the_service_is_at_its_field() -> None:
    """Here the profile is not stored."""
    marked = form(profile="gms", setting="1").refused(NotFound("none", field="profile"))
    assert marked.mistakes == {"profile": "none"}


@pytest.mark.parametrize(
    ("pairs", "texts"),
    [
        ((), {"profile": "gms@1", "setting": "2 MiB"}),
        (
            (),
            {"profile": "gms@1", "setting": "whole", "min_message": "3 KiB", "max_message": "5000"},
        ),
        ((), {"profile": "gms@1", "setting": "from 64 KiB: 16 KiB", "max_regret": "0.1 %"}),
        (ROWS, {"setting": "4 KiB", "workload": "4KiB 0.25\n64KiB", "objective": "worst"}),
        (
            (("name", "bus"), ("overhead", "5"), ("cost", "2"), ("up_to", "4 KiB")),
            {"setting": "4 KiB", "over": "bound", "time_limit": "2.5"},
        ),
        (
            (),
            {"profile": "gms@1", "target": "ucx", "configuration": "UCX_RNDV_FRAG_SIZE=host:4096"},
        ),
    ],
)
def test_a_job_restores_the_form(pairs: tuple[tuple[str, str], ...], texts: dict[str, str]) -> None:
    """What it says is asked again word for word as it was."""
    ranges = (("name", ""), ("overhead", "6"), ("cost", "1"), ("up_to", ""))
    rows = (*pairs, *ranges) if ("up_to", "4 KiB") in pairs else pairs
    asked, marked = form(*rows, **texts).asked()
    assert asked is not None, marked.mistakes
    stored = read_request(AuditIn, as_job(asked, None))
    again, marked = AuditForm.of_request(stored).asked()
    assert again is not None, marked.mistakes
    assert audit_scope(again) == audit_scope(asked)
    assert audit_question_of(again) == audit_question_of(asked)


def test_costs_without_fields_are_said() -> None:
    """What a program asked with measurements has a form without them."""
    line = {"name": "all", "overhead_us": 1.0, "ns_per_byte": 1.0}
    given = {"setting": {"whole": True}, "aggregate": {"total": line, "bottleneck": line}}
    found = AuditForm.of_request(parse_json(AuditIn, dump_json(given)))
    assert found.elsewhere == "costs that are known from outside"
    assert found.text("setting") == "whole"


@pytest.mark.parametrize(
    ("texts", "command"),
    [
        (
            {"profile": "mybox", "setting": "512 KiB", "max_regret": "5 %"},
            "sluice audit mybox --setting 512KiB --max-regret 5%",
        ),
        (
            {"profile": "mybox@2", "setting": "whole, from 64 KiB: 16 KiB", "max_regret": "0.05"},
            "sluice audit mybox@2 --setting 'whole, from 64 KiB: 16 KiB' --max-regret 0.05",
        ),
        (
            {
                "profile": "b",
                "configuration": "A=1",
                "target": "ucx",
                "workload": "4KiB 1",
                "max_regret": "5 %",
                "over": "bound",
                "min_message": "1 KiB",
                "time_limit": "5 s",
            },
            "sluice audit b --target ucx --config library.conf --min-message 1KiB"
            " --workload workload.txt --max-regret 5% --over bound --time-limit 5s",
        ),
    ],
)
def test_an_audit_is_a_command_for_ci(texts: dict[str, str], command: str) -> None:
    """With the options that the command line reads; those that are as usual are left out."""
    made = AuditForm(texts)
    assert made.command() == command
    assert ("workload.txt" in made.files()) == ("workload" in texts)
    parsed = parse(shlex.split(command)[1:])
    assert parsed.max_regret == 0.05
