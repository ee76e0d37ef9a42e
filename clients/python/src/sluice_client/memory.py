"""Answers that are kept with their ETag, so that what has not changed is not sent again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from sluice_client.calls import Answer

_OVERHEAD_BYTES = 512  # of an entry, roughly: its key, its headers, the objects around them


@dataclass(slots=True)
class Memory:
    """The answers used last, by their target, `max_bytes` in all; threads may share it."""

    max_bytes: int
    _stored: OrderedDict[str, Answer] = field(default_factory=OrderedDict)
    _stored_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def get(self, target: str) -> Answer | None:
        """Return the answer that is kept for this target."""
        with self._lock:
            answer = self._stored.get(target)
            if answer is not None:
                self._stored.move_to_end(target)
            return answer

    def take(self, target: str, answer: Answer, stored: Answer | None) -> Answer:
        """Return the answer to read: the kept one for a 304, or the new one, which is kept by its
        ETag.
        """
        if answer.status == 304 and stored is not None:
            return stored
        if answer.status == 200 and "etag" in answer.headers:
            self._keep(target, answer)
        return answer

    def _keep(self, target: str, answer: Answer) -> None:
        size = len(answer.body) + _OVERHEAD_BYTES
        with self._lock:
            self._drop(target)
            if size > self.max_bytes:
                return
            self._stored[target] = answer
            self._stored_bytes += size
            while self._stored_bytes > self.max_bytes:
                self._drop(next(iter(self._stored)))

    def _drop(self, target: str) -> None:
        answer = self._stored.pop(target, None)
        if answer is not None:
            self._stored_bytes -= len(answer.body) + _OVERHEAD_BYTES
