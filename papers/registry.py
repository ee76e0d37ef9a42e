"""All papers by name: a paper is a module with a `PAPER`, and a line here."""

from __future__ import annotations

from types import MappingProxyType

from papers import culler96, karamcheti94, strumpen94, wang98, yocum97

_ALL = (
    wang98.PAPER,
    yocum97.PAPER,
    strumpen94.PAPER,
    culler96.PAPER,
    karamcheti94.PAPER,
)
PAPERS = MappingProxyType({paper.name: paper for paper in _ALL})
