"""What callgrind writes of one counted call: instructions, data accesses, and both by function."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.messaging_layer import End

_LABEL = re.compile(
    r"^desc: Trigger: Client Request: (source|destination) (\d+) (\d+)$", re.MULTILINE
)
_SUMMARY = re.compile(r"^summary:((?: \d+)+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Dump:
    """One call as callgrind wrote it: instructions, data reads and writes, and by function."""

    end: End
    message_bytes: int
    repetition: int
    instructions: int
    data: int
    functions: tuple[tuple[str, int, int], ...]  # library:function, instructions, data

    @property
    def unexplained(self) -> int:
        """By how much the instructions of the functions differ from those of the call."""
        return abs(self.instructions - sum(cost for _, cost, _ in self.functions))


def read_dump(text: str) -> Dump | None:
    """Return what a dump's file says, None for one that is not of a counted call.

    Format: events in the order of `events:`, zeros at the end left out; `summary:` is the whole;
    after `calls=` comes a line of inclusive cost, which belongs to the function that is called.
    """
    label, whole = _LABEL.search(text), _SUMMARY.search(text)
    if label is None or whole is None:
        return None
    totals: Counter[str] = Counter()
    data: Counter[str] = Counter()
    library, function, is_call = "", "", False
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and key == "ob":
            library = Path(value).name.partition(".so")[0]
        elif equals and key == "fn":
            function = f"{library}:{value}"
        elif equals and key == "calls":
            is_call = True
        elif line[:1].isdigit() and function:
            if not is_call:
                instructions, both = _cost(line.split()[1:])
                totals[function] += instructions
                data[function] += both
            is_call = False
    functions = tuple((name, cost, data[name]) for name, cost in totals.most_common() if cost)
    return Dump(
        End(label[1]),
        int(label[2]),
        int(label[3]),
        *_cost(whole[1].split()),
        functions,
    )


def _cost(events: Sequence[str]) -> tuple[int, int]:
    """Return instructions, and data reads and writes together."""
    numbers = [int(event) for event in events[:3]]
    return (numbers[0] if numbers else 0), sum(numbers[1:])
