"""Buckets of gradients: what DistributedDataParallel (DDP) and Megatron are told of the best cut.

Source    PyTorch 2.15.0: torch/nn/parallel/distributed.py. Megatron-LM:
          megatron/training/arguments.py (`--ddp-bucket-size`) and
          megatron/core/distributed/param_and_grad_buffer.py, which closes a bucket with the
          parameter that reaches the size, as DDP does.
Exact     caps of DDP make the very cut, by its own rounding; a size of Megatron is a whole number
          of elements whose bytes are within the range of the best cap.
Traps     DDP's list is new: what does not know it takes one cap. Megatron pads buckets of a
          distributed optimizer, and cuts only with --overlap-grad-reduce.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from domain.bucket_setting import DDP_RULE, BucketSetting
from domain.errors import InvalidInput, StrategyDeclined
from domain.items import CapChoice, ItemCut, ItemSequence
from exports.targets.commentary import comment, reading
from exports.targets.target import TargetOption, checked_options

_FORM = "form"
_ELEMENT = "element_bytes"


@dataclass(frozen=True, slots=True)
class BestBuckets:
    """Gradients in the order in which they are ready, their best cut, and the best one cap."""

    sequence: ItemSequence
    cut: ItemCut
    cap: CapChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketTarget:
    """A program that fills buckets up to a cap.

    `unpriced` is what the predicted times leave out.
    """

    name: str
    title: str
    options: tuple[TargetOption, ...]
    suffix: str
    grammar: str
    unpriced: tuple[str, ...]
    verified_by: str = ""

    def options_from(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return every option, as given or by default. Raises InvalidInput naming the first bad
        one.
        """
        return checked_options(self.name, self.options, given)

    def render(self, best: BestBuckets, options: Mapping[str, str], said: Sequence[str]) -> str:
        """Return what is set. `options` are checked, `said` the lines of the head.

        Raises InvalidInput where the best cap is none of this rule, and StrategyDeclined where the
        program has no such setting.
        """
        if best.cap.rule != DDP_RULE:
            raise InvalidInput("expected the rule `until` without first_bytes", field="fill")
        named = ", ".join(f"{name}={one}" for name, one in options.items())
        head = [
            f"{self.title} ({self.name}: {named})",
            *said,
            f"not priced: {'; '.join(self.unpriced)}",
            reading(self.verified_by, self.grammar),
        ]
        return comment(head) + _LINES[self.name](best, options)


def _torch(best: BestBuckets, options: Mapping[str, str]) -> str:
    if options[_FORM] == "list":
        setting = BucketSetting.of_cut(best.sequence, best.cut)
    else:
        setting = BucketSetting.within(best.cap.from_bytes, best.cap.to_bytes)
    return f"ddp_keywords = {setting.keywords!r}\n"


def _megatron(best: BestBuckets, options: Mapping[str, str]) -> str:
    element = int(options[_ELEMENT])
    first = -(-best.cap.from_bytes // element)
    if best.cap.to_bytes is not None and first * element > best.cap.to_bytes:
        raise StrategyDeclined(
            f"megatron cannot say this: no whole number of elements of {element} bytes is from "
            f"{best.cap.from_bytes} to {best.cap.to_bytes} bytes",
            field="target",
        )
    return f"--overlap-grad-reduce --ddp-bucket-size {first}\n"


_LINES = {"torch": _torch, "megatron": _megatron}
TORCH = BucketTarget(
    name="torch",
    title="DistributedDataParallel: buckets of gradients",
    options=(
        TargetOption(
            _FORM,
            "list",
            "a cap for each bucket, where DDP takes bucket_cap_mb_list, or the best cap for all",
            choices=("list", "cap"),
        ),
    ),
    suffix="py",
    grammar="torch/nn/parallel/distributed.py of PyTorch 2.15.0",
    verified_by="DistributedDataParallel of PyTorch 2.15.0, which makes these buckets",
    unpriced=(
        "copies into buckets without gradient_as_bucket_view=True",
        "a communication hook, unless all-reduces were timed with it",
        "find_unused_parameters, which keeps buckets in the order of parameters",
        "gradients of other dtypes and devices, and sparse ones, which have buckets of their own",
    ),
)
MEGATRON = BucketTarget(
    name="megatron",
    title="Megatron: buckets of gradients",
    options=(
        TargetOption(
            _ELEMENT,
            "4",
            "the bytes of an element as it is reduced: 4, or 2 without "
            "--accumulate-allreduce-grads-in-fp32",
            choices=("4", "2"),
        ),
    ),
    suffix="args",
    grammar="megatron/core/distributed/param_and_grad_buffer.py",
    unpriced=(
        "the order, which is that of parameters from the last to the first, whenever they come",
        "padding of buckets, which a distributed optimizer asks for",
        "parameters that have to begin a bucket, as shared embeddings",
        "gathering parameters in the same buckets, with --overlap-param-gather",
    ),
)
BUCKET_TARGETS = (TORCH, MEGATRON)


def bucket_target_named(name: str) -> BucketTarget:
    """Return the target of this name. Raises InvalidInput naming those that there are."""
    names = [target.name for target in BUCKET_TARGETS]
    for target in BUCKET_TARGETS:
        if target.name == name:
            return target
    near = get_close_matches(name, names, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise InvalidInput(f"expected a target out of: {', '.join(names)}{meant}", field="target")
