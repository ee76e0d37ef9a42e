"""A library's setting: one size, whole messages, a size for each range, or its configuration."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .declare import Input, Output, asked, by_member, documented, one_of, output, rule, sent
from .limits import MAX_CONFIGURATION_CHARACTERS, MAX_GIVEN_STEPS, MAX_TARGET_LENGTH
from .rules import Bytes

# Export targets whose configurations can be read back, in the order of their registry.
READABLE_TARGETS = (
    "mooncake",
    "nccl-env",
    "nccl-buffsize",
    "ucx",
    "ucx-shm",
    "openmpi-mca",
    "openmpi-rules",
    "openmpi-json",
    "mpich",
    "mpich-ofi",
    "mvapich",
    "ucc",
    "cufile",
    "s3",
)
Target = Annotated[str, rule(max_length=MAX_TARGET_LENGTH), documented(enum=READABLE_TARGETS)]
Content = Annotated[str, rule(max_length=MAX_CONFIGURATION_CHARACTERS)]


class StepIn(Input):
    """From this message size on, messages repeat this size; null: they are sent whole."""

    from_bytes: Bytes = asked("the smallest message of the step, bytes")
    size_bytes: Bytes | None = asked(
        "the size that its messages repeat, bytes; null: they are sent whole"
    )


StepList = Annotated[list[StepIn], rule(min_length=1, max_length=MAX_GIVEN_STEPS, fail_fast=True)]


class ConfigurationIn(Input):
    """A library's configuration as text, and the export target whose syntax it has."""

    target: Target = asked(
        "the export target whose syntax it has",
        help="whose: an export target that is read",
        option="--target",
        metavar="NAME",
        label="Of",
    )
    content: Content = asked(
        "the text of the configuration",
        help="a library's configuration instead",
        unit="lines",
        option="--config",
        metavar="FILE",
        file="library.conf",
        page="configuration",
        label="Its text",
        is_long=True,
    )


class StaticIn(Input):
    """One size for all messages."""

    static_bytes: Bytes = asked("the size that all messages repeat, bytes")


class WholeIn(Input):
    """Every message is sent whole."""

    whole: Literal[True] = asked("true: every message is sent whole")


class StepsIn(Input):
    """A size for each range of messages; the first step begins at 1 byte."""

    steps: StepList = asked("the steps, ascending; the first begins at 1 byte")


class ConfiguredIn(Input):
    """What a library's configuration says."""

    configuration: ConfigurationIn = asked("the configuration of a library", block=ConfigurationIn)


AnySettingIn: TypeAlias = StaticIn | WholeIn | StepsIn | ConfiguredIn
SettingIn = Annotated[
    AnySettingIn,
    one_of(
        by_member(
            "static",
            static_bytes="static",
            whole="whole",
            steps="steps",
            configuration="configuration",
        ),
        static=StaticIn,
        whole=WholeIn,
        steps=StepsIn,
        configuration=ConfiguredIn,
    ),
]


@output
class SettingStepOut(Output):
    """From this message size on, messages repeat this size; null: they are sent whole."""

    from_bytes: int = sent("the smallest message of the step, bytes")
    size_bytes: int | None = sent(
        "the size that its messages repeat, bytes; null: they are sent whole"
    )
