"""Cuts between items: what programs are given of the best one, caps for fragments or one number.

Source    PyTorch 2.15.0: torch/nn/parallel/distributed.py. Megatron-LM:
          megatron/core/distributed/param_and_grad_buffer.py, where a bucket ends with the parameter
          that reaches the size. LMCache: pull requests 4460 and 4816 (`--layerwise-batch`). slime:
          slime/backends/megatron_utils/update_weight/update_weight_from_distributed.py. verl:
          verl/workers/config/rollout.py and verl/checkpoint_engine. vLLM:
          vllm/distributed/weight_transfer/packed_tensor.py.
Notation  caps in bytes are turned into the program's unit: MiB, elements, layers.
Exact     what is written makes a cut that the one evaluator priced, in whole bytes; a list makes
          the best cut itself. A number of elements or bytes is one of the best cap's; of whole MiB
          it is the better neighbour, and what that loses is said.
Traps     a program closes a fragment with the item that reaches the cap, or before the item that
          exceeds it: an answer for the other rule is declined. vLLM has both, by its backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from domain.bucket_setting import DDP_RULE, BucketSetting
from domain.errors import Infeasible, InvalidInput, StrategyDeclined
from domain.items import Fill, FillRule, ItemCut, ItemProblem, layout
from domain.solution import relative_excess
from domain.units import format_bytes
from exports.targets.commentary import comment, model_lines, percent, reading
from exports.targets.target import TargetOption, checked_options

MAX_LAYERS = 500  # of which every number at once is priced
_MIB = 2**20
_EQUAL = 1e-9  # relative: latencies that differ by less are one
Options = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AnsweredItems:
    """What was answered about items: the best cut, the bound, and the best cap's least and greatest
    bytes, None where no layout of one cap is admitted. `profile` is its name and revision, "" of
    none.
    """

    problem: ItemProblem
    fill: FillRule
    cut: ItemCut
    lower_bound_us: float
    caps: tuple[int, int | None] | None
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """The lines that set something, and the cut that they make."""

    lines: str
    cut: ItemCut


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemTarget:
    """A program that cuts between items.

    `rule` is how it fills fragments, None where what is written makes any cut. `default` is what it
    does by itself: in words, and the cut. `unit` says what its number counts, `traps` what else has
    to be known, `unpriced` what the times leave out.
    """

    name: str
    title: str
    suffix: str
    unit: str
    write: Callable[[AnsweredItems, Options], Written]
    rule: Callable[[Options], Fill | None]
    default: Callable[[ItemProblem, Options], tuple[str, ItemCut]]
    traps: tuple[str, ...]
    unpriced: tuple[str, ...]
    grammar: str
    options: tuple[TargetOption, ...] = ()
    verified_by: str = ""

    def options_from(self, given: Options) -> dict[str, str]:
        """Return every option, as given or by default. Raises InvalidInput naming the first bad
        one.
        """
        return checked_options(self.name, self.options, given)

    def render(self, found: AnsweredItems, options: Options) -> str:
        """Return what is set, below what it takes. `options` are checked.

        Raises StrategyDeclined where the program cannot make a layout that was answered about.
        """
        rule = self.rule(options)
        if rule is not None and found.fill != FillRule(rule):
            raise _declined(
                self.name,
                f"it closes {_CLOSES[rule]}; ask with the fill rule {rule}, without first_bytes",
            )
        written = self.write(found, options)
        head = [*self._warnings(found, options, written), *self._said(found, options, written)]
        return comment(head) + written.lines

    def _warnings(self, found: AnsweredItems, options: Options, written: Written) -> Iterator[str]:
        problem = found.problem
        words, cut = self.default(problem, options)
        if not _fits_not(problem, cut) and (
            problem.latency_us(written.cut) > problem.latency_us(cut) * (1.0 - _EQUAL)
        ):
            yield f"NOT BETTER than the default, {words}, by these costs"

    def _said(self, found: AnsweredItems, options: Options, written: Written) -> Iterator[str]:
        problem = found.problem
        named = ", ".join(f"{name}={value}" for name, value in options.items())
        yield f"{self.title} ({self.name}{': ' if named else ''}{named})"
        yield f"made by Sluice from {found.profile or 'a pipeline without a name'}"
        sequence = problem.sequence
        yield f"{len(sequence)} items, {sequence.total_bytes} bytes"
        yield from model_lines(problem.pipeline)
        yield from _window_lines(problem, written.cut)
        best_us = problem.latency_us(found.cut)
        yield (
            f"best cut: {_fragments(found.cut)}, {best_us:.6g} us; none takes less than "
            f"{found.lower_bound_us:.6g} us by these costs"
        )
        words, cut = self.default(problem, options)
        yield f"default: {words}: {_priced(problem, cut, best_us)}"
        yield f"written: {_priced(problem, written.cut, best_us)}"
        rule = self.rule(options)
        if rule is not None and found.caps is not None:
            cut = layout(sequence, found.caps[0], FillRule(rule))
            if problem.latency_us(cut) < problem.latency_us(written.cut) * (1.0 - _EQUAL):
                caps = f"{found.caps[0]} bytes, which is no such unit"
                yield f"wanted: {caps}: {_priced(problem, cut, best_us)}"
        yield f"unit: {self.unit}"
        yield from (f"trap: {trap}" for trap in self.traps)
        yield f"not priced: {'; '.join(self.unpriced)}"
        yield reading(self.verified_by, self.grammar)


_CLOSES = {
    Fill.UNTIL: "a fragment with the item that reaches the cap",
    Fill.BEFORE: "a fragment before the item that would exceed the cap",
}


def _fragments(cut: ItemCut) -> str:
    return f"{len(cut)} fragment{'' if len(cut) == 1 else 's'}"


def _fits_not(problem: ItemProblem, cut: ItemCut) -> str:
    """Which window a fragment of this cut does not fit; "" where all fit."""
    try:
        problem.places(cut)
    except Infeasible as refusal:
        return refusal.detail
    return ""


def _window_lines(problem: ItemProblem, cut: ItemCut) -> Iterator[str]:
    """Of each window, what it bounds and how many fragments of this cut it holds."""
    names = [stage.name for stage in problem.pipeline.stages]
    for window, places in zip(problem.windows, problem.places(cut), strict=True):
        held = "" if window.bytes is None else f" of {format_bytes(window.bytes)}"
        back = f", free again after {window.return_us:.6g} us" if window.return_us else ""
        yield (
            f"window{held} from '{names[window.first]}' to '{names[window.last]}': "
            f"{places} of the written fragments at once{back}"
        )


def _priced(problem: ItemProblem, cut: ItemCut, best_us: float) -> str:
    not_fit = _fits_not(problem, cut)
    if not_fit:
        return f"{_fragments(cut)}: {not_fit}"
    latency_us = problem.latency_us(cut)
    loss = percent(relative_excess(latency_us, best_us, best_us))
    return f"{_fragments(cut)}, {latency_us:.6g} us, {loss} over the best cut"


def _declined(name: str, why: str) -> StrategyDeclined:
    return StrategyDeclined(f"{name} cannot say this: {why}", field="target")


# --- one number -----------------------------------------------------------------------------------


def number_within(first: int, last: int | None) -> int | None:
    """Return the whole number from the first to the last that a power of two divides most, of
    several the least; None as the last: no last. None where there is no number.
    """
    first, last = max(1, first), 2 * max(1, first) if last is None else last
    if first > last:
        return None
    power = 1 << last.bit_length()
    while -(-first // power) * power > last:
        power >>= 1
    return -(-first // power) * power


def _best_caps(name: str, found: AnsweredItems) -> tuple[int, int | None]:
    if found.caps is None:
        raise _declined(name, "the limits admit no layout that one cap gives")
    return found.caps


def _neighbour(
    name: str, found: AnsweredItems, rule: Fill, unit_bytes: int, min_bytes: int = 1
) -> tuple[int, ItemCut]:
    """The number of units that is a cap of the best layout, else the better one of its admitted
    neighbours of at least `min_bytes`; and its cut.
    """
    first, last = _best_caps(name, found)
    exact = number_within(-(-first // unit_bytes), None if last is None else last // unit_bytes)
    numbers = (first // unit_bytes, -(-first // unit_bytes)) if exact is None else (exact,)
    problem = found.problem
    cuts = {
        number: layout(problem.sequence, number * unit_bytes, FillRule(rule))
        for number in numbers
        if number * unit_bytes >= min_bytes
    }
    admitted = {number: cut for number, cut in cuts.items() if problem.admits(cut)}
    if not admitted:
        unit = format_bytes(unit_bytes)
        holds = f" that holds the largest item, {min_bytes} bytes" * (min_bytes > 1)
        raise _declined(name, f"the limits admit no cap of whole {unit}{holds}")
    number = min(admitted, key=lambda number: problem.latency_us(admitted[number]))
    return number, admitted[number]


# --- gradients ------------------------------------------------------------------------------------

_FORM, _ELEMENT, _RANKS = "form", "element_bytes", "data_parallel_size"
_NEW_LIST = "PyTorch 2.15"


def _torch(found: AnsweredItems, options: Options) -> Written:
    problem = found.problem
    if options[_FORM] == "cap":
        setting = BucketSetting.within(*_best_caps("torch", found))
        return Written(f"ddp_keywords = {setting.keywords!r}\n", setting.cut(problem.sequence))
    setting = BucketSetting.of_cut(problem.sequence, found.cut)
    lines = f"ddp_keywords = {setting.keywords!r}\n"
    if setting.name == "bucket_cap_mb_list":
        older = _older(found)
        lines = comment([f"bucket_cap_mb_list is in {_NEW_LIST}; {older}"]) + lines
    return Written(lines, setting.cut(problem.sequence))


def _older(found: AnsweredItems) -> str:
    """What a version without the list is given, and what that loses."""
    if found.caps is None or found.fill != DDP_RULE:
        return "one cap for older versions: option form=cap, of an answer with the fill rule until"
    setting, problem = BucketSetting.within(*found.caps), found.problem
    best_us = problem.latency_us(found.cut)
    return f"older: {setting}: {_priced(problem, setting.cut(problem.sequence), best_us)}"


TORCH = ItemTarget(
    name="torch",
    title="DistributedDataParallel: buckets of gradients",
    suffix="py",
    unit="MiB, cut off to whole bytes",
    write=_torch,
    rule=lambda options: Fill.UNTIL if options[_FORM] == "cap" else None,
    default=lambda problem, _: (
        "1 MiB first, then 25 MiB",
        BucketSetting().cut(problem.sequence),
    ),
    options=(
        TargetOption(
            _FORM,
            "list",
            f"a cap for each bucket, from {_NEW_LIST} on, or the best cap for all",
            choices=("list", "cap"),
        ),
    ),
    traps=(
        "a given bucket_cap_mb is the first bucket's limit too, which is 1 MiB only by default",
        "the last entry of a list is the cap of every bucket behind it",
        "set the same on all ranks: others make other buckets, and wait for each other",
    ),
    unpriced=(
        "copies into buckets without gradient_as_bucket_view=True",
        "a communication hook, unless all-reduces were timed with it",
        "find_unused_parameters, which keeps buckets in the order of parameters",
        "gradients of other dtypes and devices, and sparse ones, which have buckets of their own",
    ),
    verified_by="DistributedDataParallel of PyTorch 2.15.0, as recorded",
    grammar="torch/nn/parallel/distributed.py of PyTorch 2.15.0",
)


def _megatron(found: AnsweredItems, options: Options) -> Written:
    element = int(options[_ELEMENT])
    sizes = found.problem.sequence
    for item, size in enumerate(sizes.item_bytes):
        if size % element:
            raise _declined(
                "megatron",
                f"{sizes.label(item)} has {size} bytes, no whole number of elements of {element} "
                f"bytes ({_ELEMENT})",
            )
    number, cut = _neighbour("megatron", found, Fill.UNTIL, element)
    return Written(f"--overlap-grad-reduce --ddp-bucket-size {number}\n", cut)


def _megatron_default(problem: ItemProblem, options: Options) -> tuple[str, ItemCut]:
    elements = max(40_000_000, 1_000_000 * int(options[_RANKS]))
    cap = elements * int(options[_ELEMENT])
    return f"{elements} elements", layout(problem.sequence, cap, FillRule(Fill.UNTIL))


MEGATRON = ItemTarget(
    name="megatron",
    title="Megatron: buckets of gradients",
    suffix="args",
    unit="elements, not bytes",
    write=_megatron,
    rule=lambda _: Fill.UNTIL,
    default=_megatron_default,
    options=(
        TargetOption(
            _ELEMENT,
            "4",
            "the bytes of an element as it is reduced: 4, or 2 without "
            "--accumulate-allreduce-grads-in-fp32",
            choices=("4", "2"),
        ),
        TargetOption(
            _RANKS,
            "1",
            "ranks that reduce together: they make the default greater",
            pattern="[1-9][0-9]{0,6}",
        ),
    ),
    traps=(
        "the bytes of items have to be those that are reduced, 4 an element or 2",
        "--ddp-num-buckets does not go with it; without --overlap-grad-reduce there is one bucket",
    ),
    unpriced=(
        "the order, which is that of parameters from the last to the first, whenever they come",
        "padding of buckets, which a distributed optimizer asks for",
        "parameters that have to begin a bucket, as shared embeddings",
        "gathering parameters in the same buckets, with --overlap-param-gather",
    ),
    grammar="megatron/core/distributed/param_and_grad_buffer.py",
)


# --- layers of a KV cache -------------------------------------------------------------------------


def _every(count: int, at_once: int) -> ItemCut:
    return (*range(at_once, count, at_once), count)


def _lmcache(found: AnsweredItems, _: Options) -> Written:
    problem, count = found.problem, len(found.problem.sequence)
    if count > MAX_LAYERS:
        raise _declined("lmcache", f"it counts layers, and expected are at most {MAX_LAYERS}")
    cuts = {at_once: _every(count, at_once) for at_once in range(1, count + 1)}
    admitted = {at_once: cut for at_once, cut in cuts.items() if problem.admits(cut)}
    if not admitted:
        raise _declined("lmcache", "the limits admit no equal number of layers")
    best = min(admitted, key=lambda each: (problem.latency_us(admitted[each]), len(admitted[each])))
    return Written(f"--layerwise-batch {best}\n", admitted[best])


LMCACHE = ItemTarget(
    name="lmcache",
    title="LMCache: layers of a KV cache that are moved at once",
    suffix="args",
    unit="layers, not bytes",
    write=_lmcache,
    rule=lambda _: None,
    default=lambda problem, _: ("all layers at once", (len(problem.sequence),)),
    traps=(
        "an option of `lmcache server` in pull requests 4460 and 4816, which were open",
        "an item has to be one layer of one chunk: no tensor, and no token",
    ),
    unpriced=("several requests at once", "layers of several chunks on the same way"),
    grammar="LMCache pull requests 4460 and 4816, --layerwise-batch",
)


# --- weights into packed buffers ------------------------------------------------------------------


def _before(cap_bytes: int) -> Callable[[ItemProblem, Options], tuple[str, ItemCut]]:
    """A default of so many bytes."""
    rule = FillRule(Fill.BEFORE)
    return lambda problem, _: (
        format_bytes(cap_bytes),
        layout(problem.sequence, cap_bytes, rule),
    )


def _slime(found: AnsweredItems, _: Options) -> Written:
    number, cut = _neighbour("slime", found, Fill.BEFORE, 1)
    return Written(f"--update-weight-buffer-size {number}\n", cut)


SLIME = ItemTarget(
    name="slime",
    title="slime: buffer of an update of weights",
    suffix="args",
    unit="bytes of parameters as they are gathered from tensor-parallel ranks",
    write=_slime,
    rule=lambda _: Fill.BEFORE,
    default=_before(512 * _MIB),
    traps=(
        "experts are compared after multiplication by the expert-parallel size, in a second pass: "
        "ask for them apart",
        "a tensor above the buffer is sent by itself all the same, and needs its memory",
        "the FSDP backend closes a buffer that would be exactly full: one byte more there",
    ),
    unpriced=("the memory of the buffers: limit it by max_fragment_bytes",),
    grammar="slime/backends/megatron_utils/update_weight/update_weight_from_distributed.py",
)


_KEY = "key"
_KEYS = {"checkpoint_engine": "checkpoint_engine.", "rollout": ""}
_VERL_DEFAULT_MIB = {"checkpoint_engine": 2048, "rollout": 512}


def _verl(found: AnsweredItems, options: Options) -> Written:
    largest = max(found.problem.sequence.item_bytes)
    number, cut = _neighbour("verl", found, Fill.BEFORE, _MIB, largest)
    name = f"{_KEYS[options[_KEY]]}update_weights_bucket_megabytes"
    return Written(f"actor_rollout_ref.rollout.{name}={number}\n", cut)


VERL = ItemTarget(
    name="verl",
    title="verl: bucket of an update of weights",
    suffix="args",
    unit="whole MiB",
    write=_verl,
    rule=lambda _: Fill.BEFORE,
    default=lambda problem, options: _before(_VERL_DEFAULT_MIB[options[_KEY]] * _MIB)(
        problem, options
    ),
    options=(
        TargetOption(
            _KEY,
            "checkpoint_engine",
            "where the configuration has it: below rollout.checkpoint_engine, in older versions "
            "below rollout",
            choices=tuple(_KEYS),
        ),
    ),
    traps=(
        "called megabytes and shifted by 20 bits: MiB",
        "the largest tensor has to fit, or an assertion ends the update",
        "the engine nccl holds two buckets, one that is filled and one that is sent",
    ),
    unpriced=("the memory of the buckets: limit it by max_fragment_bytes",),
    grammar="verl/workers/config/rollout.py and verl/checkpoint_engine",
)


_BACKEND = "backend"
_VLLM_RULES = {"nccl": Fill.UNTIL, "ipc": Fill.BEFORE}


def _vllm_layout(problem: ItemProblem, size: int, options: Options) -> ItemCut:
    """The buffers that vLLM makes: by NCCL one ends with the tensor that exceeds the size."""
    rule = _VLLM_RULES[options[_BACKEND]]
    return layout(problem.sequence, size + (rule is Fill.UNTIL), FillRule(rule))


def _vllm(found: AnsweredItems, options: Options) -> Written:
    if options[_BACKEND] == "ipc":
        largest = max(found.problem.sequence.item_bytes)
        number, _ = _neighbour("vllm", found, Fill.BEFORE, 1, largest)
    else:
        first, last = _best_caps("vllm", found)
        within = number_within(first - 1, None if last is None else last - 1)
        if within is None:
            raise _declined("vllm", "the best buffers end with every tensor, and it takes none so")
        number = within
    setting = {"packed": True, "packed_buffer_size_bytes": number}
    cut = _vllm_layout(found.problem, number, options)
    return Written(f"weight_transfer = {setting!r}\n", cut)


VLLM = ItemTarget(
    name="vllm",
    title="vLLM: packed buffers of a weight transfer",
    suffix="py",
    unit="bytes",
    write=_vllm,
    rule=lambda options: _VLLM_RULES[options[_BACKEND]],
    default=lambda problem, options: ("1 GiB", _vllm_layout(problem, 2**30, options)),
    options=(
        TargetOption(
            _BACKEND,
            "nccl",
            "nccl closes a buffer with the tensor that exceeds the size, ipc before it",
            choices=tuple(_VLLM_RULES),
        ),
    ),
    traps=(
        "the trainer's arguments and the engine's have to have the same number",
        "by nccl a buffer may be larger than the number by nearly a tensor",
        "by ipc a tensor above the number is an error",
    ),
    unpriced=("the memory of packed_num_buffers buffers: limit it by max_fragment_bytes",),
    grammar="vllm/distributed/weight_transfer/packed_tensor.py",
)

ITEM_TARGETS = (TORCH, MEGATRON, LMCACHE, SLIME, VERL, VLLM)


def item_target_named(name: str) -> ItemTarget:
    """Return the target of this name. Raises InvalidInput naming those that there are."""
    for target in ITEM_TARGETS:
        if target.name == name:
            return target
    names: Sequence[str] = [target.name for target in ITEM_TARGETS]
    near = get_close_matches(name, names, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise InvalidInput(
        f"expected a target of items out of: {', '.join(names)}{meant}", field="target"
    )
