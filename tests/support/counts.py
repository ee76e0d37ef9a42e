"""How many cases: all in a campaign (SLUICE_CAMPAIGN=1), a twentieth or less otherwise."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from pathlib import Path

import hypothesis
from hypothesis.internal.charmap import charmap_file
from hypothesis.internal.conjecture import providers


def is_campaign() -> bool:
    """Whether this run is a campaign."""
    return os.environ.get("SLUICE_CAMPAIGN", "") not in ("", "0")


def count(full: int, *, share: int = 20) -> int:
    """The number of cases to run, where a campaign runs `full`; at least 1.

    Without a campaign it is one in `share`: more than twenty where a single case is costly.
    """
    return full if is_campaign() else max(1, -(-full // share))


def register_hypothesis_profiles() -> None:
    """Load Hypothesis's profile: without a campaign the same cases every time.

    Neither times anything: a slow machine is no failure.
    """
    untimed = hypothesis.settings(
        deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.register_profile(
        "test", untimed, derandomize=True, database=None, max_examples=50
    )
    hypothesis.settings.register_profile("campaign", untimed, max_examples=1000, print_blob=True)
    hypothesis.settings.load_profile("campaign" if is_campaign() else "test")
    if not is_campaign():
        # Numbers that stand in our modules are tried too, of those alone that are loaded by then:
        # with them the cases would be others in each process.
        providers._get_local_constants = _no_constants


def _no_constants() -> providers.Constants:
    return providers._local_constants  # none, where nothing collects them


def keep_known_characters() -> None:
    """Write down what UTF-8 encodes, all but surrogates, where Hypothesis keeps what it has found.

    In a fresh checkout it would try every character, which takes each process five seconds.
    """
    file = Path(charmap_file("codec-v2-utf-8"))
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    encodable, not_the_same_again = [(0, 0xD7FF), (0xE000, 0x10FFFF)], list[object]()
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as made:
        made.write(gzip.compress(json.dumps([encodable, not_the_same_again]).encode()))
    os.replace(made.name, file)  # the processes of a run all do this
