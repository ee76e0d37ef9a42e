"""All papers by name: a paper is a module with a `PAPER`, and a line here."""

from __future__ import annotations

from types import MappingProxyType

from papers import culler96, strumpen94, wang98, yocum97

PAPERS = MappingProxyType(
    {paper.name: paper for paper in (culler96.PAPER, strumpen94.PAPER, wang98.PAPER, yocum97.PAPER)}
)
