"""One process of a training by PyTorch whose buckets are tried: started by tests, with torch.

python ddp_process.py '{"rank": 0, "address": ..., "model": ..., "task": ..., ...}'

`package` is a folder with the package `sluice`, `example` that of torch_buckets.py. Task `find`
calls the example alone. Task `sweep` times further caps, too, as the example times its own. The
process of rank 0 prints one line of JSON at the end, rank 1 what it was given.
"""

from __future__ import annotations

import json
import os
import sys
import time
from statistics import median
from typing import Any

ASKED: dict[str, Any] = json.loads(sys.argv[1])
sys.path[:0] = [ASKED["package"], ASKED["example"]]
if ASKED.get("priority"):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(ASKED["priority"]))

import sluice  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch_buckets  # noqa: E402
from sluice.analysis.bucket_trial import step_times, timed_advice  # noqa: E402
from sluice.analysis.buckets import buckets_of, verified_buckets  # noqa: E402

SEEN: dict[str, str] = {}  # by setting: the sizes of the buckets that were made
TIMES: list[dict[int, float]] = []  # of queued all-reduces: alone, and beside the calculation


class Sleeping(torch.autograd.Function):
    """A layer on another device: its backward waits, and then has its gradients."""

    @staticmethod
    def forward(ctx: Any, x: Any, seconds: float, *weights: Any) -> Any:
        """Return x, and keep what backward returns."""
        ctx.seconds, ctx.gradients = seconds, [torch.ones_like(one) for one in weights]
        return x + 0

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """Wait, and return ones."""
        end = time.perf_counter() + ctx.seconds
        time.sleep(max(0.0, ctx.seconds - 2e-4))
        while time.perf_counter() < end:
            pass
        return (gradient, None, *ctx.gradients)


class Layers(torch.nn.Module):
    """Layers that sleep: sizes in floats, and seconds of backward, in the order of forward."""

    def __init__(self, layers: list[tuple[list[int], float]]) -> None:
        super().__init__()
        self.seconds = [seconds for _, seconds in layers]
        self.layers = torch.nn.ModuleList(
            torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(size)) for size in sizes])
            for sizes, _ in layers
        )

    def forward(self, x: Any) -> Any:
        """Pass x through all of them."""
        for weights, seconds in zip(self.layers, self.seconds, strict=True):
            x = Sleeping.apply(x, seconds, *weights)
        return x.sum()


class Transformer(torch.nn.Module):
    """Eight small layers of a real one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(2000, 128)
        layer = torch.nn.TransformerEncoderLayer(128, 4, 512, 0.0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 8, enable_nested_tensor=False)
        self.head = torch.nn.Linear(128, 2000)

    def forward(self, x: Any) -> Any:
        """Return a loss of tokens."""
        return self.head(self.encoder(self.embedding(x))).mean()


class Seen(torch.nn.parallel.DistributedDataParallel):
    """DDP that notes the buckets it made, as soon as torch tells them."""

    def forward(self, *given: Any) -> Any:
        """Note the buckets that the steps before have made."""
        told = str(self._get_ddp_logging_data().get("rebuilt_bucket_sizes"))
        if told[:1].isdigit():
            caps = self.bucket_bytes_cap_list
            SEEN[json.dumps([self.bucket_bytes_cap_default, caps, self.bucket_bytes_cap])] = told
        return super().forward(*given)


def gloo_of_one_thread(store: Any, rank: int, size: int, timeout: Any) -> Any:
    """Make one stream of messages, as NCCL has."""
    options = dist.ProcessGroupGloo._Options()
    options._threads, options._timeout = 1, timeout
    options._devices = [dist.ProcessGroupGloo.create_device(interface=ASKED["interface"])]
    return dist.ProcessGroupGloo(store, rank, size, options)


def kept_line(times: dict[int, float]) -> Any:
    """Fit the line, and keep the times."""
    TIMES.append(dict(times))
    return sluice.queued_line(times)


def swept(trainer: Any, line_of: Any) -> Any:
    """Time the caps that are asked for, too, and print everything."""
    advice = timed_advice(trainer, kept_line)
    caps = [sluice.BucketSetting((cap,)) for cap in ASKED["caps_mb"]]
    settings = [*(one.setting for one in advice.tried), *caps]
    times = step_times(trainer, settings, ASKED["rounds"], ASKED["steps"])
    found = trainer.from_first(lambda: verified_buckets(advice, times))
    if trainer.is_first:
        rows = [row(advice, setting, times[setting]) for setting in settings]
        decided = {"kept": str(found.kept), "warnings": found.warnings}
        print(json.dumps(document(advice, rows) | decided))
    return found


def row(advice: Any, setting: Any, times: list[float]) -> dict[str, Any]:
    """What a setting was predicted and measured to do."""
    buckets = buckets_of(advice.sequence, advice.wire, setting)
    given = list(setting.caps_bytes) if len(setting.caps_mb) > 1 else []
    key = json.dumps([not setting.caps_mb, given, max(setting.caps_bytes)])
    return {
        "setting": str(setting),
        "predicted_us": buckets.predicted_us,
        "measured_us": median(times),
        "times_us": [round(time_us, 1) for time_us in times],
        "buckets": list(buckets.bucket_bytes),
        "seen": [int(size) for size in SEEN.get(key, "").split(",") if size.strip()],
    }


def document(advice: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """All that was measured."""
    return {
        "bytes": advice.sequence.item_bytes,
        "ready_us": advice.sequence.ready_us,
        "alone_us": TIMES[0],
        "beside_us": TIMES[1],
        "shared": advice.shared,
        "slowed": advice.slowed,
        "misfit": advice.misfit,
        "is_shared_engine": advice.is_shared_engine,
        "rows": rows,
    }


def main() -> None:
    """Train as asked."""
    torch.set_num_threads(1)
    dist.Backend.register_backend("gloo1", gloo_of_one_thread, devices=["cpu"])
    where = f"tcp://{ASKED['address']}:29533"
    dist.init_process_group("gloo1", init_method=where, rank=ASKED["rank"], world_size=2)
    if ASKED["model"] == "transformer":
        model, x = Transformer(), torch.randint(0, 2000, (8, 96))
    else:
        model, x = Layers(ASKED["layers"]), torch.ones(1, requires_grad=True)

    def step(of: Any) -> None:
        model.zero_grad()
        of(x).backward()

    torch_buckets.DistributedDataParallel = Seen
    if ASKED["task"] == "sweep":
        sluice.find_buckets = swept
    keywords = torch_buckets.find_buckets(model, step, gradient_as_bucket_view=True)
    print(json.dumps({"rank": ASKED["rank"], "keywords": keywords}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


main()
