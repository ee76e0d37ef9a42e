"""examples/torch_buckets.py in two processes of a torch that is made up: threads with clocks.

The second process calculates three times as long and has all-reduces of its own: what it would
set by itself is something else. It has to make the same calls in the same order all the same, or
both wait for ever.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from analysis.bucket_trial import Trainer, find_buckets
from domain.bucket_setting import BucketSetting
from domain.items import ItemSequence
from fitting.queued import queued_line

EXAMPLE = Path(__file__).parents[2] / "examples" / "torch_buckets.py"
FLOATS = [1_000 if place % 2 else 15_000 for place in range(40)]
EVERY_S = 2e-3  # from one gradient to the next
GUARD_S = 120.0


@dataclass
class Process:
    """A rank: its clock, how fast it is, and the calls that others have to make too."""

    rank: int
    slower: float
    overhead_s: float
    now_s: dict[str, float] = field(default_factory=dict)
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def clock_s(self) -> float:
        """The time of this thread: the calculation beside messages has one of its own."""
        return self.now_s.get(threading.current_thread().name, 0.0)

    def pass_s(self, seconds: float) -> None:
        """Let time pass in this thread."""
        name = threading.current_thread().name
        self.now_s[name] = self.now_s.get(name, 0.0) + seconds

    def message_s(self, size: int) -> float:
        """What an all-reduce takes."""
        return self.overhead_s + size * 40e-9


@dataclass(eq=False)
class Parameter:
    """Weights of so many floats, and the hooks on their gradient."""

    floats: int
    hooks: list[Callable[[Any], None]] = field(default_factory=list)
    requires_grad: bool = True
    is_cuda: bool = False
    dtype: str = "float32"
    device: str = "cpu"
    itemsize: int = 4

    @property
    def nbytes(self) -> int:
        return 4 * self.floats

    def new_zeros(self, count: int) -> SimpleNamespace:
        return SimpleNamespace(nbytes=4 * count)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], None]) -> Any:
        self.hooks.append(hook)
        return SimpleNamespace(remove=lambda: self.hooks.remove(hook))


class Model:
    """Parameters whose gradients come one after the other, the last one first."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.parameters = [Parameter(count) for count in FLOATS]

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        yield from ((f"layer.{place}", each) for place, each in enumerate(self.parameters))

    def backward(self) -> None:
        for parameter in reversed(self.parameters):
            self.process.pass_s(EVERY_S * self.process.slower)
            for hook in list(parameter.hooks):
                hook(parameter)


class Wrapped:
    """DistributedDataParallel: buckets are sent while gradients come."""

    def __init__(
        self,
        module: Model,
        gradient_as_bucket_view: bool = False,
        bucket_cap_mb: float | None = None,
        bucket_cap_mb_list: list[float] | None = None,
    ) -> None:
        self.module, self.process = module, module.process
        one = () if bucket_cap_mb is None else (bucket_cap_mb,)
        self.setting = BucketSetting(tuple(bucket_cap_mb_list or one))

    def backward(self) -> None:
        sizes = [4 * count for count in reversed(FLOATS)]
        sequence, begun_s, end_s = ItemSequence.of(sizes), self.process.clock_s(), 0.0
        cut = self.setting.cut(sequence)
        self.process.calls.append(("step", self.setting))
        for last, size in zip(cut, sequence.fragment_bytes(cut), strict=True):
            ready_s = last * EVERY_S * self.process.slower
            end_s = max(end_s, ready_s) + self.process.message_s(size)
        self.process.pass_s(begun_s + end_s - self.process.clock_s())


def torch_of(process: Process, boxes: Queue[Any]) -> dict[str, ModuleType]:
    """The modules that the example imports."""

    def all_reduce(data: Any, *, group: Any, async_op: bool) -> SimpleNamespace:
        assert async_op
        process.calls.append(("all_reduce", data.nbytes))
        return SimpleNamespace(wait=lambda: process.pass_s(process.message_s(data.nbytes)))

    def broadcast(box: list[Any]) -> None:
        process.calls.append(("broadcast",))
        if process.rank:
            box[0] = boxes.get(timeout=GUARD_S)
        else:
            boxes.put(box[0])

    distributed = SimpleNamespace(
        get_rank=lambda: process.rank,
        barrier=lambda _: process.calls.append(("barrier",)),
        all_reduce=all_reduce,
        broadcast_object_list=broadcast,
    )
    cuda = SimpleNamespace(stream=lambda _: nullcontext())
    parallel = SimpleNamespace(DistributedDataParallel=Wrapped)
    torch = SimpleNamespace(cuda=cuda, distributed=distributed)
    clock = SimpleNamespace(perf_counter=process.clock_s)
    package = SimpleNamespace(Trainer=Trainer, find_buckets=find_buckets, queued_line=queued_line)
    made: dict[str, Any] = {
        "torch": torch,
        "torch.distributed": distributed,
        "torch.nn": SimpleNamespace(parallel=parallel),
        "torch.nn.parallel": parallel,
        "sluice": package,
        "time": clock,
    }
    return made


@contextmanager
def modules_of(made: dict[str, ModuleType]) -> Iterator[None]:
    """Have imports find these."""
    with pytest.MonkeyPatch.context() as patched:
        for name, module in made.items():
            patched.setitem(sys.modules, name, module)
        yield


def example_of(process: Process, boxes: Queue[Any]) -> Any:
    """The example as this process imports it."""
    spec = importlib.util.spec_from_file_location(f"torch_buckets_{process.rank}", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with modules_of(torch_of(process, boxes)):
        spec.loader.exec_module(module)
    return module


def keywords_of(processes: list[Process]) -> list[Any]:
    """What find_buckets returns in each of them."""
    boxes: Queue[Any] = Queue()
    examples = [example_of(process, boxes) for process in processes]
    found = list[Any]([None] * len(processes))

    def train(place: int) -> None:
        model = Model(processes[place])
        example = examples[place]
        found[place] = example.find_buckets(
            model, lambda wrapped: wrapped.backward(), gradient_as_bucket_view=True
        )

    threads = [
        threading.Thread(target=train, args=(place,), daemon=True)
        for place in range(len(processes))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=GUARD_S)
        assert not thread.is_alive(), "a process waits for another one"
    return found


def test_only_rank_0_decides(capsys: pytest.CaptureFixture[str]) -> None:
    """Both set the same and made the same calls, where the second alone would set another."""
    first, second = Process(0, 1.0, 5e-3), Process(1, 3.0, 1e-6)
    given = keywords_of([first, second])
    assert given[0] == given[1] != {}
    assert first.calls == second.calls
    assert len(capsys.readouterr().out.splitlines()) >= 4  # by rank 0 alone
    (alone,) = keywords_of([Process(0, second.slower, second.overhead_s)])
    assert alone != given[0]


def test_a_gradient_of_another_type_is_refused() -> None:
    """Before any call that others would wait for."""
    process = Process(0, 1.0, 5e-3)
    example = example_of(process, Queue())
    model = Model(process)
    model.parameters[3].dtype = "float16"
    with pytest.raises(ValueError, match="several dtypes"):
        example.find_buckets(model, lambda wrapped: wrapped.backward())
    assert process.calls == []
