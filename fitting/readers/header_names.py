"""Names of columns as people write them: of sizes, of repetitions, of what is no stage."""

from __future__ import annotations

import re

UNIT = re.compile(
    r"(?:[\s_]+|\s*[(\[]\s*)(us|usec|µs|μs|ms|msec|ns|nsec|s|sec|seconds)\s*[)\]]?$", re.IGNORECASE
)
OF_WHOLE_MESSAGES = re.compile(
    r"t|time|lat(?:ency)?|duration|elapsed|rtt|avg|mean|median|us|usec", re.IGNORECASE
)
INTERARRIVAL = re.compile(r"inter[_ -]?arrival\w*|gap", re.IGNORECASE)
_SIZE = re.compile(
    r"(?:(?:message|msg|packet|block|buffer|transfer|data)[_ ]?)?"
    r"(?:bytes?|size|length|len)(?:[_ ]?[(\[]?(?:b|bytes?)[)\]]?)?",
    re.IGNORECASE,
)
_REPETITION = re.compile(r"#|i|n|no|rep\w*|iter\w*|run|trial|sample|count", re.IGNORECASE)
_STATISTIC = re.compile(
    r"(?:(?:t|time|lat|latency)[_ ]?)?"
    r"(?:min(?:imum)?|max(?:imum)?|avg|average|mean|median|typical|std\w*|sd|var\w*|"
    r"p\d+|\d+(?:th)?|q\d+|percentile\w*)",
    re.IGNORECASE,
)


def is_size(name: str) -> bool:
    """Whether a column of this name holds the sizes of messages, in bytes."""
    return _SIZE.fullmatch(name) is not None


def is_repetition(name: str) -> bool:
    """Whether it numbers the repetitions."""
    return _REPETITION.fullmatch(name) is not None


def is_no_stage(name: str) -> bool:
    """Whether this, without its unit, names a whole message or a statistic and not a stage."""
    return any(rule.fullmatch(name) for rule in (OF_WHOLE_MESSAGES, INTERARRIVAL, _STATISTIC))
