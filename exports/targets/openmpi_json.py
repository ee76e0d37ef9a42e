"""Open MPI: fragment sizes by message size as JSON rules of its tuned collectives.

Source    ompi/mca/coll/tuned/coll_tuned_dynamic_file.c (`ompi_coll_tuned_read_rules_json`,
          `coll_tuned_read_message_size_rule`) and coll_tuned_dynamic_rules.c of the branch that
          becomes Open MPI 6.0, commit 8efebee745.
Exact     whole bytes; ranges include both ends, and the first that fits counts.
Traps     the reader wants the key `seg_size`. The converter that comes with Open MPI writes
          `segsize`, which the reader passes over, and with it the size; the published schema has
          neither. JSON has no comments: the head stands under the key `comment`, which the reader
          does not look for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from typing import Any, NoReturn, TypeAlias

from contract.limits import MAX_MESSAGE_BYTES
from domain.errors import InvalidInput
from domain.fragment_setting import MAX_STEPS, FragmentSetting, SettingStep
from exports.targets.commentary import commentary
from exports.targets.keyed_lines import MAX_CHARACTERS, the_one
from exports.targets.openmpi_collectives import (
    ALGORITHM,
    COLLECTIVE,
    OWN_DECISION,
    PROGRAMS,
    SIZES,
    cut_of,
    cut_steps,
    forced,
)
from exports.targets.openmpi_rules import steps_of
from exports.targets.target import OF_A_COLLECTIVE, ExportInput, Takes, Target, TargetOption

_KEY = "seg_size"
_LOST = "segsize"
_MAX_RULES = (MAX_STEPS - 1) // 2  # each begins and ends at most one step
# The message sizes that a rule is for, both ends included, and its fragment size.
_Range: TypeAlias = tuple[int, int, int | None]
_OPTIONS = (
    COLLECTIVE,
    ALGORITHM,
    TargetOption(
        "comm_size",
        "all",
        "the communicator size that it is for, or all",
        pattern=r"all|[1-9][0-9]{0,6}",
    ),
    PROGRAMS,
)


def _render(given: ExportInput) -> str:
    cut, steps = cut_of(given), cut_steps(steps_of(given.chosen))
    sizes = given.options["comm_size"]
    limits = {} if sizes == "all" else {"comm_size_min": int(sizes), "comm_size_max": int(sizes)}
    document = {
        "comment": commentary(given, TARGET, prefix="").splitlines(),
        "rule_file_version": 3,
        "module": "tuned",
        "collectives": {cut.collective: [{**limits, "rules": list(_rules(steps, cut.algorithm))}]},
    }
    return json.dumps(document, indent=1) + "\n"


def _rules(steps: tuple[SettingStep, ...], algorithm: str) -> Iterator[dict[str, object]]:
    ends = [step.from_bytes - 1 for step in steps[1:]]
    for step, end in zip(steps, [*ends, None], strict=True):
        yield {
            "msg_size_min": step.from_bytes,
            "msg_size_max": "inf" if end is None else end,
            "alg": algorithm,
            _KEY: step.size_bytes or 0,
        }


# --- reading --------------------------------------------------------------------------------------


def read(text: str) -> FragmentSetting:
    """The fragment sizes that JSON rules set, as Open MPI's reader takes them. Raises InvalidInput.

    Where several collectives or communicator sizes have rules that differ it is ambiguous. Sizes
    of 0, and messages without a rule, are sent whole.
    """
    collectives = _object(_parsed(text), "the document").get("collectives")
    found: dict[str, FragmentSetting] = {}
    for name, groups in _object(collectives, "collectives").items():
        where = name[:32] if name.isprintable() else "a collective"
        for index, group in enumerate(_array(groups, f"collectives.{where}")):
            path = f"collectives.{where}.{index}"
            rules = _array(_object(group, path).get("rules"), f"{path}.rules")
            if rules:
                found[path] = _size_steps(rules, f"{path}.rules")
    return the_one(found, what="at least one rule")


def _size_steps(rules: list[Any], path: str) -> FragmentSetting:
    if len(rules) > _MAX_RULES:
        _refuse(path, f"expected at most {_MAX_RULES} rules")
    ranges = [_range(rule, f"{path}.{index}") for index, rule in enumerate(rules)]
    starts = {1} | {low for low, _, _ in ranges} | {high + 1 for _, high, _ in ranges}
    steps: list[SettingStep] = []
    for start, size in _first_matches(ranges, sorted(starts)):
        if 1 <= start <= MAX_MESSAGE_BYTES and (not steps or steps[-1].size_bytes != size):
            steps.append(SettingStep(start, size))
    return FragmentSetting(tuple(steps))


def _first_matches(ranges: list[_Range], starts: list[int]) -> Iterator[tuple[int, int | None]]:
    """The size of the first range that holds each start, in one pass; starts ascend."""
    waiting = sorted(((low, index) for index, (low, _, _) in enumerate(ranges)), reverse=True)
    open_ones: list[int] = []
    for start in starts:
        while waiting and waiting[-1][0] <= start:
            heappush(open_ones, waiting.pop()[1])
        while open_ones and ranges[open_ones[0]][1] < start:
            heappop(open_ones)
        yield start, ranges[open_ones[0]][2] if open_ones else None


def _range(rule: object, path: str) -> _Range:
    fields = _object(rule, path)
    if _LOST in fields and _KEY not in fields:
        _refuse(path, f"Open MPI reads {_KEY} and passes over {_LOST}: this size is lost")
    if "alg" not in fields:
        _refuse(path, "expected alg")
    size = _whole(fields, _KEY, path, default=0)
    minimum = _whole(fields, "msg_size_min", path, default=0)
    maximum = _whole(fields, "msg_size_max", path, default=MAX_MESSAGE_BYTES)
    is_own_choice = fields["alg"] in (0, "ignore")
    return minimum, maximum, None if is_own_choice or not size else size


def _whole(fields: Mapping[str, Any], name: str, path: str, *, default: int) -> int:
    value = fields.get(name, default)
    if isinstance(value, str) and value[:3] in ("inf", "Inf", "INF"):
        return MAX_MESSAGE_BYTES
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        _refuse(f"{path}.{name}", "expected a whole number of at least 0, or inf")
    if name == _KEY and value > MAX_MESSAGE_BYTES:
        _refuse(f"{path}.{name}", f"expected a size of at most {MAX_MESSAGE_BYTES} bytes")
    return min(value, MAX_MESSAGE_BYTES)


def _parsed(text: str) -> object:
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"expected at most {MAX_CHARACTERS} characters", field="setting")
    try:
        return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_once)
    except json.JSONDecodeError as refusal:
        raise InvalidInput(f"line {refusal.lineno}: expected JSON", field="setting") from None
    except (ValueError, RecursionError):  # numbers of 5 000 digits, brackets without end
        raise InvalidInput(
            "expected JSON of numbers and depth that can be", field="setting"
        ) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) != len(pairs):
        raise InvalidInput("expected each key once in an object", field="setting")
    return found


def _object(value: object, path: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        _refuse(path, "expected an object")
    return value


def _array(value: object, path: str) -> list[Any]:
    if not isinstance(value, list):
        _refuse(path, "expected an array")
    return value


def _refuse(path: str, rule: str) -> NoReturn:
    raise InvalidInput(f"{path}: {rule}", field="setting")


TARGET = Target(
    name="openmpi-json",
    title="Open MPI: fragment sizes by message size, JSON rules of tuned collectives",
    takes=Takes.SIZE_STEPS,
    render=_render,
    suffix="json",
    media_type="application/json",
    grammar="ompi/mca/coll/tuned/coll_tuned_dynamic_file.c, Open MPI main, commit 8efebee745",
    sizes=SIZES,
    options=_OPTIONS,
    read=read,
    figures_note=OF_A_COLLECTIVE,
    default=lambda _: OWN_DECISION,
    unpriced=forced,
)
