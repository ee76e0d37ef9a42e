"""Makes the tables of docs/audit.md: the settings that people use, on published pipelines.

    .venv/bin/python -m tools.audit_table           prints them
    .venv/bin/python -m tools.audit_table --write   puts them into the document

Regrets are over the best schedule found; nothing in the tables depends on the machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import solvers
from analysis.best_known import each_known
from analysis.setting_price import price
from app.questions.profiles import paper_profiles
from app.questions.question import Question, prepare
from app.questions.source import Stored
from app.questions.traces import Measurement
from domain.fragment_setting import FragmentSetting, breakpoints
from domain.model import CostModel
from domain.problem import DEFAULT_FRAGMENT_CAP, FragmentLimits
from domain.regret import BestKnown, SizeRule
from domain.units import format_bytes
from domain.workload import (
    DEFAULT_MAX_MESSAGE_BYTES,
    DEFAULT_MIN_MESSAGE_BYTES,
    Workload,
    powers_of_two,
)

CHECKOUT = Path(__file__).resolve().parents[1]
DOCUMENT = CHECKOUT / "docs" / "audit.md"
TRACE = "examples/local-path-direct.csv"
BEGIN, END = "<!-- made by tools.audit_table -->", "<!-- end -->"
DEFAULT = (2**16, 2**19, 2**22)
SHOWN = (2**16, 2**20, 2**24)
PUBLISHED = ("myrinet-gam",)
_TIME_LIMIT_S = 600.0  # far beyond what is needed: no search is to be ended by a slow machine


@dataclass(frozen=True, slots=True)
class Studied:
    """A pipeline, and the best known for each message."""

    name: str
    model: CostModel
    workload: Workload
    best: tuple[BestKnown, ...]


def tables() -> str:
    """All tables as Markdown."""
    return "\n\n".join("\n".join(_table(_studied(name, model))) for name, model in _models())


def written(text: str) -> str:
    """The document with its tables in place of those that it has."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


def _models() -> Iterator[tuple[str, CostModel]]:
    for profile in paper_profiles():
        if profile.name in PUBLISHED:
            yield f"`{profile.name}`", profile.pipeline
    source = (Measurement((CHECKOUT / TRACE).read_bytes()),)
    question = Question(message_bytes=DEFAULT_MAX_MESSAGE_BYTES, source=source)
    yield (
        f"`{TRACE}`",
        prepare(question, Stored(), fragment_cap=DEFAULT_FRAGMENT_CAP).problem.model,
    )


def _studied(name: str, model: CostModel) -> Studied:
    workload = Workload.log_uniform(DEFAULT_MIN_MESSAGE_BYTES, DEFAULT_MAX_MESSAGE_BYTES)
    powers = powers_of_two(DEFAULT_MIN_MESSAGE_BYTES, DEFAULT_MAX_MESSAGE_BYTES)
    first = _best(model, {*powers, *(size.message_bytes for size in workload.sizes)})
    settings = _settings(Studied(name, model, workload, first))
    known = {one.message_bytes for one in first}
    rest = _best(model, {size for _, setting in settings for size in _turns(setting)} - known)
    best = tuple(sorted((*first, *rest), key=lambda one: one.message_bytes))
    return Studied(name, model, workload, best)


def _turns(setting: FragmentSetting) -> tuple[int, ...]:
    return breakpoints(setting, DEFAULT_MIN_MESSAGE_BYTES, DEFAULT_MAX_MESSAGE_BYTES)


def _best(model: CostModel, sizes: set[int]) -> tuple[BestKnown, ...]:
    found = each_known(
        model,
        sorted(sizes),
        table=None,
        limits=FragmentLimits(),
        fragment_cap=DEFAULT_FRAGMENT_CAP,
        time_limit_s=_TIME_LIMIT_S,
    )
    return tuple(found)


def _table(of: Studied) -> Iterator[str]:
    yield f"**{of.name}**"
    yield ""
    heads = ["setting", "mean", "worst", *(format_bytes(size) for size in SHOWN)]
    yield " | ".join(heads)
    yield "|".join(["---", *["---:"] * (len(heads) - 1)])
    for name, setting in _settings(of):
        yield " | ".join([name, *_cells(of, setting)])
    yield f"a size a message | {' | '.join(_repeats(of))}"
    yield ""
    yield f"The bounds leave at most {_open(of)} to any schedule in the mean."


def _settings(of: Studied) -> Iterator[tuple[str, FragmentSetting]]:
    for size in DEFAULT:
        yield f"always {format_bytes(size)}", FragmentSetting.always(size)
    yield "always whole", FragmentSetting.always(None)
    single = solvers.choose_size(of.model, of.best, of.workload, rule=SizeRule()).setting
    yield f"best single size, {single.steps[0].size_bytes} B", single
    size_steps = solvers.choose_size_steps(of.model, of.best, of.workload, rule=SizeRule()).setting
    yield f"best size steps, {len(size_steps.steps)} steps", size_steps


def _percent(share: float) -> str:
    """A share in per cent as the tables have it: one decimal, from 100 on none."""
    value = 100.0 * share
    return f"{value:.0f}" if abs(value) >= 100.0 else f"{value:.1f}"


def _cells(of: Studied, setting: FragmentSetting) -> list[str]:
    everywhere = [one.message_bytes for one in of.best]
    priced = price(of.model, setting, of.best, of.workload, also=everywhere)
    shown = [one for one in of.best if one.message_bytes in SHOWN]
    at_sizes = [one.over_best for one in solvers.regrets(of.model, setting, shown)]
    return [_percent(one) for one in (priced.mean.at_least, priced.worst.over_best, *at_sizes)]


def _repeats(of: Studied) -> list[str]:
    known = {one.message_bytes: _repeat_regret(one) for one in of.best}
    counted = [(size.share, known[size.message_bytes]) for size in of.workload.sizes]
    mean = sum(share * regret for share, regret in counted)
    worst = max(known.values())
    return [_percent(one) for one in (mean, worst, *(known[size] for size in SHOWN))]


def _repeat_regret(best: BestKnown) -> float:
    """What the best repeated size of this very message costs; without limits there is one."""
    assert best.repeat_us is not None
    return (best.repeat_us - best.latency_us) / best.latency_us


def _open(of: Studied) -> str:
    known = {one.message_bytes: one for one in of.best}
    counted = [(size.share, known[size.message_bytes]) for size in of.workload.sizes]
    left = sum(share * (one.latency_us / one.lower_bound_us - 1.0) for share, one in counted)
    return f"{ceil(left * 1e4) / 100.0:.2f} %"


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put them into docs/audit.md")
    if parser.parse_args().write:
        DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(tables())


if __name__ == "__main__":
    _main()
