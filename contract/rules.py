"""Kinds of values that several requests and answers have: a type with the rule of its values."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .declare import documented, rule
from .limits import (
    FIT_ID_RULE,
    MAX_MESSAGE_BYTES,
    MAX_NAME_LENGTH,
    MAX_NS_PER_BYTE,
    MAX_OVERHEAD_US,
    MAX_SEED,
    MAX_TIME_LIMIT_S,
    PROFILE_NAME_RULE,
    REVISION_RULE,
)


def decimals_to(limit: int) -> str:
    """Return a pattern of the whole numbers from 0 to this one, in decimal digits."""
    digits = str(limit)
    # Fewer digits, or as many: the first ones alike, the next one smaller, and any behind it.
    forms = [f"[1-9][0-9]{{0,{len(digits) - 2}}}"] if len(digits) > 1 else []
    for place, digit in enumerate(digits):
        first = 0 if place else 1
        if int(digit) > first:
            rest = len(digits) - place - 1
            forms.append(f"{digits[:place]}[{first}-{int(digit) - 1}][0-9]{{{rest}}}")
    return f"^({'|'.join(['0', *forms, digits])})$"


_BYTES = documented(description="whole bytes")
_PER_FRAGMENT = documented(description="µs per fragment")
_PER_BYTE = documented(description="ns per byte")
SEED_PATTERN = decimals_to(MAX_SEED)

Whole = Annotated[int, rule(is_whole=True)]
Count = Annotated[int, rule(ge=0, is_whole=True)]
PlainBytes = Annotated[
    int, rule(ge=1, le=MAX_MESSAGE_BYTES), _BYTES
]  # of a list that reads 4096.0 itself
Bytes = Annotated[int, rule(ge=1, le=MAX_MESSAGE_BYTES, is_whole=True), _BYTES]
MeasuredBytes = Annotated[int, rule(ge=0, le=MAX_MESSAGE_BYTES, is_whole=True), _BYTES]
OverheadUs = Annotated[float, rule(ge=0.0, le=MAX_OVERHEAD_US), _PER_FRAGMENT]
NsPerByte = Annotated[float, rule(ge=0.0, le=MAX_NS_PER_BYTE), _PER_BYTE]
NotNegative = Annotated[float, rule(ge=0.0)]
Positive = Annotated[float, rule(gt=0.0, le=1e300)]
Share = Annotated[float, rule(ge=0.0, le=1.0)]
TimeLimitS = Annotated[float, rule(gt=0.0, le=MAX_TIME_LIMIT_S)]
Name = Annotated[str, rule(min_length=1, max_length=MAX_NAME_LENGTH)]
ProfileName = Annotated[str, rule(pattern=f"^{PROFILE_NAME_RULE}$")]
ProfileAt = Annotated[
    str,
    rule(pattern=f"^{PROFILE_NAME_RULE}({REVISION_RULE})?$"),
    documented(description="a profile's name: its current revision; name@2 pins one"),
]
FitId = Annotated[
    str,
    rule(pattern=f"^{FIT_ID_RULE}$"),
    documented(description="a stored fit, as `fit_id` of POST /fit"),
]
Seed = Annotated[str, rule(pattern=SEED_PATTERN)]  # text: a double has 53 bits

# --- names, in the order of the domain's, which is that of a refusal ------------------------------

Strategy: TypeAlias = Literal[
    "auto",
    "exact",
    "fixed",
    "repeat",
    "ramp",
    "ramp_up_down",
    "ramp_repeat",
    "hierarchical",
    "hierarchical_ramp",
    "static",
    "single",
    "eager",
    "pulses",
]
Status: TypeAlias = Literal["optimal", "optimal_before_rounding", "proven_gap", "time_limit"]
STATUS_MEANS = (
    "what was proven of this model: optimal, the whole-byte cut is within the gap asked for; "
    "optimal_before_rounding, the real-valued optimum is, and whole bytes and alignment add the "
    "rounding gap; proven_gap, neither, and the gap stated is true; time_limit, the search was cut "
    "off, best so far"
)
DeliveryRule: TypeAlias = Literal["store_and_forward", "static", "eager", "planned", "same", "flow"]
RULE_MEANS = (
    "how the stage cuts what arrives: store_and_forward, the whole message once all of it is "
    "there; static, pulses of one size; eager, whatever is there, a threshold at least; planned, a "
    "list of sizes; same, the cut of the stage before; flow, not at all"
)
