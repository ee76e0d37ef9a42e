"""What a drawing's rules owe to those who show it: a browser or not, on light paper or dark."""

from __future__ import annotations

import re


def assert_light_and_dark(rules: str, dark_media: str) -> None:
    """Colours as such, no variables; and each that light paper has is another on dark paper."""
    light, dark = rules.split(dark_media)
    assert "var(" not in rules
    assert "$" not in rules
    assert _coloured(light) == _coloured(dark.split("{", 1)[1])
    used = [set(re.findall(r"#[0-9a-f]{3,6}\b", part)) for part in (light, dark)]
    assert len(used[0]) > 5
    assert used[0] & used[1] <= {"#fff"}


def _coloured(rules: str) -> set[tuple[str, str]]:
    """Each selector with the property that it colours."""
    found = set()
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", rules):
        for selector in selectors.split(","):
            coloured = re.findall(r"([a-z-]+):#", body)
            found |= {(selector.strip(), name) for name in coloured}
    return found
