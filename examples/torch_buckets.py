"""Which buckets DistributedDataParallel should make of a model's gradients, measured and verified.

In every process, before the model is wrapped:

    from torch_buckets import find_buckets
    model = DistributedDataParallel(model, **find_buckets(model, step))

`step(model)` sets gradients to zero and does one forward and one backward. Gradients have one dtype
and one device, are dense, and are all there in every step. See docs/tutorial-ddp.md.
"""

import inspect
import time
from functools import partial

import sluice
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def find_buckets(model, step, **options):
    """Return the keywords to set beside `options`, which the trial is made with."""
    named = {p: name for name, p in model.named_parameters() if p.requires_grad}
    like, group = next(iter(named)), options.get("process_group")
    if any((p.dtype, p.device) != (like.dtype, like.device) for p in named):
        raise ValueError("gradients of several dtypes or devices have buckets of their own")
    stream = torch.cuda.Stream() if like.is_cuda else None  # of the calculation beside messages
    queued = partial(dist.all_reduce, group=group, async_op=True)

    def mark():
        if stream is None:
            return time.perf_counter()
        return torch.cuda.current_stream().record_event(torch.cuda.Event(enable_timing=True))

    def us(start, end):
        if stream is None:
            return (end - start) * 1e6
        end.synchronize()
        return start.elapsed_time(end) * 1e3

    def timed(call):
        dist.barrier(group)
        start, _ = mark(), call()
        return us(start, mark())

    def gradients():
        with torch.cuda.stream(stream):
            start, marks, add = mark(), {}, "register_post_accumulate_grad_hook"
            hooks = [getattr(p, add)(lambda p: marks.update({p: mark()})) for p in named]
            step(model)
            [hook.remove() for hook in hooks]
            return {named[p]: (p.nbytes, us(start, at)) for p, at in marks.items()}

    def all_reduces_us(size, count):
        data = [like.new_zeros(size // like.itemsize) for _ in range(count)]
        return timed(lambda: [work.wait() for work in [queued(one) for one in data]])

    def steps_us(setting, steps):
        wrapped = DistributedDataParallel(model, **options, **setting.keywords)
        return [timed(lambda: step(wrapped)) for _ in range(steps)]

    is_first, signature = dist.get_rank() == 0, inspect.signature(DistributedDataParallel)
    can = {"takes_list": "bucket_cap_mb_list" in signature.parameters, "is_first": is_first}
    calls = (gradients, all_reduces_us, steps_us, dist.broadcast_object_list)
    found = sluice.find_buckets(sluice.Trainer(*calls, **can), sluice.queued_line)
    if is_first:
        print(found, flush=True)
    return found.kept.keywords
