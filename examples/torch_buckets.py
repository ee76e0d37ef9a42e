"""Which buckets DistributedDataParallel should make of a model's gradients, measured and verified.

In every process, before the model is wrapped; `step(model)` does one forward and one backward:

    from torch_buckets import find_buckets
    model = DDP(model, gradient_as_bucket_view=True, **find_buckets(model, step))

Of dense gradients of one dtype on one device, each used in every step. docs/tutorial-ddp.md.
"""

import inspect
import time

import sluice
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    """What sluice.find_buckets times: gradients, queued all-reduces, steps with a setting."""

    takes_list = "bucket_cap_mb_list" in inspect.signature(DDP).parameters

    def __init__(self, model, step, group, options):
        self.model, self.step, self.group, self.options = model, step, group, options
        self.named = {p: name for name, p in model.named_parameters() if p.requires_grad}
        if len({(p.dtype, p.device) for p in self.named}) > 1:
            raise ValueError("gradients of several dtypes or devices have buckets of their own")
        self.like = next(iter(self.named))
        self.unit_bytes = self.like.element_size()
        self.stream = torch.cuda.Stream() if self.like.is_cuda else None

    def gradients(self):
        with torch.cuda.stream(self.stream):  # of its own, as messages have; none without a GPU
            marks, start, add = {}, self._mark(), "register_post_accumulate_grad_hook"
            keep = [getattr(p, add)(lambda p: marks.update({p: self._mark()})) for p in self.named]
            self.step(self.model)
            times = {p: self._us_between(start, mark) for p, mark in marks.items()}
            for hook in keep:
                hook.remove()
            return {self.named[p]: (p.numel() * self.unit_bytes, us) for p, us in times.items()}

    def all_reduces_us(self, message_bytes, count):
        data = [self.like.new_zeros(message_bytes // self.unit_bytes) for _ in range(count)]
        begin = lambda one: dist.all_reduce(one, group=self.group, async_op=True)
        return self._timed(lambda: [work.wait() for work in [begin(one) for one in data]])

    def steps_us(self, setting, steps):
        wrapped = DDP(self.model, **self.options, **setting.keywords)
        return [self._timed(lambda: self.step(wrapped)) for _ in range(steps)]

    def from_first(self, decide):
        box = [decide() if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(box)
        return box[0]
